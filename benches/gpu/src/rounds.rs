//! Times several forms of the same work in turns.

use adead_core::Result;
use std::time::{Duration, Instant};

/// Returns the microseconds of each form: the median of rounds in which the forms take turns.
pub fn medians(forms: &mut [Box<dyn FnMut() -> Result<()> + '_>]) -> Result<Vec<f64>> {
    const ROUNDS: usize = 15;
    const ROUND: Duration = Duration::from_millis(40);
    let mut times = vec![Vec::new(); forms.len()];
    for round in 0..ROUNDS + 2 {
        for (form, times) in forms.iter_mut().zip(&mut times) {
            let (begin, mut count) = (Instant::now(), 0);
            while count < 3 || begin.elapsed() < ROUND {
                form()?;
                count += 1;
            }
            if round >= 2 {
                times.push(begin.elapsed().as_secs_f64() * 1e6 / f64::from(count));
            }
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    Ok(times.into_iter().map(median).collect())
}

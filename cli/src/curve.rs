//! A curve in plain text.

use std::fmt::Write;

const WIDTH: usize = 60;
const HEIGHT: usize = 10;
/// The ratio of the losses from which on the scale is logarithmic.
const SPREAD: f64 = 8.0;

/// Draws losses over steps: `.` for those of batches, `o` for those of `held_out`, both by step. Neighbours that share a column are
/// averaged. The text is empty if there is nothing finite to draw.
pub fn curve(batches: &[(u64, f64)], held_out: &[(u64, f64)]) -> String {
    let all = || batches.iter().chain(held_out).filter(|(_, loss)| loss.is_finite());
    let Some(first) = all().map(|it| it.0).min() else { return String::new() };
    let last = all().map(|it| it.0).max().unwrap_or(first);
    let column = |step: u64| ((step - first) as usize * (WIDTH - 1)).checked_div((last - first) as usize).unwrap_or(0);
    let columns = |points: &[(u64, f64)]| {
        let mut sums = [(0.0, 0u32); WIDTH];
        for &(step, loss) in points.iter().filter(|(_, loss)| loss.is_finite()) {
            let (sum, count) = &mut sums[column(step)];
            (*sum, *count) = (*sum + loss, *count + 1);
        }
        sums.map(|(sum, count)| (count > 0).then(|| sum / f64::from(count)))
    };
    let both = [(columns(batches), '.'), (columns(held_out), 'o')];
    let means = || both.iter().flat_map(|(columns, _)| columns).flatten();
    let (least, most) = means().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &x| (a.min(x), b.max(x)));
    // Otherwise the first steps would press the rest of the curve flat.
    let logarithmic = least > 0.0 && most > SPREAD * least;
    let place = |loss: f64| if logarithmic { loss.ln() } else { loss };
    let range = (place(most) - place(least)).max(1e-12);
    let mut rows = [[' '; WIDTH]; HEIGHT];
    for (columns, mark) in both {
        for (at, loss) in columns.into_iter().enumerate() {
            let Some(loss) = loss else { continue };
            let row = ((place(most) - place(loss)) / range * (HEIGHT - 1) as f64).round();
            rows[(row as usize).min(HEIGHT - 1)][at] = mark;
        }
    }
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let label = match number {
            0 => format!("{most:.4}"),
            number if number == HEIGHT - 1 => format!("{least:.4}"),
            _ => String::new(),
        };
        let row: String = row.iter().collect();
        let _ = writeln!(text, "{label:>10} |{}", row.trim_end());
    }
    let _ = writeln!(text, "{:>10} +{}", "", "-".repeat(WIDTH));
    let end = last.to_string();
    let _ = writeln!(text, "{:>10}  {:<2$}{end}", "", format!("step {first}"), WIDTH - end.len());
    let scale = if logarithmic { ", logarithmic scale" } else { "" };
    let _ = writeln!(text, "{:>10}  . loss of batches   o held-out loss after each epoch{scale}", "");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_falls_from_the_left_above_to_the_right_below() {
        let batches: Vec<(u64, f64)> = (1..=600).map(|step| (step, 7.0 - step as f64 / 100.0)).collect();
        let text = curve(&batches, &[(300, 6.0), (600, 5.0)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), HEIGHT + 3, "{text}");
        assert!(lines[0].starts_with("    6.9400 |....") && lines[9].starts_with("    1.0000 |"), "{text}");
        assert!(lines[1].ends_with(".                   o"), "{text}");
        assert_eq!(lines[11].split_whitespace().collect::<Vec<_>>(), ["step", "1", "600"], "{text}");
        assert!(lines[..12].iter().all(|line| line.chars().count() <= 72 && line.is_ascii()), "{text}");
    }

    #[test]
    fn few_points_and_none() {
        assert_eq!(curve(&[], &[]), "");
        assert_eq!(curve(&[(4, f64::NAN)], &[]), "");
        let text = curve(&[(7, 2.0)], &[(7, 2.0)]);
        assert!(text.starts_with("    2.0000 |o\n"), "{text}");
        // On a scale of their logarithms, 10 is in the middle of 1 and 100.
        let text = curve(&[(1, 100.0), (2, 10.0), (3, 1.0)], &[]);
        assert!(text.lines().nth(5).unwrap().contains('.') && text.ends_with(", logarithmic scale\n"), "{text}");
    }
}

//! Formatting of numbers and tables.

use std::time::Duration;

/// Formats a duration in the unit that suits it.
pub fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.2} µs", s * 1e6),
    }
}

/// Formats a size in the largest binary unit that it reaches.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 { format!("{value} {}", UNITS[unit]) } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// The rate per second in 10⁹: GFLOP/s for operations, GB/s for bytes. 0 if no time passed.
pub fn giga(amount: f64, duration: Duration) -> f64 {
    let seconds = duration.as_secs_f64();
    if seconds > 0.0 { amount / seconds / 1e9 } else { 0.0 }
}

/// The median of durations, the lower one of two. Sorts them.
pub fn median(durations: &mut [Duration]) -> Duration {
    durations.sort_unstable();
    durations.get(durations.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

/// Formats rows with aligned columns: the first `left` columns to the left, the others to the right.
pub fn table(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell: &String| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (i, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            line += if i > 0 { "  " } else { "" };
            line += &if i < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_the_unit_that_suits_them() {
        assert_eq!(time(Duration::from_nanos(1500)), "1.50 µs");
        assert_eq!(time(Duration::from_micros(1500)), "1.500 ms");
        assert_eq!(time(Duration::from_millis(1500)), "1.500 s");
        assert_eq!(bytes(0), "0 bytes");
        assert_eq!(bytes(1023), "1023 bytes");
        assert_eq!(bytes(4 << 20), "4 MiB");
        assert_eq!(bytes(3 << 29), "1.5 GiB");
        assert_eq!(bytes(u64::MAX), "16777216 TiB");
        assert_eq!(giga(2e9, Duration::from_millis(500)), 4.0);
        assert_eq!(giga(2e9, Duration::ZERO), 0.0);
    }

    #[test]
    fn the_median_of_an_even_count_is_the_lower_one() {
        let ms = Duration::from_millis;
        assert_eq!(median(&mut []), Duration::ZERO);
        assert_eq!(median(&mut [ms(3)]), ms(3));
        assert_eq!(median(&mut [ms(3), ms(1)]), ms(1));
        assert_eq!(median(&mut [ms(5), ms(1), ms(3)]), ms(3));
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["µ".into(), "1".into()], vec!["abc".into(), "22".into()]];
        assert_eq!(table(&rows, 1), "µ     1\nabc  22\n");
        assert_eq!(table(&[], 1), "");
    }
}

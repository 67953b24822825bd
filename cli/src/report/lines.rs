//! Plots of numbers over steps, as lines.

use super::plot::{WIDTH, escape, svg};
use std::fmt::Write;

/// The height of the area of the lines, and the space beside it for the numbers of the axis.
const HEIGHT: f64 = 170.0;
const LEFT: f64 = 44.0;
/// Points of a line at most. Neighbours of longer lines are averaged.
const POINTS: usize = 240;

/// A line: its class in the style sheet, and its points.
pub struct Line {
    pub class: &'static str,
    pub points: Vec<(f64, f64)>,
}

/// Draws lines with one scale. `along` names the axis below. Points that are not finite are left out.
pub fn lines(title: &str, along: &str, lines: &[Line]) -> String {
    let all = || lines.iter().flat_map(|line| &line.points).filter(|(x, y)| x.is_finite() && y.is_finite());
    let range = |of: fn(&(f64, f64)) -> f64| {
        all().map(of).fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)))
    };
    let ((first, last), (least, most)) = (range(|point| point.0), range(|point| point.1));
    if first > last {
        return String::new();
    }
    let step = tick(most - least, most);
    let (low, high) = ((least / step).floor() * step, (most / step).ceil() * step);
    let high = if high > low { high } else { low + step };
    let across = |x: f64| LEFT + (x - first) / (last - first).max(1e-12) * (WIDTH - LEFT - 6.0);
    let up = |y: f64| 8.0 + (high - y) / (high - low) * HEIGHT;
    let mut body = String::new();
    let _ = write!(
        body,
        r#"<rect class="lane" x="{LEFT}" y="8" width="{}" height="{HEIGHT}" opacity="0.4"/>"#,
        WIDTH - LEFT
    );
    let digits = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    for number in 0..=((high - low) / step).round() as usize {
        let value = low + number as f64 * step;
        let y = up(value);
        let _ = write!(body, r#"<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1}" y2="{y:.1}"/>"#);
        let _ = write!(body, r#"<text class="end" x="{}" y="{:.1}">{value:.digits$}</text>"#, LEFT - 5.0, y + 3.5);
    }
    let below = HEIGHT + 22.0;
    let _ = write!(body, r#"<text x="{LEFT}" y="{below}">{} {first}</text>"#, escape(along));
    let _ = write!(body, r#"<text class="end" x="{WIDTH}" y="{below}">{last}</text>"#);
    for line in lines {
        let points = thinned(&line.points);
        let _ = write!(body, r#"<polyline class="line {}" points=""#, line.class);
        for (x, y) in &points {
            let _ = write!(body, "{:.1},{:.1} ", across(*x), up(*y));
        }
        body += r#""/>"#;
        // A line of one point would not be seen.
        if let [(x, y)] = points[..] {
            let _ = write!(body, r#"<circle class="{}" cx="{:.1}" cy="{:.1}" r="2.5"/>"#, line.class, across(x), up(y));
        }
    }
    svg(title, HEIGHT + 26.0, &body)
}

/// The distance of grid lines for about five of them: 1, 2 or 5 times a power of ten.
fn tick(range: f64, most: f64) -> f64 {
    let range = if range > 0.0 { range } else { most.abs().max(1.0) };
    let power = 10f64.powf((range / 5.0).log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= range / 5.0).unwrap_or(10.0);
    factor * power
}

/// The means of neighbours, of as many as leave [`POINTS`] points at most.
pub fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let finite: Vec<(f64, f64)> = points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let together = finite.len().div_ceil(POINTS).max(1);
    let mean = |of: fn(&(f64, f64)) -> f64, some: &[(f64, f64)]| some.iter().map(of).sum::<f64>() / some.len() as f64;
    finite.chunks(together).map(|some| (mean(|it| it.0, some), mean(|it| it.1, some))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_share_a_scale_with_round_numbers() {
        let line = |points: &[(f64, f64)]| Line { class: "s0", points: points.to_vec() };
        let plot = lines("a < b", "step", &[line(&[(1.0, 2.3), (5.0, 0.4)]), line(&[(5.0, 1.0)])]);
        for part in [
            "aria-label=\"a &lt; b\"",
            ">step 1</text>",
            ">5</text>",
            ">0.0</text>",
            ">2.5</text>",
            "points=\"44.0,21.6 334.0,150.8 \"",
            "<circle class=\"s0\" cx=\"334.0\"",
        ] {
            assert!(plot.contains(part), "{part}: {plot}");
        }
        assert_eq!(lines("none", "step", &[line(&[]), line(&[(1.0, f64::NAN)])]), "");
        // All values are equal.
        assert!(lines("flat", "epoch", &[line(&[(1.0, 3.0), (2.0, 3.0)])]).contains("points=\"44.0,"));
    }

    #[test]
    fn long_lines_are_averaged() {
        let points: Vec<(f64, f64)> = (0..1000).map(|i| (f64::from(i), f64::from(i % 2))).collect();
        let few = thinned(&points);
        assert!(few.len() <= POINTS && few[0] == (2.0, 0.4) && few[1] == (7.0, 0.6), "{few:?}");
    }
}

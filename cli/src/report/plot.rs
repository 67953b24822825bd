//! Plots as SVG. They are as wide as a phone, so their text is readable there. Wider screens show them side by side.

use crate::format::time;
use adead::profile::Report;
use std::fmt::Write;
use std::time::Duration;

/// The width in units of the drawing. A phone shows about one unit per pixel.
pub const WIDTH: f64 = 340.0;
/// Space for a value after the longest bar.
const VALUE: f64 = 108.0;
const BAR: f64 = 13.0;

/// Escapes text for HTML and SVG.
pub fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            _ => out.push(c),
        }
    }
    out
}

/// A bar: its series, which selects the colour, its length, and the text after it.
pub struct Bar {
    pub series: usize,
    pub value: f64,
    pub text: String,
}

/// Draws bars in groups, each with a heading. All lengths share one scale from 0.
pub fn bars(title: &str, groups: &[(String, Vec<Bar>)]) -> String {
    let most = groups.iter().flat_map(|(_, bars)| bars).map(|bar| bar.value).fold(0.0, f64::max);
    let (mut body, mut y) = (String::new(), 0.0);
    for (label, bars) in groups {
        let _ = write!(body, r#"<text class="label" x="0" y="{}">{}</text>"#, y + 11.0, escape(label));
        y += 16.0;
        for Bar { series, value, text } in bars {
            let length = if most > 0.0 { (value / most * (WIDTH - VALUE)).max(1.0) } else { 1.0 };
            let (class, text) = (series % SERIES, escape(text));
            let _ =
                write!(body, r#"<rect class="s{class}" x="0" y="{y:.1}" width="{length:.1}" height="{BAR}" rx="2"/>"#);
            let _ = write!(body, r#"<text x="{:.1}" y="{:.1}">{text}</text>"#, length + 5.0, y + 10.5);
            y += BAR + 3.0;
        }
        y += 7.0;
    }
    svg(title, y, &body)
}

/// The number of colours in the style sheet.
pub const SERIES: usize = 6;

/// A bar made of parts: its heading, the lengths of its parts by series, and the text beside the heading.
pub struct Stack {
    pub label: String,
    pub parts: Vec<(usize, f64)>,
    pub text: String,
}

/// Draws bars made of parts, each as long as the plot is wide.
pub fn stacks(title: &str, stacks: &[Stack]) -> String {
    let (mut body, mut y) = (String::new(), 0.0);
    for Stack { label, parts, text } in stacks {
        let (label, text) = (escape(label), escape(text));
        let _ = write!(
            body,
            r#"<text class="label" x="0" y="{0}">{label}</text><text class="end" x="{WIDTH}" y="{0}">{text}</text>"#,
            y + 11.0
        );
        y += 16.0;
        let all: f64 = parts.iter().map(|part| part.1).sum();
        let mut x = 0.0;
        for (series, part) in parts {
            let length = if all > 0.0 { part / all * WIDTH } else { 0.0 };
            if length > 0.0 {
                let class = series % SERIES;
                let _ = write!(
                    body,
                    r#"<rect class="p{class}" x="{x:.1}" y="{y:.1}" width="{length:.1}" height="{BAR}"/>"#
                );
            }
            x += length;
        }
        y += BAR + 9.0;
    }
    svg(title, y, &body)
}

/// Draws what happened when: a lane for each device's work and one for its transfers.
pub fn timeline(title: &str, report: &Report) -> String {
    let times = || report.records.iter().filter_map(|record| Some((record, record.work?)));
    let first = times().map(|(_, work)| work.begin_ns).min().unwrap_or(0);
    let last = times().map(|(_, work)| work.end_ns).max().unwrap_or(0);
    let end = time(Duration::from_nanos(last - first));
    let scale = WIDTH / (last - first).max(1) as f64;
    let (mut body, mut y) = (String::new(), 0.0);
    for (i, device) in report.devices.iter().enumerate() {
        for transfers in [false, true] {
            let own = || times().filter(|(record, _)| record.device == i && record.activity.is_transfer() == transfers);
            if own().next().is_none() {
                continue;
            }
            let word = if transfers { "transfers" } else { "work" };
            let _ = write!(body, r#"<text class="label" x="0" y="{}">{} {word}</text>"#, y + 11.0, escape(&device.id));
            y += 16.0;
            let _ = write!(body, r#"<rect class="lane" x="0" y="{y}" width="{WIDTH}" height="{BAR}"/>"#);
            for (record, work) in own() {
                let (x, width) = ((work.begin_ns - first) as f64 * scale, (work.ns() as f64 * scale).max(0.5));
                let class = if transfers { 1 } else { 0 };
                let name = escape(&format!("{} {}", record.name, record.operands));
                let _ = write!(
                    body,
                    r#"<rect class="p{class} piece" x="{x:.2}" y="{y}" width="{width:.2}" height="{BAR}">"#
                );
                let _ = write!(body, "<title>{name}</title></rect>");
            }
            y += BAR + 8.0;
        }
    }
    let _ = write!(
        body,
        r#"<text x="0" y="{0}">0</text><text class="end" x="{WIDTH}" y="{0}">{1}</text>"#,
        y + 8.0,
        escape(&end)
    );
    svg(title, y + 12.0, &body)
}

/// A figure with its title and these shapes.
pub fn svg(title: &str, height: f64, body: &str) -> String {
    let title = escape(title);
    let svg = format!(r#"<svg viewBox="0 0 {WIDTH} {height:.1}" role="img" aria-label="{title}">{body}</svg>"#);
    format!("<figure><figcaption>{title}</figcaption>{svg}</figure>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_share_a_scale_and_text_is_escaped() {
        let bar = |series, value| Bar { series, value, text: format!("{value} <b>") };
        let plot = bars("a & b", &[("x".into(), vec![bar(0, 10.0), bar(7, 5.0)]), ("y".into(), vec![bar(1, 0.0)])]);
        for part in [
            "aria-label=\"a &amp; b\"",
            "class=\"s0\" x=\"0\" y=\"16.0\" width=\"232.0\"",
            "class=\"s1\" x=\"0\" y=\"32.0\" width=\"116.0\"",
            "width=\"1.0\"",
            "10 &lt;b&gt;",
        ] {
            assert!(plot.contains(part), "{part}: {plot}");
        }
        assert!(bars("none", &[]).contains("viewBox=\"0 0 340 0.0\""));
    }

    #[test]
    fn parts_fill_the_width() {
        let stack = Stack { label: "x".into(), parts: vec![(0, 1.0), (1, 0.0), (2, 3.0)], text: "4 ms".into() };
        let plot = stacks("parts", &[stack]);
        assert!(plot.contains("class=\"p0\" x=\"0.0\" y=\"16.0\" width=\"85.0\""), "{plot}");
        assert!(plot.contains("class=\"p2\" x=\"85.0\" y=\"16.0\" width=\"255.0\"") && !plot.contains("p1"), "{plot}");
    }
}

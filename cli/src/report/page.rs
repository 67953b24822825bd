//! The page: text, tables and plots in one file without external resources.

use super::plot::{Bar, SERIES, Stack, bars, escape, stacks, timeline};
use super::{Cell, Column, Comparison, version};
use crate::format::{bytes, giga, time};
use crate::info::device_text;
use adead::profile::{Report, Total};
use adead::{Op, hardware};
use std::env::consts::{ARCH, OS};
use std::fmt::Write;
use std::time::Duration;

const STYLE: &str = include_str!("style.css");

/// A whole page with this title, a line below it, and this body.
pub fn document(title: &str, below: &str, body: &str) -> String {
    let mut html = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    // Without an icon, a browser would request one from the server.
    html += "<link rel=\"icon\" href=\"data:,\">\n";
    let (title, below) = (escape(title), escape(below));
    let _ = write!(html, "<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n");
    let _ = writeln!(html, "<h1>{title}</h1>\n<p class=\"soft\">{below}</p>");
    html + body + "</main>\n</body>\n</html>\n"
}

/// Writes the whole page of a comparison.
pub fn page(it: &Comparison<'_>) -> String {
    let mut html = String::new();
    if !it.notes.is_empty() {
        let notes: Vec<String> = it.notes.iter().map(|note| escape(note)).collect();
        let _ = writeln!(html, "<p>{}</p>", notes.join("<br>"));
    }
    html += "<h2>Speed</h2>\n";
    html += &legend(it);
    html += "<div class=\"plots\">\n";
    html += &speed(it);
    html += "</div>\n<h2>Where the time goes</h2>\n";
    html += PARTS;
    html += &key(&[("p0", "work"), ("p1", "transfers"), ("p2", "rest of the call")]);
    html += "<div class=\"plots\">\n";
    it.columns.iter().for_each(|column| html += &parts(it, column));
    html += "</div>\n<h2>One run of each, in order</h2>\n<div class=\"plots\">\n";
    for column in &it.columns {
        html += &timeline(&format!("{}: work and transfers over time", column.id), &column.once);
    }
    html += "</div>\n<h2>Measurements</h2>\n";
    html += &measurements(it);
    html += "<h2>Where auto would run them</h2>\n";
    html += &choices(it);
    html += "<h2>Profiles</h2>\n";
    it.columns.iter().for_each(|column| html += &profile(&column.id, &column.once));
    html += "<h2>Machine</h2>\n";
    html += &machine(it);
    html += METHOD;
    document("adead bench", &format!("{}; f32; the same bits on every device", version()), &html)
}

const PARTS: &str = "<p>Of a call with operands and result in host memory, on average. The rest is launching, waiting, and \
fresh memory.</p>\n";

const METHOD: &str = "<h2>Method</h2>\n\
<p>Times are the median of repeated calls after one that is not counted; rates are of that median. A multiply-add is two \
operations; each operand is read or written once. The share of the peak is the time at the device's best rates, of \
arithmetic or of memory, whichever takes longer, over the time that the work took; work whose operands are in a cache can be \
above 100 %. Overlap is the share of the time in which at least two of work on the CPU, work on a GPU and transfers were under \
way. Work and transfers are from a profile of five runs after the others.</p>\n";

/// A legend: classes of the style sheet with their texts.
pub fn key(entries: &[(&str, &str)]) -> String {
    let mut html = String::from("<ul class=\"legend\">");
    for (class, text) in entries {
        let swatch = format!(
            r#"<svg viewBox="0 0 12 12" aria-hidden="true"><rect class="{class}" width="12" height="12" rx="2"/></svg>"#
        );
        let _ = write!(html, "<li>{swatch}{}</li>", escape(text));
    }
    html + "</ul>\n"
}

fn legend(it: &Comparison<'_>) -> String {
    let classes: Vec<String> = (0..it.columns.len()).map(|i| format!("s{}", i % SERIES)).collect();
    let texts: Vec<String> = it.columns.iter().map(title).collect();
    let entries: Vec<(&str, &str)> = classes.iter().zip(&texts).map(|(class, text)| (&**class, &**text)).collect();
    key(&entries)
}

/// A device's id and name.
fn title(column: &Column) -> String {
    match column.devices.first() {
        Some(info) if column.id != "hybrid" => format!("{}: {}", column.id, info.name.trim()),
        _ => format!("{}: the CPU and a GPU together", column.id),
    }
}

/// Whether arithmetic limits an operation, rather than memory.
fn is_arithmetic(op: Op) -> bool {
    matches!(op, Op::Matmul | Op::Attention | Op::Ffn)
}

/// Bars of one figure by device, for the rows that have it.
fn chart(it: &Comparison<'_>, title: &str, unit: &str, of: impl Fn(Op, &Cell) -> Option<f64>) -> String {
    let mut groups = Vec::new();
    for (i, row) in it.rows.iter().enumerate() {
        let mut bars = Vec::new();
        for (series, column) in it.columns.iter().enumerate() {
            let Some(value) = column.cells[i].as_ref().and_then(|cell| of(row.op, cell)) else { continue };
            let id = if it.columns.len() > 1 { format!(" {}", column.id) } else { String::new() };
            bars.push(Bar { series, value, text: format!("{} {unit}{id}", number(value)) });
        }
        if !bars.is_empty() {
            groups.push((row.name.clone(), bars));
        }
    }
    if groups.is_empty() { String::new() } else { bars(title, &groups) }
}

fn speed(it: &Comparison<'_>) -> String {
    let arithmetic = |op, cell: &Cell| is_arithmetic(op).then(|| giga(cell.measured.flops, cell.measured.median));
    let memory = |op, cell: &Cell| (!is_arithmetic(op)).then(|| giga(cell.measured.bytes, cell.measured.median));
    let mut html = chart(it, "Arithmetic, GFLOP/s of a call", "", arithmetic);
    html += &chart(it, "Memory, GB/s of a call", "", memory);
    html += &chart(it, "Share of the device's peak while it works", "%", |_, cell| Some(cell.of_peak? * 100.0));
    if let Some(cpu) = it.columns.iter().find(|column| column.id == "cpu").filter(|_| it.columns.len() > 1) {
        let mut rows = it.rows.iter().zip(&cpu.cells);
        let mut against = Vec::new();
        for (i, (row, cell)) in rows.by_ref().enumerate() {
            let Some(cell) = cell else { continue };
            let mut group = Vec::new();
            for (series, column) in it.columns.iter().enumerate() {
                let Some(other) = &column.cells[i] else { continue };
                let value = cell.measured.median.as_secs_f64() / other.measured.median.as_secs_f64().max(1e-9);
                group.push(Bar { series, value, text: format!("{} {}", number(value), column.id) });
            }
            against.push((row.name.clone(), group));
        }
        html += &bars("Times as fast as the CPU", &against);
    }
    html
}

fn parts(it: &Comparison<'_>, column: &Column) -> String {
    let mut list = Vec::new();
    for (row, cell) in it.rows.iter().zip(&column.cells) {
        let Some(cell) = cell else { continue };
        let whole = cell.measured.median.as_nanos() as f64;
        let rest = (whole - cell.work_ns - cell.transfer_ns).max(0.0);
        list.push(Stack {
            label: row.name.clone(),
            parts: vec![(0, cell.work_ns), (1, cell.transfer_ns), (2, rest)],
            text: time(cell.measured.median),
        });
    }
    stacks(&column.id, &list)
}

/// Three significant digits, or all digits before the point.
fn number(value: f64) -> String {
    match value {
        _ if value >= 99.95 => format!("{value:.0}"),
        _ if value >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn share(value: Option<f64>) -> String {
    value.map_or("–".into(), |share| format!("{} %", number(share * 100.0)))
}

/// A table in a box that scrolls. Columns from `numbers` on are aligned to the right.
pub fn table(caption: &str, head: &[&str], numbers: usize, rows: &[Vec<String>]) -> String {
    let label = escape(caption);
    let mut html = format!("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table>");
    let _ = write!(html, "<caption>{label}</caption><thead><tr>");
    let class = |i: usize| if i >= numbers { " class=\"n\"" } else { "" };
    for (i, cell) in head.iter().enumerate() {
        let _ = write!(html, "<th scope=\"col\"{}>{}</th>", class(i), escape(cell));
    }
    html += "</tr></thead><tbody>\n";
    for row in rows {
        html += "<tr>";
        for (i, cell) in row.iter().enumerate() {
            let tag = if i == 0 { "th scope=\"row\"" } else { "td" };
            let _ = write!(html, "<{tag}{}>{}</{}>", class(i), escape(cell), &tag[..2]);
        }
        html += "</tr>\n";
    }
    html + "</tbody></table></div>\n"
}

fn measurements(it: &Comparison<'_>) -> String {
    let head = [
        "operation",
        "device",
        "median",
        "best",
        "runs",
        "GFLOP/s",
        "GB/s",
        "of peak",
        "work",
        "transfers",
        "up",
        "down",
        "overlap",
    ];
    let ns = |ns: f64| if ns > 0.0 { time(Duration::from_nanos(ns as u64)) } else { "–".into() };
    let size = |amount: f64| if amount > 0.0 { bytes(amount as u64) } else { "–".into() };
    let mut rows = Vec::new();
    for (i, row) in it.rows.iter().enumerate() {
        for column in &it.columns {
            let Some(cell) = &column.cells[i] else { continue };
            let measured = &cell.measured;
            rows.push(vec![
                row.name.clone(),
                column.id.clone(),
                time(measured.median),
                time(measured.best),
                measured.runs.to_string(),
                if measured.flops > 0.0 { number(giga(measured.flops, measured.median)) } else { "–".into() },
                number(giga(measured.bytes, measured.median)),
                share(cell.of_peak),
                ns(cell.work_ns),
                ns(cell.transfer_ns),
                size(cell.uploaded),
                size(cell.downloaded),
                share(Some(cell.overlap)),
            ]);
        }
    }
    table("Every operation on every device", &head, 2, &rows)
}

fn choices(it: &Comparison<'_>) -> String {
    let rows: Vec<Vec<String>> = it
        .rows
        .iter()
        .zip(&it.choices)
        .map(|(row, (device, why))| vec![row.name.clone(), device.clone(), why.clone()])
        .collect();
    table("With operands in host memory", &["operation", "device", "why"], 3, &rows)
}

fn profile(id: &str, report: &Report) -> String {
    let ns = |total: &Total, ns: f64| {
        if total.timed > 0 { time(Duration::from_nanos(ns as u64)) } else { "–".into() }
    };
    let known = |value: f64| if value > 0.0 { number(value) } else { "–".into() };
    let mut rows = Vec::new();
    for total in &report.totals {
        rows.push(vec![
            total.name.to_string(),
            report.devices[total.device].id.clone(),
            total.reason.to_string(),
            total.count.to_string(),
            ns(total, total.ns as f64),
            ns(total, total.mean_ns()),
            known(total.gflops()),
            known(total.gbytes()),
            share(Some(total.of_peak()).filter(|&share| share > 0.0)),
        ]);
    }
    let head = ["name", "device", "why", "count", "total", "mean", "GFLOP/s", "GB/s", "of peak"];
    let overlap = share(Some(report.overlap()));
    table(&format!("{id}: one run of each; overlap {overlap}"), &head, 3, &rows) + "<p></p>\n"
}

fn machine(it: &Comparison<'_>) -> String {
    let found = hardware::detect();
    let (cpu, memory) = (&found.cpu, &found.memory);
    let mut rows = vec![
        ("system".to_string(), format!("{ARCH}, {OS}")),
        ("processor".into(), format!("{} ({} cores, {} threads)", cpu.model.trim(), cpu.cores, cpu.threads)),
        ("memory".into(), bytes(memory.total)),
    ];
    for column in &it.columns {
        for info in &column.devices {
            let text = format!("{}, {}, contract {}", info.name.trim(), device_text(info), info.contract.name());
            rows.push((column.id.clone(), text));
        }
        if let Some(figures) = &column.figures {
            let peak = figures.peak();
            let text = format!("{} GFLOP/s, {} GB/s", number(peak.gflops), number(peak.gbytes));
            rows.push((format!("{} peak", column.id), format!("{text} ({})", figures.source)));
        }
    }
    facts(&rows)
}

/// Names with their texts.
pub fn facts(rows: &[(String, String)]) -> String {
    let mut html = String::from("<dl>");
    for (name, text) in rows {
        let _ = write!(html, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(text));
    }
    html + "</dl>\n"
}

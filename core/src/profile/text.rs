//! A report as text: JSON, a trace in Chrome's format, a table. One small writer produces them all, because formatting each value
//! separately would be large code.

use super::record::{Activity, Record, Span};
use super::report::{DeviceUse, Report, Total};
use crate::dispatch::{Tenths, Time};
use crate::fpenv::DefaultEnvironment;
use crate::hal::DeviceKind;
use std::fmt::{self, Write};

/// JSON under construction. It inserts the commas.
struct Json(String);

impl Json {
    fn next(&mut self) {
        if !self.0.is_empty() && !self.0.ends_with(['{', '[', ':']) {
            self.0.push(',');
        }
    }

    fn open(&mut self, bracket: char) {
        self.next();
        self.0.push(bracket);
    }

    fn close(&mut self, bracket: char) {
        self.0.push(bracket);
    }

    fn key(&mut self, name: &str) {
        self.text(name);
        self.0.push(':');
    }

    fn text(&mut self, text: &str) {
        self.next();
        self.0.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.0.extend(['\\', c]),
                '\0'..=' ' if c != ' ' => {
                    let _ = write!(self.0, "\\u{:04x}", c as u32);
                }
                _ => self.0.push(c),
            }
        }
        self.0.push('"');
    }

    fn number(&mut self, value: u64) {
        self.next();
        let _ = write!(self.0, "{value}");
    }

    /// Writes a number of at least 0 with six decimals.
    fn decimal(&mut self, value: f64) {
        let (mut whole, mut rest) = (value as u64, ((value - (value as u64) as f64) * 1e6 + 0.5) as u64);
        if rest > 999_999 {
            (whole, rest) = (whole + 1, 0);
        }
        self.number(whole);
        if rest > 0 {
            let _ = write!(self.0, ".{rest:06}");
        }
    }

    fn field(&mut self, name: &str, text: &str) {
        self.key(name);
        self.text(text);
    }

    fn numbers(&mut self, fields: &[(&str, u64)]) {
        for &(name, value) in fields {
            self.key(name);
            self.number(value);
        }
    }

    fn decimals(&mut self, fields: &[(&str, f64)]) {
        for &(name, value) in fields {
            self.key(name);
            self.decimal(value);
        }
    }

    fn span(&mut self, name: &str, span: Span) {
        self.key(name);
        self.open('{');
        self.numbers(&[("begin_ns", span.begin_ns), ("end_ns", span.end_ns)]);
        self.close('}');
    }

    fn list<T>(&mut self, name: &str, items: &[T], write: impl Fn(&mut Json, &T)) {
        self.key(name);
        self.open('[');
        for item in items {
            self.open('{');
            write(self, item);
            self.close('}');
        }
        self.close(']');
    }
}

impl Report {
    /// Writes the report as JSON: an object with `ns`, `busy_ns`, `overlapped_ns`, `overlap`, `dropped`, and the lists `devices`,
    /// `totals` and `records`, whose fields have the names of the structs' fields.
    pub fn to_json(&self) -> String {
        let _environment = DefaultEnvironment::enter();
        let mut json = Json(String::new());
        json.open('{');
        json.field("version", crate::VERSION);
        let Report { ns, busy_ns, overlapped_ns, dropped, .. } = *self;
        json.numbers(&[("ns", ns), ("busy_ns", busy_ns), ("overlapped_ns", overlapped_ns), ("dropped", dropped)]);
        json.decimals(&[("overlap", self.overlap())]);
        json.list("devices", &self.devices, |json, device| {
            let DeviceUse { work_ns, uploaded, downloaded, .. } = *device;
            json.field("id", &device.id);
            json.numbers(&[("work_ns", work_ns), ("uploaded", uploaded), ("downloaded", downloaded)]);
            if let Some(figures) = &device.figures {
                let peak = figures.peak();
                json.decimals(&[("peak_gflops", peak.gflops), ("peak_gbytes", peak.gbytes)]);
                json.numbers(&[("calibrated", device.is_calibrated().into())]);
                json.field("figures", &figures.source.to_string());
            }
        });
        json.list("totals", &self.totals, |json, total| {
            let Total { activity, device, count, timed, ns, min_ns, max_ns, flops, bytes, .. } = *total;
            json.field("activity", activity.name());
            json.field("name", &total.name);
            json.field("device", &self.devices[device].id);
            json.field("reason", &total.reason.to_string());
            json.numbers(&[("count", count), ("timed", timed), ("ns", ns), ("min_ns", min_ns), ("max_ns", max_ns)]);
            json.numbers(&[("flops", flops as u64), ("bytes", bytes as u64)]);
            let (mean, share) = (total.mean_ns(), total.of_peak());
            json.decimals(&[("mean_ns", mean), ("gflops", total.gflops()), ("gbytes", total.gbytes())]);
            json.decimals(&[("of_peak", share)]);
        });
        json.list("records", &self.records, |json, record| {
            json.field("activity", record.activity.name());
            json.field("name", &record.name);
            self.details(json, record);
            json.numbers(&[("thread", record.thread as u64), ("stream", record.stream as u64)]);
            json.span("host", record.host);
            if let Some(work) = record.work {
                json.span("work", work);
            }
        });
        json.close('}');
        json.0
    }

    /// Writes the fields of a record that JSON and traces share.
    fn details(&self, json: &mut Json, record: &Record) {
        json.field("device", &self.devices[record.device].id);
        json.field("reason", &record.reason.to_string());
        json.field("operands", &record.operands);
        json.numbers(&[("flops", record.flops as u64), ("bytes", record.bytes as u64)]);
        if let Some(cycles) = record.cycles {
            json.numbers(&[("cycles", cycles)]);
        }
    }

    /// Writes the report as a trace in Chrome's format, for Perfetto and chrome://tracing. One process shows the host's calls to
    /// GPUs with a row for each thread. One process for each device shows its threads (CPU) or streams (GPU). Times are in
    /// microseconds.
    pub fn to_trace(&self) -> String {
        let _environment = DefaultEnvironment::enter();
        let mut json = Json(String::new());
        json.open('{');
        json.field("displayTimeUnit", "ns");
        json.key("traceEvents");
        json.open('[');
        let name = |json: &mut Json, process: usize, name: &str| {
            json.open('{');
            json.field("name", "process_name");
            json.field("ph", "M");
            json.numbers(&[("pid", process as u64), ("tid", 0)]);
            json.key("args");
            json.open('{');
            json.field("name", name);
            json.close('}');
            json.close('}');
        };
        name(&mut json, 0, "host");
        for (i, device) in self.devices.iter().enumerate() {
            name(&mut json, i + 1, &device.id);
        }
        for record in &self.records {
            let on_cpu = self.devices[record.device].id == DeviceKind::Cpu.name();
            let call = (!on_cpu).then_some(("call", 0, record.thread, record.host));
            let row = if on_cpu { record.thread } else { record.stream };
            let work = record.work.map(|work| (record.activity.name(), record.device + 1, row, work));
            for (category, process, row, span) in call.into_iter().chain(work) {
                json.open('{');
                json.field("name", &record.name);
                json.field("cat", category);
                json.field("ph", "X");
                json.numbers(&[("pid", process as u64), ("tid", row as u64)]);
                json.decimals(&[("ts", span.begin_ns as f64 / 1e3), ("dur", span.ns() as f64 / 1e3)]);
                json.key("args");
                json.open('{');
                self.details(&mut json, record);
                json.close('}');
                json.close('}');
            }
        }
        json.close(']');
        json.close('}');
        json.0
    }
}

/// The table's columns. The first `LEFT` are aligned to the left.
const COLUMNS: usize = 11;
const LEFT: usize = 3;

const HEAD: [&str; COLUMNS] =
    ["name", "device", "why", "count", "total", "mean", "min", "max", "GFLOP/s", "GB/s", "of peak"];

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _environment = DefaultEnvironment::enter();
        let mut rows = vec![HEAD.map(String::from)];
        for total in &self.totals {
            let timed = |text: &dyn fmt::Display| if total.timed > 0 { text.to_string() } else { "-".into() };
            let known = |value: f64, unit: &str| {
                if value > 0.0 { timed(&Tenths(value)) + unit } else { "-".into() }
            };
            rows.push([
                total.name.clone().into_owned(),
                self.devices[total.device].id.clone(),
                total.reason.to_string(),
                total.count.to_string(),
                timed(&Time(total.ns as f64)),
                timed(&Time(total.mean_ns())),
                timed(&Time(total.min_ns as f64)),
                timed(&Time(total.max_ns as f64)),
                known(total.gflops(), ""),
                known(total.gbytes(), ""),
                known(total.of_peak() * 100.0, " %"),
            ]);
        }
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; COLUMNS] = std::array::from_fn(width);
        for row in &rows {
            for (i, (cell, width)) in row.iter().zip(widths).enumerate() {
                let pad = width - cell.chars().count();
                let (before, after) = if i < LEFT { (0, pad) } else { (pad, 0) };
                let gap = if i > 0 { 2 } else { 0 };
                write!(f, "{0:1$}{cell}{0:2$}", "", gap + before, after)?;
            }
            f.write_str("\n")?;
        }
        for device in &self.devices {
            let DeviceUse { id, work_ns, uploaded, downloaded, .. } = device;
            write!(f, "{id}: {} of work, {uploaded} bytes up, {downloaded} bytes down", Time(*work_ns as f64))?;
            if let Some(figures) = &device.figures {
                let peak = figures.peak();
                let (gflops, gbytes) = (Tenths(peak.gflops), Tenths(peak.gbytes));
                write!(f, "; peak {gflops} GFLOP/s, {gbytes} GB/s ({})", figures.source)?;
            }
            f.write_str("\n")?;
        }
        let (ns, busy) = (Time(self.ns as f64), Time(self.busy_ns as f64));
        let overlap = Tenths(self.overlap() * 100.0);
        write!(f, "{} records in {ns}; busy for {busy}, {overlap} % of it overlapped", self.records.len())?;
        if self.dropped > 0 {
            write!(f, "; {} more were dropped", self.dropped)?;
        }
        f.write_str("\n")
    }
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Reason;
    use super::*;
    use serde_json::Value;

    #[test]
    fn any_name_is_valid_json_and_comes_back() {
        for name in ["", "\"", "\\", "a\"b\\c", "\0\u{1}\n\r\t\u{1f}", "é✓𝄞", "</script>", "{[:,"] {
            let record = Record {
                activity: Activity::Kernel,
                name: name.to_string().into(),
                operands: name.into(),
                device: 0,
                reason: Reason::Stream,
                thread: 1,
                stream: 2,
                host: Span { begin_ns: 1_500, end_ns: 4_001 },
                work: Some(Span { begin_ns: 2_000, end_ns: 3_000 }),
                cycles: None,
                flops: 0.0,
                bytes: 0.0,
            };
            let device = DeviceUse { id: "cuda:0".into(), figures: None, work_ns: 0, uploaded: 0, downloaded: 0 };
            let report = Report { records: vec![record], devices: vec![device], ..Report::default() };
            let json: Value = serde_json::from_str(&report.to_json()).unwrap();
            assert_eq!((&json["records"][0]["name"], &json["records"][0]["operands"]), (&name.into(), &name.into()));
            let trace: Value = serde_json::from_str(&report.to_trace()).unwrap();
            let events = trace["traceEvents"].as_array().unwrap();
            let complete: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
            assert_eq!(complete.len(), 2, "the call and the work");
            let at = |event: &Value| ["pid", "tid", "ts", "dur"].map(|key| event[key].as_f64().unwrap());
            assert_eq!((at(complete[0]), at(complete[1])), ([0.0, 1.0, 1.5, 2.501], [1.0, 2.0, 2.0, 1.0]));
            assert!(complete.iter().all(|event| event["name"] == name));
        }
    }

    #[test]
    fn decimals_have_six_digits_at_most() {
        for (value, text) in [
            (0.0, "0"),
            (0.5, "0.500000"),
            (0.000_000_4, "0"),
            (0.999_999_6, "1"),
            (12.000_001, "12.000001"),
            (1e15, "1000000000000000"),
        ] {
            let mut json = Json(String::new());
            json.decimal(value);
            assert_eq!(json.0, text);
        }
    }
}

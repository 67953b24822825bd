//! The profiler: what it records, what it does not, and what a report shows. The GPU is the one that `ADEAD_TEST_BACKEND` names.
//! Without a GPU that part says so and passes.

mod backend;

use adead_core::contract::Precision;
use adead_core::dispatch::{DeviceProfile, Why};
use adead_core::gpu::Operand;
use adead_core::profile::{Activity, DeviceUse, Reason, Record, Report, Span, Total};
use adead_core::{Attrs, Context, DType, Gpu, MatmulOptions, Meta, Op, Shape, Status, Tensor};
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;
use std::{env, fs};

fn cpu() -> Context {
    Context::open("cpu").unwrap()
}

fn ones(dims: &[usize]) -> Tensor {
    Tensor::new(&vec![1f32; dims.iter().product()], dims).unwrap()
}

fn meta(dims: &[usize]) -> Meta {
    Meta::new(DType::F32, Shape::new(dims).unwrap())
}

/// Checks that spans end after they begin, that work lies within the profile, and that totals equal the sums of the records.
fn check(report: &Report) {
    let mut moved = vec![(0, 0); report.devices.len()];
    for record in &report.records {
        assert!(record.host.begin_ns <= record.host.end_ns && record.host.end_ns <= report.ns, "{record:?}");
        assert!(record.work.is_none_or(|work| work.begin_ns <= work.end_ns), "{record:?}");
        match record.activity {
            Activity::Upload => moved[record.device].0 += record.bytes as u64,
            Activity::Download => moved[record.device].1 += record.bytes as u64,
            _ => {}
        }
    }
    let sums: Vec<(u64, u64)> = report.devices.iter().map(|device| (device.uploaded, device.downloaded)).collect();
    assert_eq!(sums, moved);
    assert_eq!(report.totals.iter().map(|total| total.count).sum::<u64>(), report.records.len() as u64);
    for total in &report.totals {
        let of_total = |record: &&Record| {
            (record.activity, &record.name, record.device, record.reason)
                == (total.activity, &total.name, total.device, total.reason)
        };
        let records: Vec<&Record> = report.records.iter().filter(of_total).collect();
        let timed = || records.iter().filter(|record| record.work.is_some());
        let ns = || timed().map(|record| record.work.unwrap().ns());
        assert_eq!((total.count, total.timed), (records.len() as u64, timed().count() as u64));
        assert_eq!((total.ns, total.max_ns), (ns().sum(), ns().max().unwrap_or(0)));
        assert_eq!(total.min_ns, ns().min().unwrap_or(0));
        assert_eq!(total.flops, timed().map(|record| record.flops).sum::<f64>());
        assert_eq!(total.bytes, timed().map(|record| record.bytes).sum::<f64>());
    }
    assert!(report.totals.is_sorted_by(|a, b| a.ns >= b.ns));
    assert!(report.overlapped_ns <= report.busy_ns && (0.0..=1.0).contains(&report.overlap()));
    check_text(report);
}

/// Checks that the texts agree with the report.
fn check_text(report: &Report) {
    let json: Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(json["ns"], report.ns);
    assert_eq!(json["dropped"], report.dropped);
    let ids: Vec<&str> = json["devices"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids, report.devices.iter().map(|device| device.id.as_str()).collect::<Vec<_>>());
    let records = json["records"].as_array().unwrap();
    assert_eq!(records.len(), report.records.len());
    for (json, record) in records.iter().zip(&report.records) {
        let text = [record.activity.name(), &record.name, ids[record.device], &record.operands];
        let keys = ["activity", "name", "device", "operands"];
        assert_eq!(keys.map(|key| json[key].as_str().unwrap()), text);
        assert_eq!(json["reason"], record.reason.to_string());
        let numbers = ["flops", "bytes", "thread", "stream"].map(|key| json[key].as_u64().unwrap());
        let expected = [record.flops as u64, record.bytes as u64, record.thread as u64, record.stream as u64];
        assert_eq!(numbers, expected);
        let host = ["begin_ns", "end_ns"].map(|key| json["host"][key].as_u64().unwrap());
        assert_eq!(host, [record.host.begin_ns, record.host.end_ns]);
        assert_eq!(json["work"]["end_ns"].as_u64(), record.work.map(|work| work.end_ns));
        assert_eq!(json["cycles"].as_u64(), record.cycles);
    }
    let totals = json["totals"].as_array().unwrap();
    assert_eq!(totals.len(), report.totals.len());
    for (json, total) in totals.iter().zip(&report.totals) {
        let numbers = ["count", "ns", "min_ns", "max_ns", "flops", "bytes"].map(|key| json[key].as_u64().unwrap());
        let expected = [total.count, total.ns, total.min_ns, total.max_ns, total.flops as u64, total.bytes as u64];
        assert_eq!(numbers, expected);
        assert!((json["gflops"].as_f64().unwrap() - total.gflops()).abs() < 1e-5);
        assert!((json["of_peak"].as_f64().unwrap() - total.of_peak()).abs() < 1e-5);
    }
    let trace: Value = serde_json::from_str(&report.to_trace()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of_kind = |kind: &str| events.iter().filter(|event| event["ph"] == kind).count();
    assert_eq!(of_kind("M"), 1 + report.devices.len());
    let on_gpu = report.records.iter().filter(|record| ids[record.device] != "cpu").count();
    let worked = report.records.iter().filter(|record| record.work.is_some()).count();
    assert_eq!(of_kind("X"), on_gpu + worked);
    for event in events.iter().filter(|event| event["ph"] == "X") {
        assert!(event["ts"].as_f64().unwrap() >= 0.0 && event["dur"].as_f64().unwrap() >= 0.0, "{event}");
        assert!(event["pid"].as_u64().unwrap() <= ids.len() as u64 && event["tid"].is_u64(), "{event}");
    }
    let table = report.to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 1 + report.totals.len() + report.devices.len() + 1, "{table}");
    let columns = lines[0].chars().count();
    for (line, total) in lines[1..].iter().zip(&report.totals) {
        assert!(line.starts_with(&*total.name) && line.chars().count() == columns, "{table}");
    }
}

#[test]
fn operations_leave_what_they_did() {
    let ctx = cpu();
    let (a, b) = (ones(&[2, 3]), ones(&[3, 4]));
    let profile = ctx.profile().unwrap();
    let product = ctx.matmul(&a, &b).unwrap();
    ctx.matmul(&a, &b).unwrap();
    ctx.softmax(&product, -1).unwrap();
    let report = profile.finish();
    check(&report);
    assert_eq!((report.records.len(), report.dropped, report.devices.len()), (3, 0, 1));
    let first = &report.records[0];
    assert_eq!((first.activity, &*first.name), (Activity::Operation, "matmul"));
    assert_eq!(first.operands, "f32[2, 3], f32[3, 4] -> f32[2, 4]");
    assert_eq!((first.flops, first.bytes), (48.0, 4.0 * (6.0 + 12.0 + 8.0)));
    assert_eq!((first.thread, first.stream, first.reason.to_string().as_str()), (0, 0, "only device"));
    assert_eq!(first.work, Some(first.host));
    assert_eq!(first.cycles.is_some(), cfg!(target_arch = "x86_64"));
    assert_eq!(report.records[2].operands, "f32[2, 4] -> f32[2, 4]");
    let matmul = report.totals.iter().find(|total| total.name == "matmul").unwrap();
    assert_eq!((matmul.count, matmul.timed, matmul.flops, matmul.bytes), (2, 2, 96.0, 208.0));
    let cpu = &report.devices[0];
    assert_eq!((cpu.id.as_str(), cpu.uploaded, cpu.downloaded), ("cpu", 0, 0));
    assert_eq!(cpu.work_ns, report.totals.iter().map(|total| total.ns).sum::<u64>());
    assert_eq!(report.overlapped_ns, 0, "one thread of the CPU alone");
    assert_eq!(report.busy_ns, cpu.work_ns);
    let figures = cpu.figures.as_ref().unwrap();
    assert_eq!(figures, &ctx.dispatcher().profiles()[0]);
    assert!(matmul.least_ns > 0.0);
}

#[test]
fn names_say_a_precision_that_is_not_f32() {
    let (ctx, a, b) = (cpu(), ones(&[2, 3]), ones(&[3, 4]));
    let with = |precision| MatmulOptions { precision: Some(precision), ..MatmulOptions::default() };
    let plain = ctx.pack(&b, false).unwrap();
    ctx.set_precision(Precision::Fixed16);
    let packed = ctx.pack(&b, false).unwrap();
    let profile = ctx.profile().unwrap();
    ctx.matmul_with(&a, &b, with(Precision::F32)).unwrap();
    ctx.matmul_with(&a, &b, with(Precision::Fixed24)).unwrap();
    // What a call doesn't say comes from the context, or from its packed matrix.
    let product = ctx.matmul(&a, &b).unwrap();
    ctx.relu(&product).unwrap();
    ctx.matmul_packed(&a, &plain, MatmulOptions::default()).unwrap();
    ctx.matmul_packed(&a, &packed, MatmulOptions::default()).unwrap();
    let mut pipeline = ctx.pipeline();
    let x = pipeline.input(DType::F32, &[2, 3]).unwrap();
    let weight = pipeline.constant(&b).unwrap();
    let product = pipeline.op(Op::Matmul, &Attrs::default(), &[Some(x), Some(weight)]).unwrap();
    let activated = pipeline.op(Op::Relu, &Attrs::default(), &[Some(product)]).unwrap();
    pipeline.output(activated).unwrap();
    let compiled = pipeline.compile().unwrap();
    assert!(compiled.to_string().contains("matmul fixed16+relu("), "{compiled}");
    compiled.run(&[&a]).unwrap();
    let report = profile.finish();
    check(&report);
    let names: Vec<&str> = report.records.iter().map(|record| &*record.name).collect();
    let expected =
        ["matmul", "matmul fixed24", "matmul fixed16", "relu", "matmul", "matmul fixed16", "matmul fixed16+relu"];
    assert_eq!(names, expected);
    assert!(report.totals.iter().any(|total| total.name == "matmul fixed24" && total.count == 1));
    assert!(report.to_json().contains("\"matmul fixed24\"") && report.to_string().contains("matmul fixed24"));
}

#[test]
fn nothing_is_recorded_without_a_profile_or_of_another_context() {
    let (ctx, other) = (cpu(), cpu());
    let x = ones(&[8]);
    ctx.relu(&x).unwrap();
    let profile = ctx.profile().unwrap();
    other.relu(&x).unwrap();
    let report = profile.finish();
    check(&report);
    assert_eq!((report.records.len(), report.devices.len()), (0, 0));
    ctx.relu(&x).unwrap();
    let profile = ctx.profile().unwrap();
    // A clone counts as the same context.
    ctx.clone().relu(&x).unwrap();
    let report = profile.finish();
    assert_eq!(report.records.len(), 1);
    assert_eq!(report.records[0].operands, "f32[8] -> f32[8]");
}

#[test]
fn a_context_has_one_profile_at_a_time() {
    let (ctx, other) = (cpu(), cpu());
    let profile = ctx.profile().unwrap();
    let error = ctx.clone().profile().err().unwrap();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert_eq!(error.message(), "a profile of this context is under way: finish it before the next one");
    other.profile().unwrap().finish();
    // The refused profile did not end this one.
    ctx.relu(&ones(&[8])).unwrap();
    assert_eq!(profile.finish().records.len(), 1);
    drop(ctx.profile().unwrap());
    assert_eq!(ctx.profile().unwrap().finish().records.len(), 0);
}

#[test]
fn records_beyond_the_limit_are_counted() {
    let ctx = cpu();
    let x = ones(&[8]);
    for (limit, kept) in [(0, 0), (3, 3), (10, 10), (11, 10)] {
        let profile = ctx.profile_with(limit).unwrap();
        (0..10).for_each(|_| drop(ctx.relu(&x).unwrap()));
        let report = profile.finish();
        assert_eq!((report.records.len(), report.dropped), (kept, 10 - kept as u64));
        check(&report);
        assert_eq!(report.to_string().contains(" more were dropped"), kept < 10);
    }
}

#[test]
fn what_fails_leaves_nothing() {
    let ctx = cpu();
    let table = ones(&[4, 2]);
    let ids = Tensor::new(&[9i32], &[1]).unwrap();
    let profile = ctx.profile().unwrap();
    assert!(ctx.matmul(&table, &table).is_err(), "shapes");
    assert!(ctx.run(Op::Embedding, &Attrs::default(), &[Some(&table), Some(&ids)]).is_err(), "an id outside");
    assert_eq!(profile.finish().records.len(), 0);
}

#[test]
fn threads_record_side_by_side() {
    let ctx = cpu();
    let x = ones(&[64]);
    let profile = ctx.profile().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| drop(ctx.relu(&x).unwrap())));
        }
    });
    let report = profile.finish();
    check(&report);
    assert_eq!(report.records.len(), 200);
    let threads: HashSet<usize> = report.records.iter().map(|record| record.thread).collect();
    assert_eq!(threads, (0..4).collect());
    for thread in threads {
        let own: Vec<&Record> = report.records.iter().filter(|record| record.thread == thread).collect();
        assert_eq!(own.len(), 50);
        assert!(own.windows(2).all(|pair| pair[0].host.end_ns <= pair[1].host.begin_ns), "one after the other");
    }
}

#[test]
fn profiles_begin_and_end_while_others_work() {
    let ctx = cpu();
    let x = ones(&[64]);
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..2).map(|_| scope.spawn(|| (0..2000).for_each(|_| drop(ctx.relu(&x).unwrap())))).collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            check(&ctx.profile_with(20).unwrap().finish());
        }
    });
}

#[test]
fn buffers_and_streams_of_the_cpu_are_recorded() {
    let ctx = cpu();
    let profile = ctx.profile().unwrap();
    let (x, y) = (ctx.buffer(&[1f32; 16]).unwrap(), ctx.buffer_zeroed(64).unwrap());
    let (mut stream, meta) = (ctx.stream().unwrap(), meta(&[16]));
    let operand = |buffer| Operand { buffer, offset: 0, meta: &meta };
    stream.run(Op::Relu, &Attrs::default(), &[Some(operand(&x))], operand(&y)).unwrap();
    stream.copy((&x, 0), (&y, 32), 8).unwrap();
    stream.clear(&y, 0, 4).unwrap();
    y.to_vec::<f32>().unwrap();
    let report = profile.finish();
    check(&report);
    let kinds: Vec<(Activity, f64, usize)> =
        report.records.iter().map(|record| (record.activity, record.bytes, record.stream)).collect();
    let number = report.records[1].stream;
    assert!(number > 0);
    let expected = [
        (Activity::Upload, 64.0, 0),
        (Activity::Operation, 128.0, number),
        (Activity::Copy, 8.0, number),
        (Activity::Clear, 4.0, number),
        (Activity::Download, 64.0, 0),
    ];
    assert_eq!(kinds, expected);
    assert_eq!((report.devices[0].uploaded, report.devices[0].downloaded), (64, 64));
}

#[test]
fn a_gpu_tells_times_and_transfers() {
    let backend = backend::backend();
    let gpu = match Gpu::open(&backend) {
        Ok(gpu) => gpu,
        Err(error) if error.status() == Status::BackendUnavailable => {
            backend::skip(&backend, &error);
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let (a, b) = (ones(&[32, 48]), ones(&[48, 16]));
    let packed = gpu.pack(&b, false).unwrap();
    let profile = gpu.profile().unwrap();
    // A direct call moves its operands, and its result when it is read.
    gpu.matmul(&a, &b).unwrap().host_bytes().unwrap();
    gpu.matmul_packed(&a, &packed, MatmulOptions::default()).unwrap();
    let (x, y) = (gpu.buffer(&[2f32; 256]).unwrap(), gpu.buffer_zeroed(1024).unwrap());
    let (mut stream, meta) = (gpu.stream().unwrap(), meta(&[256]));
    let operand = |buffer| Operand { buffer, offset: 0, meta: &meta };
    stream.upload(&x, 0, &[0; 512]).unwrap();
    stream.run(Op::Relu, &Attrs::default(), &[Some(operand(&x))], operand(&y)).unwrap();
    // Recording commands is no work; replaying them is.
    let recording =
        stream.record(|stream| stream.run(Op::Relu, &Attrs::default(), &[Some(operand(&x))], operand(&y))).unwrap();
    stream.replay(&recording).unwrap();
    let download = stream.download(&y, 0, 1024).unwrap();
    download.to_bytes().unwrap();
    stream.synchronize().unwrap();
    let report = profile.finish();
    check(&report);
    let own = &gpu.device_info().id;
    let index = report.devices.iter().position(|device| device.id == *own).unwrap();
    let list: Vec<(&str, f64, &str)> = report
        .records
        .iter()
        .map(|record| (&*record.name, record.bytes, report.devices[record.device].id.as_str()))
        .collect();
    let (a_bytes, b_bytes, c_bytes) = (4.0 * 32.0 * 48.0, 4.0 * 48.0 * 16.0, 4.0 * 32.0 * 16.0);
    let all = a_bytes + b_bytes + c_bytes;
    let own = own.as_str();
    let expected = [
        ("upload", a_bytes, own),
        ("upload", b_bytes, own),
        ("matmul", all, own),
        ("download", c_bytes, own),
        ("matmul", all, "cpu"),
        ("upload", 1024.0, own),
        ("upload", 512.0, own),
        ("relu", 2048.0, own),
        ("replay", 0.0, own),
        ("download", 1024.0, own),
    ];
    assert_eq!(list, expected);
    assert_eq!((report.records[2].operands.as_str(), report.records[2].flops), {
        ("f32[32, 48], f32[48, 16] -> f32[32, 16]", 2.0 * 32.0 * 48.0 * 16.0)
    });
    assert_eq!((report.records[0].operands.as_str(), report.records[4].reason), ("matmul", Reason::Packed));
    assert_eq!(report.records[7].reason, Reason::Stream);
    let times = report.records.iter().filter(|record| record.device == index && record.work.is_some()).count();
    assert_eq!(times, expected.len() - 1, "every piece of work on the GPU has a time: {report}");
    let device = &report.devices[index];
    assert_eq!(device.uploaded as f64, a_bytes + b_bytes + 1536.0);
    assert_eq!(device.downloaded as f64, c_bytes + 1024.0);
    // Work on a stream is ordered, also by the device's clock.
    let work = |i: usize| report.records[i].work.unwrap();
    for pair in [[0, 1], [1, 2], [2, 3], [6, 7], [7, 8], [8, 9]] {
        assert!(work(pair[0]).end_ns <= work(pair[1]).end_ns, "{pair:?}");
    }
    // More work than there are unread timestamps.
    let profile = gpu.profile().unwrap();
    for _ in 0..400 {
        stream.run(Op::Relu, &Attrs::default(), &[Some(operand(&x))], operand(&y)).unwrap();
    }
    stream.synchronize().unwrap();
    let report = profile.finish();
    check(&report);
    assert_eq!((report.totals[0].count, report.totals[0].timed), (400, 400));
}

/// A report with every feature that a text can show.
fn fixture() -> Report {
    let mut known = DeviceProfile::reference("mid").unwrap();
    known.id = "cuda:0".into();
    let device = |id: &str, figures| DeviceUse { id: id.into(), figures, work_ns: 999_499, uploaded: 7, downloaded: 0 };
    let devices = vec![device("cpu", None), device("cuda:0", Some(known))];
    let reasons = [
        Reason::Chosen(Why::Only),
        Reason::Chosen(Why::Forced),
        Reason::Chosen(Why::Threshold(4096)),
        Reason::Chosen(Why::Cheapest),
        Reason::Operands,
        Reason::Packed,
        Reason::Stream,
        Reason::Split,
        Reason::Fallback,
    ];
    let names = ["matmul", "a \"b\" \\ c", "\n\t\u{1f}\u{7f}", "é✓𝄞", ""];
    let (mut records, mut totals) = (Vec::new(), Vec::new());
    for (i, activity) in Activity::ALL.into_iter().cycle().take(18).enumerate() {
        let at = 1_234_567 * i as u64;
        let work = Some(Span { begin_ns: at + 1_000, end_ns: at + 1_000 + 10u64.pow(i as u32 / 2) });
        records.push(Record {
            activity,
            name: names[i % 5].into(),
            operands: ["f32[2, 3] -> f32[2, 3]", "", "4 x 1 x 1 workgroups"][i % 3].into(),
            device: i % 2,
            reason: reasons[i % 9],
            thread: i / 5,
            stream: i / 7,
            host: Span { begin_ns: at, end_ns: at + 15 * i as u64 },
            work: work.filter(|_| i % 4 != 3),
            cycles: if i % 3 == 0 { Some(i as u64 * 1_000) } else { None },
            flops: i as f64 * 1.75e9,
            bytes: if i == 5 { 0.0 } else { i as f64 * 1e6 + 0.5 },
        });
        let ns = [0, 1, 999, 1_000, 99_949, 99_950, 999_499, 999_500, 12_345_678, 999_499_999, 999_500_000][i % 11];
        let timed = if i == 4 { 0 } else { 3 };
        let (flops, bytes, least_ns) = (i as f64 * 3.7e6, i as f64 * 1e5 / 3.0, i as f64 * 123.456);
        let (name, reason) = (names[(i + 2) % 5].into(), reasons[i % 9]);
        let (min_ns, max_ns) = (ns / 3, ns);
        let device = i % 2;
        let count = 3 + i as u64;
        totals.push(Total { activity, name, device, reason, count, timed, ns, min_ns, max_ns, flops, bytes, least_ns });
    }
    Report { records, totals, devices, dropped: 5, ns: 98_765_432_109, busy_ns: 7_000_001, overlapped_ns: 1_234_567 }
}

/// The texts equal the files in tests/profile. `ADEAD_BLESS=1` writes the files.
#[test]
fn texts_stay_as_they_are() {
    let report = fixture();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/profile");
    let (table, json, trace) = (report.to_string(), report.to_json(), report.to_trace());
    for (name, expected) in [("table.txt", table), ("report.json", json), ("trace.json", trace)] {
        let path = folder.join(name);
        if env::var_os("ADEAD_BLESS").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &expected).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == expected, "{name} is out of date: ADEAD_BLESS=1 cargo test -p adead-core --test profile");
    }
}

/// A finished profile stays finished, whatever profile begins next.
#[test]
fn a_finished_profile_leaves_the_next_one_alone() {
    let ctx = cpu();
    let x = ones(&[2, 2]);
    let first = ctx.profile().unwrap();
    ctx.relu(&x).unwrap();
    assert_eq!(first.finish().records.len(), 1);
    let next = ctx.profile().unwrap();
    ctx.relu(&x).unwrap();
    drop(ctx.profile().err().expect("one at a time"));
    ctx.relu(&x).unwrap();
    assert_eq!(next.finish().records.len(), 2);
}

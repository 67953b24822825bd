//! Tests of the dispatcher on made-up machines: a processor, GPUs with launch costs and a bus.

use super::*;
use crate::command::Command;
use crate::contract::{BlockFormat, Precision};
use crate::hal::Buffer;
use crate::hal::cpu::{CpuDevice, Isa};
use crate::operand::{Meta, Place, View, ViewMut};
use crate::{Attrs, DType, Family, Op, OpKind, Shape, Status};
use std::ptr::NonNull;
use std::sync::Arc;

/// A processor with some threads.
pub(super) fn cpu() -> DeviceProfile {
    let mut cpu = DeviceProfile::reference("integrated").unwrap();
    cpu.id = "cpu".into();
    cpu.kind = Kind::Cpu;
    cpu.rates = [(250.0, 40.0), (100.0, 40.0), (60.0, 50.0), (60.0, 50.0), (40.0, 40.0), (10.0, 10.0)]
        .map(|(gflops, gbytes)| Rate { gflops, gbytes });
    (cpu.launch_ns, cpu.wake_ns, cpu.alone, cpu.alone_memory) = (100.0, 5_000.0, 0.5, 0.6);
    (cpu.cache_bytes, cpu.cache_gain, cpu.memory) = (1e6, 3.0, 0);
    cpu
}

pub(super) fn named(id: &str, reference: &str) -> DeviceProfile {
    DeviceProfile { id: id.into(), ..DeviceProfile::reference(reference).unwrap() }
}

fn machine() -> AutoDispatcher {
    AutoDispatcher::new(vec![cpu(), named("cuda:0", "datacentre")]).unwrap()
}

pub(super) fn metas(shapes: &[&[usize]]) -> Vec<Option<&'static Meta>> {
    // Leaked: there are few tests.
    let meta = |dims: &&[usize]| Some(&*Box::leak(Box::new(Meta::new(DType::F32, Shape::new(dims).unwrap()))));
    shapes.iter().map(meta).collect()
}

fn task(op: Op, shapes: &[&[usize]]) -> Task {
    let (inputs, attrs) = (metas(shapes), Attrs::default());
    let output = op.info().infer(&attrs, &inputs).unwrap();
    Task::new(op, &attrs, &inputs, &output)
}

/// Draws wild but valid machines and tasks.
pub(super) struct Draw(pub u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    /// Draws log-uniformly between two powers of two.
    fn between(&mut self, low: i32, high: i32) -> f64 {
        let unit = self.next() as f64 / (1u64 << 31) as f64;
        (f64::from(low) + unit * f64::from(high - low)).exp2()
    }

    fn profile(&mut self, id: String, kind: Kind) -> DeviceProfile {
        let mut profile = DeviceProfile { id, kind, ..DeviceProfile::reference("mid").unwrap() };
        profile.launch_ns = self.between(4, 16);
        profile.wake_ns = self.between(0, 14);
        profile.alone = self.between(-6, 0);
        profile.alone_memory = self.between(-3, 0);
        profile.cache_bytes = self.between(10, 26);
        profile.cache_gain = self.between(0, 4);
        profile.memory = 0;
        for link in [&mut profile.upload, &mut profile.download] {
            *link = Link { latency_ns: self.between(0, 14), gbytes: self.between(-1, 8) };
        }
        for rate in &mut profile.rates {
            *rate = Rate { gflops: self.between(-1, 17), gbytes: self.between(0, 13) };
        }
        profile
    }

    pub(super) fn machine(&mut self, gpus: usize) -> AutoDispatcher {
        let mut profiles = vec![self.profile("cpu".into(), Kind::Cpu)];
        for i in 0..gpus {
            let kind = if self.next().is_multiple_of(2) { Kind::Integrated } else { Kind::Discrete };
            profiles.push(self.profile(format!("gpu:{i}"), kind));
        }
        AutoDispatcher::new(profiles).unwrap()
    }
}

#[test]
fn small_work_stays_and_large_products_go() {
    let machine = machine();
    let chosen = |op, shapes: &[&[usize]]| machine.choose_task(&task(op, shapes)).device;
    assert_eq!(chosen(Op::Matmul, &[&[4, 4], &[4, 4]]), 0);
    assert_eq!(chosen(Op::Matmul, &[&[64, 64], &[64, 64]]), 0);
    assert_eq!(chosen(Op::Matmul, &[&[2048, 2048], &[2048, 2048]]), 1);
    assert_eq!(chosen(Op::Relu, &[&[16]]), 0);
    // The transfers cost more than the GPU saves.
    assert_eq!(chosen(Op::Relu, &[&[1 << 20]]), 0);
    assert_eq!(chosen(Op::Attention, &[&[16, 4096, 64], &[16, 4096, 64], &[16, 4096, 64]]), 1);
}

#[test]
fn where_the_data_is_changes_the_choice() {
    let machine = machine();
    let mut relu = task(Op::Relu, &[&[1 << 22]]);
    assert_eq!(machine.choose_task(&relu).device, 0);
    relu.operands[0].at = machine.place(1);
    relu.output.at = Places::NOWHERE;
    assert_eq!(machine.choose_task(&relu).device, 1, "on the GPU it stays there");
    assert_eq!(machine.estimate(&relu, 1).transfer_ns, 0.0);
    relu.output.at = Places::HOST;
    let back = machine.estimate(&relu, 1);
    assert!(back.transfer_ns > back.compute_ns && back.transfer_bytes == (4 << 22) as f64, "wanted here it comes back");
    let mut small = task(Op::Relu, &[&[1 << 14]]);
    small.operands[0].at = machine.place(1).and(Places::HOST);
    assert_eq!(machine.choose_task(&small).device, 0, "a copy on each side and the result wanted here");
    let mut product = task(Op::Matmul, &[&[512, 512], &[512, 512]]);
    let away = machine.estimate(&product, 1).transfer_ns;
    product.operands[0].at = machine.place(1);
    let half = machine.estimate(&product, 1).transfer_ns;
    assert!(half < away && half > 0.0);
    assert_eq!(machine.place(0), Places::HOST);
}

#[test]
fn a_command_is_priced_with_its_operands_where_they_are() {
    struct Far(String);
    // SAFETY: it has no address.
    unsafe impl Buffer for Far {
        fn size(&self) -> usize {
            1 << 24
        }
        fn device_name(&self) -> &str {
            &self.0
        }
        fn host_pointer(&self) -> Option<NonNull<u8>> {
            None
        }

        fn as_any(&self) -> &dyn std::any::Any {
            self
        }
    }
    let machine = machine();
    let meta = Meta::new(DType::F32, Shape::new(&[1 << 22]).unwrap());
    let buffers: [Arc<dyn Buffer>; 2] = [Arc::new(Far("cuda:0".into())), Arc::new(Far("cuda:0".into()))];
    let inputs = [Some(View::buffer(&*buffers[0], 0, &meta).unwrap())];
    let output = ViewMut::buffer(&*buffers[1], 0, &meta).unwrap();
    assert!(matches!(output.place(), Place::Buffer(..)));
    let there = Command::new(Op::Relu, Attrs::default(), &inputs, output).unwrap();
    assert_eq!(machine.task(&there).operands[0].at, Places::device(1));
    assert_eq!(machine.choose(&there), Decision { device: 1, why: Why::Cheapest });
    let (x, mut y) = (vec![0f32; 1 << 22], vec![0f32; 1 << 22]);
    let inputs = [Some(View::f32(&x, &meta).unwrap())];
    let here = Command::new(Op::Relu, Attrs::default(), &inputs, ViewMut::f32(&mut y, &meta).unwrap()).unwrap();
    assert_eq!(machine.choose(&here).device, 0);
    let explanation = machine.explain(&here);
    assert_eq!((explanation.id(), explanation.elements, explanation.family), ("cpu", 1 << 22, Family::Elementwise));
}

#[test]
fn memory_that_is_too_small_is_not_chosen() {
    let mut gpu = named("cuda:0", "datacentre");
    gpu.memory = 3 * 4 * 2048 * 2048 - 1;
    let machine = AutoDispatcher::new(vec![cpu(), gpu]).unwrap();
    let product = task(Op::Matmul, &[&[2048, 2048], &[2048, 2048]]);
    assert_eq!(machine.choose_task(&product).device, 0);
    let text = machine.explain_task(&product).to_string();
    assert!(text.contains("don't fit in the memory of cuda:0") && text.contains("(its memory is too small)"), "{text}");
}

#[test]
fn thresholds_are_obeyed_to_the_element() {
    let machine =
        AutoDispatcher::new(vec![cpu(), named("vulkan:0", "integrated"), named("cuda:0", "datacentre")]).unwrap();
    assert_eq!(machine.threshold(Family::Function), None);
    machine.set_threshold(Family::Function, Some(1000));
    assert_eq!(machine.threshold(Family::Function), Some(1000));
    assert_eq!((machine.select(999), machine.select(1000), machine.select(usize::MAX)), (0, 2, 2));
    assert_eq!(machine.steps(Family::Function), [(0, Some(1000)), (2, None)]);
    let exp = |n| machine.choose_task(&task(Op::Exp, &[&[n]]));
    assert_eq!(exp(999), Decision { device: 0, why: Why::Threshold(1000) });
    assert_eq!(exp(1000), Decision { device: 2, why: Why::Threshold(1000) });
    assert_eq!(
        machine.explain_task(&task(Op::Exp, &[&[10]])).reason,
        "10 elements, fewer than the threshold of function, 1000"
    );
    assert_eq!(machine.choose_task(&task(Op::Relu, &[&[1000]])).why, Why::Cheapest, "another family");
    machine.set_threshold(Family::Function, Some(0));
    assert_eq!((machine.select(0), exp(1).device), (2, 2));
    machine.set_threshold(Family::Function, Some(usize::MAX));
    assert_eq!((machine.select(1 << 50), exp(1 << 30).device), (0, 0));
    machine.set_threshold(Family::Function, None);
    assert_eq!(exp(1000).why, Why::Cheapest);
    assert!(machine.steps(Family::Function).len() <= 7);
    // Without a GPU a threshold has no effect.
    let alone = AutoDispatcher::new(vec![cpu()]).unwrap();
    alone.set_threshold(Family::Function, Some(10));
    assert_eq!((alone.select(100), alone.choose_task(&task(Op::Exp, &[&[100]])).why), (0, Why::Only));
}

#[test]
fn a_forced_device_takes_all() {
    let machine = machine();
    assert_eq!(machine.forced(), None);
    machine.force(Some("cuda:0")).unwrap();
    machine.set_threshold(Family::Matmul, Some(1 << 40));
    assert_eq!(machine.forced(), Some(1));
    let tiny = task(Op::Matmul, &[&[2, 2], &[2, 2]]);
    assert_eq!(machine.choose_task(&tiny), Decision { device: 1, why: Why::Forced });
    assert_eq!((machine.select(1), machine.select_for(Family::Matmul, 1)), (1, 1));
    let explanation = machine.explain_task(&tiny);
    assert_eq!((explanation.reason.as_str(), explanation.estimates.len()), ("cuda:0 was forced", 2));
    let error = machine.force(Some("cuda:1")).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert_eq!(error.message(), "no device 'cuda:1': the devices are cpu, cuda:0");
    assert_eq!(machine.forced(), Some(1), "a failed call changes nothing");
    machine.force(None).unwrap();
    assert_eq!(machine.choose_task(&tiny), Decision { device: 0, why: Why::Threshold(1 << 40) });
}

#[test]
fn machines_that_make_no_sense_are_refused() {
    let message = |profiles| AutoDispatcher::new(profiles).unwrap_err().message().to_string();
    assert_eq!(message(vec![]), "a dispatcher has 1 to 62 devices, not 0");
    assert_eq!(message(vec![cpu(); 63]), "a dispatcher has 1 to 62 devices, not 63");
    assert_eq!(message(vec![cpu(), cpu()]), "two devices have the id 'cpu'");
    assert!(message(vec![DeviceProfile { alone: f64::NAN, ..cpu() }]).contains("alone of cpu is NaN"));
    let many = (0..62).map(|i| if i == 0 { cpu() } else { named(&format!("cuda:{i}"), "mid") }).collect();
    let many = AutoDispatcher::new(many).unwrap();
    assert_eq!(many.choose_task(&task(Op::Matmul, &[&[2048, 2048], &[2048, 2048]])).device, 1, "the first of equals");
}

#[test]
fn explanations_have_the_numbers() {
    let machine = machine();
    let explanation = machine.explain_task(&task(Op::Matmul, &[&[4, 4], &[4, 4]]));
    assert_eq!((explanation.id(), explanation.cost.flops, explanation.cost.bytes), ("cpu", 128.0, 192.0));
    assert!(explanation.reason.starts_with("cuda:0 would take "), "{}", explanation.reason);
    assert!(explanation.reason.ends_with(" of it moving data"), "{}", explanation.reason);
    let text = explanation.to_string();
    assert!(text.starts_with("cpu: cuda:0 would take ") && text.lines().count() == 4, "{text}");
    assert!(text.contains("\nmatmul, 16 elements, 128 operations, 192 bytes\ncpu: 10"), "{text}");
    let mut launched = task(Op::Matmul, &[&[4, 4], &[4, 4]]);
    launched.operands.iter_mut().for_each(|item| item.at = machine.place(1).and(Places::HOST));
    launched.output.at = Places::NOWHERE;
    assert!(machine.explain_task(&launched).reason.ends_with(" of it launching"));
    let large = machine.explain_task(&task(Op::Matmul, &[&[4096, 4096], &[4096, 4096]]));
    assert!(large.id() == "cuda:0" && large.reason.starts_with("cpu would take "), "{large}");
    assert!(large.reason.ends_with(" ms"), "computing is what takes the time: {}", large.reason);
    assert!(large.estimate().total_ns() < large.estimates[0].total_ns());
    let mut exact = task(Op::Matmul, &[&[4096, 4096], &[4096, 4096]]);
    exact.precision = Precision::Fixed24;
    let exact = machine.explain_task(&exact);
    assert!(exact.id() == "cuda:0" && exact.reason.ends_with("; fixed24 by 32-bit integers"), "{exact}");
    assert!(exact.estimate().compute_ns > 4.0 * large.estimate().compute_ns);
}

#[test]
fn units_of_exact_integers_follow_the_device() {
    for (arch, unit, fixed16) in [
        ("sm_90", "wgmma", 500.0),
        ("sm_120", "mma.sync", 300.0),
        ("sm_80", "mma.sync", 300.0),
        ("sm_75", "dp4a", 80.0),
        ("sm_61", "dp4a", 80.0),
        ("sm_60", "32-bit integers", 33.0),
        ("vulkan 1.3", "32-bit integers", 33.0),
        ("vulkan 1.4 + int8 matrices", "cooperative matrices", 200.0),
        ("", "32-bit integers", 33.0),
    ] {
        let exact = Exact::of_gpu(arch, 100.0);
        assert_eq!(exact.unit, unit, "{arch}");
        assert_eq!(exact.rate_of(Family::Matmul, Precision::F32), None);
        let attention = exact.rate_of(Family::Attention, Precision::Fixed16).unwrap();
        assert!(attention < fixed16 && exact.rate_of(Family::Matmul, Precision::Fixed16) == Some(fixed16), "{arch}");
        assert_eq!(exact.unit_of(Family::Attention), if unit == "wgmma" { "mma.sync" } else { unit });
    }
    for isa in Isa::available() {
        let profile = DeviceProfile::of_cpu(&CpuDevice::open(Some(isa), Some(2)).unwrap());
        let units: &[&str] = match isa {
            Isa::Avx512 => &["AMX", "VNNI", "f64"],
            _ => &["f64"],
        };
        assert!(units.contains(&profile.exact.unit), "{isa:?}: {:?}", profile.exact);
    }
}

#[test]
fn steps_agree_with_the_cost_model() {
    let mut draw = Draw(1);
    for round in 0..300 {
        let machine = draw.machine(1 + round % 3);
        for family in Family::ALL {
            for _ in 0..20 {
                let n = draw.between(0, 39) as usize;
                let (quick, task) = (machine.select_for(family, n), Task::typical(family, n));
                let exact = machine.choose_task(&task).device;
                if machine.profiles().len() == 2 && quick != exact {
                    // Costs may cross twice between two powers of two. They differ little there.
                    let [a, b] = [quick, exact].map(|device| machine.estimate(&task, device).total_ns());
                    assert!(a <= b * 1.5, "{family} {n}: {a} against {b}");
                }
            }
            let steps = machine.steps(family);
            assert!(steps.is_sorted_by(|a, b| a.1.unwrap_or(usize::MAX) < b.1.unwrap_or(usize::MAX)), "{steps:?}");
            assert!(steps.last().unwrap().1.is_none());
        }
    }
}

#[test]
fn costs_grow_with_the_work_and_large_products_stay_on_the_faster_device() {
    let mut draw = Draw(2);
    for _ in 0..200 {
        let machine = draw.machine(1);
        for family in Family::ALL {
            let mut before = [0.0; 2];
            for power in 0..40 {
                let task = Task::typical(family, 1 << power);
                for device in 0..2 {
                    let now = machine.estimate(&task, device).total_ns();
                    assert!(now >= before[device], "{family} {power}");
                    before[device] = now;
                }
            }
        }
        // A GPU that is chosen for products of some size is chosen for larger ones, if it multiplies faster.
        let rate = |device: usize| machine.profiles()[device].rate(Family::Matmul).gflops;
        if rate(1) > rate(0) && machine.select_for(Family::Matmul, 1 << 26) == 1 {
            assert_eq!(machine.select_for(Family::Matmul, 1 << 39), 1);
        }
    }
}

#[test]
fn the_chosen_device_is_never_dearer_than_another() {
    let mut draw = Draw(3);
    for round in 0..500 {
        let machine = draw.machine(round % 4);
        let family = Family::ALL[round % Family::COUNT];
        let mut task = Task::typical(family, draw.between(0, 32) as usize);
        let mut place = |n: usize| match draw.next() as usize % (n + 2) {
            0 => Places::HOST,
            i if i <= n => machine.place(i.min(machine.profiles().len() - 1)),
            _ => Places::HOST.and(machine.place(machine.profiles().len() - 1)),
        };
        task.operands.iter_mut().for_each(|item| item.at = place(3));
        task.output.at = place(3);
        let estimates = machine.estimates(&task);
        let chosen = machine.choose_task(&task).device;
        assert!(estimates.iter().all(|other| other.total_ns() >= estimates[chosen].total_ns()));
    }
}

#[test]
fn what_is_done_before_others_begin_is_the_hosts() {
    let (mut draw, mut known, mut tiny) = (Draw(7), [0, 0], 0);
    for round in 0..3000 {
        let precision = Some(Precision::ALL[round % 9 / 3]);
        let machine = draw.machine(1 + round % 3);
        let (n, op) = (draw.between(0, 9) as usize, [Op::Matmul, Op::Relu, Op::Add][round % 3]);
        let dims = Shape::new(&[n, n]).unwrap();
        let (meta, values) = (Meta::new(DType::F32, dims), vec![0f32; n * n]);
        let x = Some(View::f32(&values, &meta).unwrap());
        let (inputs, mut result) = ([x, x], vec![0f32; n * n]);
        let inputs = if op == Op::Relu { &inputs[..1] } else { &inputs[..] };
        let attrs = Attrs { precision: precision.filter(|_| op == Op::Matmul), ..Attrs::default() };
        let command = Command::new(op, attrs, inputs, ViewMut::f32(&mut result, &meta).unwrap()).unwrap();
        let done = machine.done_before_others_begin(&command);
        known[usize::from(done)] += 1;
        tiny += usize::from(machine.is_tiny(&command));
        assert!(done || !machine.is_tiny(&command), "{op} of {n}");
        assert!(!done || machine.choose(&command).device == 0, "{op} of {n}");
        machine.force(Some(&machine.profiles()[1].id)).unwrap();
        assert!(!machine.done_before_others_begin(&command) && !machine.is_tiny(&command), "what is forced is obeyed");
        machine.force(None).unwrap();
        machine.set_threshold(op.family(), Some(1));
        assert!(!machine.done_before_others_begin(&command) && !machine.is_tiny(&command), "a threshold is obeyed");
    }
    assert!(known.iter().all(|&n| n > 300) && tiny > 100, "{known:?}, {tiny}");
}

#[test]
fn what_one_thread_sets_others_may_read_meanwhile() {
    let machine = machine();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..2000 {
                machine.set_threshold(Family::Function, [None, Some(i)][i % 2]);
                machine.force([None, Some("cuda:0"), Some("cpu")][i % 3]).unwrap();
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                for i in 0..20_000 {
                    assert!(machine.select(i) < 2);
                    assert!(machine.choose_task(&Task::typical(Family::Function, i)).device < 2);
                }
            });
        }
    });
}

#[test]
fn every_operation_has_a_work_that_fits_its_family() {
    for &op in Op::ALL {
        let shapes: &[&[usize]] = match op {
            Op::Dot => &[&[64], &[64]],
            Op::Matmul | Op::Concat => &[&[8, 8], &[8, 8]],
            _ if matches!(op.kind(), OpKind::Binary | OpKind::Comparison) => &[&[8, 8], &[8, 8]],
            Op::Attention => &[&[2, 8, 8], &[2, 8, 8], &[2, 8, 8]],
            Op::Ffn | Op::Embedding | Op::Gather | Op::Where | Op::QuantizedMatmul | Op::Dequantize => continue,
            Op::Rope => &[&[8, 8], &[8, 4], &[8, 4]],
            Op::Pad => &[&[8, 8], &[1]],
            _ => &[&[8, 8]],
        };
        let attrs = Attrs { dtype: Some(DType::F32), ..Attrs::default() };
        let attrs = if matches!(op, Op::Cast) { attrs } else { Attrs::default() };
        let inputs = metas(shapes);
        let output = op.info().infer(&attrs, &inputs).unwrap();
        let task = Task::new(op, &attrs, &inputs, &output);
        assert_eq!(task.cost.flops > 0.0, op.family() != Family::Move, "{op}");
        assert!(task.cost.bytes >= output.bytes() as f64 && task.elements >= 64, "{op}");
        let per_element = task.cost.flops / task.elements as f64;
        match op.family() {
            Family::Function => assert!((10.0..100.0).contains(&per_element), "{op}"),
            Family::Elementwise => assert!(per_element <= 3.0, "{op}"),
            _ => {}
        }
    }
    // Matrices of blocks are bytes.
    let (x, w) = (Shape::new(&[3, 64]).unwrap(), Shape::new(&[5, 2 * 34]).unwrap());
    let (x, w) = (Meta::new(DType::F32, x), Meta::new(DType::U8, w));
    let attrs = Attrs { format: Some(BlockFormat::Q8_0), ..Attrs::default() };
    for (op, inputs, flops, bytes) in [
        (Op::QuantizedMatmul, &[Some(&x), Some(&w)][..], 2 * 3 * 5 * 64, 4 * 3 * 64 + 5 * 68 + 4 * 3 * 5),
        (Op::Dequantize, &[Some(&w)], 0, 5 * 68 + 4 * 5 * 64),
    ] {
        let task = Task::new(op, &attrs, inputs, &op.info().infer(&attrs, inputs).unwrap());
        assert_eq!((task.cost.flops, task.cost.bytes), (flops as f64, bytes as f64), "{op}");
    }
    // Only the rows that are looked up are read, not the whole table.
    let (table, ids) = (Shape::new(&[50_000, 768]).unwrap(), Shape::new(&[16]).unwrap());
    let inputs = [Meta::new(DType::F32, table), Meta::new(DType::I64, ids)];
    let inputs = [Some(&inputs[0]), Some(&inputs[1])];
    let output = Op::Embedding.info().infer(&Attrs::default(), &inputs).unwrap();
    let task = Task::new(Op::Embedding, &Attrs::default(), &inputs, &output);
    assert_eq!(task.cost.bytes, (2 * 16 * 768 * 4 + 16 * 8) as f64);
    assert_eq!(task.operands[0].bytes, 50_000 * 768 * 4, "but all of it has to be there");
}

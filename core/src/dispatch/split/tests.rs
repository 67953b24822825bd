//! Tests of division on made-up machines.

use super::super::tests::{Draw, cpu, metas, named};
use super::*;
use crate::isa::Isa;
use crate::operand::Meta;
use crate::{Attrs, Op};

/// Calls `body` with an operation on operands of these shapes, cut.
fn with_cut<R>(op: Op, shapes: &[&[usize]], body: impl FnOnce(&Cut<'_>, &Task) -> R) -> R {
    let (attrs, inputs) = (Attrs::default(), metas(shapes));
    let output: Meta = op.info().infer(&attrs, &inputs).unwrap();
    let cut = Cut::of(op, &attrs, &inputs, &output).unwrap();
    body(&cut, &Task::new(op, &attrs, &inputs, &output))
}

fn hybrid(profiles: Vec<DeviceProfile>) -> AutoDispatcher {
    let machine = AutoDispatcher::new(profiles).unwrap();
    machine.set_hybrid(true);
    machine
}

/// Divides an operation as the machine's dispatcher decides.
fn divide(machine: &AutoDispatcher, op: Op, shapes: &[&[usize]]) -> Option<Split> {
    with_cut(op, shapes, |cut, task| machine.choose_parts(task, Some(cut)).1)
}

/// A GPU of 2 GB with four times the processor's arithmetic.
fn small_gpu(id: &str) -> DeviceProfile {
    let mut gpu = named(id, "integrated");
    gpu.memory = 2_000_000_000;
    gpu.rates[0].gflops = 1000.0;
    gpu
}

#[test]
fn large_products_are_divided_and_small_work_is_not() {
    let machine = hybrid(vec![cpu(), small_gpu("vulkan:0")]);
    let Split { rows, ns } = divide(&machine, Op::Matmul, &[&[4096, 4096], &[4096, 4096]]).unwrap();
    assert_eq!(rows.iter().sum::<usize>(), 4096);
    // The processor has a fifth of the arithmetic, and computes during the GPU's transfers.
    assert!((700..1200).contains(&rows[0]), "{rows:?}");
    let alone = with_cut(Op::Matmul, &[&[4096, 4096], &[4096, 4096]], |_, task| machine.estimates(task));
    assert!(alone.iter().all(|alone| ns < alone.total_ns()), "{ns} {alone:?}");
    // Work for one token, and memory-bound work.
    assert_eq!(divide(&machine, Op::Matmul, &[&[8, 512], &[512, 512]]), None);
    assert_eq!(divide(&machine, Op::Softmax, &[&[16, 128]]), None);
    assert_eq!(divide(&machine, Op::Add, &[&[1024, 1024], &[1024, 1024]]), None);
    // With division switched off.
    machine.set_hybrid(false);
    assert_eq!(divide(&machine, Op::Matmul, &[&[4096, 4096], &[4096, 4096]]), None);
}

#[test]
fn what_does_not_fit_is_divided_so_that_it_does() {
    let machine = hybrid(vec![cpu(), small_gpu("vulkan:0")]);
    // A has 4 GB, B 64 MB.
    let shapes: &[&[usize]] = &[&[262_144, 4096], &[4096, 4096]];
    let Split { rows, .. } = divide(&machine, Op::Matmul, shapes).unwrap();
    let bytes = rows[1] * 4096 * 4 * 2 + 4096 * 4096 * 4;
    assert!((1_500_000_000..2_000_000_000).contains(&bytes), "{rows:?}");
    assert_eq!(rows[0] + rows[1], 262_144);
    // Two devices that are too small, and no other.
    let small = |id: &str| DeviceProfile { memory: 100_000_000, ..small_gpu(id) };
    assert_eq!(divide(&hybrid(vec![small("cuda:0"), small("cuda:1")]), Op::Matmul, shapes), None);
}

#[test]
fn two_equal_gpus_share_evenly() {
    let machine = hybrid(vec![small_gpu("cuda:0"), small_gpu("cuda:1")]);
    let Split { rows, .. } = divide(&machine, Op::Matmul, &[&[4096, 4096], &[4096, 4096]]).unwrap();
    assert_eq!(rows, [2048, 2048]);
    let machine = hybrid(vec![named("cuda:0", "datacentre"), named("cuda:1", "datacentre")]);
    let Split { rows, .. } = divide(&machine, Op::Matmul, &[&[4096, 4096], &[4096, 4096]]).unwrap();
    assert_eq!(rows, [2048, 2048]);
}

/// 16 threads of a Xeon and two H200s, not calibrated: the processor alone takes 15.5 ms, the GPUs 41 ms.
#[test]
fn what_only_passes_through_memory_stays_on_the_processor() {
    let cpu = DeviceProfile::of_threads((Isa::Avx512, "VNNI", 16), 2600, 2 << 20, 0);
    let machine = hybrid(vec![cpu, named("cuda:0", "datacentre"), named("cuda:1", "datacentre")]);
    for (op, shapes) in [
        (Op::Softmax, &[&[16384, 4096][..]][..]),
        (Op::Add, &[&[4096, 4096], &[4096, 4096]]),
        (Op::Gelu, &[&[4096, 4096]]),
        (Op::Layernorm, &[&[16384, 4096], &[4096], &[4096]]),
    ] {
        with_cut(op, shapes, |cut, task| {
            let (decision, split) = machine.choose_parts(task, Some(cut));
            let rows = split.map_or(cut.rows, |split| split.rows[0]);
            assert!(decision.device == 0 && rows * 10 >= cut.rows * 9, "{op}: {decision:?}, {rows} of {}", cut.rows);
        });
    }
}

#[test]
fn gpus_that_copy_from_one_another_divide_what_stays() {
    let peer = Some(crate::dispatch::Link { latency_ns: 10_000.0, gbytes: 250.0 });
    let gpu = |id: &str| DeviceProfile { peer, ..named(id, "datacentre") };
    let machine = hybrid(vec![gpu("cuda:0"), gpu("cuda:1")]);
    let with_cpu = hybrid(vec![cpu(), gpu("cuda:0"), gpu("cuda:1")]);
    let strangers = hybrid(vec![gpu("cuda:0"), named("vulkan:0", "datacentre")]);
    assert_eq!([&machine, &with_cpu, &strangers].map(AutoDispatcher::has_peers), [true, true, false]);
    assert!(!hybrid(vec![cpu(), gpu("cuda:0")]).has_peers(), "one GPU has nobody to copy from");
    let divide = |machine: &AutoDispatcher, op: Op, shapes: &[&[usize]], at: &[Places]| {
        let (attrs, inputs) = (Attrs::default(), metas(shapes));
        let output: Meta = op.info().infer(&attrs, &inputs).unwrap();
        let cut = Cut::staying(op, &attrs, &inputs, &output).unwrap();
        let task = Task::placed(op, &attrs, &inputs, &output, &|i| at.get(i).copied().unwrap_or(Places::NOWHERE));
        machine.choose_parts(&task, Some(&cut)).1.map(|split| split.rows)
    };
    let [first, second] = [0, 1].map(Places::device);
    let (product, small): (&[&[usize]], &[&[usize]]) = (&[&[4096, 4096], &[4096, 4096]], &[&[64, 64], &[64, 64]]);
    for at in [
        [first, first],
        [first, Places::HOST],
        [first, first.and(second)],
        [Places::SCATTERED, first.and(second)],
        [Places::SCATTERED; 2],
    ] {
        assert_eq!(divide(&machine, Op::Matmul, product, &at), Some(vec![2048, 2048]), "{at:?}");
    }
    assert_eq!(divide(&machine, Op::Matmul, small, &[first, first.and(second)]), None);
    // What is on one GPU alone is not worth the copy for an addition; what each has a part of is added where it is.
    let sum: &[&[usize]] = &[&[4096, 4096], &[4096, 4096]];
    assert_eq!(divide(&machine, Op::Add, sum, &[first, first]), None);
    assert_eq!(divide(&machine, Op::Add, sum, &[Places::SCATTERED; 2]).map(|rows| rows.len()), Some(2));
    // The processor takes no part.
    let [first, second] = [1, 2].map(Places::device);
    assert_eq!(divide(&with_cpu, Op::Matmul, product, &[first, first.and(second)]), Some(vec![0, 2048, 2048]));
}

#[test]
fn explanations_name_the_rows() {
    let machine = hybrid(vec![cpu(), small_gpu("vulkan:0")]);
    with_cut(Op::Matmul, &[&[4096, 4096], &[4096, 4096]], |cut, task| {
        let why = machine.explain_parts(task, Some(cut));
        let Split { rows, ns } = why.split.clone().unwrap();
        let alone = crate::dispatch::Time(why.estimates[1].total_ns());
        let (together, [cpu, gpu]) = (crate::dispatch::Time(ns), [rows[0], rows[1]]);
        let expected = format!(
            "of 4096 rows {cpu} on cpu, {gpu} on vulkan:0, {together} together: vulkan:0 alone would take {alone}"
        );
        assert_eq!((why.id(), &*why.reason), ("vulkan:0", &*expected));
        machine.force(Some("cpu")).unwrap();
        assert_eq!(machine.explain_parts(task, Some(cut)).split, None);
    });
}

/// With two devices, every division can be tried.
#[test]
fn no_other_division_is_much_better() {
    let (mut draw, mut divided) = (Draw(5), 0);
    for _ in 0..300 {
        let machine = draw.machine(1);
        machine.set_hybrid(true);
        with_cut(Op::Matmul, &[&[240, 900], &[900, 700]], |cut, task| {
            let alone = machine.estimates(task).iter().map(Estimate::total_ns).fold(f64::INFINITY, f64::min);
            let best = (1..240).filter_map(|rows| machine.together_ns(cut, task, &[rows, 240 - rows], false));
            let best = best.fold(alone, f64::min);
            let ns = match machine.choose_parts(task, Some(cut)).1 {
                Some(split) => {
                    divided += 1;
                    assert_eq!(machine.together_ns(cut, task, &split.rows, false), Some(split.ns));
                    assert!(split.ns < alone);
                    split.ns
                }
                None => alone,
            };
            // Costs are nearly linear. Waking threads and caches bend them.
            assert!(ns <= best * 1.25, "{ns} and {best} of {alone}: {:?}", machine.profiles());
        });
    }
    assert!(divided > 30, "{divided}");
}

#[test]
fn wild_machines_get_all_rows_and_no_more() {
    let mut draw = Draw(6);
    for gpus in [1, 2, 3, 7] {
        for _ in 0..100 {
            let machine = draw.machine(gpus);
            machine.set_hybrid(true);
            for (op, shapes) in [
                (Op::Matmul, &[&[3000, 1000][..], &[1000, 1000]][..]),
                (Op::Exp, &[&[1 << 24]]),
                (Op::Softmax, &[&[2, 100_000]]),
            ] {
                let Some(split) = divide(&machine, op, shapes) else { continue };
                let all = with_cut(op, shapes, |cut, _| cut.rows);
                assert_eq!((split.rows.len(), split.rows.iter().sum::<usize>()), (gpus + 1, all));
                assert!(split.ns.is_finite() && split.ns > 0.0);
            }
        }
    }
}

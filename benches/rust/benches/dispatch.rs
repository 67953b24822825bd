//! Measures the cost of a choice: by a number of elements (at most 5 ns), and by pricing a command.

// Criterion's macros generate undocumented functions.
#![allow(missing_docs)]

use adead::dispatch::{AutoDispatcher, DeviceProfile, Family, Task};
use adead::{Attrs, Command, Context, Op, Tensor, View, ViewMut};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

fn machine(gpus: &[&str]) -> AutoDispatcher {
    let context = Context::open("cpu").expect("the processor");
    let mut profiles = context.dispatcher().profiles().to_vec();
    profiles.extend(gpus.iter().map(|name| DeviceProfile::reference(name).expect("a reference")));
    AutoDispatcher::new(profiles).expect("a dispatcher")
}

fn select(c: &mut Criterion) {
    let mut group = c.benchmark_group("select");
    for (name, gpus) in
        [("cpu", &[][..]), ("cpu_and_gpu", &["mid"]), ("cpu_and_3_gpus", &["integrated", "mid", "datacentre"])]
    {
        let dispatcher = machine(gpus);
        let mut n = 1usize;
        group.bench_function(name, |b| {
            b.iter(|| {
                // Numbers that no branch predictor can learn.
                n = n.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                dispatcher.select(black_box(n >> 40))
            })
        });
    }
    let context = Context::open("cpu").expect("the processor");
    group.bench_function("context", |b| b.iter(|| black_box(&context).select(black_box(4096)).len()));
    group.finish();
}

fn choose(c: &mut Criterion) {
    let mut group = c.benchmark_group("choose");
    let tensor = Tensor::new(&[1f32; 4096], &[64, 64]).expect("a tensor");
    let inputs: [Option<View<'_>>; 2] = [Some(tensor.view()), Some(tensor.view())];
    let mut output = vec![0f32; 4096];
    let meta = *tensor.view().meta();
    let target = ViewMut::f32(&mut output, &meta).expect("memory");
    let command = Command::new(Op::Matmul, Attrs::default(), &inputs, target).expect("a command");
    for (name, gpus) in [("cpu", &[][..]), ("cpu_and_gpu", &["mid"])] {
        let dispatcher = machine(gpus);
        group.bench_function(format!("command/{name}"), |b| b.iter(|| dispatcher.choose(black_box(&command))));
    }
    let (dispatcher, task) = (machine(&["mid"]), Task::typical(Family::Matmul, 4096));
    group.bench_function("task/cpu_and_gpu", |b| b.iter(|| dispatcher.choose_task(black_box(&task))));
    group.finish();
}

criterion_group!(benches, select, choose);
criterion_main!(benches);

//! Measures the cost of a profile: the same operations on a device with and without a profile, in turns, by the host's clock.
//!
//! ```text
//! profile-bench                     on the CPU
//! profile-bench --device cuda:0     on a GPU, enqueued in a stream on GPU buffers
//! ```
//!
//! For each operation it prints the median time without a profile, the median ratio of the turns, and the middle half of the
//! ratios.

use adead::gpu::{Buffer, Operand};
use adead::{Attrs, Context, DType, Meta, Op, Result, Shape, Tensor, View};
use std::process::ExitCode;
use std::time::Instant;

/// Seconds of one turn, about.
const TURN: f64 = 0.03;
const TURNS: usize = 31;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let device = match &words[..] {
        [] => "cpu",
        [option, device] if option == "--device" => device,
        _ => {
            eprintln!("profile-bench: there is only --device DEVICE");
            return ExitCode::FAILURE;
        }
    };
    match run(device) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("profile-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(device: &str) -> Result<()> {
    let ctx = Context::open(device)?;
    println!("{}, {}", ctx.device_info().id, ctx.device_info().name);
    let ctx = &ctx;
    one(ctx, "relu of 16", Op::Relu, &|_| vec![vec![16]], 0.0)?;
    one(ctx, "a product of a millisecond", Op::Matmul, &|n| vec![vec![n, n]; 2], 1e-3)?;
    one(ctx, "softmax of a millisecond", Op::Softmax, &|n| vec![vec![n, n]], 1e-3)
}

/// Grows the operation until it takes at least this many seconds, then measures it.
fn one(ctx: &Context, name: &str, op: Op, shapes: &dyn Fn(usize) -> Vec<Vec<usize>>, least: f64) -> Result<()> {
    let mut n = 64;
    loop {
        let mut work = work(ctx, op, &shapes(n))?;
        work(1)?;
        let took = work(1)?;
        if took < least && n < 1 << 14 {
            n += n / 4;
            continue;
        }
        let runs = ((TURN / took) as usize).clamp(1, 20_000);
        let (mut plain, mut ratios) = (Vec::new(), Vec::new());
        for turn in 0..TURNS {
            // The form that comes second alternates.
            let mut times = [0.0; 2];
            for form in [turn % 2, (turn + 1) % 2] {
                let profile = if form == 1 { Some(ctx.profile()?) } else { None };
                times[form] = work(runs)?;
                if let Some(records) = profile.map(|profile| profile.finish().records.len()) {
                    assert!(records >= runs, "{records} records of {runs} operations");
                }
            }
            let [without, with] = times;
            plain.push(without / runs as f64);
            ratios.push(with / without);
        }
        plain.sort_by(f64::total_cmp);
        ratios.sort_by(f64::total_cmp);
        let at = |list: &[f64], share: usize| list[(list.len() - 1) * share / 4];
        println!(
            "{name}: {:.1} us, under a profile x{:.4} (half of the turns {:.4} to {:.4})",
            at(&plain, 2) * 1e6,
            at(&ratios, 2),
            at(&ratios, 1),
            at(&ratios, 3)
        );
        return Ok(());
    }
}

/// Makes a function that runs the operation a number of times and returns the seconds until the last is done.
fn work<'a>(ctx: &'a Context, op: Op, shapes: &[Vec<usize>]) -> Result<Box<dyn FnMut(usize) -> Result<f64> + 'a>> {
    let tensors = shapes.iter().map(|dims| Tensor::zeros(DType::F32, dims)).collect::<Result<Vec<_>>>()?;
    let attrs = Attrs::default();
    if ctx.device_info().id == "cpu" {
        return Ok(Box::new(move |runs| {
            let given: Vec<Option<&Tensor>> = tensors.iter().map(Some).collect();
            let begin = Instant::now();
            for _ in 0..runs {
                ctx.run(op, &attrs, &given)?;
            }
            Ok(begin.elapsed().as_secs_f64())
        }));
    }
    let views: Vec<Option<View<'_>>> = tensors.iter().map(|tensor| Some(tensor.view())).collect();
    let meta = op.info().infer(&attrs, &views)?;
    let mut inputs: Vec<(Buffer, Meta)> = Vec::new();
    for dims in shapes {
        let meta = Meta::new(DType::F32, Shape::new(dims)?);
        inputs.push((ctx.buffer_zeroed(meta.bytes())?, meta));
    }
    let output = ctx.buffer_zeroed(meta.bytes())?;
    let mut stream = ctx.stream()?;
    Ok(Box::new(move |runs| {
        let begin = Instant::now();
        for _ in 0..runs {
            let operands: Vec<_> =
                inputs.iter().map(|(buffer, meta)| Some(Operand { buffer, offset: 0, meta })).collect();
            stream.run(op, &attrs, &operands, Operand { buffer: &output, offset: 0, meta: &meta })?;
        }
        stream.synchronize()?;
        Ok(begin.elapsed().as_secs_f64())
    }))
}

//! Long work that its caller ends early.

use adead_core::gpu::Operand;
use adead_core::program::{Program, RunOptions};
use adead_core::{
    Attrs, Axis, Command, Context, ContextOptions, Interrupt, Meta, Op, Result, Status, Tensor, ViewMut, interruptible,
};
use std::cell::{Cell, RefCell};

fn open(threads: usize) -> Context {
    Context::with_options("cpu", &ContextOptions { threads: Some(threads), ..ContextOptions::default() }).unwrap()
}

/// Repeats `work` until its check was called `times` times. The call with the last check must be the last one.
fn ended<T: std::fmt::Debug>(times: usize, work: impl Fn() -> Result<T>) {
    let asked = Cell::new(0);
    let check = || {
        asked.set(asked.get() + 1);
        asked.get() >= times
    };
    let error = interruptible(&check, || {
        loop {
            if let Err(error) = work() {
                return error;
            }
            assert!(asked.get() < times, "it did not end");
        }
    });
    assert_eq!(error.status(), Status::NotReady, "{error}");
    assert!(error.message().contains("interrupted"), "{error}");
    assert_eq!(asked.get(), times);
}

#[test]
fn every_kind_of_work_ends() {
    for threads in [1, 3] {
        let ctx = open(threads);
        let random = |n: usize| -> Vec<f32> { (0..n).map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect() };
        let square = Tensor::new(&random(1 << 20), &[1024, 1024]).unwrap();
        let heads = Tensor::new(&random(1 << 20), &[8, 2048, 64]).unwrap();
        let half = ctx.cast(&square, adead_core::DType::F16).unwrap();
        let run = |op, operands: &[&Tensor], attrs: &Attrs| {
            let operands: Vec<_> = operands.iter().map(|operand| Some(*operand)).collect();
            ctx.run(op, attrs, &operands)
        };
        let plain = Attrs::default();
        let across = Attrs { axis: Axis::At(0), ..plain };
        let turned = Attrs { trans_b: true, ..plain };
        for (op, operands, attrs) in [
            (Op::Matmul, &[&square, &square][..], &plain),
            (Op::Matmul, &[&square, &square], &turned),
            (Op::Matmul, &[&half, &half], &plain),
            (Op::Attention, &[&heads, &heads, &heads], &plain),
            (Op::Softmax, &[&square], &plain),
            (Op::Softmax, &[&square], &across),
            (Op::Tanh, &[&square], &plain),
            (Op::Add, &[&square, &square], &plain),
            (Op::Sum, &[&square], &across),
            (Op::Transpose, &[&square], &plain),
            (Op::Layernorm, &[&square], &plain),
        ] {
            ended(2, || run(op, operands, attrs));
        }
        // Afterwards the context works as before.
        let expected = open(2).matmul(&square, &square).unwrap();
        let after = interruptible(&|| false, || ctx.matmul(&square, &square)).unwrap();
        assert_eq!(after.to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
    }
}

#[test]
fn what_is_asked_may_compute() {
    let ctx = open(3);
    let x = Tensor::new(&vec![0.5f32; 1 << 20], &[1024, 1024]).unwrap();
    let expected = ctx.matmul(&x, &x).unwrap().to_vec::<f32>().unwrap();
    let asked = Cell::new(0);
    let check = || {
        asked.set(asked.get() + 1);
        assert_eq!(ctx.matmul(&x, &x).unwrap().to_vec::<f32>().unwrap(), expected);
        // The check keeps subnormals, although products flush them.
        assert!(std::hint::black_box(1e-40f32) * std::hint::black_box(0.5) > 0.0);
        asked.get() > 2
    };
    let result = interruptible(&check, || (0..10_000).try_for_each(|_| ctx.matmul(&x, &x).map(drop)));
    assert!(result.is_err() && asked.get() > 2);
}

#[test]
fn programs_end_on_all_of_their_threads() {
    let ctx = open(2);
    let text = "input x f32[1024,1024]\noutput c f32[1024,1024]\ntemp a f32[1024,1024]\ntemp b f32[1024,1024]\na = matmul x x\nb = matmul x x\nc = matmul a b\nhalt\n";
    let program = Program::assemble(&format!(".adead 1\n{text}")).unwrap();
    let mut options = RunOptions { parallel: true, ..RunOptions::default() };
    options.inputs.push(("x".into(), Tensor::zeros(adead_core::DType::F32, &[1024, 1024]).unwrap()));
    ended(2, || program.run(&ctx, &options));
    // Instruction by instruction, on several threads.
    let text = "matmul r0 r0 r1 1024 1024 1024\nmatmul r0 r0 r2 1024 1024 1024\nmatmul r1 r2 r3 1024 1024 1024\n";
    let registers: String = (0..4).map(|i| format!("alloc 4194304 r{i}\n")).collect();
    let program = Program::assemble(&format!(".agpu 1\n{registers}{text}copy_d2h r3 0x1 4194304\nend\n")).unwrap();
    let options = RunOptions { parallel: true, ..RunOptions::default() };
    ended(2, || program.run(&ctx, &options));
}

#[test]
fn work_on_memory_that_was_there_before_ends_too() {
    let ctx = open(2);
    let x = Tensor::new(&vec![1.0f32; 1 << 20], &[1024, 1024]).unwrap();
    let meta = Meta::new(x.dtype(), *x.shape());
    let product = || {
        let mut values = vec![0.0f32; 1 << 20];
        let inputs = [Some(x.view()), Some(x.view())];
        ctx.execute(&mut Command::new(Op::Matmul, Attrs::default(), &inputs, ViewMut::f32(&mut values, &meta)?)?)?;
        Ok(values)
    };
    ended(2, product);
    assert_eq!(product().unwrap(), vec![1024.0; 1 << 20]);
    // The same with buffers.
    let (buffer, to) = (ctx.buffer(&vec![1.0f32; 1 << 20]).unwrap(), ctx.buffer_zeroed(4 << 20).unwrap());
    let stream = RefCell::new(ctx.stream().unwrap());
    let operand = |buffer| Operand { buffer, offset: 0, meta: &meta };
    let product = || {
        let inputs = [Some(operand(&buffer)), Some(operand(&buffer))];
        stream.borrow_mut().run(Op::Matmul, &Attrs::default(), &inputs, operand(&to))
    };
    ended(2, product);
    product().unwrap();
    assert_eq!(to.to_vec::<f32>().unwrap(), vec![1024.0; 1 << 20]);
}

#[test]
fn a_flag_ends_a_product_of_another_thread() {
    static STOP: Interrupt = Interrupt::new();
    let ctx = open(2);
    let x = Tensor::new(&vec![1.0f32; 1 << 20], &[1024, 1024]).unwrap();
    let error = std::thread::scope(|scope| {
        let (begun, begins) = std::sync::mpsc::channel();
        let (ctx, x) = (&ctx, &x);
        let worker = scope.spawn(move || {
            begun.send(()).unwrap();
            STOP.run(|| {
                loop {
                    if let Err(error) = ctx.matmul(x, x) {
                        return error;
                    }
                }
            })
        });
        begins.recv().unwrap();
        STOP.set(true);
        worker.join().unwrap()
    });
    assert_eq!(error.status(), Status::NotReady);
    STOP.set(false);
    assert_eq!(STOP.run(|| ctx.matmul(&x, &x)).unwrap().to_vec::<f32>().unwrap(), vec![1024.0; 1 << 20]);
}

#[test]
fn an_ended_run_changes_all_states_or_none() {
    for before in [false, true] {
        let context = open(2);
        let mut pipeline = context.pipeline();
        let n = 1 << 20;
        let zeros = Tensor::zeros(adead_core::DType::F32, &[n]).unwrap();
        let x = pipeline.input(adead_core::DType::F32, &[n]).unwrap();
        let chosen = pipeline.input(adead_core::DType::Bool, &[]).unwrap();
        let mut new = Some(x);
        if before {
            new = Some(pipeline.op(Op::Tanh, &Attrs::default(), &[new]).unwrap());
        }
        let states = [pipeline.state(&zeros).unwrap(), pipeline.state(&zeros).unwrap()];
        for state in states {
            let next = pipeline.op(Op::Where, &Attrs::default(), &[Some(chosen), new, Some(state)]).unwrap();
            pipeline.assign(state, next).unwrap();
        }
        let compiled = pipeline.compile().unwrap();
        let ones = Tensor::new(&vec![1.0f32; n], &[n]).unwrap();
        let chosen = Tensor::from_bools(&[true], &[]).unwrap();
        let stop = Interrupt::new();
        stop.set(true);
        let ended = stop.run(|| compiled.run(&[&ones, &chosen]));
        assert_eq!(ended.is_err(), before, "{ended:?}");
        for number in 0..2 {
            let state = compiled.state(number).unwrap();
            let changed = state.as_slice::<f32>().unwrap().iter().filter(|&&x| x != 0.0).count();
            assert_eq!(changed, if before { 0 } else { n });
        }
    }
}

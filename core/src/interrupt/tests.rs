//! Work of one kernel call, which no other thread could cut: it asks between its parts, ends, and otherwise has the same bits.

use super::*;
use crate::dtype::DType;
use crate::gpu::Operand;
use crate::ops::{Attrs, Axis, Op, PerAxis, Permutation};
use crate::{Context, ContextOptions, Meta, Tensor};

thread_local! {
    /// How often this thread asked whether its work is to end.
    pub(super) static LOOKS: Cell<usize> = const { Cell::new(0) };
}

fn open(threads: usize) -> Context {
    Context::with_options("cpu", &ContextOptions { threads: Some(threads), ..ContextOptions::default() }).unwrap()
}

fn values(dims: &[usize]) -> Tensor {
    let values: Vec<f32> = (0..dims.iter().product()).map(|i: usize| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect();
    Tensor::new(&values, dims).unwrap()
}

/// Elements of the long operands: some pieces and a bit.
const LONG: usize = 5 * PIECE + 3000;

/// Calls whose work is one part to the pool, each of at least so many elementary operations.
fn calls(ctx: &Context) -> Vec<(&'static str, Op, Attrs, Vec<Tensor>, usize)> {
    let plain = Attrs::default();
    let along = |axis| Attrs { axis: Axis::At(axis), ..plain };
    let turned = Attrs { perm: Permutation::new(&[1, 0]).unwrap(), ..plain };
    let every_second = Attrs { step: PerAxis::new(&[2]).unwrap(), ..plain };
    let padded = Attrs { start: PerAxis::new(&[1]).unwrap(), ..plain };
    let transposed = Attrs { trans_b: true, ..plain };
    let (row, strip) = (values(&[LONG]), values(&[LONG / 16, 16]));
    let pair = values(&[2, LONG / 2]);
    let half = ctx.run(Op::Cast, &Attrs { dtype: Some(DType::F16), ..plain }, &[Some(&pair)]).unwrap();
    let ids = Tensor::new(&[1i64], &[1]).unwrap();
    let query = values(&[1, 16, 64]);
    let keys = values(&[1, LONG / 64 / 16, 64]);
    vec![
        ("dot", Op::Dot, plain, vec![row.clone(), row.clone()], LONG),
        ("one row times a matrix", Op::Matmul, plain, vec![values(&[1, LONG / 8]), values(&[LONG / 8, 8])], LONG),
        ("two rows times a matrix", Op::Matmul, plain, vec![values(&[2, LONG / 8]), values(&[LONG / 8, 8])], LONG),
        ("a matrix times a vector", Op::Matmul, plain, vec![values(&[16, LONG / 16]), values(&[LONG / 16, 1])], LONG),
        ("a row times columns", Op::Matmul, transposed, vec![values(&[1, LONG / 16]), values(&[16, LONG / 16])], LONG),
        ("tiles", Op::Matmul, plain, vec![values(&[16, LONG / 256]), values(&[LONG / 256, 16])], LONG),
        ("attention", Op::Attention, plain, vec![query, keys.clone(), keys], LONG),
        ("sum", Op::Sum, along(1), vec![pair.clone()], LONG),
        ("sum of columns", Op::Sum, along(0), vec![strip.clone()], LONG),
        ("max", Op::Max, along(1), vec![pair.clone()], LONG),
        ("max of columns", Op::Max, along(0), vec![strip.clone()], LONG),
        ("argmax", Op::Argmax, plain, vec![row.clone()], LONG),
        ("argmax of columns", Op::Argmax, along(0), vec![strip.clone()], LONG),
        ("min of columns", Op::Min, along(0), vec![strip.clone()], LONG),
        ("argmin", Op::Argmin, plain, vec![row.clone()], LONG),
        ("prod", Op::Prod, along(1), vec![pair.clone()], LONG),
        ("prod of columns", Op::Prod, along(0), vec![strip.clone()], LONG),
        ("softmax", Op::Softmax, plain, vec![row.clone()], LONG),
        ("softmax of columns", Op::Softmax, along(0), vec![strip.clone()], LONG),
        ("cumsum", Op::Cumsum, along(1), vec![pair.clone()], LONG),
        ("cumsum of columns", Op::Cumsum, along(0), vec![strip.clone()], LONG),
        ("topk", Op::Topk, Attrs { k: 5, ..plain }, vec![row.clone()], LONG),
        ("topk of columns", Op::Topk, Attrs { k: 5, ..along(0) }, vec![strip.clone()], LONG),
        ("layernorm", Op::Layernorm, plain, vec![row.clone(), row.clone(), row.clone()], LONG),
        ("rmsnorm", Op::Rmsnorm, plain, vec![row.clone()], LONG),
        ("rmsnorm of a sum", Op::Rmsnorm, plain, vec![row.clone(), row.clone(), row.clone()], 2 * LONG),
        ("add to every row", Op::Add, plain, vec![pair.clone(), values(&[2, 1])], LONG),
        ("function", Op::Tanh, plain, vec![row.clone()], LONG),
        ("transpose", Op::Transpose, turned, vec![values(&[LONG / 64, 64])], LONG),
        ("transpose a little", Op::Transpose, turned, vec![strip.clone()], LONG),
        ("transpose f16", Op::Transpose, turned, vec![half.clone()], LONG),
        (
            "transpose nothing",
            Op::Transpose,
            Attrs { perm: Permutation::new(&[0, 1]).unwrap(), ..plain },
            vec![pair.clone()],
            LONG,
        ),
        ("slice", Op::Slice, plain, vec![row.clone()], LONG),
        ("slice by steps", Op::Slice, every_second, vec![row.clone()], LONG / 2),
        ("pad", Op::Pad, padded, vec![row.clone(), values(&[1])], 2 * LONG),
        (
            "gather",
            Op::Gather,
            plain,
            vec![row.clone(), Tensor::new(&vec![1i32; LONG / 4], &[LONG / 4]).unwrap()],
            LONG / 4,
        ),
        ("concat", Op::Concat, plain, vec![row.clone(), row.clone()], 2 * LONG),
        ("embedding", Op::Embedding, plain, vec![pair, ids], LONG / 2),
        ("cast", Op::Cast, Attrs { dtype: Some(DType::I32), ..plain }, vec![row], LONG),
        ("f16", Op::Softmax, plain, vec![half], LONG),
    ]
}

fn run(ctx: &Context, op: Op, attrs: &Attrs, operands: &[Tensor]) -> Result<Tensor> {
    ctx.run(op, attrs, &operands.iter().map(Some).collect::<Vec<_>>())
}

#[test]
fn one_long_part_asks_ends_and_has_the_same_bits() {
    let (ctx, stop) = (open(1), Interrupt::new());
    for (name, op, attrs, operands, work) in calls(&ctx) {
        let expected = run(&ctx, op, &attrs, &operands).unwrap();
        LOOKS.set(0);
        let whole = stop.run(|| run(&ctx, op, &attrs, &operands)).unwrap();
        assert!(LOOKS.get() >= work / PIECE - 1, "{name} asked {} times", LOOKS.get());
        assert_eq!(whole.bytes(), expected.bytes(), "{name}");
        stop.set(true);
        LOOKS.set(0);
        let error = stop.run(|| run(&ctx, op, &attrs, &operands)).map(|_| name).unwrap_err();
        assert_eq!(error.status(), Status::NotReady, "{name}: {error}");
        assert!(error.message().contains("interrupted"), "{name}: {error}");
        stop.set(false);
    }
}

#[test]
fn checking_ids_ends() {
    let (ctx, stop) = (open(1), Interrupt::new());
    let mut ids = vec![0i64; LONG];
    ids[LONG - 1] = 9;
    let operands = [values(&[3, 1]), Tensor::new(&ids, &[LONG]).unwrap()];
    let embed = || run(&ctx, Op::Embedding, &Attrs::default(), &operands).map(drop).unwrap_err();
    LOOKS.set(0);
    // One that is no row is found before anything is written, and named.
    let error = stop.run(embed);
    assert!(error.message().contains(&format!("id 9 at position {}", LONG - 1)), "{error}");
    assert_eq!(LOOKS.get(), LONG.div_ceil(PIECE) - 1);
    stop.set(true);
    assert_eq!(stop.run(embed).status(), Status::NotReady);
}

#[test]
fn packing_ends() {
    let (ctx, stop) = (open(1), Interrupt::new());
    let b = values(&[LONG / 1024, 1024]);
    for transposed in [false, true] {
        assert!(stop.run(|| ctx.pack(&b, transposed)).is_ok());
        stop.set(true);
        assert_eq!(stop.run(|| ctx.pack(&b, transposed)).unwrap_err().status(), Status::NotReady);
        stop.set(false);
    }
}

#[test]
fn streams_of_the_processor_end_and_go_on() {
    let (ctx, stop) = (open(2), Interrupt::new());
    let meta = Meta::new(DType::F32, crate::Shape::new(&[512, 512]).unwrap());
    let (x, y) = (ctx.buffer(&vec![1.0f32; 512 * 512]).unwrap(), ctx.buffer_zeroed(4 * 512 * 512).unwrap());
    let mut stream = ctx.stream().unwrap();
    let operand = |buffer| Operand { buffer, offset: 0, meta: &meta };
    let mut product =
        || stream.run(Op::Matmul, &Attrs::default(), &[Some(operand(&x)), Some(operand(&x))], operand(&y));
    stop.set(true);
    assert_eq!(stop.run(&mut product).unwrap_err().status(), Status::NotReady);
    stop.set(false);
    stop.run(product).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [512.0; 512 * 512]);

    let bytes = vec![1u8; 4 * PIECE];
    let (from, to) = (ctx.buffer_zeroed(bytes.len()).unwrap(), ctx.buffer_zeroed(bytes.len()).unwrap());
    from.write_bytes(0, &bytes).unwrap();
    let mut into = vec![0u8; bytes.len()];
    stop.set(true);
    stop.run(|| {
        let outcomes = [
            stream.upload(&to, 0, &bytes),
            stream.copy((&from, 0), (&to, 0), bytes.len()),
            stream.clear(&to, 0, bytes.len()),
            stream.download(&from, 0, bytes.len()).map(drop),
            to.read_bytes(0, &mut into),
        ];
        assert!(outcomes.iter().all(|done| done.as_ref().is_err_and(|error| error.status() == Status::NotReady)));
    });
    stop.set(false);
    stop.run(|| {
        stream.copy((&from, 0), (&to, 0), bytes.len()).unwrap();
        to.read_bytes(0, &mut into).unwrap();
    });
    assert_eq!(into, bytes);
}

#[test]
fn what_is_asked_is_refused_the_buffers_of_the_work() {
    let ctx = open(2);
    let meta = Meta::new(DType::F32, crate::Shape::new(&[1024, 1024]).unwrap());
    let (x, y) = (ctx.buffer(&vec![1.0f32; 1 << 20]).unwrap(), ctx.buffer_zeroed(4 << 20).unwrap());
    let (mut stream, mut other) = (ctx.stream().unwrap(), ctx.stream().unwrap());
    let operand = |buffer| Operand { buffer, offset: 0, meta: &meta };
    let seen = Cell::new(None);
    let other = std::cell::RefCell::new(&mut other);
    let check = || {
        let read = other.borrow_mut().download(&x, 0, 4).map(drop);
        let write = other.borrow_mut().clear(&y, 0, 4);
        seen.set(Some((read.is_ok(), write.map_err(|error| error.status()))));
        true
    };
    interruptible(&check, || {
        while stream.run(Op::Matmul, &Attrs::default(), &[Some(operand(&x)), Some(operand(&x))], operand(&y)).is_ok() {}
    });
    assert_eq!(seen.get(), Some((true, Err(Status::NotReady))));
    stream.clear(&y, 0, 4).unwrap();
}

#[test]
fn a_flag_that_is_taken_back_ends_what_saw_it() {
    let (ctx, stop) = (open(3), Interrupt::new());
    let x = values(&[700, 700]);
    let expected = ctx.matmul(&x, &x).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                stop.set(!stop.is_set());
                std::thread::yield_now();
            }
        });
        for _ in 0..100 {
            // Either an error or all of the product.
            if let Ok(product) = stop.run(|| ctx.matmul(&x, &x)) {
                assert_eq!(product.bytes(), expected.bytes());
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn flags_for_a_thread_are_given_and_taken_back() {
    let (ctx, outer, inner) = (open(2), Interrupt::new(), Interrupt::new());
    let x = values(&[700, 700]);
    let ends = || ctx.matmul(&x, &x).is_err();
    outer.set(true);
    // SAFETY: both live until NULL takes their place.
    unsafe {
        assert!(Interrupt::watch(&outer).is_null());
        assert!(ends());
        assert_eq!(Interrupt::watch(&inner), &raw const outer);
        assert!(!ends());
        assert!(!outer.run(|| std::thread::scope(|scope| scope.spawn(ends).join().unwrap())), "it is one thread's");
        assert!(outer.run(ends) && !ends());
        assert_eq!(Interrupt::watch(&outer), &raw const inner);
        assert!(ends());
        assert_eq!(Interrupt::watch(ptr::null()), &raw const outer);
    }
    assert!(!ends());
}

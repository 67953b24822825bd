//! Tensors on devices. Results stay where they were computed and operands where they were needed, within a budget. Reading
//! returns the same bits. The GPU is this machine's, through the backend in `ADEAD_TEST_BACKEND` (vulkan). Without a GPU every
//! test says so and passes.

mod backend;
mod draws;

use adead_core::contract::{Activation, GeluForm, Precision};
use adead_core::{Attrs, Context, DType, MatmulOptions, Op, Status, Tensor, TensorCacheUse};
use backend::{backend, skip};
use draws::{Random, draw, plain};

fn open(device: &str) -> Option<Context> {
    match Context::open(device) {
        Ok(ctx) => Some(ctx),
        Err(error) if error.status() == Status::BackendUnavailable => {
            skip(device, &error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A context on the GPU, and the GPU's id.
fn gpu() -> Option<(Context, String)> {
    let ctx = open(&backend())?;
    let id = ctx.device_info().id.clone();
    Some((ctx, id))
}

fn values(seed: u64, dims: &[usize]) -> Tensor {
    let mut r = Random(seed);
    let values: Vec<f32> = (0..dims.iter().product()).map(|_| r.below(2001) as f32 / 500.0 - 2.0).collect();
    Tensor::new(&values, dims).unwrap()
}

fn used(ctx: &Context) -> TensorCacheUse {
    ctx.tensor_cache(&ctx.device_info().id).unwrap()
}

fn status<T>(result: adead_core::Result<T>) -> Option<Status> {
    result.err().map(|error| error.status())
}

#[test]
fn results_stay_and_operands_move_once() {
    let Some((ctx, id)) = gpu() else { return };
    let (cpu, x) = (plain(), values(1, &[30, 40]));
    assert_eq!((x.places(), x.is_on_host()), (vec!["cpu".to_string()], true));
    let y = ctx.relu(&x).unwrap();
    assert_eq!((y.places(), y.is_on_host()), (vec![id.clone()], false));
    assert_eq!(x.places(), ["cpu", &id]);
    let z = ctx.add(&y, &x).unwrap();
    let now = used(&ctx);
    // The first call uploaded x. The second call found both operands.
    assert_eq!((now.hits, now.misses, now.evictions), (2, 1, 0));
    assert_eq!(ctx.tensor_cache("cpu").unwrap(), TensorCacheUse::default());
    assert_eq!((now.tensors, now.used), (3, 3 * 4800));
    let expected = cpu.add(&cpu.relu(&x).unwrap(), &x).unwrap();
    assert_eq!(z.host_bytes().unwrap(), expected.bytes());
    // After reading, z is in both places. Its operands are not.
    assert_eq!((z.places(), y.is_on_host()), (vec!["cpu".to_string(), id.clone()], false));
    assert_eq!(z.bytes().as_ptr(), z.clone().bytes().as_ptr(), "it is read once");
    drop((x, y, z));
    let now = used(&ctx);
    assert_eq!((now.tensors, now.used), (0, 0), "what nobody has takes nothing");
    // Small operands in host memory leave no copy on the GPU, and their results stay there too.
    let small = values(2, &[4]);
    let y = ctx.exp(&small).unwrap();
    assert_eq!((small.places(), y.places()), (vec!["cpu".to_string()], vec![id]));
    assert_eq!(y.bytes(), cpu.exp(&small).unwrap().bytes());
}

#[test]
fn reshapes_and_rows_share_the_copies() {
    let Some((ctx, id)) = gpu() else { return };
    let (cpu, x) = (plain(), values(3, &[60, 20]));
    let (y, expected) = (ctx.exp(&x).unwrap(), cpu.exp(&x).unwrap());
    let part = y.rows(7, 12).unwrap().reshape(&[12, 4, 5]).unwrap().rows(1, 9).unwrap();
    assert_eq!((part.dims(), part.places()), (&[9, 4, 5][..], vec![id.clone()]));
    let now = used(&ctx);
    let z = ctx.mul(&part, &part).unwrap();
    assert_eq!(used(&ctx).misses, now.misses, "a part of what is there is there");
    let same = expected.rows(8, 9).unwrap().reshape(&[9, 4, 5]).unwrap();
    assert_eq!(z.bytes(), cpu.mul(&same, &same).unwrap().bytes());
    assert!(!y.is_on_host());
    assert_eq!(part.bytes(), same.bytes());
    assert!(y.is_on_host(), "one way for all of them");
    assert_eq!(part.bytes().as_ptr(), y.bytes()[8 * 80..].as_ptr());
    // A part of a tensor that is only in host memory moves alone.
    let big = values(4, &[1000, 20]);
    let few = big.rows(990, 10).unwrap();
    assert_eq!(ctx.neg(&few).unwrap().bytes(), cpu.neg(&few).unwrap().bytes());
    assert_eq!(big.places(), ["cpu"]);
    // Parts at every byte offset that elements allow, of every dtype.
    let ids = Tensor::new(&(0..1000).map(|i| i % 17).collect::<Vec<i64>>(), &[1000]).unwrap();
    let table = ctx.to(&values(5, &[17, 3]), &id).unwrap();
    for first in [1, 3, 500] {
        let ids = ctx.to(&ids, &id).unwrap().rows(first, 301).unwrap();
        let rows = (ctx.embedding(&table, &ids).unwrap(), cpu.embedding(&table, &ids).unwrap());
        assert_eq!(rows.0.bytes(), rows.1.bytes());
    }
    let half = Attrs { dtype: Some(DType::F16), ..Attrs::default() };
    let halves = ctx.run(Op::Cast, &half, &[Some(&x)]).unwrap().reshape(&[1200]).unwrap();
    let of_cpu = cpu.run(Op::Cast, &half, &[Some(&x)]).unwrap().reshape(&[1200]).unwrap();
    let odd = |ctx: &Context, x: &Tensor| ctx.sigmoid(&x.rows(1, 1199).unwrap()).unwrap();
    assert_eq!(odd(&ctx, &halves).bytes(), odd(&cpu, &of_cpu).bytes());
}

#[test]
fn few_rows_are_read_alone() {
    let Some((ctx, id)) = gpu() else { return };
    let (cpu, x) = (plain(), values(3, &[60, 20]));
    let (y, expected) = (ctx.exp(&x).unwrap(), cpu.exp(&x).unwrap());
    for (first, count) in [(0, 1), (59, 1), (7, 7), (30, 0)] {
        let rows = y.rows(first, count).unwrap();
        assert_eq!(rows.places(), [&*id]);
        assert_eq!(rows.bytes(), expected.rows(first, count).unwrap().bytes());
        assert!(rows.is_on_host() && !y.is_on_host());
        assert_eq!(rows.bytes().as_ptr(), rows.bytes().as_ptr());
        // An operation takes them from the device.
        assert_eq!(ctx.neg(&rows).unwrap().bytes(), cpu.neg(&expected.rows(first, count).unwrap()).unwrap().bytes());
        assert!(!y.is_on_host());
    }
    // What is more comes with all others, and then nothing is read alone.
    let few = y.rows(3, 1).unwrap();
    assert_eq!(y.rows(8, 8).unwrap().bytes(), expected.rows(8, 8).unwrap().bytes());
    assert!(y.is_on_host());
    assert_eq!(few.bytes().as_ptr(), y.bytes()[3 * 80..].as_ptr());
}

#[test]
fn tensors_move_when_asked() {
    let Some((ctx, id)) = gpu() else { return };
    let x = values(6, &[200, 3]);
    let there = ctx.to(&x, &backend()).unwrap();
    assert_eq!(
        (there.places(), x.places()),
        (vec!["cpu".to_string(), id.clone()], vec!["cpu".to_string(), id.clone()])
    );
    let hits = used(&ctx).hits;
    let y = ctx.tanh(&there).unwrap();
    assert_eq!(used(&ctx).hits, hits + 1);
    let home = ctx.to(&y, "cpu").unwrap();
    assert_eq!(home.to_cpu().unwrap().bytes(), plain().tanh(&x).unwrap().bytes());
    assert_eq!(y.places(), ["cpu", &id]);
    let error = ctx.to(&x, "cuda:77").unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert_eq!(error.message(), format!("no device 'cuda:77' in this context: it has cpu, {id}"));
    assert_eq!(status(plain().to(&x, &id)), Some(Status::InvalidArgument));
    assert_eq!(status(ctx.tensor_cache("cuda:77")), Some(Status::InvalidArgument));
    assert_eq!(plain().to(&x, "cpu").unwrap().bytes(), x.bytes());
    // An empty tensor can be on any device.
    let none = ctx.to(&Tensor::zeros(DType::F32, &[0, 3]).unwrap(), &id).unwrap();
    assert_eq!(ctx.relu(&none).unwrap().bytes(), []);
}

#[test]
fn the_budget_holds_and_nothing_is_lost() {
    let Some((ctx, _)) = gpu() else { return };
    let (cpu, bytes) = (plain(), 16 << 10);
    ctx.set_tensor_cache(4 * bytes).unwrap();
    let mut all = Vec::new();
    for seed in 0..12 {
        let x = values(seed, &[64, 64]);
        let y = ctx.sigmoid(&x).unwrap();
        assert!(used(&ctx).used <= 4 * bytes, "{:?}", used(&ctx));
        all.push((x, y));
    }
    let now = used(&ctx);
    assert_eq!((now.budget, now.tensors, now.evictions), (4 * bytes, 4, 20));
    // The most recently used copies are still there.
    let there = |tensor: &Tensor| tensor.places().len() > usize::from(tensor.is_on_host());
    assert_eq!(all.iter().map(|(x, y)| (there(x), there(y))).filter(|pair| *pair == (true, true)).count(), 2);
    assert!(there(&all[11].1) && there(&all[10].0) && !there(&all[0].1) && all[0].1.is_on_host());
    // One operation keeps its operands, whatever the budget.
    ctx.set_tensor_cache(0).unwrap();
    assert_eq!((used(&ctx).tensors, used(&ctx).used), (0, 0));
    let sum = ctx.add(&all[3].1, &all[4].1).unwrap();
    assert_eq!(used(&ctx).tensors, 3);
    let product = ctx.matmul(&sum, &all[5].0).unwrap();
    assert!(used(&ctx).tensors <= 3);
    for (x, y) in &all {
        assert_eq!(y.bytes(), cpu.sigmoid(x).unwrap().bytes());
    }
    let expected = cpu.matmul(&cpu.add(&all[3].1, &all[4].1).unwrap(), &all[5].0).unwrap();
    assert_eq!(product.bytes(), expected.bytes());
    ctx.set_tensor_cache(1 << 20).unwrap();
    let y = ctx.relu(&product).unwrap();
    ctx.trim();
    assert!(there(&y) && !there(&product), "what is nowhere else stays");
}

/// Runs random operations on random earlier results, on the device and on the processor, and compares them.
fn random_chain(ctx: &Context, cpu: &Context, seed: u64, steps: usize) {
    let mut r = Random(seed);
    let mut pairs = vec![];
    for i in 0..3 {
        let x = values(seed * 10 + i, &[24, 24]);
        pairs.push((x.clone(), x));
    }
    for _ in 0..steps {
        let (a, b) = (r.below(pairs.len()), r.below(pairs.len()));
        let which = r.below(9);
        let call = |ctx: &Context, a: &Tensor, b: &Tensor| match which {
            0 => ctx.matmul(a, b),
            1 => ctx.add(a, b),
            2 => ctx.mul(&a.rows(4, 1)?, b),
            3 => ctx.softmax(a, -1),
            4 => ctx.gelu(a, GeluForm::Tanh),
            5 => ctx.layernorm(a, Some(&b.rows(0, 1)?.reshape(&[24])?), None, 1e-5),
            6 => ctx.transpose(a),
            7 => ctx.tanh(&a.reshape(&[4, 144])?)?.reshape(&[24, 24]),
            _ => ctx.sub(a, &b.rows(23, 1)?),
        };
        let pair = (call(ctx, &pairs[a].0, &pairs[b].0).unwrap(), call(cpu, &pairs[a].1, &pairs[b].1).unwrap());
        if r.below(4) == 0 {
            assert_eq!(pair.0.bytes(), pair.1.bytes());
        }
        match pairs.len() {
            0..8 => pairs.push(pair),
            _ => pairs[a] = pair,
        }
    }
    for (a, b) in &pairs {
        assert_eq!(a.bytes(), b.bytes());
    }
}

#[test]
fn chains_have_the_same_bits_at_every_budget() {
    let Some((ctx, _)) = gpu() else { return };
    let cpu = plain();
    for (seed, budget) in [(1, u64::MAX), (2, 0), (3, 2304 * 3), (4, 2304 * 6)] {
        ctx.set_tensor_cache(budget).unwrap();
        random_chain(&ctx, &cpu, seed, 60);
    }
}

#[test]
fn every_operation_takes_what_is_there() {
    let Some((ctx, id)) = gpu() else { return };
    let cpu = plain();
    for &op in Op::ALL {
        for seed in 0..6 {
            let mut r = Random(seed << 8 | op as u64);
            let dtype = [DType::F32, DType::F16, DType::BF16][r.below(3)];
            let (attrs, operands) = draw(op, dtype, &mut r);
            for operand in operands.iter().flatten().filter(|_| seed % 2 == 0) {
                ctx.to(operand, &id).unwrap();
            }
            let call = |ctx: &Context| {
                let operands: Vec<_> = operands.iter().map(Option::as_ref).collect();
                ctx.run(op, &attrs, &operands)
            };
            match (call(&ctx), call(&cpu)) {
                (Ok(y), Ok(expected)) => assert_eq!(y.bytes(), expected.bytes(), "{op} {attrs:?} {operands:?}"),
                (a, b) => assert_eq!(status(a), status(b), "{op} {attrs:?} {operands:?}"),
            }
        }
    }
}

#[test]
fn threads_share_tensors() {
    let Some((ctx, _)) = gpu() else { return };
    ctx.set_tensor_cache(6 << 10).unwrap();
    let (cpu, shared) = (plain(), values(8, &[24, 24]));
    let far = ctx.exp(&shared).unwrap();
    let expected = cpu.matmul(&cpu.exp(&shared).unwrap(), &shared).unwrap();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (ctx, cpu, far, shared, expected) = (&ctx, &cpu, &far, &shared, &expected);
            scope.spawn(move || {
                for _ in 0..8 {
                    let y = ctx.matmul(far, shared).unwrap();
                    assert_eq!(y.bytes(), expected.bytes());
                }
                random_chain(ctx, cpu, 100 + seed, 30);
            });
        }
    });
    let now = used(&ctx);
    assert!(now.tensors <= 2 && now.used <= 6 << 10 && now.evictions > 0, "{now:?}");
}

#[test]
fn wrong_data_is_the_calls_error() {
    let Some((ctx, _)) = gpu() else { return };
    let (table, cpu) = (values(9, &[50, 8]), plain());
    let far = ctx.relu(&table).unwrap();
    let wrong = Tensor::new(&vec![50i64; 200], &[200]).unwrap();
    assert_eq!(status(ctx.embedding(&far, &wrong)), Some(Status::InvalidArgument));
    assert_eq!(status(ctx.embedding(&far, &wrong)), Some(Status::InvalidArgument));
    let right = Tensor::new(&vec![49i64; 200], &[200]).unwrap();
    let rows = ctx.embedding(&far, &right).unwrap();
    assert_eq!(rows.bytes(), cpu.embedding(&cpu.relu(&table).unwrap(), &right).unwrap().bytes());
    assert_eq!(status(ctx.add(&far, &values(1, &[7]))), Some(Status::ShapeMismatch));
}

#[test]
fn a_tensor_outlives_its_context_and_works_in_others() {
    let Some((ctx, id)) = gpu() else { return };
    let (x, cpu) = (values(10, &[40, 40]), plain());
    let y = ctx.silu(&x).unwrap();
    let expected = cpu.silu(&x).unwrap();
    // Another context of the same GPU has its own streams and cache.
    let other = Context::open(&backend()).unwrap();
    assert_eq!(other.matmul(&y, &y).unwrap().bytes(), cpu.matmul(&expected, &expected).unwrap().bytes());
    let z = ctx.neg(&y).unwrap();
    drop(ctx);
    assert_eq!(z.places(), [id]);
    assert_eq!(cpu.abs(&z).unwrap().bytes(), expected_abs(&cpu, &expected).bytes());
    assert_eq!(z.to_vec::<f32>().unwrap().len(), 1600);
}

fn expected_abs(cpu: &Context, x: &Tensor) -> Tensor {
    cpu.abs(&cpu.neg(x).unwrap()).unwrap()
}

#[test]
fn the_dispatcher_knows_where_tensors_are() {
    let Some((ctx, id)) = gpu() else { return };
    let x = values(11, &[300, 300]);
    let both = open(&format!("cpu,{id}")).unwrap();
    both.dispatcher().set_hybrid(false);
    let bytes = |x: &Tensor| -> Vec<f64> {
        let explained = both.explain(Op::Exp, &Attrs::default(), &[Some(x)]).unwrap();
        explained.estimates.iter().map(|estimate| estimate.transfer_bytes).collect()
    };
    // The GPU needs an upload and a download, the processor nothing.
    assert_eq!(bytes(&x), [0.0, 720_000.0]);
    both.to(&x, &id).unwrap();
    assert_eq!(bytes(&x), [0.0, 360_000.0], "only the result");
    both.dispatcher().force(Some(&id)).unwrap();
    let y = both.exp(&x).unwrap();
    both.dispatcher().force(None).unwrap();
    assert_eq!(bytes(&y), [360_000.0, 0.0], "only on the GPU, and what is made of it may stay");
    // Divided or not, and wherever its operands are, an operation gives the same bits.
    both.dispatcher().set_hybrid(true);
    let z = both.matmul(&y, &x).unwrap();
    let cpu = plain();
    assert_eq!(z.bytes(), cpu.matmul(&cpu.exp(&x).unwrap(), &x).unwrap().bytes());
    drop(ctx);
}

#[test]
fn pipelines_take_what_is_there() {
    let Some((ctx, id)) = gpu() else { return };
    let (cpu, x, w) = (plain(), values(12, &[8, 30]), values(13, &[30, 50]));
    let chain = ctx.pipeline().begin_with_input(DType::F32, &[8, 30]).matmul(&w).relu().compile().unwrap();
    let expected = cpu.relu(&cpu.matmul(&x, &w).unwrap()).unwrap();
    assert_eq!(chain.run(&[&x]).unwrap()[0].places(), ["cpu"], "what comes from the host goes there");
    // A result that is on the same GPU, and a part of one.
    let far = ctx.neg(&cpu.neg(&x).unwrap()).unwrap();
    let y = chain.run(&[&far]).unwrap().swap_remove(0);
    assert_eq!((y.places(), far.is_on_host()), (vec![id.clone()], false));
    assert_eq!(y.bytes(), expected.bytes());
    let more = ctx.concat(&[&x, &far], 0).unwrap();
    assert_eq!(chain.run(&[&more.rows(8, 8).unwrap()]).unwrap()[0].bytes(), expected.bytes());
    // A result of another context moves through host memory.
    let other = Context::open(&backend()).unwrap();
    assert_eq!(chain.run(&[&other.neg(&cpu.neg(&x).unwrap()).unwrap()]).unwrap()[0].bytes(), expected.bytes());
    // A part that does not begin at a word.
    let half = Attrs { dtype: Some(DType::F16), ..Attrs::default() };
    let halves = ctx.run(Op::Cast, &half, &[Some(&values(14, &[400]))]).unwrap();
    let odd = ctx.pipeline().begin_with_input(DType::F16, &[301]).relu().compile().unwrap();
    let of_part = odd.run(&[&halves.rows(3, 301).unwrap()]).unwrap().swap_remove(0);
    assert_eq!(of_part.places(), [id.as_str()]);
    assert_eq!(of_part.bytes(), cpu.relu(&halves.rows(3, 301).unwrap()).unwrap().bytes());
    // The same as a constant.
    let far_w = ctx.neg(&cpu.neg(&w).unwrap()).unwrap();
    let again = ctx.pipeline().matmul(&far, &far_w).relu().execute().unwrap();
    assert_eq!(again.bytes(), expected.bytes());
}

/// A GPU packs a matrix's digits, and multiplies with them as with the matrix itself.
#[test]
fn digits_stay() {
    let Some((ctx, id)) = gpu() else { return };
    let cpu = plain();
    let half = |x: Tensor| cpu.cast(&x, DType::F16).unwrap();
    let sizes = [([1, 7], 5, 3), ([2, 40], 100, 129), ([3, 1], 64, 128), ([1, 130], 300, 40)];
    for (precision, digits) in [(Precision::Fixed24, 3), (Precision::Fixed16, 2)] {
        let (own, other) = (ctx.with_precision(precision), open(&id).unwrap());
        for (i, ([batches, m], k, n)) in sizes.into_iter().enumerate() {
            let (mut a, mut b) = (values(i as u64, &[batches, m, k]), values(9, &[k, n]));
            if i == 3 {
                (a, b) = (half(a), half(b));
            }
            let c = Some(values(5, &[m, n])).map(|c| if i == 3 { half(c) } else { c });
            let bias = Some(values(6, &[n])).map(|bias| if i == 3 { half(bias) } else { bias });
            let turned = cpu.transpose(&b).unwrap();
            let options = MatmulOptions { precision: Some(precision), ..MatmulOptions::default() };
            let full = MatmulOptions {
                alpha: -0.5,
                beta: 2.0,
                activation: Activation::Silu,
                c: c.as_ref(),
                bias: bias.as_ref(),
                ..options
            };
            let packed = [own.pack(&b, false).unwrap(), own.pack(&turned, true).unwrap()];
            // On the GPU already.
            let there = own.pack(&own.mul(&b, &b).unwrap(), false).unwrap();
            for packed in &packed {
                assert_eq!(packed.bytes(), n.next_multiple_of(128) * k.next_multiple_of(64) * digits + 4 * n);
                assert!(format!("{packed:?}").contains(&id), "{packed:?}");
                for options in [options, full] {
                    let got = own.matmul_packed(&a, packed, options).unwrap();
                    assert_eq!(got.places(), [id.as_str()]);
                    let expected = cpu.matmul_with(&a, &b, options).unwrap();
                    assert_eq!(got.host_bytes().unwrap(), expected.bytes(), "{precision:?} {m}x{k}x{n}");
                    let got = ctx.matmul_packed(&a, packed, MatmulOptions { precision: None, ..options }).unwrap();
                    assert_eq!(got.host_bytes().unwrap(), expected.bytes(), "with another default precision");
                }
            }
            let got = own.matmul_packed(&a, &there, options).unwrap();
            let expected = cpu.matmul_with(&a, &cpu.mul(&b, &b).unwrap(), options).unwrap();
            assert_eq!(got.host_bytes().unwrap(), expected.bytes());
            let wrong = MatmulOptions { precision: Some(Precision::F32), ..options };
            assert_eq!(status(own.matmul_packed(&a, &packed[0], wrong)), Some(Status::InvalidArgument));
            let error = other.matmul_packed(&a, &packed[0], options).unwrap_err();
            assert!(error.to_string().contains("as this context opened it"), "{error}");
            // The processor can't read them.
            let error = cpu.matmul_packed(&a, &packed[0], MatmulOptions::default()).unwrap_err();
            assert_eq!(error.status(), Status::InvalidArgument);
            assert!(error.to_string().contains(&format!("b was packed for {id} and is used on")), "{error}");
        }
        // Nothing to cut.
        let empty = own.pack(&values(1, &[0, 3]), false).unwrap();
        let got = own.matmul_packed(&values(1, &[2, 0]), &empty, MatmulOptions::default()).unwrap();
        assert_eq!(got.to_vec::<f32>().unwrap(), [0.0; 6]);
        assert_eq!(status(own.pack(&values(1, &[3]), false)), Some(Status::ShapeMismatch));
    }
}

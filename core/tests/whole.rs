//! Programs of tensors that run as one graph: the bits, the errors, the transfers and the cache. The GPU is this machine's,
//! through the backend in `ADEAD_TEST_BACKEND` (vulkan). Without a GPU that part says so and passes.

mod backend;

use adead_core::profile::{Activity, Report};
use adead_core::program::{Outcome, Program, RunOptions};
use adead_core::{Context, DType, Status, Tensor};

fn cpu() -> Context {
    Context::open("cpu").unwrap()
}

/// A context on the GPU, and the GPU's id.
fn gpu() -> Option<(Context, String)> {
    let backend = backend::backend();
    match Context::open(&backend) {
        Ok(ctx) => {
            let id = ctx.device_info().id.clone();
            Some((ctx, id))
        }
        Err(error) if error.status() == Status::BackendUnavailable => {
            backend::skip(&backend, &error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn values(seed: usize, dims: &[usize]) -> Tensor {
    let count = dims.iter().product();
    let values: Vec<f32> = (0..count).map(|i| ((i * 37 + seed * 11) % 101) as f32 / 200.0 - 0.25).collect();
    Tensor::new(&values, dims).unwrap()
}

const LAYERS: usize = 8;
const ROWS: usize = 3;
const WIDTH: usize = 16;

/// Eight layers of relu(x·w + b), with the weights in the program.
fn mlp() -> Program {
    let mut text = format!(".adead 1\ninput x f32[{ROWS},{WIDTH}]\n");
    let numbers = |tensor: &Tensor| -> String {
        tensor.to_vec::<f32>().unwrap().iter().map(|value| format!(" {:08x}", value.to_bits())).collect()
    };
    for i in 0..LAYERS {
        text += &format!("const w{i} f32[{WIDTH},{WIDTH}] ={}\n", numbers(&values(i, &[WIDTH, WIDTH])));
        text += &format!("const b{i} f32[{WIDTH}] ={}\n", numbers(&values(i + 50, &[WIDTH])));
    }
    text +=
        &format!("temp h f32[{ROWS},{WIDTH}]\ntemp t f32[{ROWS},{WIDTH}]\noutput y f32[{ROWS},{WIDTH}]\nload h x\n");
    for i in 0..LAYERS {
        let (last, name) = (i + 1 == LAYERS, if i + 1 == LAYERS { "y" } else { "h" });
        let (a, b) = if last { ("t", "y") } else { ("t", name) };
        text += &format!("{a} = matmul h w{i}\n{a} = add {a} b{i}\nfree h\n{b} = relu {a}\nfree {a}\n");
    }
    Program::assemble(&format!("{text}halt\n")).unwrap()
}

fn run(ctx: &Context, program: &Program, inputs: &[(&str, &Tensor)]) -> Outcome {
    let options =
        inputs.iter().fold(RunOptions::new(), |options, (name, tensor)| options.input(*name, (*tensor).clone()));
    program.run(ctx, &options).unwrap()
}

/// With exactly the memory that its own order takes, a program runs instruction by instruction, because the graph aligns its
/// values.
fn singly(ctx: &Context, program: &Program, x: &Tensor) -> Outcome {
    let exactly = program.validate(1 << 30).unwrap().memory();
    program.run(ctx, &RunOptions::new().input("x", x.clone()).memory_limit(exactly)).unwrap()
}

fn counted(report: &Report, activity: Activity) -> usize {
    report.records.iter().filter(|record| record.activity == activity).count()
}

#[test]
fn a_program_is_fused_and_its_plan_is_kept() {
    let (ctx, program, x) = (cpu(), mlp(), values(90, &[ROWS, WIDTH]));
    let profile = ctx.profile().unwrap();
    let outcome = run(&ctx, &program, &[("x", &x)]);
    let report = profile.finish();
    let names: Vec<&str> = report.records.iter().map(|record| &*record.name).collect();
    assert_eq!(names, ["matmul+add+relu"; LAYERS], "each layer is one step");
    let flops: f64 = report.records.iter().map(|record| record.flops).sum();
    assert!(flops >= (LAYERS * 2 * ROWS * WIDTH * WIDTH) as f64, "{flops}");
    assert_eq!((ctx.pipeline_cache().hits, ctx.pipeline_cache().misses), (0, 1));
    // Run one by one, the same instructions give the same bits and a record each.
    let profile = ctx.profile().unwrap();
    let single = singly(&ctx, &program, &x);
    assert_eq!(profile.finish().records.len(), 3 * LAYERS);
    assert_eq!(single.output("y").unwrap().bytes(), outcome.output("y").unwrap().bytes());
    assert_eq!((single.memory, single.flops, single.instructions), (outcome.memory, outcome.flops, program.len()));
    for run_again in 1..4 {
        let again = run(&ctx, &program, &[("x", &x)]);
        assert_eq!(again.output("y").unwrap().bytes(), outcome.output("y").unwrap().bytes());
        // The run one by one found the cached plan, which takes too much memory.
        assert_eq!((ctx.pipeline_cache().hits, ctx.pipeline_cache().misses), (run_again + 1, 1));
    }
    // A product has the time of the operations that were folded into it.
    let with_time = outcome.trace.iter().filter(|trace| trace.seconds > 0.0);
    let names: Vec<&str> = with_time.map(|trace| trace.name.as_str()).collect();
    assert_eq!(names, ["matmul"; LAYERS]);
    assert_eq!(outcome.trace.len(), program.len());
    // Another program of the same form has other constants, so it gets its own plan. A dropped program makes room.
    let same = mlp();
    run(&ctx, &same, &[("x", &x)]);
    assert_eq!((ctx.pipeline_cache().entries, ctx.pipeline_cache().misses), (2, 2));
    drop((program, same));
    run(&ctx, &mlp(), &[("x", &x)]);
    assert_eq!((ctx.pipeline_cache().entries, ctx.pipeline_cache().misses), (1, 3));
}

#[test]
fn values_stay_on_the_gpu() {
    let Some((ctx, id)) = gpu() else { return };
    let (program, x) = (mlp(), values(91, &[ROWS, WIDTH]));
    let expected = run(&cpu(), &program, &[("x", &x)]);
    let profile = ctx.profile().unwrap();
    let first = run(&ctx, &program, &[("x", &x)]);
    let report = profile.finish();
    assert_eq!(first.output("y").unwrap().bytes(), expected.output("y").unwrap().bytes());
    assert_eq!(counted(&report, Activity::Upload), 2 * LAYERS + 1, "the constants and the input");
    let profile = ctx.profile().unwrap();
    let second = run(&ctx, &program, &[("x", &x)]);
    let report = profile.finish();
    let moved: Vec<(Activity, f64)> = report
        .records
        .iter()
        .filter(|record| record.activity != Activity::Operation)
        .map(|record| (record.activity, record.bytes))
        .collect();
    let bytes = (4 * ROWS * WIDTH) as f64;
    assert_eq!(moved, [(Activity::Upload, bytes), (Activity::Download, bytes)], "the input and the output");
    let names: Vec<&str> =
        report.records.iter().filter(|it| it.activity == Activity::Operation).map(|it| &*it.name).collect();
    assert_eq!(names, ["matmul+add+relu"; LAYERS]);
    assert!(report.records.iter().all(|record| report.devices[record.device].id == id));
    // Without a profile the whole program is one recording, with the same bits.
    let third = run(&ctx, &program, &[("x", &x)]);
    for outcome in [&second, &third] {
        assert_eq!(outcome.output("y").unwrap().bytes(), expected.output("y").unwrap().bytes());
        assert_eq!(outcome.trace.iter().filter(|trace| trace.seconds > 0.0).count(), 1);
        assert!(outcome.trace.iter().all(|trace| *trace.device == *id));
    }
    assert_eq!((ctx.pipeline_cache().hits, ctx.pipeline_cache().misses), (2, 1));
}

#[test]
fn raw_registers_come_and_go() {
    let Some((ctx, _)) = gpu() else { return };
    let text = ".agpu 1\nalloc 256 r0\nalloc 256 r1\ncopy_h2d 0x1 r0 256\nrelu r0 r1 64\ntanh r1 r0 64\n\
                copy_d2h r0 0x2 256\nend\n";
    let (program, x) = (Program::assemble(text).unwrap(), values(93, &[64]));
    let profile = ctx.profile().unwrap();
    let outcome = run(&ctx, &program, &[("0x1", &x)]);
    let report = profile.finish();
    assert_eq!((counted(&report, Activity::Upload), counted(&report, Activity::Download)), (2, 2));
    let expected = cpu().tanh(&cpu().relu(&x).unwrap()).unwrap();
    assert_eq!(outcome.output("0x2").unwrap().bytes(), expected.bytes());
    assert_eq!(ctx.pipeline_cache().misses, 0);
}

#[test]
fn what_is_on_the_gpu_only_neither_comes_nor_goes() {
    let Some((ctx, id)) = gpu() else { return };
    let (program, x) = (mlp(), values(92, &[ROWS, WIDTH]));
    let there = ctx.exp(&x).unwrap();
    run(&ctx, &program, &[("x", &there)]);
    let profile = ctx.profile().unwrap();
    let outcome = run(&ctx, &program, &[("x", &there)]);
    let again = run(&ctx, &program, &[("x", outcome.output("y").unwrap())]);
    let report = profile.finish();
    assert_eq!((counted(&report, Activity::Upload), counted(&report, Activity::Download)), (0, 0));
    let (y, z) = (outcome.output("y").unwrap(), again.output("y").unwrap());
    assert_eq!((there.is_on_host(), y.places(), z.places()), (false, vec![id.clone()], vec![id]));
    let host = cpu();
    let expected = run(&host, &program, &[("x", &host.exp(&x).unwrap())]);
    assert_eq!(y.bytes(), expected.output("y").unwrap().bytes());
    let expected = run(&host, &program, &[("x", expected.output("y").unwrap())]);
    assert_eq!(z.bytes(), expected.output("y").unwrap().bytes());
}

/// Runs a check on the CPU, and on the GPU if there is one.
fn everywhere(check: impl Fn(&Context)) {
    check(&cpu());
    if let Some((ctx, _)) = gpu() {
        check(&ctx);
    }
}

#[test]
fn outputs_that_nothing_computes_are_copies_and_zeros() {
    let text = ".adead 1\ninput x f32[2,2]\nconst k f32[3] = 1.0 2.0 3.0\ninput none f32[0,9]\ntemp t f32[2,2]\n\
                temp u f32[2,2]\noutput same f32[2,2]\noutput three f32[3]\noutput zeros f32[2,2]\noutput sum f32[2,2]\n\
                output empty f32[0,9]\noutput twice f32[2,2]\nload t x\nstore t same\nstore k three\nalloc zeros\n\
                alloc u\nsum = add u t\nempty = tanh none\nstore sum twice\nsum = add sum sum\nhalt\n";
    let program = Program::assemble(text).unwrap();
    let (x, none) = (values(1, &[2, 2]), Tensor::zeros(DType::F32, &[0, 9]).unwrap());
    everywhere(|ctx| {
        let outcome = run(ctx, &program, &[("x", &x), ("none", &none)]);
        let output = |name: &str| outcome.output(name).unwrap();
        assert_eq!((output("same").bytes(), output("twice").bytes()), (x.bytes(), x.bytes()));
        assert_ne!(output("same").bytes().as_ptr(), x.bytes().as_ptr(), "the caller's memory may change");
        assert_eq!(output("three").to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
        assert_eq!(output("zeros").to_vec::<f32>().unwrap(), [0.0; 4]);
        assert_eq!(output("sum").bytes(), cpu().add(&x, &x).unwrap().bytes());
        assert_eq!((output("empty").dims(), output("empty").bytes().len()), (&[0, 9][..], 0));
        let names: Vec<&str> = outcome.outputs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["same", "three", "zeros", "sum", "empty", "twice"]);
    });
}

#[test]
fn an_error_names_its_instruction_though_all_run_as_one() {
    let text = ".adead 1\ninput table f32[4,4]\ninput ids i32[2]\ninput more i32[2]\ntemp unread f32[2,4]\n\
                output y f32[2,4]\ny = embedding table ids\ny = exp y\nunread = embedding table more\nhalt\n";
    let program = Program::assemble(text).unwrap();
    let ids = |last: i32| Tensor::new(&[1, last], &[2]).unwrap();
    let options = |a: i32, b: i32| {
        RunOptions::new().input("table", values(2, &[4, 4])).input("ids", ids(a)).input("more", ids(b))
    };
    everywhere(|ctx| {
        for (a, b, expected) in [(7, 9, "line 7: embedding: id 7 at"), (3, 9, "line 9: embedding: id 9 at")] {
            let error = program.run(ctx, &options(a, b)).unwrap_err();
            assert_eq!(error.status(), Status::InvalidArgument);
            assert!(error.message().starts_with(expected), "{error}");
        }
        // Afterwards it works as before.
        let y = program.run(ctx, &options(3, 0)).unwrap();
        let rows = cpu().embedding(&values(2, &[4, 4]), &ids(3)).unwrap();
        assert_eq!(y.output("y").unwrap().bytes(), cpu().exp(&rows).unwrap().bytes());
    });
}

#[test]
fn long_programs_run_one_by_one() {
    let mut text = String::from(".adead 1\ninput x f32[1]\noutput y f32[1]\ny = neg x\n");
    text += &"y = neg y\n".repeat(9000);
    let ctx = cpu();
    let outcome = run(&ctx, &Program::assemble(&text).unwrap(), &[("x", &values(3, &[1]))]);
    let expected = cpu().neg(&values(3, &[1])).unwrap();
    assert_eq!(outcome.output("y").unwrap().bytes(), expected.bytes());
    assert_eq!(ctx.pipeline_cache().misses, 0);
}

#[test]
fn large_values_are_not_kept_between_runs() {
    let text = ".adead 1\ninput x f32[2048,8300]\ntemp t f32[2048,8300]\noutput y f32[2048,8300]\nt = softmax x\n\
                y = softmax t\nhalt\n";
    let (ctx, program, x) = (cpu(), Program::assemble(text).unwrap(), values(4, &[2048, 8300]));
    let expected = ctx.softmax(&ctx.softmax(&x, -1).unwrap(), -1).unwrap();
    for hits in 0..2 {
        let outcome = run(&ctx, &program, &[("x", &x)]);
        assert!(outcome.output("y").unwrap().bytes() == expected.bytes());
        assert_eq!(ctx.pipeline_cache().hits, hits);
    }
}

//! What every opcode computes, and what it refuses.

use super::{LIMIT, Random, adead, agpu, context, refused, run};
use adead_core::contract::GeluForm;
use adead_core::program::{Direction, Program, RunOptions};
use adead_core::{Context, DType, Result, Status, Tensor};

/// Registers r0, r1 and r2 hold the inputs 0x0, 0x1 and 0x2, and r3 zeros. After the line, r3 is the output.
fn compute(line: &str, inputs: [&Tensor; 3], bytes: usize) -> Vec<u8> {
    let mut text = format!("init\nalloc {bytes} r3\n");
    for (i, input) in inputs.iter().enumerate() {
        text += &format!("alloc {bytes} r{i}\ncopy_h2d {i:#x} r{i} {}\n", input.bytes().len());
    }
    let program = agpu(&format!("{text}{line}\nbarrier\ncopy_d2h r3 0x3 {bytes}\nend"));
    let outcome = run(&program, &[("0x0", inputs[0]), ("0x1", inputs[1]), ("0x2", inputs[2])]);
    outcome.output("0x3").unwrap().bytes().to_vec()
}

#[test]
fn agpu_arithmetic() {
    let (mut random, ctx) = (Random(5), context());
    let [a, b, c] = [0, 1, 2].map(|_| random.tensor(&[4, 6]));
    let check = |line: &str, expected: Result<Tensor>| {
        let (found, expected) = (compute(line, [&a, &b, &c], 160), expected.unwrap());
        let n = expected.bytes().len();
        assert_eq!(found[..n], *expected.bytes(), "{line}");
        assert!(found[n..].iter().all(|&byte| byte == 0), "{line}: more than its elements was written");
    };
    check("add r0 r1 r3 24", ctx.add(&a, &b));
    check("sub r0 r1 r3 24", ctx.sub(&a, &b));
    check("mul r0 r1 r3 24", ctx.mul(&a, &b));
    check("div r0 r1 r3 24", ctx.div(&a, &b));
    check("scale r0 r3 24 -0.375", ctx.scale(&a, -0.375));
    check("relu r0 r3 24", ctx.relu(&a));
    check("sigmoid r0 r3 24", ctx.sigmoid(&a));
    check("tanh r0 r3 24", ctx.tanh(&a));
    check("gelu r0 r3 24", ctx.gelu(&a, GeluForm::Tanh));
    check("softmax r0 r3 4 6", ctx.softmax(&a, -1));
    check("layernorm r0 r3 4 6", ctx.layernorm(&a, None, None, 1e-5));
    check("matmul r0 r1 r3 4 4 6", ctx.matmul(&a, &b.reshape(&[6, 4]).unwrap()));
    check("matmul r0 r1 r3 0 4 6", Tensor::zeros(DType::F32, &[0]));
    check("attention r0 r1 r2 r3 4 6", ctx.attention(&a, &b, &c));
    check("multihead_attn r0 r1 r2 r3 4 6 1", ctx.attention(&a, &b, &c));
    let heads = |x: &Tensor| ctx.permute(&x.reshape(&[4, 3, 2]).unwrap(), &[1, 0, 2]).unwrap();
    let attended = ctx.attention(&heads(&a), &heads(&b), &heads(&c)).unwrap();
    check("multihead_attn r0 r1 r2 r3 4 6 3", ctx.permute(&attended, &[1, 0, 2]));
    let hidden = ctx.relu(&ctx.matmul(&a, &b.reshape(&[6, 4]).unwrap()).unwrap()).unwrap();
    check("ffn r0 r1 r2 r3 4 6 4", ctx.matmul(&hidden, &c));
    // In place, and with the same operand twice.
    check("add r0 r0 r0 24\nadd r0 r3 r3 24", ctx.add(&a, &a));
    check("softmax r0 r0 4 6\nscale r0 r3 24 1.0", ctx.softmax(&a, -1));
}

#[test]
fn embedding_and_memory_opcodes() {
    let table = Tensor::new(&[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0], &[3, 2]).unwrap();
    let text = "alloc 24 r0\nalloc 8 r1\nalloc 16 r2\ncopy_h2d 0xa r0 24\ncopy_h2d 0xb r1 8\nembedding r0 r1 r2 2 2\n\
                copy_d2h r2 0xc 16\nend";
    let program = agpu(text);
    let ids = |values: &[u32]| Tensor::new(values, &[2]).unwrap();
    let rows = run(&program, &[("0xa", &table), ("0xb", &ids(&[2, 0]))]);
    assert_eq!(rows.output("0xc").unwrap().to_vec::<f32>().unwrap(), [4.0, 5.0, 0.0, 1.0]);
    // Only the data can show this error. It has the operation's status and the instruction's place.
    let options = RunOptions::new().input("0xa", table.clone()).input("0xb", ids(&[1, 3]));
    let error = program.run(&context(), &options).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert!(error.message().starts_with("line 7: embedding: id 3 at position 1"), "{error}");

    // Registers begin as zeros, also after they were freed.
    let program = agpu("alloc 8 r0\nmemset r0 511 8\nfree r0\nalloc 8 r0\nmemset r0 258 3\ncopy_d2h r0 0x1 8");
    assert_eq!(run(&program, &[]).output("0x1").unwrap().bytes(), [2, 2, 2, 0, 0, 0, 0, 0]);
}

#[test]
fn slots_go_both_ways() {
    // The slot is read before it is written, so the caller must supply it. The caller's tensor does not change.
    let program = agpu("alloc 8 r0\ncopy_h2d 0xff r0 8\nadd r0 r0 r0 2\ncopy_d2h r0 0xff 4");
    let slot = &program.slots()[0];
    assert_eq!((slot.name.as_str(), slot.direction, slot.required), ("0xff", Direction::Both, true));
    let x = Tensor::new(&[1.0f32, 2.0], &[2]).unwrap();
    assert_eq!(run(&program, &[("0xff", &x)]).output("0xff").unwrap().to_vec::<f32>().unwrap(), [2.0, 2.0]);
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    // The slot is written before it is read, so the caller need not supply it.
    let program =
        agpu("alloc 4 r0\nmemset r0 1 4\ncopy_d2h r0 0x9 4\nalloc 4 r1\ncopy_h2d 0x9 r1 4\ncopy_d2h r1 0x8 4");
    assert!(!program.slots()[0].required);
    assert_eq!(run(&program, &[]).output("0x8").unwrap().bytes(), [1; 4]);
}

#[test]
fn what_the_caller_binds_is_checked() {
    let program = adead("input a f32[2]\noutput c f32[2]\nc = relu a");
    let error =
        |name: &str, tensor: Tensor| program.run(&context(), &RunOptions::new().input(name, tensor)).unwrap_err();
    let good = || Tensor::zeros(DType::F32, &[2]).unwrap();
    assert_eq!(error("b", good()).message(), "the program has no input 'b': it has [\"a\"]");
    assert_eq!(error("c", good()).status(), Status::InvalidArgument);
    assert_eq!(error("a", Tensor::zeros(DType::I32, &[2]).unwrap()).status(), Status::DtypeMismatch);
    assert_eq!(error("a", Tensor::zeros(DType::F32, &[1, 2]).unwrap()).status(), Status::ShapeMismatch);
    let missing = program.run(&context(), &RunOptions::new()).unwrap_err();
    assert_eq!(missing.message(), "the input 'a' (f32[2], 8 bytes) is missing");
    let twice = RunOptions::new().input("a", good()).input("a", good());
    assert_eq!(program.run(&context(), &twice).unwrap_err().status(), Status::InvalidArgument);
    let program = agpu("alloc 8 r0\ncopy_h2d 0x1 r0 8");
    let short = RunOptions::new().input("0x1", Tensor::zeros(DType::F32, &[1]).unwrap());
    assert_eq!(program.run(&context(), &short).unwrap_err().status(), Status::ShapeMismatch);
}

#[test]
fn tensors_and_calls() {
    let text = "input a f32[2,3]\nconst w f32[3] = 1.0 2.0 3.0\ntemp t f32[2,3]\ntemp u f32[3,2]\noutput c f32[2,2]\n\
                output d f32[3]\noutput e f32[2,3]\nalloc t\ne = add t w\nfree t\nload t a\nu = transpose a\n\
                c = matmul t u\nc = mul c c\nfree t\nfree u\nt = concat e axis=0\nt = div t w\nt = sub t a\nstore t e\n\
                d = sum t axis=0\nnop\nhalt";
    let (x, ctx) = (Random(6).tensor(&[2, 3]), context());
    let program = adead(text);
    for program in [&program, &Program::decode(&program.encode()).unwrap()] {
        let outcome = run(program, &[("a", &x)]);
        let product = ctx.matmul(&x, &ctx.transpose(&x).unwrap()).unwrap();
        assert_eq!(outcome.output("c").unwrap().bytes(), ctx.mul(&product, &product).unwrap().bytes());
        let e = ctx.sub(&Tensor::new(&[1.0f32; 6], &[2, 3]).unwrap(), &x).unwrap();
        assert_eq!(outcome.output("e").unwrap().bytes(), e.bytes());
        assert_eq!(outcome.output("d").unwrap().bytes(), ctx.sum(&e, adead_core::Axis::At(0), false).unwrap().bytes());
        assert_eq!(outcome.memory, 24 + 24 + 16 + 12 + 24);
    }
}

#[test]
fn softmax_relu_and_every_flag_of_matmul() {
    let (mut random, ctx) = (Random(7), context());
    let (a, b) = (random.tensor(&[3, 3]), random.tensor(&[3, 3]));
    let t = |x: &Tensor, yes: usize| if yes > 0 { ctx.transpose(x).unwrap() } else { x.clone() };
    for flags in 0..4 {
        let declared = "input a f32[3,3]\ninput b f32[3,3]\noutput c f32[3,3]\n";
        let line = format!("c = matmul a b trans_a={} trans_b={}\nc = relu c\nc = softmax c", flags & 1, flags >> 1);
        let outcome = run(&adead(&format!("{declared}{line}")), &[("a", &a), ("b", &b)]);
        let product = ctx.matmul(&t(&a, flags & 1), &t(&b, flags >> 1)).unwrap();
        let expected = ctx.softmax(&ctx.relu(&product).unwrap(), -1).unwrap();
        assert_eq!(outcome.output("c").unwrap().bytes(), expected.bytes());
    }
}

#[test]
fn agpu_refusals() {
    let registers = "alloc 64 r0\nalloc 64 r1\nalloc 64 r2\nalloc 16 r9\n";
    let cases = [
        ("add r0 r1 r3 4", "line 6: ADD: r3 was never allocated"),
        ("add r0 r3 r2 4", "line 6: ADD: r3 was never allocated"),
        ("free r0\nrelu r0 r1 1", "line 7: RELU: r0 was freed"),
        ("free r0\nfree r0", "line 7: FREE: r0 was freed"),
        ("alloc 4 r0", "line 6: ALLOC: r0 is allocated already"),
        ("copy_h2d 0x1 r9 20", "line 6: COPY_H2D: 20 bytes of r9, which has 16"),
        ("copy_d2h r9 0x1 20", "line 6: COPY_D2H: 20 bytes of r9, which has 16"),
        ("copy_h2d 0x1 r9 6", "line 6: COPY_H2D: 6 bytes; a slot's size is a multiple of 4"),
        ("memset r9 0 17", "line 6: MEMSET: 17 bytes of r9, which has 16"),
        ("add r0 r9 r2 5", "line 6: ADD: f32[5] takes 20 bytes and r9 has 16"),
        ("add r0 r1 r9 5", "line 6: ADD: the result f32[5] takes 20 bytes and r9 has 16"),
        ("matmul r0 r1 r2 4 4 5", "line 6: MATMUL: f32[4, 5] takes 80 bytes"),
        ("matmul r0 r1 r0 4 4 4", "line 6: matmul: the result would overwrite operand 0"),
        ("matmul r0 r1 r1 4 4 4", "line 6: matmul: the result would overwrite operand 1"),
        ("matmul r0 r1 r2 4294967295 4294967295 4294967295", "line 6: "),
        ("softmax r0 r1 4294967295 4294967295", "line 6: "),
        ("attention r0 r1 r2 r2 4 4", "line 6: attention: the result would overwrite operand 2"),
        ("multihead_attn r0 r1 r1 r0 4 4 2", "line 6: MULTIHEAD_ATTN: the result would overwrite"),
        ("multihead_attn r0 r1 r1 r2 4 4 3", "line 6: MULTIHEAD_ATTN: 4 columns can't be split into 3 heads"),
        ("multihead_attn r0 r1 r1 r2 4 4 0", "line 6: MULTIHEAD_ATTN: 4 columns can't be split into 0 heads"),
        ("embedding r0 r9 r2 5 2", "line 6: EMBEDDING: u32[5] takes 20 bytes"),
        ("embedding r0 r9 r2 4 0", "line 6: EMBEDDING: dim is 0"),
        ("ffn r0 r1 r2 r0 2 4 4", "line 6: ffn: the result would overwrite operand 0"),
        ("layernorm r0 r9 2 4", "line 6: LAYERNORM: the result f32[2, 4] takes 32 bytes"),
    ];
    for (lines, expected) in cases {
        let message = refused(Program::assemble(&format!(".agpu 1\n{registers}{lines}")));
        assert!(message.starts_with(expected), "{lines}: {message}");
    }
    let message = refused(Program::assemble(".agpu 1\nffn r0 r1 r2 4 4 4"));
    assert!(message.contains("FFN has 6 operands; it takes 7 (x, w1, w2, out, rows, dim, hidden)"), "{message}");
    assert!(message.contains("names no weights, so it can't mean anything"), "{message}");
}

#[test]
fn tensor_refusals() {
    let declared = "input a f32[2]\nconst w f32[2] = 1.0 1.0\ntemp t f32[2]\ntemp i i32[2]\noutput c f32[2]\n";
    let cases = [
        ("c = relu t", "line 7: relu: 't' is used before anything wrote it"),
        ("c = relu c", "line 7: relu: 'c' is used before anything wrote it"),
        ("t = relu a\nfree t\nc = relu t", "line 9: relu: 't' is used after it was freed"),
        ("t = relu a\nfree t\nfree t", "line 9: free: 't' is used after it was freed"),
        ("free t", "line 7: free: 't' is used before"),
        ("free c", "line 7: free: 'c' is output, not temp"),
        ("alloc t\nalloc t", "line 8: alloc: 't' is allocated already"),
        ("alloc a", "line 7: alloc: 'a' is input, not temp"),
        ("a = relu w", "line 7: relu: 'a' is input: read only"),
        ("w = relu a", "line 7: relu: 'w' is const: read only"),
        ("t = relu i", "line 7: relu: 'i' is used before"),
        ("alloc i\nt = relu i", "line 8: relu: computes on f32, f16 and bf16, not i32"),
        ("i = relu a", "line 7: relu: 'i' is i32[2]; the result is f32[2]"),
        ("c = sum a", "line 7: sum: 'c' is f32[2]; the result is f32[]"),
        ("c = relu a a", "line 7: relu: takes at most 1 operand (x); 2 were given"),
        ("c = add a -", "line 7: add: operand 1 (b) is missing"),
        ("c = softmax a axis=3", "line 7: softmax: axis 3 is out of range"),
        ("load i a", "line 7: load: 'a' is f32[2] and 'i' i32[2]; they must be the same"),
        ("alloc t\nload t t", "line 8: load: from 't' (temp) to 't' (temp)"),
        ("store a t", "line 7: store: from 'a' (input) to 't' (temp)"),
        ("store t c", "line 7: store: 't' is used before"),
        ("store c c", "line 7: store: from 'c' (output) to 'c' (output)"),
        ("c = relu a\nc = concat c axis=0", "line 8: concat: the result would overwrite operand 0"),
        ("t = relu a", "line 6: the output 'c' is never written"),
        ("c = relu a\nhalt\nnop", "line 9: nop follows halt"),
    ];
    for (lines, expected) in cases {
        let message = refused(Program::assemble(&format!(".adead 1\n{declared}{lines}")));
        assert!(message.starts_with(expected), "{lines}: {message}");
    }
}

#[test]
fn memory_is_counted_before_anything_is_allocated() {
    let limit = |program: &Program, bytes: usize| {
        assert_eq!(program.validate(bytes).unwrap().memory(), bytes);
        let error = program.validate(bytes - 1).unwrap_err();
        assert_eq!(error.status(), Status::OutOfMemory, "{error}");
        let error = program.run(&context(), &RunOptions::new().memory_limit(bytes - 1)).unwrap_err();
        assert_eq!(error.status(), Status::OutOfMemory, "{error}");
        error.message().to_string()
    };
    let message = limit(&agpu("alloc 64 r0\nfree r0\nalloc 48 r0\nalloc 48 r1"), 96);
    assert_eq!(message, "line 5: with 'alloc 48 r1' the program takes 96 bytes; the limit is 95");
    // The output counts too, and so does the heads' scratch: three transposed operands and the result.
    limit(&agpu("alloc 64 r0\ncopy_d2h r0 0x1 32"), 96);
    limit(&agpu("alloc 64 r0\nalloc 64 r1\nmultihead_attn r0 r0 r0 r1 4 4 2"), 128 + 4 * 64);
    // Small operands with large hidden values.
    let ffn = "alloc 4096 r0\nalloc 4096 r1\nffn r0 r0 r0 r1 1024 1 1024";
    limit(&agpu(ffn), 8192 + 4 * 1024 * 1024);
    limit(&adead("const x f16[8] = 3c00 3c00 3c00 3c00 3c00 3c00 3c00 3c00\noutput y f16[8]\ny = relu x"), 16 + 2 * 32);
    // Registers of four gigabytes each, more than fit anywhere.
    let lines: String = (0..1000).map(|i| format!("alloc 4294967295 r{i}\n")).collect();
    let error = agpu(&lines).validate(LIMIT).unwrap_err();
    assert_eq!(error.status(), Status::OutOfMemory);
    let n = adead_core::MAX_ELEMENTS;
    let lines: String = (0..5).map(|i| format!("temp t{i} f32[{n}]\n")).collect();
    let lines = (0..5).fold(lines, |lines, i| lines + &format!("alloc t{i}\n"));
    assert_eq!(adead(&lines).validate(usize::MAX).unwrap_err().status(), Status::OutOfMemory);
}

#[test]
fn empty_results_cost_nothing_however_large_their_rows() {
    let registers = "alloc 0 r0\nalloc 0 r1\n";
    for line in [
        "softmax r0 r1 4294967295 0",
        "layernorm r0 r1 4294967295 0",
        "attention r0 r0 r0 r1 1000000000 0",
        "multihead_attn r0 r0 r0 r1 100000000 0 4",
        "matmul r0 r0 r1 4294967295 0 0",
        "ffn r0 r0 r0 r1 0 0 4294967295",
        "add r0 r0 r0 0",
    ] {
        let program = agpu(&format!("{registers}{line}\ncopy_d2h r1 0x1 0"));
        assert!(run(&program, &[]).output("0x1").unwrap().is_empty(), "{line}");
    }
}

#[test]
fn a_context_of_one_thread_runs_them_too() {
    let ctx = Context::open("cpu").unwrap();
    let program = agpu("nop\ninit\nshutdown\nsync\nbarrier\nend");
    assert_eq!(program.run(&ctx, &RunOptions::new()).unwrap().instructions, 6);
    let vulkan = adead("vk_init\nvk_compute 1 1 1\nvk_submit\nvk_sync\nnop\nhalt");
    assert_eq!(vulkan.run(&ctx, &RunOptions::new().parallel(true)).unwrap().instructions, 6);
    assert_eq!(adead("").run(&ctx, &RunOptions::new()).unwrap().instructions, 0);
}

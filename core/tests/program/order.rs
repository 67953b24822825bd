//! The scheduler: the dependencies of instructions, and that the order never shows in a result.

use super::{LIMIT, Random, adead, agpu, context};
use adead_core::Tensor;
use adead_core::program::{Program, RunOptions};

#[test]
fn instructions_wait_for_what_they_use() {
    let program = agpu(
        "alloc 64 r0\nalloc 64 r1\nalloc 64 r2\ncopy_h2d 0x1 r0 64\ncopy_h2d 0x2 r1 64\nadd r0 r1 r2 16\n\
         relu r0 r0 16\nsync\nfree r1\nalloc 32 r3\ncopy_d2h r2 0x3 64\nend",
    );
    let plan = program.validate(LIMIT).unwrap();
    let waits: Vec<Vec<usize>> = (0..program.len()).map(|i| plan.depends_on(i)).collect();
    // Allocations run in order, copies after their register's allocation, ADD after both, RELU (in place) after ADD read r0.
    assert_eq!(waits[..7], [vec![], vec![0], vec![1], vec![0], vec![1], vec![2, 3, 4], vec![3, 5]]);
    assert_eq!(waits[7], [0, 1, 2, 3, 4, 5, 6], "SYNC waits for all");
    assert_eq!(waits[9], [2, 7, 8], "an allocation waits for the FREE before it");
    assert_eq!(waits[10], [5, 7]);
}

/// A program of small square matrices with independent parts, reuse, FREE and barriers.
fn random_tensors(random: &mut Random) -> Program {
    const N: usize = 7;
    let mut text = String::new();
    for name in ["a", "b", "c"] {
        text += &format!("input {name} f32[{N},{N}]\n");
    }
    for i in 0..6 {
        text += &format!("temp t{i} f32[{N},{N}]\n");
    }
    for i in 0..3 {
        text += &format!("output o{i} f32[{N},{N}]\n");
    }
    let mut alive = [false; 9];
    let name = |i: usize| match i {
        0..6 => format!("t{i}"),
        _ => format!("o{}", i - 6),
    };
    for _ in 0..40 {
        let readable: Vec<String> =
            ["a", "b", "c"].map(String::from).into_iter().chain((0..9).filter(|&i| alive[i]).map(name)).collect();
        let target = random.below(9);
        let mut pick = || readable[random.below(readable.len())].clone();
        let (x, y) = (pick(), pick());
        match random.below(10) {
            0 if target < 6 && alive[target] => {
                text += &format!("free t{target}\n");
                alive[target] = false;
                continue;
            }
            0 if !alive[target] => text += &format!("alloc {}\n", name(target)),
            1 => {
                text += "vk_sync\n";
                continue;
            }
            2 => text += &format!("{} = add {x} {y}\n", name(target)),
            3 => text += &format!("{} = softmax {x}\n", name(target)),
            4 => text += &format!("{} = tanh {x}\n", name(target)),
            kind => {
                let target_name = name(target);
                if x == target_name || y == target_name {
                    continue;
                }
                text += &match kind {
                    5 | 6 => format!("{target_name} = matmul {x} {y} trans_b={}\n", kind - 5),
                    7 => format!("{target_name} = transpose {x}\n"),
                    8 => format!("{target_name} = attention {x} {y} {x} causal=1\n"),
                    _ => format!("{target_name} = layernorm {x}\n"),
                };
            }
        }
        alive[target] = true;
    }
    for i in 0..3 {
        text += &format!("o{i} = {} a b\n", ["mul", "add", "sub"][i]);
    }
    adead(&text)
}

/// The same with registers that are reused with other sizes.
fn random_registers(random: &mut Random) -> Program {
    let mut text = String::from("alloc 256 r0\nalloc 256 r1\nalloc 256 r2\ncopy_h2d 0x1 r0 256\ncopy_h2d 0x2 r1 256\n");
    let mut size = [256, 256, 256, 0, 0];
    for _ in 0..40 {
        let [a, b, c] = [0; 3].map(|_| random.below(5));
        let n = [size[a], size[b], size[c]].into_iter().min().unwrap_or(0) / 4;
        text += &match random.below(9) {
            0 if size[a] > 0 && size.iter().filter(|&&size| size > 0).count() > 2 => {
                size[a] = 0;
                format!("free r{a}\n")
            }
            1 | 2 if size[a] == 0 => {
                size[a] = 64 * (1 + random.below(4));
                format!("alloc {} r{a}\n", size[a])
            }
            3 if size[a] > 0 => format!("memset r{a} {} {}\n", random.below(64), random.below(size[a] + 1)),
            4 if size[a] > 0 => format!("copy_d2h r{a} {:#x} {}\n", 3 + b, size[a]),
            5 if n > 0 => format!("add r{a} r{b} r{c} {n}\n"),
            6 if n > 0 => format!("gelu r{a} r{c} {n}\n"),
            7 if n >= 16 && c != a && c != b => format!("matmul r{a} r{b} r{c} 4 4 4\n"),
            8 if n >= 16 && c != a && c != b => format!("multihead_attn r{a} r{b} r{a} r{c} 4 4 2\n"),
            _ => continue,
        };
    }
    let last = (0..5).rfind(|&i| size[i] > 0).unwrap_or(0);
    agpu(&format!("{text}copy_d2h r{last} 0x99 {}\nend", size[last]))
}

#[test]
fn order_never_shows() {
    // If operations are divided among devices, programs of tensors run instruction by instruction too.
    let (ctx, singly) = (context(), context());
    singly.dispatcher().force(None).unwrap();
    singly.dispatcher().set_hybrid(true);
    for seed in 0..60 {
        let mut random = Random(seed);
        let program = if seed % 2 == 0 { random_tensors(&mut random) } else { random_registers(&mut random) };
        program.validate(LIMIT).unwrap_or_else(|error| panic!("{error}\n{}", program.disassemble()));
        let mut options = RunOptions::new();
        for slot in program.slots().iter().filter(|slot| slot.required) {
            options = options.input(&slot.name, random.tensor(slot.meta.shape.dims()));
        }
        let bytes = |outcome: &adead_core::program::Outcome| -> Vec<(String, Vec<u8>)> {
            outcome.outputs.iter().map(|(name, tensor)| (name.clone(), Tensor::bytes(tensor).to_vec())).collect()
        };
        let expected = bytes(&program.run(&ctx, &options).unwrap());
        assert!(!expected.is_empty());
        // Instruction by instruction, in the program's order and in any order.
        assert_eq!(bytes(&program.run(&singly, &options).unwrap()), expected, "seed {seed}\n{}", program.disassemble());
        let options = options.parallel(true);
        for _ in 0..8 {
            let outcome = program.run(&singly, &options).unwrap();
            assert_eq!(bytes(&outcome), expected, "seed {seed}\n{}", program.disassemble());
        }
    }
}

#[test]
fn a_failing_run_reports_the_same_error_in_any_order() {
    let mut text = String::from("input table f32[4,4]\ninput ids i32[2]\n");
    for i in 0..8 {
        text += &format!("output o{i} f32[2,4]\n");
    }
    for i in 0..8 {
        text += &format!("o{i} = embedding table ids\n");
    }
    let options =
        RunOptions::new().input("table", Random(1).tensor(&[4, 4])).input("ids", Tensor::new(&[1, -1], &[2]).unwrap());
    let singly = context();
    singly.dispatcher().force(None).unwrap();
    singly.dispatcher().set_hybrid(true);
    let runs = [(&context(), false), (&singly, false), (&singly, true), (&singly, true), (&singly, true)];
    for (ctx, parallel) in runs {
        let error = adead(&text).run(ctx, &options.clone().parallel(parallel)).unwrap_err();
        assert!(error.message().starts_with("line 12: embedding: id -1 at position 1"), "{error}");
    }
}

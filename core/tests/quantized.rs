//! Products with quantised blocks on the machine's first GPU (also a software one), through Vulkan or the backend in
//! `ADEAD_TEST_BACKEND` (`vulkan`, `cuda`): the bits of the processor, in tiles, and with what stands around products of few rows.

mod backend;
#[allow(dead_code)]
mod draws;
#[allow(dead_code)]
mod pipelines;

use adead_core::contract::{BlockFormat, GeluForm};
use adead_core::pipeline::{Pipeline, Value};
use adead_core::{Attrs, Context, Op, Tensor};
use draws::Random;
use pipelines::contexts;

/// Numbers from −1 to 1.
fn values(random: &mut Random, dims: &[usize]) -> Tensor {
    let values: Vec<f32> = (0..dims.iter().product()).map(|_| random.below(2001) as f32 / 1000.0 - 1.0).collect();
    Tensor::new(&values, dims).unwrap()
}

fn attrs(format: BlockFormat) -> Attrs {
    Attrs { format: Some(format), ..Attrs::DEFAULT }
}

fn op<const N: usize>(to: &mut Pipeline, op: Op, attrs: &Attrs, operands: [Value; N]) -> Value {
    to.op(op, attrs, &operands.map(Some)).unwrap()
}

#[test]
fn tiles_have_the_bits_of_the_cpu() {
    let cpu = Context::open("cpu").unwrap();
    let mut random = Random(5);
    // So many rows that no kernel for few takes them. The last tiles are cut in both directions, and in blocks of 32 also along K.
    for format in BlockFormat::ALL {
        let [rows, outputs, inputs] = if format.elements() == 32 { [70, 100, 672] } else { [40, 130, 768] };
        let w = random.blocks(format, &[outputs], inputs / format.elements());
        let x = values(&mut random, &[rows, inputs]);
        let expected = cpu.quantized_matmul(&x, &w, format).unwrap();
        for context in contexts() {
            let found = context.quantized_matmul(&x, &w, format).unwrap();
            assert!(found.host_bytes().unwrap() == expected.bytes(), "{context:?}: {format:?}");
        }
    }
}

/// What makes the rows of a product, from rows that are twice as wide.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Made {
    Norm,
    Silu,
    Gelu,
    Nothing,
}

#[test]
fn products_make_their_rows_and_add_to_their_results() {
    let cpu = Context::open("cpu").unwrap();
    let mut random = Random(6);
    let inputs = 1280;
    let all = [Made::Norm, Made::Silu, Made::Gelu, Made::Nothing];
    // Every format with two of them, and each with one row and with two. Three rows are too many for one kernel.
    let cases = BlockFormat::ALL.iter().enumerate().flat_map(|(number, &format)| {
        [0, 1].map(|more| (format, all[(number + more) % 4], 1 + (number / 4 + more) % 2, number % 2 == 0))
    });
    let contexts = contexts();
    for (format, made, rows, shown) in cases.chain([(BlockFormat::Q4_1, Made::Norm, 3, true)]) {
        let count = inputs / format.elements();
        let [first, second] = [(); 2].map(|()| random.blocks(format, &[inputs], count));
        let (x, factors) = (values(&mut random, &[rows, inputs]), values(&mut random, &[inputs]));
        // The values between, if something else uses them too.
        let shown = shown && made != Made::Nothing;
        let by_hand = |x: &Tensor, w: &Tensor| -> (Tensor, Tensor) {
            let made = match made {
                Made::Norm => cpu.rmsnorm(x, Some(&factors), Attrs::DEFAULT.eps).unwrap(),
                Made::Silu => cpu.mul(&cpu.silu(x).unwrap(), x).unwrap(),
                Made::Gelu => cpu.mul(&cpu.gelu(x, GeluForm::Tanh).unwrap(), x).unwrap(),
                Made::Nothing => x.clone(),
            };
            let y = cpu.quantized_matmul(&made, w, format).unwrap();
            (made, cpu.add(&y, x).unwrap())
        };
        let (first_made, first_sum) = by_hand(&x, &first);
        let (second_made, second_sum) = by_hand(&first_sum, &second);
        let mut expected = vec![second_sum];
        if shown {
            expected.extend([first_made, second_made]);
        }
        for context in &contexts {
            let mut to = context.pipeline();
            let input = to.input(x.dtype(), x.dims()).unwrap();
            let [v, w, g] = [&first, &second, &factors].map(|tensor| to.constant(tensor).unwrap());
            let mut between = Vec::new();
            let mut layer = |to: &mut Pipeline, x: Value, w: Value| {
                let function = |to: &mut Pipeline, function, form| {
                    let y = op(to, function, &Attrs { form, ..Attrs::DEFAULT }, [x]);
                    op(to, Op::Mul, &Attrs::DEFAULT, [y, x])
                };
                let made = match made {
                    Made::Norm => op(to, Op::Rmsnorm, &Attrs::DEFAULT, [x, g]),
                    Made::Silu => function(to, Op::Silu, Attrs::DEFAULT.form),
                    Made::Gelu => function(to, Op::Gelu, GeluForm::Tanh),
                    Made::Nothing => x,
                };
                between.push(made);
                let y = op(to, Op::QuantizedMatmul, &attrs(format), [made, w]);
                op(to, Op::Add, &Attrs::DEFAULT, [y, x])
            };
            let middle = layer(&mut to, input, v);
            let last = layer(&mut to, middle, w);
            to.output(last).unwrap();
            if shown {
                between.into_iter().for_each(|value| to.output(value).unwrap());
            }
            let compiled = to.compile().unwrap();
            // Twice: a run may leave nothing behind that the next one reads.
            for _ in 0..2 {
                let found = compiled.run(&[&x]).unwrap();
                for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    let same = found.host_bytes().unwrap() == expected.bytes();
                    assert!(same, "{context:?}: {made:?}, {format:?}, {rows} rows: output {i}");
                }
            }
        }
    }
}

//! Quantised blocks: the bytes that the oracle of `tests/text` computed, errors of values, and what is refused.

mod common;

use adead::contract::{block_floats, f16_to_f32};
use adead::{BlockFormat, Context, DType, Status, Tensor};
use adead_models::gguf::{quantize, quantize_tensor};
use common::text;

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|float| f32::from_le_bytes(float.try_into().unwrap())).collect()
}

/// Numbers that look drawn from a normal distribution of deviation 1.
fn normal(count: usize) -> Vec<f32> {
    let mut state = 7u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..count).map(|_| (0..12).map(|_| draw()).sum()).collect()
}

#[test]
fn bytes_are_those_of_the_oracle() {
    let lines = std::fs::read_to_string(text("blocks.txt")).unwrap();
    let (mut cases, mut apart) = ([0; 8], Vec::new());
    for (number, line) in lines.lines().enumerate() {
        let [name, values, bytes] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("line {number}") };
        let format: BlockFormat = name.parse().unwrap();
        cases[format as usize] += 1;
        if quantize(&floats(&unhex(values)), format).unwrap() != unhex(bytes) {
            apart.push(format!("{name}, line {}", number + 1));
        }
    }
    assert!(apart.is_empty(), "{apart:?}");
    assert_eq!(cases, [20; 8]);
}

#[test]
fn many_values_give_the_bytes_of_each_block() {
    // Beyond what one thread takes at a time, and not a multiple of it.
    let values = normal(3 * 65536 + 512);
    for format in BlockFormat::ALL {
        let all = quantize(&values, format).unwrap();
        let blocks = values.chunks(format.elements()).flat_map(|block| quantize(block, format).unwrap());
        assert!(blocks.eq(all.iter().copied()), "{}", format.name());
        let tensor = quantize_tensor(&Tensor::new(&values, &[values.len() / 512, 512]).unwrap(), format).unwrap();
        assert_eq!(tensor.dims(), [values.len() / 512, 512 / format.elements() * format.bytes()]);
        assert!(tensor.bytes() == all, "{}", format.name());
        assert_eq!(quantize(&[], format).unwrap(), [0u8; 0]);
    }
}

#[test]
fn errors_are_small() {
    // The root of the mean square of errors, of normal values with deviation 1, at most.
    let most = [0.0054, 0.0865, 0.079, 0.043, 0.0382, 0.0725, 0.0366, 0.018];
    let values = normal(1 << 16);
    for (format, most) in BlockFormat::ALL.into_iter().zip(most) {
        let bytes = quantize(&values, format).unwrap();
        let read = bytes.chunks(format.bytes()).flat_map(|block| block_floats(format, block));
        let squares: f64 = values.iter().zip(read).map(|(x, y)| f64::from(x - y).powi(2)).sum();
        let error = (squares / values.len() as f64).sqrt();
        assert!(error < most && error > most * 0.95, "{}: {error}", format.name());
    }
}

#[test]
fn halves_are_widened_and_rows_are_operands() {
    let halves: Vec<u16> = (0..512u16).map(|i| 0x3c00 ^ (i * 37) << 3 & 0x83ff).collect();
    let bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_ne_bytes()).collect();
    let wide: Vec<f32> = halves.iter().map(|&half| f16_to_f32(half)).collect();
    let w = Tensor::from_bytes(&bytes, DType::F16, &[2, 256]).unwrap();
    let context = Context::open("cpu").unwrap();
    for format in BlockFormat::ALL {
        let blocks = quantize_tensor(&w, format).unwrap();
        assert_eq!(blocks.bytes(), quantize(&wide, format).unwrap());
        let back = context.dequantize(&blocks, format).unwrap();
        assert_eq!(back.dims(), [2, 256]);
        let product = context.quantized_matmul(&Tensor::new(&[1f32; 256], &[1, 256]).unwrap(), &blocks, format);
        assert_eq!(product.unwrap().dims(), [1, 2]);
    }
}

#[test]
fn what_can_t_be_quantised_is_said() {
    let says = |result: adead::Result<Vec<u8>>| {
        let error = result.unwrap_err();
        (error.status(), error.message().to_owned())
    };
    let refused = |text: &str| (Status::InvalidArgument, text.to_owned());
    let with = |count: usize, at: usize, value: f32| {
        let mut values = vec![1.0; count];
        values[at] = value;
        values
    };
    assert_eq!(
        says(quantize(&[0.0; 33], BlockFormat::Q4_0)),
        (Status::ShapeMismatch, "33 values; q4_0 takes a multiple of 32, the values of a block".into())
    );
    for format in BlockFormat::ALL {
        let text = format!("value 300 is NaN; {} takes finite values", format.name());
        assert_eq!(says(quantize(&with(512, 300, f32::NAN), format)), refused(&text));
        // The first of several is told, also if another thread finds a later one.
        let mut many = with(1 << 18, 70_000, f32::NEG_INFINITY);
        many[200_000] = f32::NAN;
        let text = format!("value 70000 is -inf; {} takes finite values", format.name());
        assert_eq!(says(quantize(&many, format)), refused(&text));
        let large = says(quantize(&with(512, 300, 1e30), format)).1;
        assert!(large.starts_with("the block from value ") && large.ends_with("as f16, at most 65504"), "{large}");
    }
    let large = says(quantize(&with(64, 40, -2e6), BlockFormat::Q4_0));
    let text = "the block from value 32 on needs 2.5e5; q4_0 stores factors of a block as f16, at most 65504";
    assert_eq!(large, refused(text));
    let tensor = |tensor: Tensor, format| says(quantize_tensor(&tensor, format).map(|tensor| tensor.bytes().to_vec()));
    let rows = Tensor::new(&with(64, 40, f32::INFINITY), &[2, 32]).unwrap();
    assert_eq!(tensor(rows, BlockFormat::Q8_0), refused("value 8 of row 1 is inf; q8_0 takes finite values"));
    let (status, text) = tensor(Tensor::new(&[0f32; 64], &[2, 32]).unwrap(), BlockFormat::Q4_K);
    assert_eq!(status, Status::ShapeMismatch);
    assert_eq!(text, "the tensor is [2, 32]; q4_k takes rows whose length is a multiple of 256, the values of a block");
    let (status, text) = tensor(Tensor::new(&[0i32; 32], &[1, 32]).unwrap(), BlockFormat::Q8_0);
    assert_eq!(
        (status, text.as_str()),
        (Status::DtypeMismatch, "the tensor has elements of i32; f32, f16 and bf16 can be quantised")
    );
}

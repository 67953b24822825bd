//! Prints the hash of a small network's output. Every language's same_bits prints the same one.

use adead::{Context, GeluForm, Tensor};

fn tensor(dims: [usize; 2], step: usize, modulus: usize, middle: f32, divisor: f32) -> adead::Result<Tensor> {
    let values = (0..dims[0] * dims[1]).map(|i| ((i * step % modulus) as f32 - middle) / divisor);
    Tensor::new(&values.collect::<Vec<_>>(), &dims)
}

fn main() -> adead::Result<()> {
    let ctx = Context::auto()?;
    let x = tensor([16, 64], 37, 101, 50.0, 64.0)?;
    let w1 = tensor([64, 128], 53, 127, 63.0, 256.0)?;
    let w2 = tensor([128, 32], 29, 113, 56.0, 256.0)?;
    let hidden = ctx.gelu(&ctx.matmul(&x, &w1)?, GeluForm::default())?;
    let y = ctx.softmax(&ctx.matmul(&hidden, &w2)?, -1)?;
    let hash = y
        .bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    println!("{hash:016x}");
    Ok(())
}

//! Compares a program of tensors with the compiled pipeline of the same operations: eight layers of relu(x·w + b), 1024 wide,
//! from the input in host memory to the output in host memory.
//!
//! ```text
//! program-bench                       on the CPU
//! program-bench --device cuda:0       on a GPU
//! program-bench --json results.json
//! program-bench --width 256           narrower layers
//! ```
//!
//! The forms take turns. A time is the median of the rounds, by the host's clock. `program` has its weights as constants, `given`
//! takes them as inputs that are already on the device, `single` is one call after another. The ratio is `program` divided by
//! `compiled`; the goal is at most 1.1. The exit status is not 0 if results differ in a bit.

#[path = "../rounds.rs"]
mod rounds;

use adead::pipeline::Compiled;
use adead::program::{Program, RunOptions};
use adead::{Context, DType, Result, Tensor};
use rounds::medians;
use serde_json::json;
use std::fmt::Write;
use std::process::ExitCode;

const LAYERS: usize = 8;
const ROWS: [usize; 5] = [1, 16, 64, 256, 1024];
const AIM: f64 = 1.1;

/// Values in [−scale, scale), the same in every run.
fn some(dims: &[usize], seed: u32, scale: f32) -> Result<Tensor> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / (1 << 23) as f32 - 1.0) * scale
    };
    let values: Vec<f32> = (0..dims.iter().product()).map(|_| next()).collect();
    Tensor::new(&values, dims)
}

/// Layers with their weights and biases.
struct Layers {
    width: usize,
    weights: Vec<Tensor>,
    biases: Vec<Tensor>,
}

impl Layers {
    fn new(width: usize) -> Result<Layers> {
        let scale = (6.0 / width as f32).sqrt();
        let weights = (0..LAYERS).map(|i| some(&[width, width], i as u32 + 1, scale)).collect::<Result<_>>()?;
        let biases = (0..LAYERS).map(|i| some(&[width], i as u32 + 101, 0.1)).collect::<Result<_>>()?;
        Ok(Layers { width, weights, biases })
    }

    fn compiled(&self, ctx: &Context, rows: usize) -> Result<Compiled> {
        let mut chain = ctx.pipeline().begin_with_input(DType::F32, &[rows, self.width]);
        for (w, b) in self.weights.iter().zip(&self.biases) {
            chain = chain.matmul(w).bias(b).relu();
        }
        chain.compile()
    }

    /// The layers as a program, with the weights as constants or as inputs.
    fn program(&self, rows: usize, constant: bool) -> Result<Program> {
        let n = self.width;
        let mut text = format!(".adead 1\ninput x f32[{rows},{n}]\n");
        let mut declare = |name: String, tensor: &Tensor| -> Result<()> {
            // Writing to a String can't fail.
            let dims = format!("{:?}", tensor.dims()).replace(' ', "");
            let _ = write!(text, "{} {name} f32{dims}", if constant { "const" } else { "input" });
            if constant {
                text.push_str(" =");
                for value in tensor.as_slice::<f32>()? {
                    let _ = write!(text, " {:08x}", value.to_bits());
                }
            }
            text.push('\n');
            Ok(())
        };
        for (i, (w, b)) in self.weights.iter().zip(&self.biases).enumerate() {
            declare(format!("w{i}"), w)?;
            declare(format!("b{i}"), b)?;
        }
        let _ = write!(text, "temp h f32[{rows},{n}]\ntemp t f32[{rows},{n}]\noutput y f32[{rows},{n}]\nload h x\n");
        for i in 0..LAYERS {
            let _ = write!(text, "t = matmul h w{i}\nt = add t b{i}\nh = relu t\n");
        }
        Program::assemble(&format!("{text}store h y\nhalt\n"))
    }

    fn singly(&self, ctx: &Context, x: &Tensor) -> Result<Tensor> {
        let mut h = x.clone();
        for (w, b) in self.weights.iter().zip(&self.biases) {
            h = ctx.relu(&ctx.add(&ctx.matmul(&h, w)?, b)?)?;
        }
        h.host_bytes()?;
        Ok(h)
    }
}

/// The output of a program.
fn run(ctx: &Context, program: &Program, options: &RunOptions) -> Result<Tensor> {
    Ok(program.run(ctx, options)?.outputs.swap_remove(0).1)
}

fn measure(device: &str, width: usize, file: Option<&str>) -> std::result::Result<bool, String> {
    let text = |error: adead::Error| error.to_string();
    let ctx = Context::open(device).map_err(text)?;
    let cpu = Context::open("cpu").map_err(text)?;
    let info = ctx.device_info().clone();
    println!("{} ({}), {LAYERS} layers, {width} wide", info.id, info.name);
    println!("{:>6} {:>10} {:>10} {:>10} {:>10}  ratio", "rows", "compiled", "program", "given", "single");
    let layers = Layers::new(width).map_err(text)?;
    let (mut results, mut good) = (Vec::new(), true);
    for rows in ROWS {
        let x = some(&[rows, width], 7, 1.0).map_err(text)?;
        let compiled = layers.compiled(&ctx, rows).map_err(text)?;
        let (constant, given) = (layers.program(rows, true).map_err(text)?, layers.program(rows, false).map_err(text)?);
        let options = RunOptions::new().input("x", x.clone());
        let mut with_weights = options.clone();
        for (i, (w, b)) in layers.weights.iter().zip(&layers.biases).enumerate() {
            for (name, tensor) in [(format!("w{i}"), w), (format!("b{i}"), b)] {
                with_weights = with_weights.input(name, ctx.to(tensor, &info.id).map_err(text)?);
            }
        }
        let expected = layers.singly(&cpu, &x).map_err(text)?;
        let got = [
            compiled.run(&[&x]).map_err(text)?.swap_remove(0),
            run(&ctx, &constant, &options).map_err(text)?,
            run(&ctx, &given, &with_weights).map_err(text)?,
            layers.singly(&ctx, &x).map_err(text)?,
        ];
        let same = got.iter().all(|tensor| tensor.bytes() == expected.bytes());
        good &= same;
        let mut forms: [Box<dyn FnMut() -> Result<()> + '_>; 4] = [
            Box::new(|| compiled.run(&[&x]).map(drop)),
            Box::new(|| run(&ctx, &constant, &options).map(drop)),
            Box::new(|| run(&ctx, &given, &with_weights).map(drop)),
            Box::new(|| layers.singly(&ctx, &x).map(drop)),
        ];
        let times = medians(&mut forms).map_err(text)?;
        let ratio = times[1] / times[0];
        println!(
            "{rows:>6} {:>10.1} {:>10.1} {:>10.1} {:>10.1}  {ratio:.3}{}{}",
            times[0],
            times[1],
            times[2],
            times[3],
            if ratio > AIM { "  above the aim" } else { "" },
            if same { "" } else { "  DIFFERS" }
        );
        results.push(json!({
            "rows": rows, "compiled_us": times[0], "program_us": times[1], "given_us": times[2], "single_us": times[3],
            "ratio": ratio, "same_bits": same,
        }));
    }
    if let Some(path) = file {
        let all = json!({ "device": info.id, "name": info.name, "layers": LAYERS, "width": width, "aim": AIM, "results": results });
        std::fs::write(path, format!("{all:#}\n")).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(good)
}

fn main() -> ExitCode {
    let (mut device, mut width, mut file) = ("cpu".to_string(), 1024, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next();
        match (word.as_str(), value, file.is_some()) {
            ("--device", Some(value), _) => device = value,
            ("--json", Some(value), false) => file = Some(value),
            ("--width", Some(value), _) if value.parse().is_ok_and(|width| (1..=4096).contains(&width)) => {
                width = value.parse().unwrap_or(width);
            }
            (_, value, _) => {
                let value = value.unwrap_or_default();
                eprintln!("program-bench: {word} {value}: options are --device NAME, --width 1..4096, --json FILE");
                return ExitCode::FAILURE;
            }
        }
    }
    match measure(&device, width, file.as_deref()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("program-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

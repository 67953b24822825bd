//! `adead dispatch`: runs a SPIR-V kernel on a GPU.

use crate::args::{DeviceArgs, DispatchArgs};
use crate::failure::{Failure, Result, report};
use crate::files::{NewFile, name, read, zeros};
use crate::format::{bytes, median, table, time};
use crate::info::{device_json, device_text};
use crate::kernel::{Contents, parse, word};
use crate::npy;
use crate::progress::Progress;
use crate::push::pack;
use crate::source::{Input, Source, open_file};
use adead::gpu::{Buffer, Kernel, PipelineOptions};
use adead::spirv::Module;
use adead::{Context, DType, Shape, Status, Tensor, hardware};
use adead_conformance::hash;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// A buffer on the GPU, and the dtype and shape of its contents.
struct Given {
    buffer: Buffer,
    dtype: DType,
    dims: Vec<usize>,
    /// The contents after the first run, if the kernel may write them.
    left: Option<Tensor>,
}

/// The data of the report.
struct Report<'a> {
    args: &'a DispatchArgs,
    ctx: &'a Context,
    kernel: Kernel,
    given: Vec<Given>,
    /// The best and the median time.
    times: [Duration; 2],
}

/// Runs a kernel.
pub fn run(args: &DispatchArgs, device: &DeviceArgs) -> Result<()> {
    // Errors in the module and the files are found before anything runs.
    let code = read(&args.module)?;
    let module = parse(&args.module, &code)?;
    let options = PipelineOptions { entry: args.entry.clone(), constants: constants(args, &module)?, workgroup: None };
    let set: Vec<(u32, u64)> = options.constants.iter().map(|&(id, word)| (id, word.into())).collect();
    let module = if set.is_empty() { module } else { module.specialized(&set)? };
    let mut files = open_outputs(args)?;
    let push = pack(&args.push, module.entry_point(args.entry.as_deref())?)?;
    let ctx = device.open_or(Some("vulkan"))?;
    let kernel = ctx.load_spirv_with(&code, &options)?;
    let mut given = args.buffers.iter().enumerate().map(|(i, it)| make(&ctx, i, it)).collect::<Result<Vec<_>>>()?;
    let buffers: Vec<&Buffer> = given.iter().map(|given| &given.buffer).collect();

    let mut stream = ctx.stream()?;
    let mut once = || -> adead::Result<Duration> {
        let begin = stream.timestamp()?;
        stream.dispatch(&kernel, &buffers, &push, args.groups)?;
        let end = stream.timestamp()?;
        stream.synchronize()?;
        Ok(Duration::from_nanos(end.since(&begin)?))
    };
    let mut times = vec![once()?];
    let mut left = Vec::new();
    for (given, parameter) in given.iter().zip(kernel.parameters()) {
        let wanted = args.outputs.iter().any(|(index, _)| *index == left.len());
        left.push(if wanted || !parameter.readonly { Some(contents(given)?) } else { None });
    }
    let mut progress = Progress::new();
    for run in 1..args.repeat {
        progress.part(run as usize, args.repeat as usize, || format!("run {run} of {}", args.repeat));
        times.push(once()?);
    }
    drop(progress);
    for (given, left) in given.iter_mut().zip(left) {
        given.left = left;
    }
    for (index, file) in &mut files {
        if let Some(tensor) = given.get(*index).and_then(|given| given.left.as_ref()) {
            npy::write(file, tensor)?;
        }
    }
    let median = median(&mut times);
    let times = [times.first().copied().unwrap_or_default(), median];
    let values_on_stdout = files.iter().any(|(_, file)| file.is_stdout());
    let done = Report { args, ctx: &ctx, kernel, given, times };
    // If the report can't be written, no files are left.
    report(&if args.json { format!("{:#}\n", done.to_json()) } else { done.to_text() }, values_on_stdout)?;
    files.into_iter().try_for_each(|(_, file)| file.commit())
}

/// The constants' words, each of the type that the module declares.
fn constants(args: &DispatchArgs, module: &Module) -> Result<Vec<(u32, u32)>> {
    let mut words: Vec<(u32, u32)> = Vec::new();
    for (id, text) in &args.constants {
        let Some(constant) = module.constants().iter().find(|constant| constant.id == *id) else {
            let ids: Vec<String> = module.constants().iter().map(|constant| constant.id.to_string()).collect();
            return Err(Failure::invalid(format!("the module has no constant {id}: it has [{}]", ids.join(", "))));
        };
        if constant.bytes != 4 {
            let text = format!("constant {id} has {} bytes; only constants of 4 bytes can be set", constant.bytes);
            return Err(Failure::new(Status::Unsupported, text));
        }
        if words.iter().any(|(other, _)| other == id) {
            return Err(Failure::invalid(format!("constant {id} is set twice")));
        }
        let word = word(text, constant.kind).map_err(|fault| Failure::invalid(format!("constant {id}: {fault}")))?;
        words.push((*id, word));
    }
    Ok(words)
}

/// Begins the output files of buffers, under temporary names.
fn open_outputs(args: &DispatchArgs) -> Result<Vec<(usize, NewFile)>> {
    let mut files: Vec<(usize, NewFile)> = Vec::new();
    let mut paths: Vec<&PathBuf> = Vec::new();
    for (index, path) in &args.outputs {
        let given = args.buffers.len();
        let Some(contents) = args.buffers.get(*index) else {
            return Err(Failure::invalid(format!("--out {index}={}: {given} buffers are given", path.display())));
        };
        if let Contents::Made(dtype, ..) = contents {
            npy::check_writable(*dtype)?;
        }
        if paths.contains(&path) || files.iter().any(|(other, _)| other == index) {
            let text = format!("--out {index}={}: the buffer or the file is given twice", path.display());
            return Err(Failure::invalid(text));
        }
        let file = NewFile::create(path)?;
        if file.is_stdout() && files.iter().any(|(_, file)| file.is_stdout()) {
            return Err(Failure::invalid(format!("--out {index}=-: another buffer goes to stdout")));
        }
        paths.push(path);
        files.push((*index, file));
    }
    Ok(files)
}

/// Makes a buffer with the requested contents.
fn make(ctx: &Context, index: usize, contents: &Contents) -> Result<Given> {
    let given = |buffer, dtype, dims: &[usize]| Given { buffer, dtype, dims: dims.to_vec(), left: None };
    match contents {
        Contents::File(path) => {
            let tensor = open_file(path, "DTYPE[DIMS]:SOURCE, as f32[10,20]:rand:1")?.read(ctx)?;
            Ok(given(ctx.buffer_of_bytes(tensor.bytes())?, tensor.dtype(), tensor.dims()))
        }
        Contents::Zeros(size) => {
            if !size.is_multiple_of(4) {
                let text =
                    format!("buffer {index}: zeros:{size} is not a multiple of 4 bytes; give a dtype and a shape");
                return Err(Failure::invalid(text));
            }
            Ok(given(ctx.buffer_zeroed(*size)?, DType::U32, &[size / 4]))
        }
        Contents::Made(dtype, shape, Input { source: Source::Zeros, .. }) => {
            Ok(given(ctx.buffer_zeroed(shape.elements() * dtype.size())?, *dtype, shape.dims()))
        }
        Contents::Made(dtype, shape, input) => {
            let needed = shape.elements().saturating_mul(dtype.size());
            let free = hardware::memory().available;
            if free > 0 && needed as u64 > free {
                let text = format!("buffer {index} takes {needed} bytes and the machine has {free} bytes free");
                return Err(Failure::new(Status::OutOfMemory, text));
            }
            let bytes = input.generate(*dtype, shape.elements(), &format!("buffer {index}"))?;
            Ok(given(ctx.buffer_of_bytes(&bytes)?, *dtype, shape.dims()))
        }
    }
}

/// Reads a buffer's current contents.
fn contents(given: &Given) -> Result<Tensor> {
    let mut bytes = zeros(given.buffer.size(), "reading a buffer")?;
    given.buffer.read_bytes(0, &mut bytes)?;
    Ok(Tensor::from_bytes(&bytes, given.dtype, &given.dims)?)
}

impl Report<'_> {
    fn file(&self, index: usize) -> Option<String> {
        let file = self.args.outputs.iter().find(|(other, _)| *other == index);
        file.map(|(_, path)| path.display().to_string())
    }

    fn to_text(&self) -> String {
        let (device, [x, y, z], [a, b, c]) = (self.ctx.device_info(), self.args.groups, self.kernel.workgroup());
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut row = |name: &str, rest: String| rows.push(vec![name.into(), rest]);
        row("kernel", format!("{} ({})", name(&self.args.module), self.kernel.name()));
        row("device", format!("{} {}", device_text(device), device.name));
        row("groups", format!("{x} x {y} x {z} of {a} x {b} x {c}"));
        match (self.args.repeat, self.times) {
            (1, [best, _]) => row("time", time(best)),
            (n, [best, median]) => row("time", format!("{} best, {} median of {n} runs", time(best), time(median))),
        }
        for (index, given) in self.given.iter().enumerate() {
            let shape = Shape::new(&given.dims).map(|shape| shape.to_string()).unwrap_or_default();
            let what = format!("{index} {}{shape}", given.dtype);
            match &given.left {
                Some(tensor) => {
                    let file = self.file(index).map(|file| format!(" -> {file}")).unwrap_or_default();
                    row("out", format!("{what} sha256 {}{file}", hash(tensor)));
                }
                None => row("in", format!("{what} {}", bytes(given.buffer.size() as u64))),
            }
        }
        table(&rows, 2)
    }

    fn to_json(&self) -> Value {
        let buffer = |(index, given): (usize, &Given)| {
            json!({
                "dtype": given.dtype.name(),
                "shape": given.dims,
                "bytes": given.buffer.size(),
                "readonly": self.kernel.parameters().get(index).map(|parameter| parameter.readonly),
                "sha256": given.left.as_ref().map(hash),
                "file": self.file(index),
            })
        };
        json!({
            "kernel": name(&self.args.module),
            "entry": self.kernel.name(),
            "device": device_json(self.ctx.device_info()),
            "groups": self.args.groups,
            "workgroup": self.kernel.workgroup(),
            "buffers": self.given.iter().enumerate().map(buffer).collect::<Vec<_>>(),
            "runs": self.args.repeat,
            "best_seconds": self.times[0].as_secs_f64(),
            "median_seconds": self.times[1].as_secs_f64(),
        })
    }
}

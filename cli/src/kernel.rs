//! `adead kernel`, and parsing of arguments of `adead dispatch`.

use crate::args::{KernelArgs, parse_size};
use crate::failure::{Failure, Result, line, write};
use crate::files::{name, read};
use crate::format::table;
use crate::source::{Input, Source, parse_source};
use adead::gpu::PushNumber;
use adead::spirv::{Binding, BindingKind, ConstantKind, EntryPoint, Module, SpecializationConstant};
use adead::{DType, Shape, Status};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The initial contents of a buffer.
#[derive(Clone, Debug)]
pub enum Contents {
    /// A `.npy` file.
    File(PathBuf),
    /// This many zero bytes.
    Zeros(usize),
    /// A dtype and shape, filled by a generator.
    Made(DType, Shape, Input),
}

/// Parses the value of `--buffer`.
pub fn parse_contents(text: &str) -> Result<Contents, String> {
    if let Some(size) = text.strip_prefix("zeros:") {
        return Ok(Contents::Zeros(parse_size(size)?));
    }
    let Some((kind, (dims, source))) =
        text.split_once('[').and_then(|(kind, rest)| Some((kind, rest.split_once("]:")?)))
    else {
        return Ok(Contents::File(text.into()));
    };
    let Ok(dtype) = kind.parse::<DType>() else {
        return Err(format!("'{kind}' is not a dtype: expected f32, f16, bf16, i32, i64, u32, bool, u8 or f64"));
    };
    let sizes = dims.split(',').filter(|size| !dims.is_empty() || !size.is_empty());
    let sizes: Result<Vec<usize>, _> = sizes.map(|size| size.trim().parse()).collect();
    let shape = sizes.map_err(|_| format!("'[{dims}]' is not a shape"))?;
    let shape = Shape::new(&shape).map_err(|error| error.message().to_string())?;
    match parse_source(source)? {
        Source::File(_) => Err(format!(
            "'{source}' is not a generator: expected zeros, rand:SEED[:E], wild:SEED, ids:SEED:N or fill:HEX"
        )),
        source => Ok(Contents::Made(dtype, shape, Input { slot: String::new(), source, text: text.into() })),
    }
}

/// Parses the value of `--constant`.
pub fn parse_constant(text: &str) -> Result<(u32, String), String> {
    match text.split_once('=').map(|(id, value)| (id.parse(), value)) {
        Some((Ok(id), value)) if !value.is_empty() => Ok((id, value.into())),
        _ => Err("expected ID=VALUE: a constant's number and its value".into()),
    }
}

/// Parses the value of `--out`.
pub fn parse_numbered(text: &str) -> Result<(usize, PathBuf), String> {
    match text.split_once('=').map(|(index, path)| (index.parse(), path)) {
        Some((Ok(index), path)) if !path.is_empty() => Ok((index, path.into())),
        _ => Err("expected INDEX=FILE: a buffer's number and a file".into()),
    }
}

/// The 32 bits of a specialization constant of this kind.
pub fn word(text: &str, kind: ConstantKind) -> Result<u32, String> {
    match (kind, text) {
        (ConstantKind::Float, _) => {
            text.parse::<f32>().map(f32::to_bits).map_err(|_| format!("'{text}' is not a number"))
        }
        (ConstantKind::Bool, "true") => Ok(1),
        (ConstantKind::Bool, "false") => Ok(0),
        (ConstantKind::Bool, _) => Err(format!("'{text}' is neither true nor false")),
        (kind, _) => match text.parse::<i64>() {
            Ok(number) if kind == ConstantKind::Uint && u32::try_from(number).is_ok() => Ok(number as u32),
            Ok(number) if kind == ConstantKind::Int && i32::try_from(number).is_ok() => Ok(number as u32),
            Ok(_) => Err(format!("{text} does not fit in 32 bits")),
            Err(_) => Err(format!("'{text}' is not an integer")),
        },
    }
}

/// Parses the module of a file. Errors contain the file's name, and say so if the file is for CUDA.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Module> {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(1 << 16)]);
    let cuda = match bytes {
        [0x7f, b'E', b'L', b'F', ..] => Some("a cubin"),
        [0x50, 0xed, 0x55, 0xba, ..] => Some("a fatbin"),
        _ if [".version", ".target"].iter().all(|word| text.lines().any(|line| line.trim().starts_with(word))) => {
            Some("PTX")
        }
        _ => None,
    };
    Module::parse(bytes).map_err(|error| match cuda {
        Some(what) => {
            let text = format!(
                "{} is {what}, which is for CUDA; this command takes SPIR-V (a .spv file), and the libraries load it with load_ptx \
                 or load_cubin on a 'cuda' device",
                name(path)
            );
            Failure::new(Status::InvalidKernel, text)
        }
        None => Failure::new(error.status(), format!("{}: {}", name(path), error.message())),
    })
}

/// Shows a module. It needs no GPU.
pub fn show(args: &KernelArgs) -> Result<()> {
    let bytes = read(&args.module)?;
    let module = parse(&args.module, &bytes)?;
    let (path, version) = (name(&args.module), module.words()[1]);
    let version = format!("{}.{}", version >> 16 & 0xff, version >> 8 & 0xff);
    if args.json {
        return line(format_args!("{:#}", to_json(&module, &path, &version, bytes.len())));
    }
    let capabilities: Vec<String> = module.capabilities().iter().map(|&number| capability(number)).collect();
    let needs: Vec<String> = capabilities.into_iter().chain(module.extensions().iter().cloned()).collect();
    let mut rows = vec![
        row("module", format!("{path} (SPIR-V {version}, {} bytes)", bytes.len())),
        row("needs", needs.join(", ")),
    ];
    for entry in module.entry_points() {
        rows.extend(describe(entry));
    }
    rows.extend(module.constants().iter().map(|constant| {
        row("constant", format!("{}: {}, {} if it is not set", constant.id, kind(constant), default(constant)))
    }));
    write(table(&rows, 2).as_bytes())
}

fn row(name: &str, text: String) -> Vec<String> {
    vec![name.into(), text]
}

fn describe(entry: &EntryPoint) -> Vec<Vec<String>> {
    let [x, y, z] = entry.workgroup_size;
    let set: Vec<String> = ["x", "y", "z"]
        .iter()
        .zip(entry.workgroup_constants)
        .filter_map(|(axis, constant)| Some(format!("{axis} is constant {}", constant?)))
        .collect();
    let set = if set.is_empty() { String::new() } else { format!(" ({})", set.join(", ")) };
    let mut rows = vec![row("entry", format!("{}, workgroup {x} x {y} x {z}{set}", entry.name))];
    if entry.shared_bytes > 0 {
        rows.push(row("shared", format!("{} bytes in a workgroup", entry.shared_bytes)));
    }
    for (index, binding) in entry.bindings.iter().enumerate() {
        let Binding { set, binding: number, count, bytes, stride, .. } = binding;
        let many = if *count == 1 { String::new() } else { format!(", an array of {count}") };
        let size = match (bytes, stride) {
            (0, 0) => String::new(),
            (0, stride) => format!(", elements of {stride} bytes"),
            (bytes, 0) => format!(", {bytes} bytes"),
            (bytes, stride) => format!(", {bytes} bytes and elements of {stride}"),
        };
        let text = format!("{index}: set {set}, binding {number}, {}, {}{size}{many}", binding.kind, access(binding));
        rows.push(row(if is_buffer(binding) { "buffer" } else { "resource" }, text));
    }
    if let Some(push) = &entry.push_constants {
        let number = |number: &PushNumber| {
            let space = if number.name.is_empty() { "" } else { " " };
            format!("{}{space}{} at {}", number.kind, number.name, number.offset)
        };
        let members: Vec<String> = match push.numbers.is_empty() {
            true => push.members.iter().map(|member| format!("{} at {}", member.bytes, member.offset)).collect(),
            false => push.numbers.iter().map(number).collect(),
        };
        rows.push(row("push", format!("{} bytes: {}", push.bytes, members.join(", "))));
    }
    rows
}

fn is_buffer(binding: &Binding) -> bool {
    matches!(binding.kind, BindingKind::StorageBuffer | BindingKind::UniformBuffer)
}

fn access(binding: &Binding) -> &'static str {
    match (binding.readable, binding.writable) {
        (true, true) => "read and written",
        (true, false) => "read",
        (false, true) => "written",
        (false, false) => "not used",
    }
}

fn kind(constant: &SpecializationConstant) -> String {
    let bits = constant.bytes * 8;
    match constant.kind {
        ConstantKind::Bool => "bool".into(),
        ConstantKind::Int => format!("i{bits}"),
        ConstantKind::Uint => format!("u{bits}"),
        ConstantKind::Float => format!("f{bits}"),
    }
}

fn default(constant: &SpecializationConstant) -> String {
    let SpecializationConstant { kind, bytes, default, .. } = *constant;
    let unused = 64 - 8 * bytes.clamp(1, 8);
    match (kind, bytes) {
        (ConstantKind::Bool, _) => (default != 0).to_string(),
        (ConstantKind::Int, _) => (((default << unused) as i64) >> unused).to_string(),
        (ConstantKind::Float, 4) => f32::from_bits(default as u32).to_string(),
        (ConstantKind::Float, 8) => f64::from_bits(default).to_string(),
        (ConstantKind::Float, _) => format!("{default:#x}"),
        (ConstantKind::Uint, _) => default.to_string(),
    }
}

/// The name of a capability that compute kernels often need, else its number.
fn capability(number: u32) -> String {
    let name = match number {
        0 => "Matrix",
        1 => "Shader",
        9 => "Float16",
        10 => "Float64",
        11 => "Int64",
        12 => "Int64Atomics",
        22 => "Int16",
        39 => "Int8",
        61 => "GroupNonUniform",
        62 => "GroupNonUniformVote",
        63 => "GroupNonUniformArithmetic",
        64 => "GroupNonUniformBallot",
        65 => "GroupNonUniformShuffle",
        66 => "GroupNonUniformShuffleRelative",
        67 => "GroupNonUniformClustered",
        68 => "GroupNonUniformQuad",
        4433 => "StorageBuffer16BitAccess",
        4448 => "StorageBuffer8BitAccess",
        4464 => "DenormPreserve",
        4465 => "DenormFlushToZero",
        4466 => "SignedZeroInfNanPreserve",
        4467 => "RoundingModeRTE",
        4468 => "RoundingModeRTZ",
        5345 => "VulkanMemoryModel",
        5347 => "PhysicalStorageBufferAddresses",
        number => return format!("capability {number}"),
    };
    name.into()
}

fn to_json(module: &Module, path: &str, version: &str, bytes: usize) -> Value {
    let binding = |binding: &Binding| {
        json!({
            "set": binding.set,
            "binding": binding.binding,
            "kind": binding.kind.name(),
            "count": binding.count,
            "readable": binding.readable,
            "writable": binding.writable,
            "bytes": binding.bytes,
            "stride": binding.stride,
        })
    };
    let entry = |entry: &EntryPoint| {
        json!({
            "name": entry.name,
            "workgroup": entry.workgroup_size,
            "workgroup_constants": entry.workgroup_constants,
            "shared_bytes": entry.shared_bytes,
            "bindings": entry.bindings.iter().map(binding).collect::<Vec<_>>(),
            "push_constants": entry.push_constants.as_ref().map(|push| json!({
                "bytes": push.bytes,
                "members": push.members.iter()
                    .map(|member| json!({"offset": member.offset, "bytes": member.bytes})).collect::<Vec<_>>(),
                "numbers": push.numbers.iter().map(|number| json!({
                    "name": number.name,
                    "type": number.kind.to_string(),
                    "offset": number.offset,
                })).collect::<Vec<_>>(),
            })),
        })
    };
    let constant = |it: &SpecializationConstant| json!({"id": it.id, "type": kind(it), "default": default(it)});
    json!({
        "module": path,
        "spirv": version,
        "bytes": bytes,
        "capabilities": module.capabilities(),
        "extensions": module.extensions(),
        "entry_points": module.entry_points().iter().map(entry).collect::<Vec<_>>(),
        "constants": module.constants().iter().map(constant).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_told_apart() {
        assert!(matches!(parse_contents("a.npy"), Ok(Contents::File(_))));
        assert!(matches!(parse_contents("f32[3].npy"), Ok(Contents::File(_))));
        assert!(matches!(parse_contents("zeros:3KiB"), Ok(Contents::Zeros(3072))));
        for (text, dtype, dims) in [
            ("f32[2, 3]:rand:1:2", DType::F32, &[2, 3][..]),
            ("i64[]:zeros", DType::I64, &[]),
            ("u32[0]:fill:00000001", DType::U32, &[0]),
            ("f64[2]:zeros", DType::F64, &[2]),
        ] {
            match parse_contents(text) {
                Ok(Contents::Made(found, shape, _)) => assert_eq!((found, shape.dims()), (dtype, dims), "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        for wrong in ["zeros:", "zeros:x", "f128[2]:zeros", "f32[2,]:zeros", "f32[-1]:zeros", "f32[2]:a.npy", "f32[2]:"]
        {
            assert!(parse_contents(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_for_cuda_are_told_as_such() {
        let says = |bytes: &[u8], words: &str| match parse(Path::new("x.ptx"), bytes) {
            Err(Failure::Error(error)) => assert!(error.message().starts_with(words), "{error}"),
            other => panic!("{other:?}"),
        };
        says(include_bytes!("../../examples/kernels/vecadd.ptx"), "x.ptx is PTX, which is for CUDA");
        says(b"\x7fELF", "x.ptx is a cubin");
        says(&0xba55_ed50_u32.to_le_bytes(), "x.ptx is a fatbin");
        says(b"int main() {}", "x.ptx: SPIR-V: ");
    }

    #[test]
    fn constants_take_their_kind() {
        use ConstantKind::{Bool, Float, Int, Uint};
        assert_eq!(word("1", Float), Ok(1.0f32.to_bits()));
        assert_eq!(word("-1", Int), Ok(u32::MAX));
        assert_eq!(word("4294967295", Uint), Ok(u32::MAX));
        assert_eq!(word("true", Bool), Ok(1));
        for (text, kind) in [("-1", Uint), ("4294967295", Int), ("1", Bool), ("0.5", Int), ("true", Uint), ("x", Float)]
        {
            assert!(word(text, kind).is_err(), "{text} {kind:?}");
        }
        assert_eq!(parse_constant("3=x"), Ok((3, "x".into())));
        assert_eq!(parse_numbered("3=x"), Ok((3, "x".into())));
        for wrong in ["", "3", "3=", "=x", "-3=x", "a=x"] {
            assert!(parse_constant(wrong).is_err() && parse_numbered(wrong).is_err(), "{wrong}");
        }
    }
}

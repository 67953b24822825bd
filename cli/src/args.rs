//! The command line's arguments. clap shows these comments as help.

use crate::failure::{Result, complain_as};
use crate::help::{
    ASM_HELP, BENCH_HELP, CALIBRATE_HELP, DISPATCH_HELP, EXIT_CODES, EXPLAIN_HELP, RUN_HELP, VERIFY_HELP,
};
use crate::kernel::{Contents, parse_constant, parse_contents, parse_numbered};
use crate::push::{Pushed, parse_pushed};
use crate::source::{Input, Output, parse_input, parse_output};
use adead::config::Config;
use adead::device::{Isa, unknown_visible};
use adead::dispatch::DeviceProfile;
use adead::{Context, ContextOptions, Precision};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use std::path::PathBuf;

/// Runs compute — tensor operations and opcode programs — with the same bits on every device.
#[derive(Debug, Parser)]
#[command(name = "adead", version = adead::VERSION, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    pub device: DeviceArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// The device options.
#[derive(Args, Debug)]
#[command(next_help_heading = "Device")]
pub struct DeviceArgs {
    /// The device: auto, cpu, gpu (the best one), cuda, cuda:1, vulkan, vulkan:1, a part of a GPU's name or its UUID; hybrid (CPU
    /// and GPUs together), or several separated by commas [default: ADEAD_DEVICE or adead.toml, else auto]
    #[arg(long, global = true, value_name = "DEVICE")]
    pub device: Option<String>,
    /// CPU threads, 1 to 1024 [default: ADEAD_NUM_THREADS, else what the machine allows]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// The CPU's instruction set [default: ADEAD_ISA, else the best]
    #[arg(long, global = true, value_name = "ISA", value_parser = isa())]
    pub isa: Option<Isa>,
    /// The precision of matrix products that specify none [default: f32]
    #[arg(long, global = true, value_name = "PRECISION", value_parser = precision())]
    pub precision: Option<Precision>,
}

fn precision() -> impl TypedValueParser<Value = Precision> {
    PossibleValuesParser::new(Precision::ALL.map(Precision::name)).try_map(|name| name.parse::<Precision>())
}

fn isa() -> impl TypedValueParser<Value = Isa> {
    PossibleValuesParser::new(Isa::ALL.map(Isa::name)).try_map(|name| name.parse::<Isa>())
}

impl DeviceArgs {
    /// The options of the context.
    pub fn options(&self) -> ContextOptions {
        ContextOptions { isa: self.isa, threads: self.threads.map(usize::from), precision: self.precision }
    }

    /// Opens the device.
    pub fn open(&self) -> Result<Context> {
        self.open_or(None)
    }

    /// Opens the device, or `default` if neither the command line nor the configuration names one. Notes names in the
    /// configuration that match no device.
    pub fn open_or(&self, default: Option<&str>) -> Result<Context> {
        let config = Config::load()?;
        for name in unknown_visible(&config) {
            complain_as("note", format_args!("ADEAD_VISIBLE_DEVICES names '{name}', but this machine has no such GPU"));
        }
        let device = self.device.as_deref().filter(|name| !name.is_empty());
        let device = device.or(if config.device.is_none() { default } else { None });
        Ok(Context::configured(device, &self.options(), &config)?)
    }

    /// The first of these options that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--device", self.device.is_some()),
            ("--threads", self.threads.is_some()),
            ("--isa", self.isa.is_some()),
            ("--precision", self.precision.is_some()),
        ];
        given.into_iter().find_map(|(name, given)| given.then_some(name))
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show machine and device information
    Info(InfoArgs),
    /// Check drivers, permissions and settings, and say what to do
    Doctor(crate::doctor::DoctorArgs),
    /// Run a program: .adead, AGPU binary, .hex, AHYB or program text
    Run(RunArgs),
    /// Assemble program text, or convert a program to another format
    Asm(AsmArgs),
    /// Show a program of any format as text that `adead asm` accepts
    Disasm(DisasmArgs),
    /// Compare every device's results with the bits of the arithmetic contract
    Verify(VerifyArgs),
    /// Show where each step of a program would run and which would waste a GPU; runs nothing
    Explain(ExplainArgs),
    /// Show what a SPIR-V kernel needs: buffers, push constants, specialization constants
    Kernel(KernelArgs),
    /// Run a SPIR-V kernel on a GPU
    Dispatch(DispatchArgs),
    /// Measure operations on a device
    Bench(BenchArgs),
    /// Measure this machine's devices for the choice between them, and store the figures
    Calibrate(CalibrateArgs),
    /// Embed sentences: reads lines of text, writes a .npy file
    #[cfg(feature = "models")]
    Embed(crate::embed::EmbedArgs),
    /// Find the rows of an embeddings file that are closest to a query
    #[cfg(feature = "models")]
    Search(crate::search::SearchArgs),
    /// Write the text that follows a prompt, with a model in a GGUF file
    #[cfg(feature = "models")]
    Generate(crate::generate::GenerateArgs),
    /// Talk to a model in a GGUF file, line by line
    #[cfg(feature = "models")]
    Chat(crate::chat::ChatArgs),
    /// Show the metadata and the tensors of a GGUF file
    #[cfg(feature = "models")]
    Gguf(crate::gguf::GgufArgs),
    /// Train a network as a job file describes
    #[cfg(feature = "models")]
    Train(crate::train::TrainArgs),
    /// Convert a Hugging Face model folder, or a GGUF file, to a GGUF file
    #[cfg(feature = "models")]
    Convert(crate::convert::ConvertArgs),
    /// Write a manual page to stdout, or all of them into a folder
    Man(crate::man::ManArgs),
    /// Write a shell's completions to stdout
    Completions(CompletionsArgs),
}

impl Command {
    /// Whether the command uses a device.
    pub fn computes(&self) -> bool {
        #[cfg(feature = "models")]
        if matches!(self, Command::Gguf(_) | Command::Convert(_)) {
            return false;
        }
        !matches!(
            self,
            Command::Asm(_) | Command::Disasm(_) | Command::Kernel(_) | Command::Man(_) | Command::Completions(_)
        )
    }
}

/// Arguments of `adead info`.
#[derive(Args, Debug)]
#[command(after_help = "EXAMPLES\n  adead info\n  adead info --json | jq -r '.devices[].id'")]
pub struct InfoArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `adead run`.
#[derive(Args, Debug)]
#[command(after_help = RUN_HELP)]
pub struct RunArgs {
    /// The program; - reads stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub program: PathBuf,
    /// Bind an input: a .npy file, rand:SEED[:E], wild:SEED, ids:SEED:N, fill:HEX or zeros
    #[arg(long = "in", value_name = "SLOT=SOURCE", value_parser = parse_input, value_hint = ValueHint::FilePath)]
    pub inputs: Vec<Input>,
    /// Write an output to a .npy file, - is stdout; other outputs are only hashed
    #[arg(long = "out", value_name = "SLOT=FILE", value_parser = parse_output, value_hint = ValueHint::FilePath)]
    pub outputs: Vec<Output>,
    /// The most memory for the program and its inputs: bytes, or with KiB, MiB, GiB, TiB, kB, MB, GB, TB
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    pub memory_limit: usize,
    /// Run N times and show the best and the median time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub repeat: u32,
    /// Run one instruction after the other, even if they are independent
    #[arg(long)]
    pub sequential: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `adead asm`.
#[derive(Args, Debug)]
#[command(after_help = ASM_HELP)]
pub struct AsmArgs {
    /// The program text, or a program of any format; - reads stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub program: PathBuf,
    /// The file to write; - is stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// The format to write [default: by the file's extension, else adead]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub to: Option<Target>,
}

/// A format that programs are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// adead's own container
    Adead,
    /// An AGPU binary
    Agpu,
    /// AGPU as hexadecimal text
    Hex,
}

/// Arguments of `adead disasm`.
#[derive(Args, Debug)]
#[command(
    after_help = "EXAMPLES\n  adead disasm examples/programs/matmul_1024.hex\n  adead disasm model.adead -o model.asm"
)]
pub struct DisasmArgs {
    /// The program; - reads stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub program: PathBuf,
    /// The file to write; - is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
}

/// Arguments of `adead verify`.
#[derive(Args, Debug)]
#[command(after_help = VERIFY_HELP)]
pub struct VerifyArgs {
    /// Test the CPU with each of its instruction sets
    #[arg(long, conflicts_with = "isa")]
    pub all_isas: bool,
    /// Run only the cases whose id contains this
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Run the case files (*.txt) of this folder instead of the built-in cases
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub cases: Option<PathBuf>,
    /// Print the ids of the cases and run nothing
    #[arg(long)]
    pub list: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `adead explain`.
#[derive(Args, Debug)]
#[command(after_help = EXPLAIN_HELP)]
pub struct ExplainArgs {
    /// The program; - reads stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub program: PathBuf,
    /// A reference GPU to compare with, by its manufacturer's figures [default: the GPUs of this machine, else mid]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(DeviceProfile::references()))]
    pub gpu: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `adead kernel`.
#[derive(Args, Debug)]
#[command(
    after_help = "EXAMPLES\n  adead kernel examples/kernels/vecadd.spv\n  adead kernel shader.spv --json | jq '.entry_points[].bindings'"
)]
pub struct KernelArgs {
    /// The SPIR-V module; - reads stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub module: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `adead dispatch`.
#[derive(Args, Debug)]
#[command(after_help = DISPATCH_HELP)]
pub struct DispatchArgs {
    /// The SPIR-V module; - reads stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub module: PathBuf,
    /// The number of workgroups
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_groups)]
    pub groups: [u32; 3],
    /// Pass the next buffer, in order of set and binding: a .npy file, zeros:SIZE or DTYPE[DIMS]:SOURCE
    #[arg(long = "buffer", value_name = "CONTENTS", value_parser = parse_contents, value_hint = ValueHint::FilePath)]
    pub buffers: Vec<Contents>,
    /// Pass push constants, one number for each that the kernel declares: 7, -1, 0.5, true; or bytes: hex:00ff
    #[arg(long, value_name = "VALUES", value_delimiter = ',', allow_hyphen_values = true, value_parser = parse_pushed)]
    pub push: Vec<Pushed>,
    /// Set a specialization constant
    #[arg(long = "constant", value_name = "ID=VALUE", value_parser = parse_constant)]
    pub constants: Vec<(u32, String)>,
    /// The entry point [default: main, else the first]
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// Write a buffer to a .npy file afterwards, - is stdout; 0 is the first buffer
    #[arg(long = "out", value_name = "INDEX=FILE", value_parser = parse_numbered, value_hint = ValueHint::FilePath)]
    pub outputs: Vec<(usize, PathBuf)>,
    /// Run N times and show the best and the median time; buffers are shown as the first run left them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub repeat: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `adead calibrate`.
#[derive(Args, Debug)]
#[command(after_help = CALIBRATE_HELP)]
pub struct CalibrateArgs {
    /// Measure which tiles of each GPU serve which products, instead of the figures for the choice between devices
    #[arg(long)]
    pub kernels: bool,
    /// Measure each figure for a shorter time
    #[arg(long)]
    pub quick: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `adead bench`.
#[derive(Args, Debug)]
#[command(
    after_help = BENCH_HELP
)]
pub struct BenchArgs {
    /// Measure only the rows whose name contains this; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub only: Vec<String>,
    /// The time to measure each row, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, value_parser = parse_seconds)]
    pub seconds: f64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Compare every device on an HTML page with plots; without --device: the CPU, each GPU and hybrid
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["json", "trace"])]
    pub report: Option<PathBuf>,
    /// Compare every device in a Markdown table: products, attention, ffn, embedding, and with --model a whole model
    #[cfg(feature = "models")]
    #[arg(long, conflicts_with_all = ["json", "trace", "report"])]
    pub compare: bool,
    /// A sentence-transformers model for the comparison
    #[cfg(feature = "models")]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "compare")]
    pub model: Option<PathBuf>,
    /// Write a trace of three runs of each row, for Perfetto and chrome://tracing
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
}

/// Arguments of `adead completions`.
#[derive(Args, Debug)]
#[command(
    after_help = "EXAMPLES\n  adead completions bash > ~/.local/share/bash-completion/completions/adead\n  adead completions fish > ~/.config/fish/completions/adead.fish"
)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

fn parse_groups(text: &str) -> std::result::Result<[u32; 3], String> {
    let mut groups = [1; 3];
    let given: Vec<&str> = text.split(',').collect();
    if given.len() > 3 {
        return Err("at most three axes: X, X,Y or X,Y,Z".into());
    }
    for (to, word) in groups.iter_mut().zip(given) {
        *to = match word.trim().parse() {
            Ok(count @ 1..) => count,
            _ => return Err(format!("workgroups must be 1 or more, got '{word}'")),
        };
    }
    Ok(groups)
}

pub(crate) fn parse_size(text: &str) -> std::result::Result<usize, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit: usize = match unit.trim_start() {
        "" | "B" => 1,
        "KiB" | "K" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        "TiB" | "T" => 1 << 40,
        "kB" | "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return Err("write bytes, or a whole number and KiB, MiB, GiB, TiB, kB, MB, GB or TB".into()),
    };
    let number: usize =
        number.parse().map_err(|_| "it must begin with a whole number that fits in 64 bits".to_string())?;
    number.checked_mul(unit).ok_or_else(|| "it is more than the address space holds".into())
}

fn parse_seconds(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("it must be a number from 0 to 3600".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_have_units() {
        for (text, size) in [
            ("0", 0),
            ("12", 12),
            ("1KiB", 1024),
            ("3 MiB", 3 << 20),
            ("2GiB", 2 << 30),
            ("5GB", 5_000_000_000),
            ("2TiB", 2 << 40),
            ("1T", 1 << 40),
            ("3TB", 3_000_000_000_000),
        ] {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
        for wrong in ["", "GiB", "1.5GiB", "-1", "1Gib", "99999999999999999999", "99999999999999GiB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}

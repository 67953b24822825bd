//! `adead generate`: writes the text that follows a prompt.

use crate::args::DeviceArgs;
use crate::failure::{self, Failure, Result};
use crate::files::STANDARD;
use crate::format::table;
use crate::info::{context_text, device_json};
use crate::text::{ModelArgs, SamplingArgs, hash};
use adead_models::TextGenerator;
use adead_models::text::{Finish, Generation, Message, TextStream};
use clap::Args;
use serde_json::json;
use std::io::Read;
use std::time::{Duration, Instant};

/// Arguments of `adead generate`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct GenerateArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// The text to continue; - reads stdin
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// A file with a prompt in each line; - reads stdin. All are continued together, each as a line of JSON
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prompt", "chat"], required_unless_present = "prompt")]
    pub prompts: Option<String>,
    /// Pass the prompt as a user's message, in the model's chat template
    #[arg(long)]
    pub chat: bool,
    /// A system message with instructions for the answer
    #[arg(long, value_name = "TEXT", requires = "chat")]
    pub system: Option<String>,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// Print JSON at the end, instead of the text as it is generated
    #[arg(long)]
    pub json: bool,
}

const HELP: &str = "\
The text has the same bits on every device, with every number of threads and
every --chunk, also if it is sampled: the random numbers depend only on the seed
and the position. Speeds, the device and the SHA-256 of the answer's tokens (32
bits each, little endian) go to stderr.

EXAMPLES
  adead generate --model SmolLM2-135M-Instruct.Q4_1.gguf \\
      --prompt 'The capital of France is' --max-tokens 20
  adead generate --model SmolLM2-135M-Instruct.Q4_1.gguf --chat \\
      --prompt 'Why is the sky blue?' --temperature 0.7 --top-k 40 --seed 1
  adead generate --model model.gguf --prompt - --json < prompt.txt | jq .text
  adead generate --model model.gguf --prompts lines.txt > answers.jsonl";

/// How long an answer took.
struct Times {
    opened: Duration,
    prompt: Duration,
    answer: Duration,
}

/// Tokens in a second.
fn rate(tokens: usize, taken: Duration) -> f64 {
    tokens as f64 / taken.as_secs_f64().max(1e-9)
}

pub fn run(args: &GenerateArgs, device: &DeviceArgs) -> Result<()> {
    if let Some(prompts) = &args.prompts {
        return run_all(args, prompts, device);
    }
    let start = Instant::now();
    let prompt = match args.prompt.as_deref() {
        Some(STANDARD) => stdin()?,
        text => text.unwrap_or_default().to_owned(),
    };
    let model = args.model.open(device)?;
    let options = args.sampling.options()?;
    let mut stream = if args.chat {
        let system = args.system.iter().map(Message::system);
        model.chat_stream(&system.chain([Message::user(prompt)]).collect::<Vec<_>>(), &options)?
    } else {
        model.stream(&prompt, &options)?
    };
    let (opened, begun) = (start.elapsed(), Instant::now());
    stream.start()?;
    let (prompt, begun) = (begun.elapsed(), Instant::now());
    let mut text = String::new();
    for piece in stream.by_ref() {
        let piece = piece?;
        if !args.json {
            failure::write(piece.as_bytes())?;
        }
        text += &piece;
    }
    let times = Times { opened, prompt, answer: begun.elapsed() };
    if args.json {
        return report_json(args, &model, &stream, &text, &times);
    }
    failure::write(b"\n")?;
    failure::report(&report(&model, &stream, &times), true)
}

fn stdin() -> Result<String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| Failure::io("stdin", &error))?;
    Ok(text)
}

/// Continues the prompts of a file together.
fn run_all(args: &GenerateArgs, prompts: &str, device: &DeviceArgs) -> Result<()> {
    let prompts = match prompts {
        STANDARD => stdin()?,
        path => std::fs::read_to_string(path).map_err(|error| Failure::io(path, &error))?,
    };
    let prompts: Vec<&str> = prompts.lines().collect();
    let model = args.model.open(device)?;
    let begun = Instant::now();
    let answers = model.generate_batch(&prompts, &args.sampling.options()?)?;
    let taken = begun.elapsed();
    for (prompt, answer) in prompts.iter().zip(&answers) {
        failure::line(json!({
            "prompt": prompt,
            "text": answer.text,
            "tokens": answer.tokens,
            "finish": answer.finish.name(),
            "prompt_tokens": answer.prompt_tokens,
            "sha256": hash(&answer.tokens),
        }))?;
    }
    let count = |tokens: &dyn Fn(&Generation) -> usize| answers.iter().map(tokens).sum::<usize>();
    let (asked, answered) = (count(&|it| it.prompt_tokens), count(&|it| it.tokens.len()));
    let all: Vec<u32> = answers.iter().flat_map(|answer| answer.tokens.iter().copied()).collect();
    let rows = [
        ["prompts".into(), format!("{}, {asked} tokens", answers.len())],
        ["answers".into(), format!("{answered} tokens, {:.1} tokens/s with the prompts", rate(answered, taken))],
        ["device".into(), format!("{} {}", context_text(model.context()), model.context().device_info().name)],
        ["sha256".into(), hash(&all)],
    ];
    failure::report(&table(&rows.map(Vec::from), 2), true)
}

fn finish(stream: &TextStream) -> &'static str {
    stream.finish().map_or("", Finish::name)
}

fn report(model: &TextGenerator, stream: &TextStream, times: &Times) -> String {
    let (prompt, answer) = (stream.prompt_tokens(), stream.tokens().len());
    // The prompt's last token is computed with the answer's first one.
    let speed = if prompt > 1 { format!(", {:.1} tokens/s", rate(prompt - 1, times.prompt)) } else { String::new() };
    let rows = [
        ["prompt".into(), format!("{prompt} tokens{speed}")],
        ["answer".into(), format!("{answer} tokens, {:.1} tokens/s, {}", rate(answer, times.answer), finish(stream))],
        ["device".into(), format!("{} {}", context_text(model.context()), model.context().device_info().name)],
        ["sha256".into(), hash(stream.tokens())],
    ];
    table(&rows.map(Vec::from), 2)
}

fn report_json(
    args: &GenerateArgs,
    model: &TextGenerator,
    stream: &TextStream,
    text: &str,
    times: &Times,
) -> Result<()> {
    failure::line(json!({
        "model": args.model.model.display().to_string(),
        "device": device_json(model.context().device_info()),
        "text": text,
        "tokens": stream.tokens(),
        "finish": finish(stream),
        "prompt_tokens": stream.prompt_tokens(),
        "open_seconds": times.opened.as_secs_f64(),
        "prompt_seconds": times.prompt.as_secs_f64(),
        "answer_seconds": times.answer.as_secs_f64(),
        "tokens_per_second": rate(stream.tokens().len(), times.answer),
        "sha256": hash(stream.tokens()),
    }))
}

//! `adead chat`: a conversation with a model, line by line.

use crate::args::DeviceArgs;
use crate::failure::{self, Result};
use crate::files::STANDARD;
use crate::sentences::{Format, Sentences};
use crate::text::{ModelArgs, SamplingArgs, written};
use adead::{Error, Status};
use adead_models::text::Message;
use clap::Args;
use std::io::{IsTerminal, Write, stderr, stdin};
use std::path::Path;

/// Arguments of `adead chat`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct ChatArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// A system message with instructions for the answers
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    #[command(flatten)]
    pub sampling: SamplingArgs,
}

const HELP: &str = "\
Every line of stdin is a message, and the answer follows on stdout. Empty lines
are ignored; the end of stdin (Ctrl-D) ends the conversation. The model needs a
chat template in its file.

EXAMPLES
  adead chat --model SmolLM2-135M-Instruct.Q4_1.gguf
  adead chat --model SmolLM2-135M-Instruct.Q4_1.gguf --system 'Be brief.' \\
      --temperature 0.7 --seed 1
  adead chat --model SmolLM2-135M-Instruct.Q4_1.gguf < questions.txt";

pub fn run(args: &ChatArgs, device: &DeviceArgs) -> Result<()> {
    let model = args.model.open(device)?;
    let options = args.sampling.options()?;
    let mut conversation = model.conversation(args.system.iter().map(Message::system).collect());
    let asks = stdin().is_terminal();
    let ask = || {
        if asks {
            let _ = write!(stderr(), "> ");
        }
    };
    ask();
    for line in Sentences::open(Path::new(STANDARD), Format::Text)? {
        let line = line?;
        if !line.trim().is_empty() {
            // An error of the writer is not one of the model's, so it is kept here.
            let mut failed = None;
            let answer = conversation.say(&line, &options, |piece| {
                failure::write(piece.as_bytes()).map_err(|failure| {
                    failed = Some(failure);
                    Error::new(Status::Io, "stdout can't be written")
                })
            });
            written(answer, failed)?;
            failure::write(b"\n")?;
        }
        ask();
    }
    Ok(())
}

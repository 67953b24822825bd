//! `adead man`: manual pages in roff, made from the help texts.

use crate::args::Cli;
use crate::failure::{Failure, Result, line, write};
use crate::help::MAN_HELP;
use crate::nearest;
use clap::{Args, CommandFactory, ValueHint};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::path::{Path, PathBuf};

/// Arguments of `adead man`.
#[derive(Args, Debug)]
#[command(after_help = MAN_HELP)]
pub struct ManArgs {
    /// The command [default: adead itself]
    pub command: Option<String>,
    /// Write the pages of all commands into this folder, which is made if it is missing
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath, conflicts_with = "command")]
    pub dir: Option<PathBuf>,
}

/// Prints a page, or writes all of them into a folder.
pub fn run(args: &ManArgs) -> Result<()> {
    let mut cli = Cli::command().disable_help_subcommand(true);
    cli.build();
    if let Some(folder) = &args.dir {
        return write_all(&cli, folder);
    }
    let Some(name) = &args.command else { return write(&page(&cli)?) };
    match cli.find_subcommand(name) {
        Some(command) => write(&page(command)?),
        None => {
            let question = nearest::question(name, cli.get_subcommands().map(clap::Command::get_name));
            Err(Failure::Usage(format!("there is no command '{name}'{question}")))
        }
    }
}

fn write_all(cli: &clap::Command, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| Failure::io(folder.display(), &error))?;
    let commands: Vec<&clap::Command> = std::iter::once(cli).chain(cli.get_subcommands()).collect();
    for command in &commands {
        let file = folder.join(format!("{}.1", title(command)));
        std::fs::write(&file, page(command)?).map_err(|error| Failure::io(file.display(), &error))?;
    }
    line(format_args!("{} pages in {}", commands.len(), folder.display()))
}

/// The page's name: `adead-run` for `adead run`.
fn title(command: &clap::Command) -> String {
    command.get_display_name().unwrap_or(command.get_name()).replace(' ', "-")
}

/// Makes a page. clap_mangen would fill the lines of examples, so the text below the options is written here.
fn page(command: &clap::Command) -> Result<Vec<u8>> {
    let source = format!("adead {}", adead::VERSION);
    let man = Man::new(command.clone()).title(title(command)).source(source).manual("adead");
    let mut page = Vec::new();
    let rendered =
        [Man::render_title, Man::render_name_section, Man::render_synopsis_section, Man::render_description_section];
    let made = rendered.iter().try_for_each(|part| part(&man, &mut page));
    let made = made.and_then(|()| man.render_options_section(&mut page));
    let made =
        made.and_then(|()| if command.has_subcommands() { man.render_subcommands_section(&mut page) } else { Ok(()) });
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let made = made.and_then(|()| below(&text).to_writer(&mut page));
    made.map_err(|error| Failure::io("the page", &error))?;
    Ok(escaped(&String::from_utf8_lossy(&page)).into_bytes())
}

/// Writes characters beyond ASCII as roff's escapes, so the page shows the same with every reader and locale.
fn escaped(page: &str) -> String {
    let escape = |c: char| if c.is_ascii() { c.to_string() } else { format!("\\[u{:04X}]", c as u32) };
    page.chars().map(escape).collect()
}

/// The text below the options. Lines in capitals are headings; all other lines stay as they are.
fn below(text: &str) -> Roff {
    let mut roff = Roff::default();
    let mut filled = true;
    for line in text.lines() {
        let heading = !line.is_empty() && line.chars().all(|c| c.is_ascii_uppercase() || c == ' ');
        if heading {
            if !filled {
                roff.control("fi", []);
            }
            roff.control("SH", [line]).control("nf", []);
            filled = false;
        } else {
            if filled {
                roff.control("SH", ["NOTES"]).control("nf", []);
                filled = false;
            }
            roff.text([roman(line)]);
        }
    }
    if !filled {
        roff.control("fi", []);
    }
    roff
}

//! `capstan config`: what holds and why, or everything that is wrong.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::json;

use crate::cli::output::Out;
use crate::cli::settings::{self, Given};
use crate::cli::{Answer, Stop};
use crate::config::{Loaded, default_file};
use crate::wire::printable::{Printable, printable};

#[derive(clap::Subcommand)]
pub(in crate::cli) enum Verb {
    /// Print every setting with its value and origin
    #[command(after_help = "Example: capstan config print --data /var/lib/capstan")]
    Print {
        #[command(flatten)]
        from: From,
        /// Print a settings file with every default, commented
        #[arg(long)]
        default: bool,
    },
    /// Report every mistake at once
    #[command(after_help = "Example: capstan config check --config capstan.toml")]
    Check {
        #[command(flatten)]
        from: From,
    },
}

#[derive(clap::Args)]
pub(in crate::cli) struct From {
    /// Data directory, whose capstan.toml is read
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Another settings file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Serialize)]
struct Shown {
    ok: bool,
    settings: Vec<SettingShown>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct SettingShown {
    name: &'static str,
    value: String,
    from: String,
}

pub(in crate::cli) fn run(verb: &Verb, out: &Out) -> anyhow::Result<Answer> {
    let (from, print) = match verb {
        Verb::Print { default: true, .. } => {
            let file = default_file();
            out.file(&json!({ "ok": true, "file": file }), file.as_bytes())?;
            return Ok(Answer::Yes);
        }
        Verb::Print { from, .. } => (from, true),
        Verb::Check { from } => (from, false),
    };
    let given =
        Given { data: from.data.as_deref(), config: from.config.as_deref(), ..Given::default() };
    let loaded = settings::load(&given).map_err(wrong)?;
    loaded.warnings.iter().for_each(|warning| out.note(printable!("warning: {}", warning)));
    let text = if print { printed(&loaded) } else { "ok".into() };
    let settings = loaded.sources.into_iter();
    let settings = settings
        .map(|(name, value, source)| SettingShown { name, value, from: source.to_string() })
        .collect();
    out.answer(&Shown { ok: true, settings, warnings: loaded.warnings }, text)?;
    Ok(Answer::Yes)
}

fn printed(loaded: &Loaded) -> Printable {
    let mut text = Printable::default();
    loaded.print().lines().for_each(|line| text.line(Printable::whole(line)));
    text
}

/// Settings that are wrong are a "no"; a file that is not there is none.
fn wrong(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<Stop>() {
        Ok(stop) if stop.code == settings::WRONG => Stop { answer: Answer::No, ..stop }.into(),
        Ok(stop) => stop.into(),
        Err(other) => other,
    }
}

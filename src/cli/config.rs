//! `capstan config`: what holds and why, or everything that is wrong.

use std::path::PathBuf;

use serde::Serialize;

use super::output::Out;
use super::settings::{self, Given};
use super::{Answer, Stop};
use crate::config::{Mistakes, default_file};

#[derive(clap::Subcommand)]
pub(super) enum Verb {
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
pub(super) struct From {
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

pub(super) fn run(verb: &Verb, out: &Out) -> anyhow::Result<Answer> {
    let (from, print) = match verb {
        Verb::Print { default: true, .. } => {
            out.line(&default_file())?;
            return Ok(Answer::Yes);
        }
        Verb::Print { from, .. } => (from, true),
        Verb::Check { from } => (from, false),
    };
    let given =
        Given { data: from.data.as_deref(), config: from.config.as_deref(), ..Given::default() };
    let loaded = settings::load(&given).map_err(wrong)?;
    loaded.warnings.iter().for_each(|warning| out.note(&format!("warning: {warning}")));
    let text = if print { loaded.print() } else { "ok".to_owned() };
    let settings = loaded.sources.into_iter();
    let settings = settings
        .map(|(name, value, source)| SettingShown { name, value, from: source.to_string() })
        .collect();
    out.answer(&Shown { ok: true, settings, warnings: loaded.warnings }, &text)?;
    Ok(Answer::Yes)
}

/// Settings that are wrong are a "no"; a file that is not there is none.
fn wrong(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<Mistakes>() {
        Ok(mistakes) => Stop::no("config", format!("settings:\n{mistakes}")).into(),
        Err(other) => other,
    }
}

//! `capstan config`: the settings in force and where each comes from, or every
//! mistake in them.

use std::path::PathBuf;

use serde::Serialize;

use crate::cli::output::Out;
use crate::cli::settings::{self, Given};
use crate::cli::{CliError, Exit};
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
    /// Data directory whose capstan.toml is read
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Settings file instead of capstan.toml in the data directory
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Serialize)]
struct DefaultFile {
    ok: bool,
    file: String,
}

#[derive(Serialize)]
struct SettingsReport {
    ok: bool,
    settings: Vec<SettingView>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct SettingView {
    name: &'static str,
    value: String,
    from: String,
}

pub(in crate::cli) fn run(verb: &Verb, out: &Out) -> anyhow::Result<Exit> {
    let (from, print) = match verb {
        Verb::Print { default: true, .. } => {
            let report = DefaultFile { ok: true, file: default_file() };
            out.file(&report, report.file.as_bytes())?;
            return Ok(Exit::Yes);
        }
        Verb::Print { from, .. } => (from, true),
        Verb::Check { from } => (from, false),
    };
    let given =
        Given { data: from.data.as_deref(), config: from.config.as_deref(), ..Given::default() };
    let loaded = settings::load(&given).map_err(invalid)?;
    loaded.warnings.iter().for_each(|warning| out.note(printable!("warning: {}", warning)));
    let text = if print { printed(&loaded) } else { "ok".into() };
    let settings = loaded.sources.into_iter();
    let settings = settings
        .map(|(name, value, source)| SettingView { name, value, from: source.to_string() })
        .collect();
    out.answer(&SettingsReport { ok: true, settings, warnings: loaded.warnings }, text)?;
    Ok(Exit::Yes)
}

fn printed(loaded: &Loaded) -> Printable {
    let mut text = Printable::default();
    loaded.print().lines().for_each(|line| text.line(Printable::whole(line)));
    text
}

/// Invalid settings exit with 1 here; a missing file still exits with 2.
fn invalid(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<CliError>() {
        Ok(error) if error.code == settings::INVALID => CliError { exit: Exit::No, ..error }.into(),
        Ok(error) => error.into(),
        Err(other) => other,
    }
}

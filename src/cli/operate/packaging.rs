//! `capstan completions` and `capstan man`: generated at run time, so that
//! packagers need only the program.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;
use serde::Serialize;

use crate::cli::output::Out;
use crate::cli::{Cli, Exit, files};
use crate::wire::printable::printable;

#[derive(clap::Args)]
#[command(after_help = "Example: capstan completions bash > capstan.bash")]
pub(in crate::cli) struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

#[derive(clap::Args)]
#[command(after_help = "Example: capstan man /usr/share/man/man1")]
pub(in crate::cli) struct ManArgs {
    /// Directory for the pages
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

#[derive(Serialize)]
struct CompletionsReport<'a> {
    ok: bool,
    shell: String,
    script: &'a str,
}

#[derive(Serialize)]
struct ManReport<'a> {
    ok: bool,
    pages: usize,
    directory: &'a Path,
}

pub(in crate::cli) fn completions(args: &CompletionsArgs, out: &Out) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "capstan", &mut script);
    let text = String::from_utf8_lossy(&script);
    let shell = args.shell.to_string();
    out.file(&CompletionsReport { ok: true, shell, script: &text }, &script)?;
    Ok(Exit::Yes)
}

pub(in crate::cli) fn man(args: &ManArgs, out: &Out) -> anyhow::Result<Exit> {
    let directory = &args.directory;
    std::fs::create_dir_all(directory).with_context(|| format!("{}", directory.display()))?;
    let mut root = Cli::command();
    root.build();
    let pages = write_pages(&root, "capstan", directory)?;
    let text = printable!("{} pages in {}", pages, directory.display());
    out.answer(&ManReport { ok: true, pages, directory }, text)?;
    Ok(Exit::Yes)
}

/// One page for each verb, named `capstan-verb.1`.
fn write_pages(command: &clap::Command, name: &str, directory: &Path) -> anyhow::Result<usize> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).title(name.to_uppercase()).render(&mut page)?;
    files::write_file(&directory.join(format!("{name}.1")), &page)?;
    let verbs = command.get_subcommands().filter(|verb| verb.get_name() != "help");
    verbs
        .map(|verb| write_pages(verb, &format!("{name}-{}", verb.get_name()), directory))
        .try_fold(1, |count, pages| pages.map(|pages| count + pages))
}

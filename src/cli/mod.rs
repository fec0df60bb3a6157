//! The command line: one verb, one file, in the directory of its purpose.
//!
//! In: arguments. Out: an exit code: 0 yes, 1 no, 2 could not answer,
//! 3 cannot tell. Verbs compute; `output` alone prints.

mod check;
pub mod client;
mod exit;
pub mod files;
mod operate;
pub mod output;
mod produce;
mod read;
mod settings;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use check::{audit, pacr, pca, trace, trust, verify};
use exit::broken_store;
use operate::{backup, config, dev, fsck, init, packaging, policy, replay, serve};
use output::{Out, OutputArgs};
use produce::{keygen, outbox, register, seal};
use read::{inspect, lineage, prove, search};

pub use exit::{CliError, Exit};

use crate::store;

const EXIT_CODES: &str = "Exit codes: 0 yes, 1 no, 2 could not answer, 3 cannot tell.";

/// A self-hosted SCITT transparency log for what AI agents did.
#[derive(Parser)]
#[command(name = "capstan", bin_name = "capstan", version, after_help = EXIT_CODES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a temporary log on this machine, to try things out
    Dev(dev::Args),
    /// Create a new log
    Init(init::Args),
    /// Run a log
    Serve(serve::Args),
    /// Create a key pair for signing statements
    Keygen(keygen::Args),
    /// Sign an action as a Capsule, or any other payload
    Seal(seal::Args),
    /// Seal and register; a statement that cannot be sent stays in the outbox
    Record(outbox::RecordArgs),
    /// List or send the statements in the outbox
    #[command(subcommand)]
    Outbox(outbox::Verb),
    /// Register statements and keep their receipts
    Register(register::Args),
    /// Verify statements, receipts and bundles offline
    Verify(verify::Args),
    /// Show what a file contains, without verifying it
    Inspect(inspect::Args),
    /// Fetch a receipt, or a consistency receipt between two sizes
    Prove(prove::Args),
    /// List the statements of a log, newest first
    Log(search::LogArgs),
    /// Find statements by the exact value of any field
    Find(search::FindArgs),
    /// Show everything that belongs to a record or an action
    Story(search::StoryArgs),
    /// Show causes and effects of a causal record
    Lineage(lineage::Args),
    /// List records that need a decision and that no later record closed
    OpenItems(search::OpenArgs),
    /// Save a statement with its receipt and everything needed to verify it
    Bundle(prove::BundleArgs),
    /// Rebuild the search index of a log
    Reindex(fsck::ReindexArgs),
    /// Check the integrity of a data directory by recomputing it
    Fsck(fsck::Args),
    /// Copy a log, running or not, and check the copy
    Backup(backup::BackupArgs),
    /// Restore a log from a copy, after checking that no newer one exists
    Restore(backup::RestoreArgs),
    /// Allow a restored or moved log to write again
    Resume(backup::ResumeArgs),
    /// Repeat every admission decision of a log and compare
    Replay(replay::Args),
    /// Check and export causal records
    #[command(subcommand)]
    Pacr(pacr::Verb),
    /// Test, explain, compare and set registration policies
    #[command(subcommand)]
    Policy(policy::Verb),
    /// Check plan certificates (PCA)
    #[command(subcommand)]
    Pca(pca::Verb),
    /// Check from outside that a log is append-only
    Audit(audit::Args),
    /// Check, compare and list event chains of agent sessions (CRA TRACE)
    #[command(subcommand)]
    Trace(trace::Verb),
    /// Rotate the service key
    #[command(subcommand)]
    Key(init::KeyVerb),
    /// Show and change which logs and issuers are trusted
    #[command(subcommand)]
    Trust(trust::Verb),
    /// Show or check settings
    #[command(subcommand)]
    Config(config::Verb),
    /// Ask a running log for its health
    Health(serve::HealthArgs),
    /// Print a completion script for a shell
    Completions(packaging::CompletionsArgs),
    /// Write manual pages into a directory
    Man(packaging::ManArgs),
}

/// Runs one command line of `capstan` to its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    run_program(
        "capstan",
        arguments,
        |cli: &Cli| cli.output,
        |cli, out| {
            let out_for_store = *out;
            store::on_fatal_panic(move |error| {
                i32::from(out_for_store.error(&exit::unusable(error)))
            });
            act(cli.verb, out)
        },
    )
}

/// Parses a command line, runs it, and turns the result into an exit code.
pub fn run_program<P: Parser>(
    program: &'static str,
    arguments: impl IntoIterator<Item = OsString>,
    flags: impl FnOnce(&P) -> OutputArgs,
    act: impl FnOnce(P, &Out) -> anyhow::Result<Exit>,
) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    match P::try_parse_from(&arguments) {
        Ok(parsed) => {
            let out = flags(&parsed).out(program);
            match act(parsed, &out) {
                Ok(exit) => exit.code(),
                Err(error) => out.error(&error),
            }
        }
        Err(error) => {
            let json = arguments.iter().any(|argument| argument == "--json");
            output::usage(error, &Out::new(program, json, false))
        }
    }
}

fn act(verb: Verb, out: &Out) -> anyhow::Result<Exit> {
    match verb {
        Verb::Audit(args) => on_network(audit::run(&args, out)),
        Verb::Backup(args) => backup::backup(&args, out),
        Verb::Bundle(args) => on_network(prove::bundle(&args, out)),
        Verb::Completions(args) => packaging::completions(&args, out),
        Verb::Config(verb) => config::run(&verb, out),
        Verb::Dev(args) => on_network(dev::run(&args, out)),
        Verb::Find(args) => on_network(search::find(&args, out)),
        Verb::Fsck(args) => fsck::run(&args, out),
        Verb::Health(args) => on_network(serve::health(&args, out)),
        Verb::Init(args) => init::run(&args, out),
        Verb::Inspect(args) => inspect::run(&args, out),
        Verb::Key(verb) => init::rotate_key(&verb, out),
        Verb::Keygen(args) => keygen::run(&args, out),
        Verb::Lineage(args) => on_network(lineage::run(&args, out)),
        Verb::Log(args) => on_network(search::log(&args, out)),
        Verb::Man(args) => packaging::man(&args, out),
        Verb::OpenItems(args) => on_network(search::open_items(&args, out)),
        Verb::Outbox(verb) => on_network(outbox::run(&verb, out)),
        Verb::Pacr(verb) => pacr::run(&verb, out),
        Verb::Pca(verb) => pca::run(&verb, out),
        Verb::Policy(verb) => policy::run(&verb, out),
        Verb::Prove(args) => on_network(prove::run(&args, out)),
        Verb::Record(args) => on_network(outbox::record(&args, out)),
        Verb::Register(args) => on_network(register::run(&args, out)),
        Verb::Replay(args) => on_network(replay::run(&args, out)),
        Verb::Reindex(args) => fsck::reindex(&args, out),
        Verb::Restore(args) => on_network(backup::restore(&args, out)),
        Verb::Resume(args) => on_network(backup::resume(&args, out)),
        Verb::Seal(args) => on_network(seal::run(&args, out)),
        Verb::Serve(args) => on_network(serve::run(&args, out)),
        Verb::Story(args) => on_network(search::story(&args, out)),
        Verb::Trace(verb) => trace::run(&verb, out),
        Verb::Trust(trust::Verb::Add(args)) => on_network(trust::add(&args, out)),
        Verb::Trust(trust::Verb::Follow(args)) => trust::edit::follow(&args, out),
        Verb::Trust(trust::Verb::Remove(args)) => trust::edit::remove(&args, out),
        Verb::Trust(trust::Verb::Issuer(args)) => trust::issuer::run(&args, out),
        Verb::Trust(trust::Verb::Show(args)) => trust::show(&args, out),
        Verb::Trust(trust::Verb::Upgrade(args)) => trust::upgrade::run(&args, out),
        Verb::Verify(args) => verify::run(&args, out),
    }
}

/// Only verbs that go through here can open a socket.
pub fn on_network(work: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(work)
}

/// How the user called this program, for commands to paste.
fn program() -> String {
    let Ok(path) = std::env::current_exe() else { return "capstan".to_owned() };
    let on_path = std::env::var_os("PATH").is_some_and(|list| {
        std::env::split_paths(&list).any(|directory| Some(directory.as_path()) == path.parent())
    });
    if on_path {
        return "capstan".to_owned();
    }
    let here = std::env::current_dir().ok();
    let relative = here.and_then(|here| Some(path.strip_prefix(here).ok()?.to_owned()));
    match relative {
        Some(relative) if relative.components().count() == 1 => {
            format!("./{}", relative.display())
        }
        Some(relative) => relative.display().to_string(),
        None => path.display().to_string(),
    }
}

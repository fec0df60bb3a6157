//! The command line: one verb, one file, in the directory of its purpose.
//!
//! In: arguments. Out: an exit code: 0 yes, 1 no, 2 could not answer,
//! 3 cannot tell. Verbs compute; `output` alone prints.

mod check;
mod client;
mod files;
mod hammer;
mod operate;
mod output;
mod produce;
mod read;
mod settings;
mod stop;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use check::{audit, pacr, pca, trace, trust, verify};
use operate::{
    backup, config, dev, fsck, health, init, key, packaging, policy, reindex, replay, restore,
    serve,
};
use output::Out;
use produce::{keygen, outbox, register, seal};
use read::{bundle, inspect, lineage, prove, search};
use stop::{Answer, Stop, broken_store};

use crate::store;

const EXIT_CODES: &str = "Exit codes: 0 yes, 1 no, 2 could not answer, 3 cannot tell.";

/// A self-hosted SCITT transparency log for what AI agents did.
#[derive(Parser)]
#[command(name = "capstan", bin_name = "capstan", version, after_help = EXIT_CODES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    /// Print one JSON object on standard output
    #[arg(long, global = true, display_order = 900)]
    json: bool,
    /// Say nothing but the result
    #[arg(long, short, global = true, display_order = 901)]
    quiet: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// Try it: a throw-away log on this machine
    Dev(dev::Args),
    /// Make a new log
    Init(init::Args),
    /// Run a log
    Serve(serve::Args),
    /// Make a key to sign statements with
    Keygen(keygen::Args),
    /// Sign an action as a Capsule, or any payload as it is
    Seal(seal::Args),
    /// Seal and register; what cannot be sent waits in the outbox
    Record(outbox::RecordArgs),
    /// What waits to be registered
    #[command(subcommand)]
    Outbox(outbox::Verb),
    /// Register statements and keep their receipts
    Register(register::Args),
    /// Say what files prove, without any network
    Verify(verify::Args),
    /// Show what is in a file, without judging it
    Inspect(inspect::Args),
    /// Fetch a fresh receipt, or one that shows growth
    Prove(prove::Args),
    /// List what is in a log, newest first
    Log(search::LogArgs),
    /// Find statements by whole values of any field
    Find(search::FindArgs),
    /// Tell what belongs to a record or an action
    Story(search::StoryArgs),
    /// Say who caused whom, among causal records
    Lineage(lineage::Args),
    /// List records that wait for somebody
    OpenItems(search::OpenArgs),
    /// Pack a statement with all that shows why it is in the log
    Bundle(bundle::Args),
    /// Make the search index of a log again
    Reindex(reindex::Args),
    /// Recompute a log on this machine from its bytes
    Fsck(fsck::Args),
    /// Load a log, and hold it to every promise it makes
    Hammer(hammer::Args),
    /// Copy a log, running or not, and recompute the copy
    Backup(backup::Args),
    /// Make a log from a copy; it writes once nothing newer is known to exist
    Restore(restore::RestoreArgs),
    /// Let a restored or moved log write again
    Resume(restore::ResumeArgs),
    /// Make every decision of a log again, from the log alone
    Replay(replay::Args),
    /// Check and export causal records
    #[command(subcommand)]
    Pacr(pacr::Verb),
    /// Work on the registration policy
    #[command(subcommand)]
    Policy(policy::Verb),
    /// Judge plan certificates (PCA)
    #[command(subcommand)]
    Pca(pca::Verb),
    /// Check from outside that a log only grows
    Audit(audit::Args),
    /// Check, compare and list event chains of agent sessions (CRA TRACE)
    #[command(subcommand)]
    Trace(trace::Verb),
    /// Work on the service key
    #[command(subcommand)]
    Key(key::Verb),
    /// Whom to believe
    #[command(subcommand)]
    Trust(trust::Verb),
    /// Show or check settings
    #[command(subcommand)]
    Config(config::Verb),
    /// Ask a running log whether it is well
    Health(health::Args),
    /// Print a completion script for a shell
    Completions(packaging::CompletionsArgs),
    /// Write manual pages into a directory
    Man(packaging::ManArgs),
}

/// Runs one command line to its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let json = arguments.iter().any(|argument| argument == "--json");
            return output::usage(error, &Out::new(json, false));
        }
    };
    let out = Out::new(cli.json, cli.quiet);
    store::on_fatal_panic(move |error| i32::from(out.error(&stop::unusable(error))));
    match act(cli.verb, &out) {
        Ok(answer) => answer.exit_code(),
        Err(error) => out.error(&error),
    }
}

fn act(verb: Verb, out: &Out) -> anyhow::Result<Answer> {
    match verb {
        Verb::Audit(args) => on_network(audit::run(&args, out)),
        Verb::Backup(args) => backup::run(&args, out),
        Verb::Bundle(args) => on_network(bundle::run(&args, out)),
        Verb::Completions(args) => packaging::completions(&args, out),
        Verb::Config(verb) => config::run(&verb, out),
        Verb::Dev(args) => on_network(dev::run(&args, out)),
        Verb::Find(args) => on_network(search::find(&args, out)),
        Verb::Fsck(args) => fsck::run(&args, out),
        Verb::Hammer(args) => on_network(hammer::run(&args, out)),
        Verb::Health(args) => on_network(health::run(&args, out)),
        Verb::Init(args) => init::run(&args, out),
        Verb::Inspect(args) => inspect::run(&args, out),
        Verb::Key(verb) => key::run(&verb, out),
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
        Verb::Reindex(args) => reindex::run(&args, out),
        Verb::Restore(args) => on_network(restore::restore(&args, out)),
        Verb::Resume(args) => on_network(restore::resume(&args, out)),
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
fn on_network(work: impl Future<Output = anyhow::Result<Answer>>) -> anyhow::Result<Answer> {
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

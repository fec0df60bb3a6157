//! `capstan key`: the key a log signs with.

use std::path::PathBuf;

use serde::Serialize;

use crate::cli::output::Out;
use crate::cli::settings::{self, Given};
use crate::cli::{Answer, broken_store, program};
use crate::service::{self, Writer};
use crate::wire::printable::printable;

#[derive(clap::Subcommand)]
pub(in crate::cli) enum Verb {
    /// Let a new key take over; old receipts stay valid
    #[command(after_help = "Example: capstan key rotate --data /var/lib/capstan")]
    Rotate {
        /// Data directory of a log that is not running
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
    },
}

#[derive(Serialize)]
struct Rotated {
    ok: bool,
    key: String,
}

pub(in crate::cli) fn run(verb: &Verb, out: &Out) -> anyhow::Result<Answer> {
    let Verb::Rotate { data } = verb;
    let loaded = settings::load(&Given { data: Some(data), ..Given::default() })?;
    let guard = loaded.config.guard.path;
    let mut writer =
        Writer::open(data, guard.as_deref(), false).map_err(|e| broken_store(e, data))?;
    let id = service::rotate(&mut writer, guard.as_deref())?;
    out.answer(&Rotated { ok: true, key: id.to_string() }, printable!("new key {}", id))?;
    out.note(printable!(
        "The succession is on the log, and the old key stays published for old receipts.\n\
         next\n  {0} serve --data {1}\n  {0} trust add URL   (whoever verifies; it follows the succession)",
        program(),
        data.display()
    ));
    Ok(Answer::Yes)
}

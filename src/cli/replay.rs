//! `capstan replay`: every decision of a log, made again from the log alone.

use std::path::PathBuf;

use serde_json::json;

use super::output::Out;
use super::{Answer, broken_store};
use crate::service::{self, Differs, ReplayOptions};
use crate::wire::text::grouped;

#[derive(clap::Args)]
#[command(after_help = "Example: capstan replay --data /var/lib/capstan")]
pub(super) struct Args {
    /// Data directory of a log that is not running
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

pub(super) fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    let bar = out.progress(u64::MAX, "replaying");
    let options = ReplayOptions { first_only: true, ..ReplayOptions::default() };
    let replayed = service::replay(&args.data, options, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let replayed = replayed.map_err(|e| broken_store(e, &args.data))?;
    let first = replayed.differs.first();
    let text = match first {
        None => format!("yes  {} entries decided again, all the same", grouped(replayed.decided)),
        Some(one) => {
            format!("no  entry #{} is decided differently: {}: {}", one.index, one.code, one.detail)
        }
    };
    let code = first.map_or("ok", |one| one.code);
    let (ok, size, decided) = (first.is_none(), replayed.size, replayed.decided);
    let first = first.map(object);
    out.answer(
        &json!({ "ok": ok, "code": code, "size": size, "decided": decided, "first": first }),
        &text,
    )?;
    Ok(if ok { Answer::Yes } else { Answer::No })
}

/// One entry that comes out differently, for machines.
pub(super) fn object(one: &Differs) -> serde_json::Value {
    let id = one.id.map(|id| id.to_string());
    json!({ "index": one.index.get(), "id": id, "code": one.code, "detail": one.detail })
}

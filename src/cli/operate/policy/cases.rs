//! `capstan policy test`: the cases beside policies.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cli::output::Out;
use crate::cli::{Answer, Stop, files};
use crate::policy::Cases;
use crate::wire::printable::{Printable, printable};

#[derive(clap::Args)]
pub(in crate::cli) struct Args {
    /// Policies; the cases of NAME.toml are in NAME.cases.toml
    #[arg(value_name = "POLICY", default_value = "policy.toml")]
    policies: Vec<PathBuf>,
}

pub(super) fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    let (mut text, mut objects, mut failed, mut ran) = (Printable::default(), Vec::new(), 0, 0);
    for path in args.policies.iter().filter(|path| !is_cases(path)) {
        let policy = super::load(path)?;
        let beside = path.with_extension("cases.toml");
        let cases = Cases::parse(&files::read_text(&beside)?);
        let cases =
            cases.map_err(|e| Stop::failed("cases", format!("{}: {e}", beside.display())))?;
        for outcome in cases.run(&policy) {
            ran += 1;
            let word = if outcome.ok { "ok  " } else { "FAIL" };
            text.line(printable!("{}  {}: {}", word, policy.name(), outcome.name));
            if !outcome.ok {
                failed += 1;
                text.line(printable!("      {}", outcome.detail));
            }
            objects.push(json!({
                "policy": policy.name(), "case": outcome.name, "ok": outcome.ok,
                "admitted": outcome.admitted, "detail": outcome.detail,
            }));
        }
    }
    text.line(printable!("{} cases, {} failed", ran, failed));
    out.answer(&json!({ "ok": failed == 0, "cases": objects }), text)?;
    Ok(if failed == 0 { Answer::Yes } else { Answer::No })
}

/// So that `policy/*.toml` may be given.
fn is_cases(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".cases.toml")
}

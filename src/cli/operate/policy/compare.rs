//! `capstan policy diff`: which rules two policies do not share.

use std::path::PathBuf;

use serde_json::json;

use crate::cli::Answer;
use crate::cli::output::Out;
use crate::policy::{Policy, Rule};
use crate::wire::printable::{Printable, printable};

#[derive(clap::Args)]
pub(in crate::cli) struct Args {
    /// The one policy
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The other
    #[arg(value_name = "B")]
    b: PathBuf,
}

/// Every rule as a line; two rules that ask the same are the same line.
fn lines(policy: &Policy) -> Vec<String> {
    let line = |effect: &str, rule: &Rule| {
        let wanted: Vec<String> = rule.wanted().collect();
        format!("{effect} {:?} if {}", rule.name(), wanted.join("; "))
    };
    let (refuse, allow) = policy.rules();
    let refuse = refuse.iter().map(|rule| line("refuse", rule));
    let mut lines: Vec<String> = refuse.chain(allow.iter().map(|r| line("allow", r))).collect();
    lines.extend(policy.rate().map(|rate| format!("rate {} per minute", rate.per_minute)));
    lines
}

pub(super) fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    let (a, b) = (lines(&super::load(&args.a)?), lines(&super::load(&args.b)?));
    let removed: Vec<&String> = a.iter().filter(|line| !b.contains(line)).collect();
    let added: Vec<&String> = b.iter().filter(|line| !a.contains(line)).collect();
    let mut text = Printable::default();
    for (mark, lines) in [("-", &removed), ("+", &added)] {
        for line in lines {
            text.line(printable!("{} {}", mark, line));
        }
    }
    let same = removed.is_empty() && added.is_empty();
    if same {
        text.line("the same rules");
    }
    out.answer(&json!({ "ok": same, "removed": removed, "added": added }), text)?;
    Ok(if same { Answer::Yes } else { Answer::No })
}

//! `capstan policy from-sample`: a policy that admits statements like these.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::json;

use crate::cli::output::Out;
use crate::cli::{Answer, files};
use crate::envelope::SignedStatement;
use crate::policy::Policy;
use crate::profile;
use crate::wire::printable::{self, printable};

#[derive(clap::Args)]
pub(in crate::cli) struct Args {
    /// Statements that shall be admitted
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// File for the policy instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Issuers, by what their statements are: profile and content type.
type Seen = BTreeMap<(&'static str, Option<String>), BTreeSet<String>>;

pub(super) fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    let mut seen = Seen::new();
    for path in &args.files {
        let statement = SignedStatement::parse_any_size(files::read(path)?);
        let statement = statement.with_context(|| format!("{}", path.display()))?;
        let header = statement.header();
        let read = profile::read_payload(header, statement.payload().unwrap_or_default());
        let issuer = header.claims.issuer.clone();
        let issuer = issuer.with_context(|| format!("{} names no issuer", path.display()))?;
        let content_type = header.content_type.as_ref().map(ToString::to_string);
        seen.entry((read.record.profile(), content_type)).or_default().insert(issuer);
    }
    let text = write(&seen, args.files.len());
    Policy::parse(&text).context("the sample does not make a policy")?;
    match &args.output {
        Some(path) => {
            files::write_file(path, text.as_bytes())?;
            let said = printable!("wrote {}", path.display());
            out.answer(&json!({ "ok": true, "output": path, "policy": text }), said)?;
        }
        None => out.file(&json!({ "ok": true, "policy": text }), text.as_bytes())?,
    }
    Ok(Answer::Yes)
}

fn write(seen: &Seen, statements: usize) -> String {
    let mut text = format!(
        "# Made from {statements} statements. It admits their issuers, each with the kinds\n\
         # of statement seen, if a pinned key or a certificate vouches for them.\n\
         # In text `*` is any run of characters.\n\
         name = \"from-sample\"\n"
    );
    for (nth, ((profile, content_type), issuers)) in seen.iter().enumerate() {
        let issuers: Vec<String> = issuers.iter().map(|name| quoted(name)).collect();
        let _infallible = writeln!(
            text,
            "\n[[allow]]\nname = \"sample {}\"\nbinding = [\"pinned\", \"x5chain\"]\n\
             profile = {}\nissuer = [{}]",
            nth + 1,
            quoted(profile),
            issuers.join(", ")
        );
        if let Some(content_type) = content_type {
            let _infallible = writeln!(text, "content_type = {}", quoted(content_type));
        }
        text.push_str("# subject = [\"urn:...:*\"]    # narrow it\n");
    }
    text
}

/// A basic string of TOML, which spells control and bidi characters as JSON
/// does.
fn quoted(text: &str) -> String {
    printable::json(&serde_json::Value::from(text).to_string())
}

//! `capstan policy from-sample`: a policy that admits statements like these.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use serde::Serialize;

use crate::cli::output::Out;
use crate::cli::{Exit, files};
use crate::envelope::SignedStatement;
use crate::policy::Policy;
use crate::profile;
use crate::wire::printable::{self, printable};

#[derive(clap::Args)]
pub(in crate::cli) struct Args {
    /// Statements to admit
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// File for the policy instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The issuers of each profile and content type.
type Issuers = BTreeMap<(&'static str, Option<String>), BTreeSet<String>>;

#[derive(Serialize)]
struct SampleReport<'a> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a PathBuf>,
    policy: &'a str,
}

pub(super) fn run(args: &Args, out: &Out) -> anyhow::Result<Exit> {
    let mut found = Issuers::new();
    for path in &args.files {
        let statement = SignedStatement::parse_any_size(files::read(path)?);
        let statement = statement.with_context(|| format!("{}", path.display()))?;
        let header = statement.header();
        let read = profile::read_payload(header, statement.payload().unwrap_or_default());
        let issuer = header.claims.issuer.clone();
        let issuer = issuer.with_context(|| format!("{} names no issuer", path.display()))?;
        let content_type = header.content_type.as_ref().map(ToString::to_string);
        found.entry((read.profile(), content_type)).or_default().insert(issuer);
    }
    let text = write(&found, args.files.len());
    Policy::parse(&text).context("these statements do not give a valid policy")?;
    let report = SampleReport { ok: true, output: args.output.as_ref(), policy: &text };
    match &args.output {
        Some(path) => {
            files::write_file(path, text.as_bytes())?;
            out.answer(&report, printable!("wrote {}", path.display()))?;
        }
        None => out.file(&report, text.as_bytes())?,
    }
    Ok(Exit::Yes)
}

fn write(found: &Issuers, statements: usize) -> String {
    let mut text = format!(
        "# Made from {statements} statements. Admits their issuers with the same kinds of\n\
         # statement, if their key is pinned or certified.\n\
         # In text `*` matches any characters.\n\
         name = \"from-sample\"\n"
    );
    for (nth, ((profile, content_type), issuers)) in found.iter().enumerate() {
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
        text.push_str("# subject = [\"urn:...:*\"]    # narrow this down\n");
    }
    text
}

/// A TOML basic string, which escapes control and bidi characters as JSON does.
fn quoted(text: &str) -> String {
    printable::json(&serde_json::Value::from(text).to_string())
}

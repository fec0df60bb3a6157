//! Keys of a log that took over from one the user trusts.

use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;

use crate::cli::client::Client;
use crate::cli::files;
use crate::envelope::SignedStatement;
use crate::key::PublicKey;
use crate::profile::Control;
use crate::trust::{TrustAnchors, TrustedLog, edit};
use crate::verify::successors;

/// Successions on one page of the search API, and pages that are read.
const PAGE: usize = 200;
const PAGES_MAX: usize = 2;

#[derive(Deserialize)]
struct Page {
    statements: Vec<Line>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct Line {
    index: u64,
}

/// What the trust file says about a log, all its entries together.
pub(in crate::cli) fn entry(trust: &TrustAnchors, name: &str) -> Option<TrustedLog> {
    let mut entries = trust.logs().iter().filter(|log| log.name == name).cloned();
    let first = entries.next()?;
    Some(entries.fold(first, |mut all, one| {
        let new: Vec<PublicKey> = one.keys.into_iter().filter(|k| !all.keys.contains(k)).collect();
        all.keys.extend(new);
        all.checkpoint = one.checkpoint.or(all.checkpoint);
        all
    }))
}

/// The keys that follow from `known` by the successions the log publishes.
/// A log that publishes none, or another kind of log, has no such keys.
pub(in crate::cli) async fn follow(client: &Client, known: &TrustedLog) -> Vec<PublicKey> {
    let statements = published(client).await.unwrap_or_default();
    successors(&known.name, &known.keys, &statements)
}

async fn published(client: &Client) -> anyhow::Result<Vec<SignedStatement>> {
    let mut found = Vec::new();
    let mut cursor = String::new();
    for _ in 0..PAGES_MAX {
        let subject = Control::Succession.subject();
        let path =
            format!("api/v1/statements?subject={subject}&profile=control&limit={PAGE}{cursor}");
        let page = client.fetch(&path, "application/json").await?;
        let page: Page = serde_json::from_slice(&page).with_context(|| path)?;
        for Line { index } in page.statements {
            let path = format!("entries/1.{index}/statement");
            let bytes = client.fetch(&path, "application/cose").await?;
            found.extend(SignedStatement::parse_any_size(bytes).ok());
        }
        let Some(next) = page.cursor else { break };
        cursor = format!("&cursor={next}");
    }
    Ok(found)
}

/// The entry with the keys that follow from it.
pub(in crate::cli) fn extended(known: &TrustedLog, followed: &[PublicKey]) -> TrustedLog {
    let mut log = known.clone();
    log.keys.splice(0..0, followed.iter().rev().cloned());
    log
}

/// Writes one log into a trust file, in the place of what it says of it.
pub(in crate::cli) fn remember(path: &Path, log: &TrustedLog) -> anyhow::Result<()> {
    let text = if path.exists() { files::read_text(path)? } else { String::new() };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("{}", parent.display()))?;
    }
    let text = edit::with_log(&text, log).with_context(|| format!("{}", path.display()))?;
    files::write_file(path, text.as_bytes())
}

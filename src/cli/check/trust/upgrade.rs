//! `capstan trust upgrade`: adds to the anchors of an old trust file the names
//! they may certify.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::AnchorView;
use crate::cli::output::Out;
use crate::cli::{CliError, Exit, broken_store, files};
use crate::service;
use crate::trust::x509::Scope;
use crate::trust::{TrustAnchors, Upgraded, upgrade};
use crate::wire::printable::{Printable, printable};

#[derive(clap::Args)]
pub(in crate::cli) struct Args {
    /// The trust file
    file: PathBuf,
    /// The log whose trust file it is: anchors get the names they have certified
    /// there
    #[arg(long, value_name = "DIR", conflicts_with_all = ["anchor", "spiffe", "dns", "uri", "did_x509"])]
    data: Option<PathBuf>,
    /// The anchor to change; optional if only one lacks a scope
    #[arg(long, value_name = "NAME")]
    anchor: Option<String>,
    /// A SPIFFE trust domain it may certify
    #[arg(long, value_name = "DOMAIN")]
    spiffe: Vec<String>,
    /// A host it may certify: agents.example, or *.agents.example for every
    /// name below
    #[arg(long, value_name = "PATTERN")]
    dns: Vec<String>,
    /// A URI it may certify; * matches any characters
    #[arg(long, value_name = "PATTERN")]
    uri: Vec<String>,
    /// It may certify did:x509 names that are bound to it
    #[arg(long)]
    did_x509: bool,
}

#[derive(Serialize)]
struct UpgradeReport<'a> {
    ok: bool,
    file: &'a Path,
    /// Anchors that got a scope.
    anchors: Vec<AnchorView>,
    /// Anchors that still have none.
    left: Vec<String>,
}

pub(in crate::cli) fn run(args: &Args, out: &Out) -> anyhow::Result<Exit> {
    let text = files::read_text(&args.file)?;
    let unscoped = TrustAnchors::parse_any(&text)?.unscoped();
    let shown = args.file.display();
    if unscoped.is_empty() {
        let (anchors, left) = (Vec::new(), Vec::new());
        let report = UpgradeReport { ok: true, file: &args.file, anchors, left };
        out.answer(&report, printable!("every anchor of {} has a scope already", shown))?;
        return Ok(Exit::Yes);
    }
    let scopes = match &args.data {
        Some(data) => service::anchors_used(data).map_err(|e| broken_store(e, data))?,
        None => BTreeMap::from([args.named(&unscoped)?]),
    };
    let Upgraded { text, added, left } = upgrade(&text, &scopes)?;
    if !added.is_empty() {
        files::write_file(&args.file, text.as_bytes())?;
    }
    let mut lines = Printable::default();
    for (name, scope) in &added {
        lines.line(printable!("anchor {} may certify {}", name, Printable::long(scope)));
    }
    for name in &left {
        lines.line(printable!("anchor {} has no scope", name));
    }
    lines.line(match (added.is_empty(), left.is_empty()) {
        (true, _) => printable!("{} was not changed", shown),
        (false, true) => printable!("wrote {}", shown),
        (false, false) => printable!("wrote {}; it cannot be used yet", shown),
    });
    let anchors = added.into_iter().map(|(name, scope)| AnchorView { name, scope: Some(scope) });
    let (ok, anchors) = (left.is_empty(), anchors.collect());
    let report = UpgradeReport { ok, file: &args.file, anchors, left };
    out.answer(&report, lines)?;
    if let Some(name) = report.left.first() {
        out.note(printable!(
            "give it a scope: capstan trust upgrade {} --anchor '{}' --spiffe DOMAIN \
             (or --dns, --uri, --did-x509)",
            shown,
            name
        ));
    }
    Ok(if ok { Exit::Yes } else { Exit::No })
}

impl Args {
    /// The anchor and the scope that the flags name.
    fn named(&self, unscoped: &[String]) -> Result<(String, Scope), CliError> {
        let usage = |what: String| CliError::failed("usage", what);
        let name = match (&self.anchor, unscoped) {
            (Some(name), _) if !unscoped.contains(name) => {
                let names = unscoped.join(", ");
                return Err(usage(format!("no anchor {name:?} lacks a scope, only {names}")));
            }
            (Some(name), _) | (None, [name]) => name.clone(),
            (None, _) => {
                let names = unscoped.join(", ");
                return Err(usage(format!("--anchor is missing; these lack a scope: {names}")));
            }
        };
        let mut scope = Scope::default();
        scope.extend(Scope {
            spiffe: self.spiffe.clone(),
            dns: self.dns.clone(),
            uri: self.uri.clone(),
            did_x509: self.did_x509,
        });
        if scope.is_empty() {
            let what = format!("no flag says which names {name} may certify");
            return Err(usage(what).next(
                "the same command with --spiffe, --dns, --uri or --did-x509, \
                 or with --data DIR to take the names from a log",
            ));
        }
        if let Some((entry, problem)) = scope.mistake() {
            return Err(usage(format!("{entry:?}: {problem}")));
        }
        Ok((name, scope))
    }
}

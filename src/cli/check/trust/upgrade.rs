//! `capstan trust upgrade`: anchors of old trust files learn whom they may
//! speak for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::json;

use crate::cli::output::Out;
use crate::cli::{Answer, Stop, broken_store, files};
use crate::service;
use crate::trust::x509::Scope;
use crate::trust::{TrustAnchors, Upgraded, upgrade};
use crate::wire::printable::{Printable, printable};

#[derive(clap::Args)]
pub(in crate::cli) struct Args {
    /// The trust file
    file: PathBuf,
    /// The log whose trust file it is: anchors get the names that they have
    /// vouched for there
    #[arg(long, value_name = "DIR", conflicts_with_all = ["anchor", "spiffe", "dns", "uri", "did_x509"])]
    data: Option<PathBuf>,
    /// The anchor that gets a scope; may be left out where only one has none
    #[arg(long, value_name = "NAME")]
    anchor: Option<String>,
    /// A SPIFFE trust domain it may speak for
    #[arg(long, value_name = "DOMAIN")]
    spiffe: Vec<String>,
    /// A host it may speak for: agents.example, or *.agents.example for every
    /// name below
    #[arg(long, value_name = "PATTERN")]
    dns: Vec<String>,
    /// A URI it may speak for; * is any run of characters
    #[arg(long, value_name = "PATTERN")]
    uri: Vec<String>,
    /// It may speak for did:x509 names that are bound to it
    #[arg(long)]
    did_x509: bool,
}

pub(in crate::cli) fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    let text = files::read_text(&args.file)?;
    let unscoped = TrustAnchors::parse_any(&text)?.unscoped();
    let shown = args.file.display();
    if unscoped.is_empty() {
        let object = json!({ "ok": true, "file": args.file, "anchors": [], "left": [] });
        out.answer(&object, printable!("every anchor of {} says whom it may speak for", shown))?;
        return Ok(Answer::Yes);
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
        lines.line(printable!("anchor {} may speak for {}", name, Printable::long(scope)));
    }
    for name in &left {
        lines.line(printable!("anchor {} does not say whom it may speak for", name));
    }
    lines.line(match (added.is_empty(), left.is_empty()) {
        (true, _) => printable!("{} was not changed", shown),
        (false, true) => printable!("{} is written", shown),
        (false, false) => printable!("{} is written, and not yet usable", shown),
    });
    let anchors: Vec<_> =
        added.iter().map(|(name, scope)| json!({ "name": name, "scope": scope })).collect();
    let ok = left.is_empty();
    let object = json!({ "ok": ok, "file": args.file, "anchors": anchors, "left": left });
    out.answer(&object, lines)?;
    if let Some(name) = left.first() {
        out.note(printable!(
            "give it a scope: capstan trust upgrade {} --anchor '{}' --spiffe DOMAIN \
             (or --dns, --uri, --did-x509)",
            shown,
            name
        ));
    }
    Ok(if ok { Answer::Yes } else { Answer::No })
}

impl Args {
    /// The anchor and the scope that the flags name.
    fn named(&self, unscoped: &[String]) -> Result<(String, Scope), Stop> {
        let usage = |what: String| Stop::failed("usage", what);
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
            let what = format!("whom may {name} speak for? Nothing says so");
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

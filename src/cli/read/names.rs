//! Names on the command line: statement id or its first eight digits, `#6`,
//! `6`, capsule id, action id, session, subject; whatever was printed.
//!
//! In: what the user typed. Out: the one statement it means. The log looks it
//! up; more than one match is an error that lists them.

use std::path::Path;

use super::search::{Source, get};
use crate::cli::client::target::Target;
use crate::cli::output::Out;
use crate::cli::{CliError, files};
use crate::envelope::SignedStatement;
use crate::profile::capsule::CapsuleRecord;
use crate::profile::capsule::SUBJECT_PREFIX;
use crate::profile::read_payload;
use crate::service::views::{EntryView, NameMatches};
use crate::wire::digest::Digest;
use crate::wire::printable::{Printable, printable};
use crate::wire::text;

/// The id of the one statement that a name means. A log that is not Capstan
/// has no name lookup, but knows its statements by their ids.
pub(in crate::cli) async fn statement(source: &Source, name: &str) -> anyhow::Result<String> {
    if name.starts_with("1.") {
        return Ok(name.to_owned());
    }
    match candidates(source, name).await {
        Ok(found) if found.statements.is_empty() && is_whole(name) => Ok(name.to_owned()),
        Err(_) if is_whole(name) => Ok(name.to_owned()),
        found => Ok(only(name, found?)?.id.to_string()),
    }
}

/// What to request a story by: the name itself if every match has it as a
/// name of its record, otherwise the id of the one statement it means.
pub(in crate::cli) async fn story(source: &Source, name: &str) -> anyhow::Result<String> {
    let found = candidates(source, name).await?;
    if found.statements.iter().all(|entry| names_record(entry, name)) {
        return Ok(name.to_owned());
    }
    Ok(only(name, found)?.id.to_string())
}

/// The identity of a causal record.
pub(in crate::cli) async fn causal(source: &Source, name: &str) -> anyhow::Result<String> {
    let found = candidates(source, name).await?;
    let is_own = |entry: &EntryView| entry.record.record_id.as_deref() == Some(name);
    if found.statements.is_empty() || found.statements.iter().any(is_own) {
        return Ok(name.to_owned());
    }
    let entry = only(name, found)?;
    match (&*entry.profile, &entry.record.record_id) {
        ("pacr", Some(id)) => Ok(id.clone()),
        _ => Err(wrong_kind(&entry, name, "causal record").into()),
    }
}

/// The id of the capsule to supersede. Without a log to look it up in, a
/// whole capsule id is used as it is.
pub(in crate::cli) async fn superseded(
    name: Option<&str>,
    target: &Target,
    out: &Out,
) -> anyhow::Result<Option<String>> {
    let Some(name) = name else { return Ok(None) };
    if Path::new(name).is_file() {
        return in_file(Path::new(name)).map(Some);
    }
    let is_whole = is_whole(name);
    if is_whole && target.url().is_err() {
        return Ok(Some(name.to_owned()));
    }
    let found = match candidates(&Source::of(target), name).await {
        Err(error) if is_whole => {
            out.note(printable!(
                "could not check that {} is a capsule: {}",
                text::short(name),
                Printable::long(crate::cli::output::chain(&error))
            ));
            return Ok(Some(name.to_owned()));
        }
        found => found?,
    };
    if found.statements.is_empty() && is_whole {
        out.note(printable!("the log does not know {} (yet)", text::short(name)));
        return Ok(Some(name.to_owned()));
    }
    capsule(name, found).map(Some)
}

/// The subject of the action that an outcome is about. A subject is used as it
/// is: an outcome may be recorded before its action is logged.
pub(in crate::cli) async fn outcome_subject(
    name: Option<&str>,
    target: &Target,
) -> anyhow::Result<Option<String>> {
    let Some(name) = name else { return Ok(None) };
    if name.starts_with(SUBJECT_PREFIX) {
        return Ok(Some(name.to_owned()));
    }
    target.url()?;
    let mut found = candidates(&Source::of(target), name).await?;
    let other = found.statements.first().cloned();
    found.statements.retain(|one| one.profile == "capsule");
    if let (Some(other), true) = (other, found.statements.is_empty()) {
        return Err(wrong_kind(&other, name, "capsule").into());
    }
    found.statements.dedup_by(|one, before| one.subject == before.subject);
    Ok(Some(only(name, found)?.subject))
}

/// Whether this has the form of a whole id.
fn is_whole(name: &str) -> bool {
    Digest::from_hex(name).is_some()
}

/// The one capsule among the matches; the same capsule logged twice is one.
fn capsule(name: &str, mut found: NameMatches) -> anyhow::Result<String> {
    let other = found.statements.first().cloned();
    found.statements.retain(|one| one.profile == "capsule" && one.record.record_id.is_some());
    if let (Some(other), true) = (other, found.statements.is_empty()) {
        return Err(wrong_kind(&other, name, "capsule").into());
    }
    let mut seen = Vec::new();
    found.statements.retain(|one| {
        let is_new = !seen.contains(&one.record.record_id);
        seen.push(one.record.record_id.clone());
        is_new
    });
    Ok(only(name, found)?.record.record_id.unwrap_or_default())
}

/// The capsule id of a statement in a file.
fn in_file(path: &Path) -> anyhow::Result<String> {
    let statement = SignedStatement::parse_any_size(files::read(path)?)?;
    let read = statement.payload().map(|payload| read_payload(statement.header(), payload));
    let id = read.and_then(|read| read.get::<CapsuleRecord>()?.capsule_id());
    let what = || format!("{} holds no capsule", path.display());
    id.ok_or_else(|| CliError::no("not-a-capsule", what()).into())
}

async fn candidates(source: &Source, name: &str) -> anyhow::Result<NameMatches> {
    let received = get(source, &["api", "v1", "names", name], &[]).await;
    let received = received.map_err(|error| {
        if error.downcast_ref::<CliError>().is_some_and(|error| error.code == "not-found") {
            let what = format!("this log has no name lookup, and {name:?} is not an id");
            return CliError::failed("names-unsupported", what)
                .next("the 64 hex digits of its id")
                .into();
        }
        error
    })?;
    Ok(received.view)
}

/// The only match. None is a "no"; several are an error that lists them.
fn only(name: &str, found: NameMatches) -> Result<EntryView, CliError> {
    match found.statements.as_slice() {
        [] => Err(CliError::no("not-found", format!("the log knows nothing by the name {name}"))),
        [entry] if !found.is_cut => Ok(entry.clone()),
        several => {
            let mut lines = Printable::default();
            for entry in several {
                let known = entry.record.action_id.as_deref().unwrap_or(&entry.subject);
                let id = text::short(&entry.id.to_string());
                let EntryView { index, profile, issuer, .. } = entry;
                lines.line(printable!(
                    "  #{:<6} {}  {:<9} {}  {}",
                    index,
                    id,
                    profile,
                    issuer,
                    known
                ));
            }
            if found.is_cut {
                lines.line("  and more");
            }
            let what = format!(
                "{name} can mean {} statements{}",
                several.len(),
                if found.is_cut { " and more" } else { "" }
            );
            let next = "one of these numbers, with # in front, or more digits of an id";
            Err(CliError::failed("ambiguous", what).details(lines).next(next))
        }
    }
}

/// Whether a name is one of the record, or the whole id of its statement; an
/// index or the beginning of an id is neither.
fn names_record(entry: &EntryView, name: &str) -> bool {
    let record = &entry.record;
    let session = record.session.as_ref().map(|span| &span.session);
    let names = [&record.record_id, &record.action_id, &record.decision_id];
    let mut names = names.into_iter().flatten().chain(session);
    names.any(|one| one == name) || entry.id.to_string() == name
}

fn wrong_kind(entry: &EntryView, name: &str, wanted: &str) -> CliError {
    let id = text::short(&entry.id.to_string());
    let what = format!("{name} is not a {wanted}: #{} is {}, {id}", entry.index, entry.profile);
    let code = if wanted == "capsule" { "not-a-capsule" } else { "not-a-causal-record" };
    CliError::no(code, what)
}

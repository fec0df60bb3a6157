//! One way to name a thing: statement id or its first eight digits, `#6`,
//! `6`, capsule id, action id, session, subject; whatever was printed.
//!
//! In: what somebody typed. Out: the one statement it means. The log says
//! what a name can mean; more than one is an error that lists them.

use std::path::Path;

use serde::Deserialize;

use super::output::Out;
use super::search::{Source, ask, fetch_error_is_not_found};
use super::target::Target;
use super::{Answer, Stop, files};
use crate::envelope::SignedStatement;
use crate::profile::capsule::CapsuleRecord;
use crate::profile::capsule::SUBJECT_PREFIX;
use crate::profile::read_payload;
use crate::wire::digest::Digest;
use crate::wire::printable::{Printable, printable};
use crate::wire::text;

/// A statement that a name can mean.
#[derive(Clone, Deserialize)]
pub(super) struct Named {
    pub(super) id: String,
    index: u64,
    profile: String,
    #[serde(default)]
    issuer: String,
    #[serde(default)]
    subject: String,
    #[serde(default)]
    record: Recorded,
}

#[derive(Clone, Default, Deserialize)]
struct Recorded {
    record_id: Option<String>,
    action_id: Option<String>,
    decision_id: Option<String>,
    session: Option<Session>,
}

#[derive(Clone, Deserialize)]
struct Session {
    session: String,
}

#[derive(Deserialize)]
struct Page {
    statements: Vec<Named>,
    #[serde(default)]
    is_cut: bool,
}

/// The one statement that is meant, for a path under a log. A log of another
/// make looks up no names, but knows its statements by their ids.
pub(super) async fn statement(source: &Source, name: &str) -> anyhow::Result<String> {
    if name.starts_with("1.") {
        return Ok(name.to_owned());
    }
    match candidates(source, name).await {
        Ok(found) if found.statements.is_empty() && is_whole(name) => Ok(name.to_owned()),
        Err(_) if is_whole(name) => Ok(name.to_owned()),
        found => Ok(one(name, found?)?.id),
    }
}

/// What to ask a story by: the name itself where it is one of all that was
/// found, or the one statement it means.
pub(super) async fn story(source: &Source, name: &str) -> anyhow::Result<String> {
    let found = candidates(source, name).await?;
    if found.statements.iter().all(|one| one.has(name)) {
        return Ok(name.to_owned());
    }
    Ok(one(name, found)?.id)
}

/// The identity of a causal record.
pub(super) async fn causal(source: &Source, name: &str) -> anyhow::Result<String> {
    let found = candidates(source, name).await?;
    let is_own = |one: &Named| one.record.record_id.as_deref() == Some(name);
    if found.statements.is_empty() || found.statements.iter().any(is_own) {
        return Ok(name.to_owned());
    }
    let one = one(name, found)?;
    match (one.profile.as_str(), &one.record.record_id) {
        ("pacr", Some(id)) => Ok(id.clone()),
        _ => Err(one.is_no(name, "causal record").into()),
    }
}

/// The capsule that is to be superseded, by its capsule id. Where no log can
/// be asked, a whole capsule id is taken at its word.
pub(super) async fn superseded(
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
                "nobody could be asked whether {} is a capsule: {}",
                text::short(name),
                Printable::long(super::output::chain(&error))
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

/// The subject of the action that an outcome is about. A subject is taken at
/// its word: an outcome may be told before its action is logged.
pub(super) async fn acted_on(
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
        return Err(other.is_no(name, "capsule").into());
    }
    found.statements.dedup_by(|one, before| one.subject == before.subject);
    Ok(Some(one(name, found)?.subject))
}

/// Whether this is an id, or could be one.
fn is_whole(name: &str) -> bool {
    Digest::from_hex(name).is_some()
}

/// The one capsule among what was found; the same capsule twice is one.
fn capsule(name: &str, mut found: Page) -> anyhow::Result<String> {
    let other = found.statements.first().cloned();
    found.statements.retain(|one| one.profile == "capsule" && one.record.record_id.is_some());
    if let (Some(other), true) = (other, found.statements.is_empty()) {
        return Err(other.is_no(name, "capsule").into());
    }
    let mut seen = Vec::new();
    found.statements.retain(|one| {
        let is_new = !seen.contains(&one.record.record_id);
        seen.push(one.record.record_id.clone());
        is_new
    });
    Ok(one(name, found)?.record.record_id.unwrap_or_default())
}

/// The capsule id of a statement in a file.
fn in_file(path: &Path) -> anyhow::Result<String> {
    let statement = SignedStatement::parse_any_size(files::read(path)?)?;
    let read = statement.payload().map(|payload| read_payload(statement.header(), payload));
    let id = read.and_then(|read| read.get::<CapsuleRecord>()?.capsule_id());
    let what = || format!("{} holds no capsule", path.display());
    id.ok_or_else(|| Stop::no("not-a-capsule", what()).into())
}

async fn candidates(source: &Source, name: &str) -> anyhow::Result<Page> {
    let answer = ask(source, &["api", "v1", "names", name], &[]).await;
    let answer = answer.map_err(|error| {
        let stop = error.downcast_ref::<Stop>();
        if stop.is_some_and(fetch_error_is_not_found) {
            let what = format!("this log looks up no names; {name:?} is none it can be asked for");
            return Stop::failed("names-unsupported", what)
                .next("the 64 hex digits of its id")
                .into();
        }
        error
    })?;
    Ok(serde_json::from_value(answer)?)
}

/// Nothing is a "no"; more than one is a question that was not clear.
fn one(name: &str, page: Page) -> Result<Named, Stop> {
    match page.statements.as_slice() {
        [] => Err(Stop::no("not-found", format!("nothing here is called {name}"))),
        [one] if !page.is_cut => Ok(one.clone()),
        several => {
            let mut lines = Printable::default();
            several.iter().for_each(|one| lines.line(one.line()));
            if page.is_cut {
                lines.line("  and more");
            }
            let count = several.len();
            let what = format!(
                "{name} can mean {count} statements{}",
                if page.is_cut { " and more" } else { "" }
            );
            let next = "one of these numbers, with # in front, or more digits of an id";
            Err(Stop::failed("ambiguous", what).details(lines).next(next))
        }
    }
}

impl Named {
    /// Whether this is a name of the thing it records, and not of itself.
    fn has(&self, name: &str) -> bool {
        let Recorded { record_id, action_id, decision_id, session } = &self.record;
        let session = session.as_ref().map(|span| &span.session);
        let names = [record_id.as_ref(), action_id.as_ref(), decision_id.as_ref(), session];
        names.into_iter().flatten().any(|one| one == name) || self.id == name
    }

    fn line(&self) -> Printable {
        let known = self.record.action_id.as_deref().unwrap_or(&self.subject);
        let id = text::short(&self.id);
        printable!("  #{:<6} {}  {:<9} {}  {}", self.index, id, self.profile, self.issuer, known)
    }

    fn is_no(&self, name: &str, wanted: &str) -> Stop {
        let what = format!(
            "{name} is no {wanted}: #{} is {}, {}",
            self.index,
            self.profile,
            text::short(&self.id)
        );
        let code = if wanted == "capsule" { "not-a-capsule" } else { "not-a-causal-record" };
        Stop { answer: Answer::No, ..Stop::no(code, what) }
    }
}

//! Descriptions of events, as people and scripts write them.
//!
//! In: the JSON of a record, in which an Estimate may also be a number or
//! `[point, lower, upper]`, identity and predecessors may be left out, and the
//! payload may be given as `intervention`, `sim_real_corr` and `inner`. Out: a
//! complete record that breaks no rule, except possibly 6 and 7.

use super::PacrRecord;
use super::hashed::{Disclosure, SALT_BYTES};
use super::tag::{Kind, Tag};
use super::tuple::CausalId;
use super::tuple::SixTuple;
use crate::profile::finding::{Finding, Severity};
use crate::wire::digest::Digest;
use crate::wire::json::{self, Json};
use crate::wire::text;

/// Members that may replace `payload`.
const IN_PAYLOAD: &[&str] = &["intervention", "sim_real_corr", "inner"];

/// Placeholder for an identity that is still to be derived.
const UNNAMED: &str = "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF";

/// Makes the record of a description, with its warnings and notes.
pub fn describe(description: &[u8]) -> Result<(SixTuple, Vec<Finding>), Error> {
    let Described { tuple, is_named, flags } = read(description)?;
    Ok((named(tuple, is_named)?, flags))
}

/// The same with a hashed payload, and the disclosure that opens it. A derived
/// identity also comes from the hashed payload, so it reveals nothing more.
pub fn describe_hashed(
    description: &[u8],
    salt: &[u8; SALT_BYTES],
) -> Result<(SixTuple, Disclosure), Error> {
    let Described { mut tuple, is_named, .. } = read(description)?;
    let disclosure = tuple.hash_payload(salt).ok_or(wrong("/payload", "readable"))?;
    Ok((named(tuple, is_named)?, disclosure))
}

/// A description and the record it gives.
struct Described {
    tuple: SixTuple,
    is_named: bool,
    flags: Vec<Finding>,
}

fn read(description: &[u8]) -> Result<Described, Error> {
    let described = Json::read(description).map_err(Error::NotJson)?;
    let Json::Object(members) = described else {
        return Err(wrong("", "an object"));
    };
    let is_named = members.iter().any(|(name, _)| name == "id");
    let record = record(members)?;
    let (record, findings) = PacrRecord::of(&record, Digest::of(description), Vec::new());
    // An unknown member would be lost, so it is an error here.
    let (broken, flags): (Vec<_>, Vec<_>) = findings
        .into_iter()
        .partition(|f| f.severity == Severity::Error || f.code == "pacr-member-unknown");
    match record.tuple {
        Some(tuple) if broken.is_empty() => Ok(Described { tuple, is_named, flags }),
        _ => Err(Error::Broken { findings: broken }),
    }
}

fn named(mut tuple: SixTuple, is_named: bool) -> Result<SixTuple, Error> {
    if !is_named {
        tuple.id = derived(&tuple)?;
    }
    Ok(tuple)
}

/// The same description is the same event: its id is derived from its content.
fn derived(tuple: &SixTuple) -> Result<CausalId, Error> {
    let digest = Digest::of_parts(&[b"capstan-pacr-id-v1\0", &tuple.to_cbor()]);
    let id = digest.as_bytes().first_chunk::<16>().and_then(|half| CausalId::from_bytes(half));
    id.filter(|id| !id.is_sentinel()).ok_or(wrong("/id", "given"))
}

fn record(members: Vec<(String, Json)>) -> Result<Json, Error> {
    let (given, mut record): (Vec<_>, Vec<_>) =
        members.into_iter().partition(|(name, _)| IN_PAYLOAD.contains(&name.as_str()));
    let has = |record: &[(String, Json)], name: &str| record.iter().any(|(n, _)| n == name);
    for (name, default) in [("id", Json::from(UNNAMED)), ("predecessors", Vec::new().into())] {
        if !has(&record, name) {
            record.push((name.to_owned(), default));
        }
    }
    match (has(&record, "payload"), given.is_empty()) {
        (true, false) => return Err(wrong("/payload", "given once: whole, or in its parts")),
        (true, true) => {}
        (false, _) => record.push(("payload".to_owned(), payload(&Json::Object(given))?)),
    }
    for (name, value) in &mut record {
        match (name.as_str(), value) {
            ("landauer_cost", value) => spread(value),
            ("resources" | "cognitive_split", Json::Object(group)) => {
                group.iter_mut().for_each(|(_, value)| spread(value));
            }
            _ => {}
        }
    }
    Ok(Json::Object(record))
}

/// The payload from its parts; without any, an empty one.
fn payload(given: &Json) -> Result<Json, Error> {
    if given.members().is_some_and(<[_]>::is_empty) {
        return Ok("".into());
    }
    let text_of = |name: &str| match given.get(name) {
        None => Ok(None),
        Some(value) => value.text().map(Some).ok_or(wrong(&format!("/{name}"), "a string")),
    };
    let name = text_of("intervention")?.unwrap_or(Kind::Observe.name());
    let kind: Kind = name.parse().map_err(|_| {
        let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        wrong("/intervention", &format!("one of {}", names.join(", ")))
    })?;
    let sim_real_corr = match given.get("sim_real_corr") {
        None => None,
        Some(Json::Number(token)) => token.parse::<f64>().ok(),
        Some(_) => return Err(wrong("/sim_real_corr", "a number")),
    };
    if (kind == Kind::Counterfactual) != sim_real_corr.is_some() {
        return Err(wrong("/sim_real_corr", "given for a counterfactual, and only for one"));
    }
    let inner = text_of("inner")?.unwrap_or_default().as_bytes();
    Ok(text::base64(&Tag { kind, sim_real_corr, inner }.write()).into())
}

/// Expands a number, or an array of three, to an Estimate object.
fn spread(value: &mut Json) {
    let [point, lower, upper] = match &*value {
        Json::Number(_) => [&*value, &*value, &*value],
        Json::Array(items) => match items.as_slice() {
            [point, lower, upper] => [point, lower, upper],
            _ => return,
        },
        _ => return,
    };
    let members = [("point", point), ("lower", lower), ("upper", upper)];
    *value = Json::object(members.map(|(name, value)| (name, value.clone())));
}

fn wrong(at: &str, wanted: &str) -> Error {
    Error::Wrong { at: at.to_owned(), wanted: wanted.to_owned() }
}

/// Why a description does not give a record.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The record would violate the draft.
    #[error("{}", listed(findings))]
    Broken { findings: Vec<Finding> },
    #[error("the description is not JSON")]
    NotJson(#[source] json::Error),
    /// The member at a JSON pointer is wrong.
    #[error("{at:?} must be {wanted}")]
    Wrong { at: String, wanted: String },
}

impl Error {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Broken { .. } => "pacr-record-broken",
            Self::NotJson(e) => e.code(),
            Self::Wrong { .. } => "pacr-description-wrong",
        }
    }
}

fn listed(findings: &[Finding]) -> String {
    let line = |f: &Finding| format!("{} at {:?}: {}", f.code, f.at, f.detail);
    findings.iter().map(line).collect::<Vec<_>>().join("; ")
}

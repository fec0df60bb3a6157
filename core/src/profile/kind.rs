//! What a kind of record is: one descriptor each, from which reading, policy
//! conditions, index, reports and the checks of the documentation work.
//!
//! A new kind is a directory or file with a `KIND` of its own, and one line in
//! `KINDS`.

use std::any::Any;
use std::fmt;

use serde_json::Value;

use super::finding::Finding;
use super::summary::Summary;
use crate::envelope::{ContentType, Header, RulesVersion};

/// A kind of record.
pub struct RecordKind {
    /// Its name in policies, queries, reports and metrics.
    pub name: &'static str,
    /// What the log does with its statements.
    pub role: Role,
    /// The content types that name it.
    pub content_types: &'static [&'static str],
    /// Reads a payload of one of these content types. It never refuses.
    pub read: fn(&Header, &[u8]) -> Reading,
    /// Every code its reader gives. A code that is here stays here: a logged
    /// policy that names it must still parse.
    pub codes: &'static [Codes],
    /// Codes of findings that take more than a statement to make. No policy
    /// sees these.
    pub later_codes: &'static [&'static str],
    /// The page that documents it.
    pub page: &'static str,
}

/// A record, and what its reader noticed, in the order of the checks.
pub type Reading = (Box<dyn Record>, Vec<Finding>);

/// What the log does with the statements of a kind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// The log governs itself by them; no policy decides about them.
    Control,
    /// They are not interpreted.
    Opaque,
    /// They record something, and are summarised.
    Record,
}

/// Finding codes, and the first rules version under which policies see them.
/// What no version looked for when an entry was logged must not change the
/// decision about it, so a new check needs a new code under a new version.
#[derive(Clone, Copy, Debug)]
pub struct Codes {
    /// The first version.
    pub since: RulesVersion,
    /// The codes.
    pub list: &'static [&'static str],
}

impl Codes {
    /// Codes that every version sees.
    pub const fn new(list: &'static [&'static str]) -> Self {
        Self { since: RulesVersion::V1, list }
    }
}

/// The content of a payload, as one kind reads it. Code that is about one
/// format gets the concrete type from `Read::get`.
pub trait Record: Any + fmt::Debug + Send + Sync {
    /// What policy, index and readers need to know.
    fn summary(&self) -> Summary;

    /// Facts of this kind alone, for people: what `inspect` shows besides the
    /// summary.
    fn fields(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// Sizes that the operator may limit.
    fn sizes(&self) -> Vec<Size> {
        Vec::new()
    }
}

/// A size that a setting limits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Size {
    /// What is counted, in the plural.
    pub what: &'static str,
    /// The setting.
    pub setting: &'static str,
    /// How many there are.
    pub count: usize,
}

/// The content type of a payload, when it is a media type.
pub(super) fn media_type(header: &Header) -> Option<&str> {
    match header.content_type.as_ref()? {
        ContentType::Media(name) => Some(name),
        _ => None,
    }
}

/// For readers of one kind: a record of a concrete type as any record.
pub(super) fn boxed<R: Record>((record, findings): (R, Vec<Finding>)) -> Reading {
    (Box::new(record), findings)
}

impl fmt::Debug for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

//! What a reader noticed.

/// How much a finding weighs. A policy decides what follows.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Probably not what the producer meant.
    Warning,
    /// The record breaks its profile.
    Error,
}

/// One observation about a record.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// A stable kebab-case word.
    pub code: &'static str,
    /// How much it weighs.
    pub severity: Severity,
    /// The label or JSON pointer it is about.
    pub at: String,
    /// A sentence for people.
    pub detail: String,
}

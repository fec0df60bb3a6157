//! Sessions: whether the batches of one follow one another without a gap.

use std::collections::BTreeMap;

use super::{Entry, Oddity};
use crate::profile::Severity;
use crate::profile::session::{Continuity, Head, continuity};

/// The logged part of one session's event chain.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Session {
    /// Its name, which is its issuer's own.
    pub session: String,
    /// Who signed its events.
    pub issuer: String,
    /// The statements that hold its events, in log order.
    pub statements: Vec<u64>,
    /// Where the chain ends; none if it never began.
    pub head: Option<Head>,
    /// Whether every event from the first to the head is logged, once.
    pub is_gap_free: bool,
}

/// Follows every session through the records, which are in log order. What
/// another issuer logs under the same name is another session.
pub(super) fn follow(records: &[Entry], oddities: &mut Vec<Oddity>) -> Vec<Session> {
    let mut sessions: BTreeMap<(&str, &str), Session> = BTreeMap::new();
    for record in records {
        let Some(span) = &record.summary.session else { continue };
        let key = (span.session.as_str(), record.issuer.as_str());
        let session = sessions.entry(key).or_insert_with(|| Session {
            session: span.session.clone(),
            issuer: record.issuer.clone(),
            statements: Vec::new(),
            head: None,
            is_gap_free: true,
        });
        session.statements.push(record.index);
        let how = continuity(session.head.as_ref(), span);
        if let Some((code, severity, what)) = odd(how) {
            session.is_gap_free &= severity < Severity::Error;
            let detail = format!("events {} to {} {what}", span.first, span.last);
            oddities.push(Oddity { index: record.index, code, severity, detail });
        }
        session.head = how.head_after(span).or(session.head.take());
    }
    sessions.into_values().collect()
}

fn odd(how: Continuity) -> Option<(&'static str, Severity, &'static str)> {
    Some(match how {
        Continuity::Extends | Continuity::New => return None,
        Continuity::Repeats => ("session_repeated", Severity::Info, "are logged already"),
        Continuity::Gap => ("session_gap", Severity::Error, "do not follow the last one logged"),
        Continuity::Fork => ("session_fork", Severity::Error, "are another history of the session"),
        Continuity::NotGenesis => {
            ("session_not_begun", Severity::Error, "are of a session whose beginning is missing")
        }
        Continuity::Overlaps => {
            ("session_overlap", Severity::Error, "begin before the last one logged")
        }
    })
}

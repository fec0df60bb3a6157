//! Outcomes of actions, reported later (3.3).
//!
//! The subject joins an outcome to its action. Neither operator nor action
//! id is escaped in it, so two actions can share one; then nothing but the
//! decision id or the external reference distinguishes them. Where no action has
//! the subject, the external reference alone may identify one.

use std::collections::BTreeSet;

use strum::IntoStaticStr;

use super::{Anomaly, Entry};
use crate::profile::Severity;

/// Which action an outcome is about.
#[derive(Clone, Debug, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "kebab-case")]
pub enum Correlation {
    /// The records of one action, by their index.
    About(Vec<u64>),
    /// Records of several actions would fit.
    Ambiguous(Vec<u64>),
    /// No record here fits.
    Nothing,
}

impl Correlation {
    /// Its name in reports and the API.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// The records that fit.
    pub fn records(&self) -> &[u64] {
        match self {
            Self::About(records) | Self::Ambiguous(records) => records,
            Self::Nothing => &[],
        }
    }
}

pub(super) fn correlate(
    outcomes: Vec<Entry>,
    records: &[Entry],
    anomalies: &mut Vec<Anomaly>,
) -> Vec<(Entry, Correlation)> {
    let join = |outcome: Entry| {
        let correlation = of(&outcome, records);
        anomalies.extend(odd(&outcome, &correlation));
        (outcome, correlation)
    };
    outcomes.into_iter().map(join).collect()
}

fn of(outcome: &Entry, records: &[Entry]) -> Correlation {
    // A statement whose header calls it an action is no outcome (3.3).
    if !outcome.is_bound {
        return Correlation::Nothing;
    }
    let own = &outcome.summary;
    let earlier =
        |record: &&Entry| record.index < outcome.index && record.summary.action_id.is_some();
    let mut fitting: Vec<&Entry> =
        records.iter().filter(earlier).filter(|r| r.subject == outcome.subject).collect();
    if actions(&fitting) > 1
        && let Some(decision) = &own.decision_id
    {
        fitting.retain(|record| record.summary.decision_id.as_ref() == Some(decision));
    }
    let referred = |record: &&Entry| {
        let other = own.operator.is_some() && own.operator != record.summary.operator;
        !other && own.external_ref.is_some() && own.external_ref == record.summary.external_ref
    };
    match actions(&fitting) {
        0 => fitting = records.iter().filter(earlier).filter(referred).collect(),
        1 => {}
        _ if fitting.iter().any(referred) => fitting.retain(referred),
        _ => {}
    }
    let found = fitting.iter().map(|record| record.index).collect();
    match actions(&fitting) {
        0 => Correlation::Nothing,
        1 => Correlation::About(found),
        _ => Correlation::Ambiguous(found),
    }
}

/// Different actions: pairs of operator and action id.
pub(super) fn actions(records: &[&Entry]) -> usize {
    let pair =
        |record: &&Entry| (record.summary.operator.clone(), record.summary.action_id.clone());
    records.iter().map(pair).collect::<BTreeSet<_>>().len()
}

fn odd(outcome: &Entry, correlation: &Correlation) -> Option<Anomaly> {
    if !outcome.is_bound {
        let detail = "its header does not call it an outcome: it is joined to nothing".to_owned();
        let (code, severity) = ("outcome_misdeclared", Severity::Error);
        return Some(Anomaly { index: outcome.index, code, severity, detail });
    }
    let (code, detail) = match correlation {
        Correlation::About(_) => return None,
        Correlation::Ambiguous(found) => {
            ("outcome_ambiguous", format!("records {found:?} of several actions fit it"))
        }
        Correlation::Nothing => (
            "outcome_without_action",
            "no earlier record has its subject or its external reference".to_owned(),
        ),
    };
    Some(Anomaly { index: outcome.index, code, severity: Severity::Warning, detail })
}

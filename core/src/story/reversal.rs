//! Effects that were reverted.
//!
//! A record or an outcome whose effect is `reverted` identifies what it reverts
//! by its chain, its external reference or its decision (5.2), an outcome also
//! by its subject. The first of these that finds a confirmed effect counts. If
//! it fits several actions, it is ambiguous.

use std::collections::{BTreeMap, BTreeSet};

use super::outcome::actions;
use super::{Anomaly, Correlation, Entry};
use crate::profile::Severity;

/// Every reversal, by its index, and the confirmed records it reverts.
pub(super) fn find(
    records: &[Entry],
    outcomes: &[(Entry, Correlation)],
    anomalies: &mut Vec<Anomaly>,
) -> Vec<(u64, Correlation)> {
    let mut seen = BTreeSet::new();
    // The same record logged again is not a second reversal.
    let records: Vec<&Entry> =
        records.iter().filter(|r| r.record_id().is_none_or(|id| seen.insert(id))).collect();
    let confirmed: Vec<&Entry> =
        records.iter().copied().filter(|record| has_status(record, "confirmed")).collect();
    let outcomes = outcomes.iter().filter(|(outcome, _)| outcome.is_bound);
    let outcomes = outcomes.map(|(outcome, about)| (outcome, about.records()));
    let mut reversals: Vec<(&Entry, &[u64])> =
        records.into_iter().map(|record| (record, [].as_slice())).chain(outcomes).collect();
    reversals.retain(|(entry, _)| has_status(entry, "reverted"));
    reversals.sort_by_key(|(entry, _)| entry.index);
    let mut reverted = BTreeMap::new();
    let mut found = Vec::new();
    for (entry, about) in reversals {
        let correlation = of(entry, about, &confirmed);
        anomalies.extend(odd(entry, &correlation, &mut reverted));
        anomalies.extend(stranger(entry, &correlation, &confirmed));
        found.push((entry.index, correlation));
    }
    found
}

fn has_status(entry: &Entry, status: &str) -> bool {
    entry.summary.effect_status.as_deref() == Some(status)
}

fn of(entry: &Entry, about: &[u64], confirmed: &[&Entry]) -> Correlation {
    let own = &entry.summary;
    let parent = own.parent.as_ref().map(|parent| &parent.record_id);
    let same = |a: &Option<String>, b: &Option<String>| a.is_some() && a == b;
    let ways: [&dyn Fn(&Entry) -> bool; 4] = [
        &|one| parent.is_some() && one.record_id() == parent,
        &|one| about.contains(&one.index),
        &|one| same(&own.external_ref, &one.summary.external_ref),
        &|one| same(&own.decision_id, &one.summary.decision_id),
    ];
    // Another tenant's reference is another reference.
    let fits = |one: &Entry| {
        let other = own.operator.is_some() && own.operator != one.summary.operator;
        one.index < entry.index && !other
    };
    for way in ways {
        let fitting: Vec<&Entry> =
            confirmed.iter().copied().filter(|one| fits(one) && way(one)).collect();
        let found = fitting.iter().map(|one| one.index).collect();
        match actions(&fitting) {
            0 => {}
            1 => return Correlation::About(found),
            _ => return Correlation::Ambiguous(found),
        }
    }
    Correlation::Nothing
}

/// Anybody can log a reversal of another's action.
fn stranger(entry: &Entry, correlation: &Correlation, confirmed: &[&Entry]) -> Option<Anomaly> {
    let Correlation::About(found) = correlation else { return None };
    let action = confirmed.iter().find(|one| found.contains(&one.index))?;
    (entry.issuer != action.authority()).then(|| {
        let (issuer, index) = (entry.signed_by(), action.index);
        let detail = format!("{issuer} says so, who is not the agent of #{index}");
        let (code, severity) = ("reverted_by_other", Severity::Warning);
        Anomaly { index: entry.index, code, severity, detail }
    })
}

fn odd(
    entry: &Entry,
    correlation: &Correlation,
    reverted: &mut BTreeMap<u64, u64>,
) -> Option<Anomaly> {
    let (code, detail) = match correlation {
        Correlation::Nothing => {
            ("reverted_without_confirmed", "it reverts what no earlier record confirms".to_owned())
        }
        Correlation::Ambiguous(found) => {
            ("reverted_ambiguous", format!("it could revert any of {found:?}, several actions"))
        }
        Correlation::About(found) => {
            let earlier = found.iter().find_map(|one| reverted.get(one).copied());
            found.iter().for_each(|one| {
                reverted.entry(*one).or_insert(entry.index);
            });
            ("reverted_again", format!("#{} reverted the same effect earlier", earlier?))
        }
    };
    Some(Anomaly { index: entry.index, code, severity: Severity::Warning, detail })
}

//! The checks of signals. What can be computed is computed, what the caller
//! asserts is marked as asserted, and what is malformed fails.

use super::checks::{Found, Steps, failed, passed, steps, unknown};
use super::{Outcome, Request, Source};
use crate::profile::pca::inputs::Signal;
use crate::wire::digest::Digest;

fn asserted(outcome: Outcome, request: &Request<'_>, detail: impl Into<String>) -> Found {
    let detail = match request.observations.asserted_by() {
        None => detail.into(),
        Some(who) => format!("{}, asserted by {who}", detail.into()),
    };
    (outcome, Source::Asserted, detail)
}

/// A flag that must not be true.
pub(super) fn tripwire(request: &Request<'_>, name: &str) -> Found {
    match request.observations.flag(name) {
        Signal::Absent => unknown(format!("{name} was not observed")),
        Signal::Malformed(detail) => failed(detail),
        Signal::Given(true) => asserted(Outcome::Failed, request, format!("{name} is true")),
        Signal::Given(false) => asserted(Outcome::Passed, request, format!("{name} is false")),
    }
}

/// A number that must not exceed another. One without the other is a mistake.
pub(super) fn at_most(request: &Request<'_>, name: &str, limit: &str) -> Found {
    let (value, most) = (request.observations.number(name), request.observations.number(limit));
    match (value, most) {
        (Signal::Absent, Signal::Absent) => unknown(format!("{name} was not observed")),
        (Signal::Malformed(detail), _) | (_, Signal::Malformed(detail)) => failed(detail),
        (Signal::Absent, _) => failed(format!("{limit} without {name}")),
        (_, Signal::Absent) => failed(format!("{name} without {limit}")),
        (Signal::Given(value), Signal::Given(most)) => {
            let is_above = value > most;
            let outcome = if is_above { Outcome::Failed } else { Outcome::Passed };
            let relation = if is_above { "above" } else { "within" };
            asserted(outcome, request, format!("{name} {value} is {relation} {limit} {most}"))
        }
    }
}

/// State digests are compared if given. The flag fails the check if it says
/// drift, and otherwise counts only without digests.
pub(super) fn toctou(request: &Request<'_>) -> Found {
    let observed = request.observations.digest("observed_state_digest");
    let flag = match tripwire(request, "toctou_drift") {
        found @ (Outcome::Failed, ..) => return found,
        other => other,
    };
    match (planned_state(request), observed) {
        (Signal::Malformed(detail), _) | (_, Signal::Malformed(detail)) => failed(detail),
        (Signal::Given(planned), Signal::Given(observed)) if planned == observed => {
            passed("the observed state is the planned one")
        }
        (Signal::Given(_), Signal::Given(_)) => failed("the observed state is not the planned one"),
        (Signal::Absent, Signal::Given(_)) => failed("observed_state_digest without a planned one"),
        (_, Signal::Absent) if request.observations.has("planned_state_digest") => {
            failed("planned_state_digest without an observed one")
        }
        (_, Signal::Absent) => flag,
    }
}

/// The planned state: stated, or that of the first step; both must agree.
fn planned_state(request: &Request<'_>) -> Signal<Digest> {
    let first = match request.observations.step_inputs() {
        Signal::Given(inputs) => inputs.first().map(|inputs| inputs.state),
        _ => None,
    };
    match (request.observations.digest("planned_state_digest"), first) {
        (Signal::Absent, Some(state)) => Signal::Given(state),
        (Signal::Given(stated), Some(state)) if stated != state => {
            Signal::Malformed("planned_state_digest is not the state of the first step".to_owned())
        }
        (stated, _) => stated,
    }
}

/// Steps and proofs are checked against the root if given. The flag fails the
/// check if it is false, and otherwise counts only without steps and proofs.
pub(super) fn merkle(request: &Request<'_>) -> Found {
    let flag = request.observations.flag("merkle_ok");
    match &flag {
        Signal::Malformed(detail) => return failed(detail.clone()),
        Signal::Given(false) => {
            return asserted(Outcome::Failed, request, "merkle_ok is false");
        }
        _ => {}
    }
    let proofs = match request.observations.merkle_proofs() {
        Signal::Malformed(detail) => return failed(detail),
        Signal::Absent => Vec::new(),
        Signal::Given(proofs) => proofs,
    };
    let Some(root) = request.certificate.merkle_root() else {
        return match proofs.is_empty() {
            true => unknown("the certificate has no Merkle root"),
            false => failed("there are Merkle proofs, but the certificate has no root"),
        };
    };
    let rule = match request.certificate.merkle_rule() {
        Ok(rule) => rule,
        Err(detail) => return failed(detail),
    };
    let leaves = u64::try_from(request.certificate.steps().len()).unwrap_or(u64::MAX);
    for proof in &proofs {
        if let Err(detail) = rule.check(proof, &root, leaves) {
            return failed(format!("step {}: {detail} ({})", proof.index, rule.name()));
        }
    }
    match (steps(request), flag) {
        (Steps::Wrong(detail), _) => failed(detail),
        (Steps::Known { digests, .. }, _) if rule.root(&digests) != root => {
            failed(format!("the steps lead to another root under {}", rule.name()))
        }
        (Steps::Known { .. }, _) => passed(format!("recomputed under {}", rule.name())),
        (Steps::Absent, _) if !proofs.is_empty() => {
            passed(format!("{} proofs under {}", proofs.len(), rule.name()))
        }
        (Steps::Absent, Signal::Given(_)) => {
            asserted(Outcome::Passed, request, "merkle_ok is true")
        }
        (Steps::Absent, _) => unknown("neither steps nor proofs were given"),
    }
}

//! The computed checks: inputs, integrity, constraints, plan, time.

use super::{Check, Checked, Outcome, Request, Source, signals};
use crate::profile::pca::digest::{plan_digest, step_digest};
use crate::profile::pca::inputs::Signal;
use crate::profile::pca::shape::{Moment, unfit};
use crate::wire::digest::Digest;
use crate::wire::jcs::Suite;

/// The result of a check.
pub(super) type Found = (Outcome, Source, String);

pub(super) fn passed(detail: impl Into<String>) -> Found {
    (Outcome::Passed, Source::Computed, detail.into())
}

pub(super) fn failed(detail: impl Into<String>) -> Found {
    (Outcome::Failed, Source::Computed, detail.into())
}

pub(super) fn unknown(detail: impl Into<String>) -> Found {
    (Outcome::Unknown, Source::Absent, detail.into())
}

/// Runs one check; that of the nonce is `replay`.
pub(super) fn run(check: Check, request: &Request<'_>) -> Checked {
    let (outcome, source, detail) = match check {
        Check::Inputs => inputs(request),
        Check::Replay => unknown("no memory of nonces"),
        Check::PcDigest => pc_digest(request),
        Check::ConstraintsVersion => constraints_version(request),
        Check::ConstraintsDigest => constraints_digest(request),
        Check::Plan => plan(request),
        Check::EffectiveTime => effective_time(request),
        Check::Toctou => signals::toctou(request),
        Check::Conflict => signals::tripwire(request, "conflict"),
        Check::Merkle => signals::merkle(request),
        Check::Brs => signals::at_most(request, "brs_score", "brs_threshold"),
        Check::Ood => signals::tripwire(request, "ood"),
        Check::Disclosure => signals::at_most(request, "disclosure_used", "disclosure_budget"),
    };
    Checked { check, outcome, source, detail }
}

pub(super) fn replay(has_memory: bool, nonce: Option<&str>, is_burned: Option<bool>) -> Checked {
    let (outcome, source, detail) = match (has_memory, nonce, is_burned) {
        (_, None, _) => failed("the certificate has no nonce"),
        (false, _, _) => unknown("no memory of nonces"),
        (true, _, Some(false)) => passed("the nonce is fresh"),
        (true, _, _) => failed("the nonce was used"),
    };
    Checked { check: Check::Replay, outcome, source, detail }
}

fn inputs(request: &Request<'_>) -> Found {
    let constraints = request.constraints.map(|c| ("constraints", c.findings()));
    let parts = [
        Some(("certificate", request.certificate.findings())),
        constraints,
        Some(("observations", request.observations.findings())),
    ];
    let wrong: Vec<String> = parts
        .into_iter()
        .flatten()
        .flat_map(|(part, findings)| {
            unfit(findings).map(move |f| format!("{part}{}: {} ({})", f.at, f.detail, f.code))
        })
        .collect();
    if wrong.is_empty() { passed("as the schemas demand") } else { failed(wrong.join("; ")) }
}

/// The suite under which the certificate has the expected digest.
pub(super) fn suite(request: &Request<'_>) -> Option<Suite> {
    let Signal::Given(expected) = request.observations.digest("expected_pc_digest") else {
        return None;
    };
    let digests = [request.certificate.pc_digest(), request.certificate.second_digest()];
    let found = digests.into_iter().flatten().find(|own| own.hex() == expected.to_string());
    found.map(|digest| digest.suite())
}

/// Fails without an expected digest to compare with.
fn pc_digest(request: &Request<'_>) -> Found {
    let expected = request.observations.digest("expected_pc_digest");
    match (expected, suite(request)) {
        (Signal::Absent, _) => failed("no expected_pc_digest was given"),
        (Signal::Malformed(detail), _) => failed(detail),
        (Signal::Given(_), Some(suite)) => passed(format!("equal under {}", suite.name())),
        (Signal::Given(_), None) => match request.certificate.pc_digest() {
            Some(own) => failed(format!("the certificate has the digest {own}")),
            None => failed("the certificate has no digest"),
        },
    }
}

fn constraints_version(request: &Request<'_>) -> Found {
    let Some(named) = request.certificate.text("constraints_version_id") else {
        return failed("the certificate names no constraints");
    };
    let observed = match request.observations.text("constraints_version_id") {
        Signal::Malformed(detail) => return failed(detail),
        Signal::Absent => None,
        Signal::Given(version) => Some(version),
    };
    let document = request.constraints.map(|c| c.version_id().unwrap_or_default().to_owned());
    let in_force: Vec<String> = document.into_iter().chain(observed).collect();
    match in_force.iter().find(|version| *version != named) {
        _ if in_force.is_empty() => failed("it is not known which constraints are in force"),
        Some(other) => {
            failed(format!("{other:?} is in force, but the certificate names {named:?}"))
        }
        None => passed(format!("{named:?}")),
    }
}

fn constraints_digest(request: &Request<'_>) -> Found {
    let Some(named) = request.certificate.text("constraints_digest") else {
        return failed("the certificate names no constraints");
    };
    let observed = match request.observations.digest("constraints_digest") {
        Signal::Malformed(detail) => return failed(detail),
        Signal::Absent => None,
        Signal::Given(digest) => Some(digest.to_string()),
    };
    if observed.as_deref().is_some_and(|observed| observed != named) {
        return failed("the digest in force is not that of the certificate");
    }
    match request.constraints.map(|constraints| constraints.digest()) {
        Some(Err(detail)) => failed(detail),
        Some(Ok(digest)) if digest.hex() != named => {
            failed("the constraints are not those of the certificate")
        }
        Some(Ok(digest)) => passed(format!("recomputed under {}", digest.suite().name())),
        None if observed.is_some() => {
            let detail = "equal to the observed digest in force; the constraints were not given";
            (Outcome::Passed, Source::Asserted, detail.to_owned())
        }
        None => failed("it is not known which constraints are in force"),
    }
}

/// The digests of the steps.
pub(super) enum Steps {
    Absent,
    Wrong(String),
    /// Bound means that they were computed from the steps themselves.
    Known {
        digests: Vec<Digest>,
        are_bound: bool,
    },
}

pub(super) fn steps(request: &Request<'_>) -> Steps {
    let count = request.certificate.steps().len();
    let stated = match request.observations.step_digests() {
        Signal::Malformed(detail) => return Steps::Wrong(detail),
        Signal::Absent => None,
        Signal::Given(digests) => Some(digests),
    };
    let computed = match computed(request) {
        Some(Err(detail)) => return Steps::Wrong(detail),
        Some(Ok(digests)) => Some(digests),
        None => None,
    };
    match (computed, stated) {
        (Some(computed), Some(stated)) if computed != stated => {
            Steps::Wrong("step_digests are not those of the steps".to_owned())
        }
        (Some(digests), _) => Steps::Known { digests, are_bound: true },
        (None, Some(digests)) if digests.len() != count => {
            Steps::Wrong(format!("{} step_digests for {count} steps", digests.len()))
        }
        (None, Some(digests)) => Steps::Known { digests, are_bound: false },
        (None, None) => Steps::Absent,
    }
}

/// Computed from the inputs of each step, under the suite that gives the plan
/// digest.
fn computed(request: &Request<'_>) -> Option<Result<Vec<Digest>, String>> {
    let steps = request.certificate.steps();
    let inputs = match request.observations.step_inputs() {
        Signal::Absent => return None,
        Signal::Malformed(detail) => return Some(Err(detail)),
        Signal::Given(inputs) if inputs.len() != steps.len() => {
            return Some(Err(format!("{} step_inputs for {} steps", inputs.len(), steps.len())));
        }
        Signal::Given(inputs) => inputs,
    };
    let constraints = request.certificate.text("constraints_digest").unwrap_or_default();
    let under = |suite| -> Option<Vec<Digest>> {
        let pairs = inputs.iter().zip(steps);
        let digests = pairs.map(|(inputs, action)| {
            let digest = step_digest(suite, inputs, constraints, action).ok()?;
            Digest::from_hex(&digest.hex())
        });
        digests.collect()
    };
    let candidates: Vec<Vec<Digest>> =
        [Suite::PcaV1, Suite::PcaPython].into_iter().filter_map(under).collect();
    let fitting = candidates.iter().find(|digests| gives_plan(request, digests));
    let found = fitting.or(candidates.first()).cloned();
    Some(found.ok_or_else(|| "a step has no canonical form".to_owned()))
}

fn gives_plan(request: &Request<'_>, digests: &[Digest]) -> bool {
    let plan = plan_digest(Suite::PcaV1, digests).map(|plan| plan.hex());
    plan.ok().as_deref() == request.certificate.text("plan_digest")
}

fn plan(request: &Request<'_>) -> Found {
    match steps(request) {
        Steps::Absent => unknown("plan_unverified: neither step_inputs nor step_digests given"),
        Steps::Wrong(detail) => failed(detail),
        Steps::Known { digests, .. } if !gives_plan(request, &digests) => {
            failed("the steps do not give the plan digest")
        }
        Steps::Known { are_bound: true, .. } => passed("recomputed from the steps"),
        Steps::Known { are_bound: false, .. } => {
            let detail = "recomputed from the given step digests; steps_unbound: they were not \
                          compared with the steps";
            (Outcome::Passed, Source::Asserted, detail.to_owned())
        }
    }
}

fn effective_time(request: &Request<'_>) -> Found {
    let now = match request.observations.text("now") {
        Signal::Absent => return failed("no `now` was given"),
        Signal::Malformed(detail) => return failed(detail),
        Signal::Given(now) => now,
    };
    let Some(moment) = Moment::parse(&now) else {
        return failed(format!("now is {now:?}, not an RFC 3339 time with an offset"));
    };
    let certificate = ("certificate", request.certificate.window());
    let constraints = request.constraints.map(|c| ("constraints", c.window()));
    for (whose, window) in std::iter::once(certificate).chain(constraints) {
        match window {
            None => return failed(format!("the effective_time of the {whose} cannot be read")),
            Some(window) if window.is_inverted() => {
                return failed(format!("the effective_time of the {whose} ends before it begins"));
            }
            Some(window) if !window.contains(moment) => {
                return failed(format!("{now} is outside the effective_time of the {whose}"));
            }
            Some(_) => {}
        }
    }
    passed(format!("{now} is within the effective_time"))
}

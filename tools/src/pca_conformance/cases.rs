//! Our own T1 to T13, at level Gold: everything is observed, one thing is
//! wrong.

use capstan::profile::pca::{
    Decision, Demand, Label, Level, Nonces, Observations, PcaCertificateRecord, ReasonCode,
    Request, Verdict, pc_digest,
};
use capstan::wire::jcs::{Error, Suite};
use capstan::wire::json::Json;

use super::fixture::{Fixture, set, unset};
use super::suite::{CaseResult, run, told};

/// The certificate of T13 in two spellings, and the digest that a program of
/// a few lines in another language gave it.
const T13: [&str; 2] = [include_str!("t13_a.json"), include_str!("t13_b.json")];
const T13_DIGEST: &str = "e75a99eac80b894e7abf0d39be0b3ffa29118668e8cdacfde9029c93d9f052ce";

type Case = (u8, &'static str, ReasonCode, fn(&mut Fixture));

/// A change to the fixture, and the reason it has to give.
const CASES: [Case; 14] = [
    (2, "domain separation: digest under another label", ReasonCode::IntegrityMismatch, |f| {
        let wrong = Label::Action.digest(Suite::PcaV1, &f.certificate);
        set(
            &mut f.observations,
            "expected_pc_digest",
            wrong.map_or_else(|e| e.to_string(), |d| d.hex()),
        );
    }),
    (3, "constraints: other payload", ReasonCode::IntegrityMismatch, |f| {
        set(&mut f.constraints, "payload", Json::object([("most", Json::from(9999))]));
    }),
    (4, "reason stability: other version, asked again", ReasonCode::IntegrityMismatch, |f| {
        set(&mut f.constraints, "version_id", "limits-5");
    }),
    (5, "state drift, computed", ReasonCode::Toctou, |f| {
        let other = capstan::wire::digest::Digest::of(b"another state").to_string();
        set(&mut f.observations, "observed_state_digest", other);
    }),
    (6, "a nanosecond too late", ReasonCode::EffectiveTime, |f| {
        set(&mut f.observations, "now", "2026-04-30T23:59:59.000000001Z");
    }),
    (6, "the last moment", ReasonCode::Ok, |f| {
        set(&mut f.observations, "now", "2026-05-01T01:59:59+02:00");
    }),
    (6, "a time without offset", ReasonCode::EffectiveTime, |f| {
        set(&mut f.observations, "now", "2026-04-10T12:00:00");
    }),
    (8, "conflict", ReasonCode::Conflict, |f| set(&mut f.observations, "conflict", true)),
    (9, "a proof of another step", ReasonCode::MerkleProof, |f| {
        let mut proof = f.proof(1);
        set(&mut proof, "index", 0);
        set(&mut f.observations, "merkle_proofs", vec![proof]);
    }),
    (9, "a proof beyond the last step", ReasonCode::MerkleProof, |f| {
        let mut proof = f.proof(2);
        set(&mut proof, "index", 3);
        set(&mut f.observations, "merkle_proofs", vec![proof]);
    }),
    (9, "proofs of all steps", ReasonCode::Ok, |f| {
        let proofs: Vec<Json> = (0..3).map(|index| f.proof(index)).collect();
        set(&mut f.observations, "merkle_proofs", proofs);
    }),
    (10, "risk score above its threshold", ReasonCode::BrsGate, |f| {
        set(&mut f.observations, "brs_score", 71);
    }),
    (11, "out of distribution", ReasonCode::OodTripwire, |f| set(&mut f.observations, "ood", true)),
    (12, "disclosure above its budget", ReasonCode::DisclosureBudget, |f| {
        set(&mut f.observations, "disclosure_used", 11);
    }),
];

/// Runs all of them.
pub(super) fn built_in() -> Vec<CaseResult> {
    let mut results = vec![replay()];
    results.extend(CASES.iter().map(changed));
    results.extend([omission(), determinism()]);
    results.sort_by_key(|result| result.number);
    results
}

fn verdict(fixture: &Fixture, memory: &Nonces) -> Verdict {
    let certificate = PcaCertificateRecord::of(fixture.certificate.clone());
    let constraints = fixture.constraints();
    let observations = Observations::of(fixture.observations.clone());
    let request = Request {
        certificate: &certificate,
        constraints: Some(&constraints),
        observations: &observations,
        demand: Demand::Level(Level::Gold),
    };
    run(&request, memory).verdict()
}

fn result(
    number: u8,
    name: &str,
    outcome: Result<Vec<(Verdict, ReasonCode)>, Error>,
) -> CaseResult {
    let steps = match outcome {
        Ok(steps) => steps,
        Err(e) => return broken(number, name, e.to_string()),
    };
    let wanted = |reason_code| Verdict {
        decision: if reason_code == ReasonCode::Ok {
            Decision::Execute
        } else {
            Decision::Fallback
        },
        reason_code,
    };
    let expected: Vec<String> = steps.iter().map(|(_, reason)| told(wanted(*reason))).collect();
    let found: Vec<String> = steps.iter().map(|(verdict, _)| told(*verdict)).collect();
    CaseResult {
        number,
        name: name.to_owned(),
        is_passed: expected == found,
        expected: expected.join(", then "),
        found: found.join(", then "),
        notes: Vec::new(),
    }
}

fn broken(number: u8, name: &str, note: String) -> CaseResult {
    let (expected, found) = (told_ok(), "no verdict".to_owned());
    CaseResult {
        number,
        name: name.to_owned(),
        expected,
        found,
        is_passed: false,
        notes: vec![note],
    }
}

fn told_ok() -> String {
    told(Verdict { decision: Decision::Execute, reason_code: ReasonCode::Ok })
}

/// A failing verdict is asked for twice: it neither changes nor burns the
/// nonce, so that afterwards the certificate still executes.
fn changed((number, name, reason, change): &Case) -> CaseResult {
    let outcome = || {
        let mut fixture = Fixture::new(name)?;
        let well = Fixture::new(name)?;
        change(&mut fixture);
        let memory = Nonces::default();
        let mut steps = vec![(verdict(&fixture, &memory), *reason)];
        if *reason != ReasonCode::Ok {
            steps.push((verdict(&fixture, &memory), *reason));
            steps.push((verdict(&well, &memory), ReasonCode::Ok));
        }
        Ok(steps)
    };
    result(*number, name, outcome())
}

fn replay() -> CaseResult {
    let outcome = || {
        let (fixture, memory) = (Fixture::new("once")?, Nonces::default());
        let first = (verdict(&fixture, &memory), ReasonCode::Ok);
        Ok(vec![first, (verdict(&fixture, &memory), ReasonCode::PcReplay)])
    };
    result(1, "the same certificate again", outcome())
}

/// Null and absent are the same certificate.
fn omission() -> CaseResult {
    let outcome = || {
        let mut fixture = Fixture::new("omission")?;
        let mut absent = fixture.certificate.clone();
        for name in ["merkle_root", "metadata"] {
            set(&mut fixture.certificate, name, Json::Null);
            unset(&mut absent, name);
        }
        let digests = [&fixture.certificate, &absent].map(|c| pc_digest(Suite::PcaV1, c));
        let [null, absent] = digests;
        let (null, absent) = (null?, absent?);
        set(&mut fixture.observations, "expected_pc_digest", absent.hex());
        let certificate = PcaCertificateRecord::of(fixture.certificate.clone());
        let (constraints, observations) =
            (fixture.constraints(), Observations::of(fixture.observations.clone()));
        let request = Request {
            certificate: &certificate,
            constraints: Some(&constraints),
            observations: &observations,
            demand: Demand::Level(Level::Bronze),
        };
        let found = run(&request, &Nonces::default()).verdict();
        Ok(vec![(found, if null == absent { ReasonCode::Ok } else { ReasonCode::Unknown })])
    };
    result(7, "optional members null or absent", outcome())
}

/// Two spellings of one certificate, and a digest computed elsewhere.
fn determinism() -> CaseResult {
    let digests = T13.map(|text| {
        let record = PcaCertificateRecord::read(text.as_bytes());
        record.pc_digest().filter(|_| record.ok()).map_or_else(|| "none".to_owned(), |d| d.hex())
    });
    CaseResult {
        number: 13,
        name: "one digest, however it is written".to_owned(),
        is_passed: digests.iter().all(|digest| digest == T13_DIGEST),
        expected: T13_DIGEST.to_owned(),
        found: digests.join(" and "),
        notes: Vec::new(),
    }
}

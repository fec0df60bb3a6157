//! PCA-TEST v1: T1 to T13, and what they show per profile.
//!
//! In: nothing, or released vectors. Out: for each test what was expected and
//! what came out. Our own cases detect what the released ones only assert.

use std::convert::Infallible;

use capstan::profile::pca::{
    Decision, Demand, Evaluation, Level, Nonces, Observations, PcaCertificateRecord, ReasonCode,
    Request, Verdict, check,
};
use capstan::wire::json::Json;

/// One test, run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct CaseResult {
    /// Its number, 1 to 13; 0 when the vector does not say.
    pub(super) number: u8,
    /// Its name.
    pub(super) name: String,
    /// What was expected: decision and reason.
    pub(super) expected: String,
    /// What came out.
    pub(super) found: String,
    /// Whether everything is as expected.
    pub(super) is_passed: bool,
    /// What was not, or what was understood in another spelling.
    pub(super) notes: Vec<String>,
}

/// What the tests say of a profile.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct LevelResult {
    /// The profile.
    pub(super) level: Level,
    /// Whether all its tests were run and passed.
    pub(super) is_passed: bool,
    /// Tests of the profile that failed or were not run.
    pub(super) lacking: Vec<u8>,
}

/// The tests of a profile. The specification lists none for Bronze: it is
/// what needs neither Merkle tree nor risk score.
fn tests_of(level: Level) -> std::ops::RangeInclusive<u8> {
    match level {
        Level::Bronze => 1..=8,
        Level::Silver => 1..=10,
        Level::Gold => 1..=13,
    }
}

/// The evidence per profile.
pub(super) fn levels(results: &[CaseResult]) -> Vec<LevelResult> {
    let passed = |number: u8| {
        let mut own = results.iter().filter(|result| result.number == number).peekable();
        own.peek().is_some() && own.all(|result| result.is_passed)
    };
    let of = |level| {
        let lacking: Vec<u8> = tests_of(level).filter(|number| !passed(*number)).collect();
        LevelResult { level, is_passed: lacking.is_empty(), lacking }
    };
    Level::ALL.map(of).to_vec()
}

/// Runs one certificate, and cannot fail to.
pub(super) fn run(request: &Request<'_>, memory: &Nonces) -> Evaluation {
    let made: Result<Evaluation, Infallible> = check(request, Some(memory));
    match made {
        Ok(evaluation) => evaluation,
        Err(never) => match never {},
    }
}

pub(super) fn told(verdict: Verdict) -> String {
    format!("{} {}", verdict.decision.name(), verdict.reason_code.name())
}

/// Runs a released vector by its own measure: what it does not say does not
/// count.
pub(super) fn released(vector: &Json) -> CaseResult {
    let text = |pointer: &str| vector.pointer(pointer).and_then(Json::text).unwrap_or_default();
    let name = text("/test_id").to_owned();
    let digits: String = name.chars().skip(1).take_while(char::is_ascii_digit).collect();
    let part = |member: &str| vector.get(member).cloned().unwrap_or(Json::Null);
    let certificate = PcaCertificateRecord::of(part("pc"));
    let observations = Observations::of(part("runtime"));
    let request = Request {
        certificate: &certificate,
        constraints: None,
        observations: &observations,
        demand: Demand::ReleasedVectors,
    };
    let memory = Nonces::default();
    let first = run(&request, &memory).verdict();
    let second = run(&request, &memory).verdict();
    let is_replay = vector.get("replay").and_then(Json::bool) == Some(true);
    let verdict = if is_replay { second } else { first };
    let mut notes = Vec::new();
    let expected = expected(text("/expected/decision"), text("/expected/reason_code"), &mut notes);
    let is_expected = expected == Some(verdict);
    if !is_replay && first.decision == Decision::Fallback && first != second {
        notes.push(format!("unstable: again it is {}", told(second)));
    }
    digests(vector, &certificate, &mut notes);
    let faults = notes.iter().any(|note| !note.starts_with("mapped"));
    CaseResult {
        number: digits.parse().unwrap_or(0),
        name,
        expected: expected.map_or_else(|| "nothing we understand".to_owned(), told),
        found: told(verdict),
        is_passed: is_expected && !faults,
        notes,
    }
}

fn expected(decision: &str, reason: &str, notes: &mut Vec<String>) -> Option<Verdict> {
    let (decision_read, reason_read) = (Decision::import(decision)?, ReasonCode::import(reason)?);
    if !decision_read.is_released {
        notes.push(format!("mapped: {decision} means {}", decision_read.value.name()));
    }
    if !reason_read.is_released {
        notes.push(format!("mapped: {reason} means {}", reason_read.value.name()));
    }
    Some(Verdict { decision: decision_read.value, reason_code: reason_read.value })
}

/// The expected digest, and for T7 that of the twin without optional members.
fn digests(vector: &Json, certificate: &PcaCertificateRecord, notes: &mut Vec<String>) {
    let of = |record: &PcaCertificateRecord| record.pc_digest().map(|digest| digest.hex());
    let own = of(certificate);
    let stated = vector.get("expected_pc_digest").and_then(Json::text);
    if own.as_deref() != stated {
        notes.push(format!("pc_digest is {}", own.as_deref().unwrap_or("none")));
    }
    let twin = vector.get("pc_equivalent_without_optional_fields");
    let twin = twin.map(|twin| of(&PcaCertificateRecord::of(twin.clone())));
    if twin.is_some_and(|twin| twin != own) {
        notes.push("absent and null members give different digests".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_cases_pass_at_every_level() {
        let results = crate::cases::built_in();
        let failed: Vec<&CaseResult> = results.iter().filter(|r| !r.is_passed).collect();
        assert!(failed.is_empty(), "{failed:#?}");
        assert!(levels(&results).iter().all(|level| level.is_passed));
        let without_t9: Vec<CaseResult> = results.into_iter().filter(|r| r.number != 9).collect();
        let told = levels(&without_t9)
            .iter()
            .map(|l| (l.is_passed, l.lacking.clone()))
            .collect::<Vec<_>>();
        assert_eq!(told, [(true, vec![]), (false, vec![9]), (false, vec![9])]);
    }
}

//! The protocol: order, reasons, levels, signals that are missing or halves,
//! and nonces.

use super::*;

const NOW: &str = "\"2026-04-10T12:00:00Z\"";

/// Observations under which the plain certificate executes at no level.
pub(in super::super) fn observations(changes: &[(&str, &str)]) -> Observations {
    let digest = pc_digest(Suite::PcaV1, &certificate(&[])).unwrap().hex();
    let plain = format!(
        r#"{{"expected_pc_digest":"{digest}","constraints_version_id":"c1","constraints_digest":"{ONE}","now":{NOW}}}"#
    );
    Observations::of(with(&json(&plain), changes))
}

fn evaluate(certificate: &Json, observed: &Observations, demand: Demand) -> Evaluation {
    let record = PcaCertificateRecord::of(certificate.clone());
    let request =
        Request { certificate: &record, constraints: None, observations: observed, demand };
    check(&request, Some(&Nonces::default())).unwrap()
}

fn reason(changes: &[(&str, &str)]) -> &'static str {
    let verdict =
        evaluate(&certificate(&[]), &observations(changes), Demand::ReleasedVectors).verdict();
    assert_eq!(verdict.decision == Decision::Execute, verdict.reason_code == ReasonCode::Ok);
    verdict.reason_code.name()
}

#[test]
fn each_observation_gives_its_reason() {
    let zeros = format!("\"{}\"", "0".repeat(64));
    let two = format!("\"{TWO}\"");
    let one = format!("\"{ONE}\"");
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[], "RC_OK"),
        (&[("misspelt", "true")], "RC_UNKNOWN"),
        (&[("expected_pc_digest", "")], "INTEGRITY_MISMATCH"),
        (&[("expected_pc_digest", "null")], "INTEGRITY_MISMATCH"),
        (&[("expected_pc_digest", &zeros)], "INTEGRITY_MISMATCH"),
        (&[("constraints_version_id", "\"c2\"")], "INTEGRITY_MISMATCH"),
        (&[("constraints_version_id", "")], "INTEGRITY_MISMATCH"),
        (&[("constraints_digest", &two)], "INTEGRITY_MISMATCH"),
        (&[("constraints_digest", "")], "INTEGRITY_MISMATCH"),
        (&[("step_digests", "[]")], "INTEGRITY_MISMATCH"),
        (&[("step_digests", &format!("[{one}]"))], "INTEGRITY_MISMATCH"),
        (&[("step_inputs", "[1]")], "INTEGRITY_MISMATCH"),
        (&[("now", "")], "RC_EFFECTIVE_TIME"),
        (&[("now", "7")], "RC_EFFECTIVE_TIME"),
        (&[("now", "\"soon\"")], "RC_EFFECTIVE_TIME"),
        (&[("now", "\"2026-04-01T00:00:00Z\"")], "RC_OK"),
        (&[("now", "\"2026-03-31T23:59:59.999999999Z\"")], "RC_EFFECTIVE_TIME"),
        (&[("toctou_drift", "true")], "RC_TOCTOU"),
        (&[("toctou_drift", "\"no\"")], "RC_TOCTOU"),
        (&[("toctou_drift", "false")], "RC_OK"),
        (&[("observed_state_digest", &one)], "RC_TOCTOU"),
        (&[("planned_state_digest", &one)], "RC_TOCTOU"),
        (&[("planned_state_digest", &one), ("observed_state_digest", &one)], "RC_OK"),
        (&[("planned_state_digest", &one), ("observed_state_digest", &two)], "RC_TOCTOU"),
        (
            &[
                ("planned_state_digest", &one),
                ("observed_state_digest", &two),
                ("toctou_drift", "false"),
            ],
            "RC_TOCTOU",
        ),
        (
            &[
                ("planned_state_digest", &one),
                ("observed_state_digest", &one),
                ("toctou_drift", "true"),
            ],
            "RC_TOCTOU",
        ),
        (&[("conflict", "true")], "RC_CONFLICT"),
        (&[("conflict", "null")], "RC_CONFLICT"),
        (&[("merkle_ok", "false")], "RC_MERKLE_PROOF"),
        (&[("merkle_ok", "0")], "RC_MERKLE_PROOF"),
        (&[("merkle_proofs", "{}")], "RC_MERKLE_PROOF"),
        (&[("brs_score", "70"), ("brs_threshold", "70")], "RC_OK"),
        (&[("brs_score", "70.5"), ("brs_threshold", "70")], "RC_BRS_GATE"),
        (&[("brs_score", "1")], "RC_BRS_GATE"),
        (&[("brs_threshold", "1")], "RC_BRS_GATE"),
        (&[("brs_score", "1e999"), ("brs_threshold", "1e999")], "RC_BRS_GATE"),
        (
            &[("brs_score", "9007199254740993"), ("brs_threshold", "9007199254740992")],
            "RC_BRS_GATE",
        ),
        (&[("ood", "true")], "RC_OOD_TRIPWIRE"),
        (&[("disclosure_used", "11"), ("disclosure_budget", "10")], "RC_DISCLOSURE_BUDGET"),
        (&[("disclosure_used", "-0"), ("disclosure_budget", "0")], "RC_OK"),
        // The first of many is the reason.
        (&[("ood", "true"), ("conflict", "true"), ("now", "7")], "RC_EFFECTIVE_TIME"),
        (&[("ood", "true"), ("conflict", "true")], "RC_CONFLICT"),
    ];
    for (changes, expected) in cases {
        assert_eq!(reason(changes), *expected, "{changes:?}");
    }
}

#[test]
fn all_checks_are_made_whatever_fails_first() {
    let observed = observations(&[("now", "7"), ("conflict", "true"), ("ood", "true")]);
    let made = evaluate(&certificate(&[("x", "1")]), &observed, Demand::Level(Level::Gold));
    let order: Vec<Check> = made.checks.iter().map(|checked| checked.check).collect();
    assert_eq!(order, Check::ALL);
    let failed = |check| made.outcome(check) == Outcome::Failed;
    let wrong = [Check::Inputs, Check::PcDigest, Check::EffectiveTime, Check::Conflict, Check::Ood];
    assert!(wrong.into_iter().all(failed));
    assert_eq!(made.verdict().reason_code, ReasonCode::Unknown);
    assert_eq!(made.outcome(Check::ConstraintsVersion), Outcome::Passed);
}

type Changes<'a> = &'a [(&'a str, &'a str)];

/// The order is published: it decides the reason.
#[test]
fn of_any_two_failures_the_earlier_gives_the_reason() {
    let zeros = format!("\"{}\"", "0".repeat(64));
    let in_order: &[(&str, Changes<'_>, &str)] = &[
        ("inputs", &[("misspelt", "1")], "RC_UNKNOWN"),
        ("replay", &[], "RC_PC_REPLAY"),
        ("pc_digest", &[("expected_pc_digest", &zeros)], "INTEGRITY_MISMATCH"),
        ("constraints_version", &[("constraints_version_id", "1")], "INTEGRITY_MISMATCH"),
        ("constraints_digest", &[("constraints_digest", &zeros)], "INTEGRITY_MISMATCH"),
        ("plan_digest", &[("step_inputs", "[]")], "INTEGRITY_MISMATCH"),
        ("effective_time", &[("now", "1")], "RC_EFFECTIVE_TIME"),
        ("toctou", &[("toctou_drift", "true")], "RC_TOCTOU"),
        ("conflict", &[("conflict", "true")], "RC_CONFLICT"),
        ("merkle", &[("merkle_ok", "false")], "RC_MERKLE_PROOF"),
        ("brs", &[("brs_score", "1")], "RC_BRS_GATE"),
        ("ood", &[("ood", "true")], "RC_OOD_TRIPWIRE"),
        ("disclosure", &[("disclosure_used", "1")], "RC_DISCLOSURE_BUDGET"),
    ];
    let names: Vec<&str> = in_order.iter().map(|(name, ..)| *name).collect();
    assert!(Check::ALL.iter().map(|check| check.name()).eq(names));
    let record = PcaCertificateRecord::of(certificate(&[]));
    for (at, (name, first, reason)) in in_order.iter().enumerate() {
        for (other, second, _) in &in_order[at..] {
            let observed = observations(&[*first, *second].concat());
            let memory = Nonces::default();
            if [name, other].contains(&&"replay") {
                assert!(memory.burn("n").unwrap());
            }
            let request = Request {
                certificate: &record,
                constraints: None,
                observations: &observed,
                demand: Demand::ReleasedVectors,
            };
            let made = check(&request, Some(&memory)).unwrap();
            assert_eq!(made.verdict().reason_code.name(), *reason, "{name} and {other}");
            let failed = made.checks.iter().filter(|c| c.outcome == Outcome::Failed);
            let failed: Vec<&str> = failed.map(|c| c.check.name()).collect();
            assert!(failed.contains(name) && failed.contains(other), "{failed:?}");
        }
    }
}

#[test]
fn what_nobody_said_counts_from_its_level_on() {
    let one = Digest::from_hex(ONE).unwrap();
    let plan = plan_digest(Suite::PcaV1, &[one]).unwrap().hex();
    let (plan, root) = (format!("\"{plan}\""), format!("\"{one}\""));
    let whole = certificate(&[("plan_digest", &plan), ("merkle_root", &root)]);
    let digest = format!("\"{}\"", pc_digest(Suite::PcaV1, &whole).unwrap().hex());
    let steps = format!("[\"{one}\"]");
    let mut said: Vec<(&str, &str)> = vec![("expected_pc_digest", &digest)];
    let mut verdicts = |more: &[(&'static str, &'static str)]| {
        said.extend(more);
        let made = evaluate(&whole, &observations(&said), Demand::ReleasedVectors);
        let levels = Level::ALL.map(Demand::Level);
        let [bronze, silver, gold] = levels.map(|level| made.verdict_by(level).reason_code.name());
        [made.verdict().reason_code.name(), bronze, silver, gold]
    };
    let steps: &'static str = Box::leak(steps.into_boxed_str());
    let (ok, integrity) = ("RC_OK", "INTEGRITY_MISMATCH");
    assert_eq!(verdicts(&[]), [ok, integrity, integrity, integrity]);
    assert_eq!(verdicts(&[("step_digests", steps)]), [ok, "RC_TOCTOU", "RC_TOCTOU", "RC_TOCTOU"]);
    let conflict = "RC_CONFLICT";
    assert_eq!(verdicts(&[("toctou_drift", "false")]), [ok, conflict, conflict, conflict]);
    assert_eq!(verdicts(&[("conflict", "false")]), [ok, ok, "RC_BRS_GATE", "RC_BRS_GATE"]);
    let brs = [("brs_score", "1"), ("brs_threshold", "2")];
    assert_eq!(verdicts(&brs), [ok, ok, ok, "RC_OOD_TRIPWIRE"]);
    assert_eq!(verdicts(&[("ood", "false")]), [ok, ok, ok, "RC_DISCLOSURE_BUDGET"]);
    let disclosure = [("disclosure_used", "1"), ("disclosure_budget", "2")];
    assert_eq!(verdicts(&disclosure), [ok; 4]);
}

#[test]
fn no_memory_is_enough_only_for_released_vectors() {
    let record = PcaCertificateRecord::of(certificate(&[]));
    let observed = observations(&[]);
    let request = Request {
        certificate: &record,
        constraints: None,
        observations: &observed,
        demand: Demand::ReleasedVectors,
    };
    let made = check::<Nonces>(&request, None).unwrap();
    assert_eq!(made.verdict().reason_code, ReasonCode::Ok);
    assert_eq!(made.outcome(Check::Plan), Outcome::Unknown, "never silently");
    assert!(!made.is_burned);
    assert_eq!(made.verdict_by(Demand::Level(Level::Bronze)).reason_code, ReasonCode::PcReplay);
}

#[test]
fn a_window_that_cannot_be_read_is_a_reason_of_its_own() {
    let windows = [
        r#"{"not_before":"soon","not_after":"2026-04-30T23:59:59Z"}"#,
        r#"{"not_before":"2026-04-20T00:00:00Z","not_after":"2026-04-01T00:00:00Z"}"#,
        r#"{"not_before":"2026-04-01T00:00:00","not_after":"2026-04-30T23:59:59Z"}"#,
    ];
    for window in windows {
        let changed = certificate(&[("effective_time", window)]);
        let digest = format!("\"{}\"", pc_digest(Suite::PcaV1, &changed).unwrap().hex());
        let observed = observations(&[("expected_pc_digest", &digest)]);
        let made = evaluate(&changed, &observed, Demand::ReleasedVectors);
        assert_eq!(made.verdict().reason_code, ReasonCode::EffectiveTime, "{window}");
    }
}

#[test]
fn a_digest_of_the_released_canonicaliser_is_understood_and_named() {
    let changed = certificate(&[("metadata", r#"{"note":"za\u017c","x":1.0}"#)]);
    let python = pc_digest(Suite::PcaPython, &changed).unwrap();
    let ours = pc_digest(Suite::PcaV1, &changed).unwrap();
    assert_ne!(python.hex(), ours.hex());
    for digest in [ours, python] {
        let observed = observations(&[("expected_pc_digest", &format!("\"{}\"", digest.hex()))]);
        let made = evaluate(&changed, &observed, Demand::ReleasedVectors);
        assert_eq!(
            (made.verdict().reason_code, made.suite),
            (ReasonCode::Ok, Some(digest.suite()))
        );
    }
}

#[test]
fn a_nonce_is_burned_once_and_by_success_alone() {
    let memory = Nonces::default();
    let run = |changes: &[(&str, &str)]| {
        let record = PcaCertificateRecord::of(certificate(&[]));
        let observed = observations(changes);
        let request = Request {
            certificate: &record,
            constraints: None,
            observations: &observed,
            demand: Demand::ReleasedVectors,
        };
        let made = check(&request, Some(&memory)).unwrap();
        (made.verdict().reason_code.name(), made.is_burned)
    };
    assert_eq!(run(&[("ood", "true")]), ("RC_OOD_TRIPWIRE", false));
    assert_eq!(run(&[("ood", "true")]), ("RC_OOD_TRIPWIRE", false));
    let winners = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| run(&[]))).collect();
        let verdicts: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(verdicts.iter().all(|t| [("RC_OK", true), ("RC_PC_REPLAY", false)].contains(t)));
        verdicts.iter().filter(|(_, is_burned)| *is_burned).count()
    });
    assert_eq!(winners, 1);
}

#[test]
fn constraints_have_the_digest_they_state() {
    let payload = json(r#"{"most":5}"#);
    let digest = Label::Constraints.digest(Suite::PcaV1, &payload).unwrap().hex();
    let window = r#"{"not_before":"2026-04-01T00:00:00Z","not_after":"2026-04-30T23:59:59Z"}"#;
    let document = |version: &str, payload: &str, window: &str| {
        format!(
            r#"{{"version_id":"{version}","effective_time":{window},"payload":{payload},"digest":"{digest}"}}"#
        )
    };
    let quoted = format!("\"{digest}\"");
    let record = PcaCertificateRecord::of(certificate(&[("constraints_digest", &quoted)]));
    let expected = format!("\"{}\"", record.pc_digest().unwrap().hex());
    let observed = observations(&[
        ("expected_pc_digest", &expected),
        ("constraints_digest", ""),
        ("constraints_version_id", ""),
    ]);
    let earlier = window.replace("2026-04-30", "2026-04-02");
    let cases = [
        (document("c1", r#"{"most":5}"#, window), "RC_OK"),
        (document("c1", r#"{ "most" : 5.0 }"#, window), "RC_OK"),
        (document("c1", r#"{"most":6}"#, window), "INTEGRITY_MISMATCH"),
        (document("c2", r#"{"most":5}"#, window), "INTEGRITY_MISMATCH"),
        (document("c1", r#"{"most":5}"#, &earlier), "RC_EFFECTIVE_TIME"),
        (document("c1", r#"{"most":5}"#, "{}"), "RC_UNKNOWN"),
        (document("c1", "[]", window), "RC_UNKNOWN"),
        ("{".to_owned(), "RC_UNKNOWN"),
    ];
    for (text, reason) in cases {
        let constraints = Constraints::read(text.as_bytes());
        let request = Request {
            certificate: &record,
            constraints: Some(&constraints),
            observations: &observed,
            demand: Demand::ReleasedVectors,
        };
        let made = check::<Nonces>(&request, None).unwrap();
        assert_eq!(made.verdict().reason_code.name(), reason, "{text}");
    }
}

#[test]
fn an_unknown_merkle_rule_and_a_root_that_is_not_there() {
    let root = format!("\"{ONE}\"");
    let steps = format!("[\"{ONE}\"]");
    let plan = plan_digest(Suite::PcaV1, &[Digest::from_hex(ONE).unwrap()]).unwrap().hex();
    let plan = format!("\"{plan}\"");
    let cases: &[(&[(&str, &str)], Outcome)] = &[
        (&[("merkle_root", &root)], Outcome::Passed),
        (
            &[("merkle_root", &root), ("metadata", r#"{"merkle_rule":"pca-pairs"}"#)],
            Outcome::Passed,
        ),
        (
            &[("merkle_root", &root), ("metadata", r#"{"merkle_rule":"rfc9162-sha256"}"#)],
            Outcome::Failed,
        ),
        (&[("merkle_root", &root), ("metadata", r#"{"merkle_rule":"mine"}"#)], Outcome::Failed),
        (&[], Outcome::Unknown),
    ];
    for (changes, outcome) in cases {
        let changes = [*changes, &[("plan_digest", plan.as_str())]].concat();
        let observed = observations(&[("step_digests", &steps), ("merkle_ok", "true")]);
        let made = evaluate(&certificate(&changes), &observed, Demand::ReleasedVectors);
        assert_eq!(made.outcome(Check::Merkle), *outcome, "{changes:?}");
        assert_eq!(made.outcome(Check::Plan), Outcome::Passed);
    }
}

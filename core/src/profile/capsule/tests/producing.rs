//! From a plain description to a Capsule, or the clause that stands against
//! it.

use super::*;

fn json(text: &str) -> Json {
    Json::read(text.as_bytes()).unwrap()
}

fn with(request: Option<&str>, response: Option<&str>) -> Attachments {
    Attachments {
        request: request.map(json),
        response: response.map(json),
        action_id: "act-1".to_owned(),
        now: UnixSeconds::new(1_790_000_000),
        ..Attachments::default()
    }
}

fn description(rest: &str) -> String {
    format!(r#"{{"operator":"acme","developer":"agent@v1","action_type":"decide"{rest}}}"#)
}

const ACCEPT: &str =
    r#","disposition":{"decision":"accept","approver":"policy","verdict_class":"executed"}"#;

#[test]
fn what_is_described_passes_the_checks_of_a_verifier() {
    let effect = r#","effect":{"status":"confirmed","type":"send_payment"}"#;
    let text = description(&format!("{ACCEPT}{effect}"));
    let action =
        Action::describe(text.as_bytes(), &with(Some("{}"), Some(r#"{"ok":true}"#))).unwrap();
    let made = action.produce().unwrap();
    assert_eq!(made.subject, "urn:agent-action-capsule:acme:act-1");
    let (record, noticed) = CapsuleRecord::read(&made.payload);
    assert_eq!(record.class1().ok, Some(true));
    assert_eq!(record.capsule_id().as_ref(), Some(&made.capsule_id));
    assert_eq!(noticed, [], "nothing to remark on what we made ourselves");
    assert_eq!(record.summary().effect_mode.as_deref(), Some("confirmed"));
}

/// Description, request, response, and the code of the refusal.
#[test]
fn what_the_profile_forbids_is_refused_with_its_clause() {
    let effect = |status: &str| format!(r#"{ACCEPT},"effect":{{"status":"{status}"}}"#);
    let disposed = |rest: &str| format!(r#","disposition":{{"decision":"accept",{rest}}}"#);
    let reply = Some("{}");
    let cases = [
        (description(&effect("confirmed")), None, None, "/effect/status"),
        (description(&effect("dispatched")), None, reply, "/effect/status"),
        (description(&effect("planned")), reply, None, "/effect/status"),
        (description(&effect("done")), None, None, "/effect/status"),
        (
            description(&disposed(r#""approver":"policy","human_disposed":true"#)),
            None,
            None,
            "/disposition/human_disposed",
        ),
        (description(&disposed(r#""approver":"robot""#)), None, None, "/disposition/approver"),
        (description(r#","capsule_id":"x""#), None, None, "/capsule_id"),
        (
            description(r#","effect":{"status":"planned","response_digest":"x"}"#),
            None,
            None,
            "/effect/response_digest",
        ),
        (description(r#","timestamp":"yesterday""#), None, None, "/timestamp"),
        (description(r#","constraints":{}"#), None, None, "/constraints"),
        ("{".to_owned(), None, None, "cannot be read"),
        (r#"{"operator":"acme"}"#.to_owned(), None, None, "/developer"),
    ];
    for (text, request, response, at) in cases {
        let error = Action::describe(text.as_bytes(), &with(request, response)).unwrap_err();
        assert!(error.to_string().contains(at), "{text}: {error}");
        assert!(
            ["description-wrong", "description-unknown", "description-not-json"]
                .contains(&error.code())
        );
    }
    let float =
        Action::describe(description(&effect("confirmed")).as_bytes(), &with(None, Some("1.5")));
    assert_eq!(float.unwrap_err().code(), "description-number");
    let evidence = vec![("margin".to_owned(), json("{}"))];
    let stray = Attachments { evidence, ..with(None, None) };
    let error = Action::describe(description(ACCEPT).as_bytes(), &stray).unwrap_err();
    assert_eq!(error.code(), "description-evidence");
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let text = r#"{
        "operater": "acme", "developer": 7, "action_type": "decided", "verdict_class": "executed",
        "verdict": "executed", "capsule_id": "x", "a/b~c": 1, "timestamp": "now",
        "disposition": { "aprover": "human", "human_disposed": "yes", "status": "planned",
                         "expiry_policy": { "ttl_seconds": "60", "on_expiry": "expires" } },
        "effect": { "status": "confirmd", "effect_attestation": "gate", "response_digest": "x" },
        "constraints": [{}, 1], "model_attestation": "gpt"
    }"#;
    let evidence = vec![("margin".to_owned(), json("{}"))];
    let with = Attachments { evidence, ..with(None, Some("1.5")) };
    let mistakes = Action::describe(text.as_bytes(), &with).unwrap_err();
    let mut found: Vec<String> = mistakes.all().iter().map(ToString::to_string).collect();
    found.sort_unstable();
    let mut expected = [
        "--response: amounts are written as text: ",
        "/a~1b~0c is not part of a description",
        "/action_type must be one of \"decide\", \"fyi\"; did you mean \"decide\"?",
        "/capsule_id is not part of a description; it is computed",
        "/constraints/1 must be an object (8.1)",
        "/developer must be text",
        "/disposition/approver must be given: \"human\" or \"policy\" (5.4)",
        "/disposition/aprover is not part of a description; did you mean approver?",
        "/disposition/decision must be given (5.4)",
        "/disposition/expiry_policy/on_expiry must be one of \"expired\", \"escalated\"; \
         did you mean \"expired\"?",
        "/disposition/expiry_policy/ttl_seconds must be a whole number of seconds (5.4)",
        "/disposition/human_disposed must be true or false",
        "/disposition/status is not part of a description; did you mean /effect/status?",
        "/effect/effect_attestation must be one of \"gate_executed\", \"runtime_claimed\"",
        "/effect/response_digest is not part of a description; --response FILE makes it",
        "/effect/status must be one of \"planned\", \"dispatched\", \"confirmed\", \"failed\", \
         \"reverted\"; did you mean \"confirmed\"?",
        "/model_attestation must be an object",
        "/operater is not part of a description; did you mean operator?",
        "/operator must be given: who answers for it (5.1)",
        "/timestamp must be an RFC 3339 time (5.1)",
        "/verdict is not part of a description; did you mean /disposition/verdict_class?",
        "/verdict_class is not part of a description; did you mean /disposition/verdict_class?",
        "evidence was given for constraint \"margin\", which the description does not have",
    ];
    expected.sort_unstable();
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}\nis not\n{expected}");
    }
}

/// The documentation of descriptions, from its heading to the next.
fn documented() -> &'static str {
    let page = include_str!("../../../../../docs/profiles/capsule.md");
    let (_, rest) = page.split_once("## Describing an action\n").unwrap();
    rest.split_once("\n## ").unwrap().0
}

#[test]
fn every_member_of_a_description_is_documented() {
    let rows: Vec<&str> = documented().lines().filter(|line| line.starts_with("| `/")).collect();
    let documented = |pointer: &str| rows.iter().any(|row| row.contains(&format!("`{pointer}`")));
    let places = [
        ("", describe::TOP),
        ("/disposition", describe::DISPOSITION),
        ("/disposition/expiry_policy", describe::EXPIRY),
        ("/effect", describe::EFFECT),
    ];
    let mut count = 0;
    for (at, names) in places {
        for name in names {
            assert!(documented(&format!("{at}/{name}")), "{at}/{name} is in no row");
            count += usize::from(at != "/disposition/expiry_policy");
        }
    }
    assert_eq!(rows.len(), count, "a row is about nothing");
}

#[test]
fn documented_descriptions_are_the_examples_and_pass_class_1() {
    let blocks: Vec<&str> = documented().split("```json\n").skip(1).collect();
    let blocks: Vec<&str> = blocks.iter().map(|block| block.split("```").next().unwrap()).collect();
    assert!(Example::ALL.iter().map(|example| example.text()).eq(blocks));
    for example in Example::ALL {
        if *example == Example::Outcome {
            assert!(json(example.text()).members().is_some());
            continue;
        }
        let action = Action::describe(example.text().as_bytes(), &with(None, None)).unwrap();
        let made = action.produce().unwrap();
        let (record, noticed) = CapsuleRecord::read(&made.payload);
        assert_eq!(record.class1().ok, Some(true), "{}", example.name());
        let findings = record.class1().findings.iter().chain(&noticed);
        let unknown = findings.filter(|f| f.code == "unknown_registry_value").count();
        assert_eq!(unknown, 0, "{}", example.name());
        assert_eq!(
            record.summary().verdict.as_deref(),
            Some(match example {
                Example::Approval => "hitl_dispatched",
                example => example.name(),
            })
        );
    }
}

/// A decision that led to several actions: in the header, and in the effect
/// where there is one.
#[test]
fn a_decision_has_a_name_of_its_own() {
    let effect = r#","effect":{"status":"confirmed"}"#;
    let named = r#","decision_id":"d-1""#;
    let beside = |id: Option<&str>| Attachments {
        decision_id: id.map(str::to_owned),
        ..with(None, Some("{}"))
    };
    let cases = [
        (String::new(), None, "act-1", None),
        (named.to_owned(), None, "d-1", None),
        (String::new(), Some("d-1"), "d-1", None),
        (format!("{named}{effect}"), None, "d-1", Some("d-1")),
        (effect.to_owned(), Some("d-1"), "d-1", Some("d-1")),
        (format!("{named}{effect}"), Some("d-1"), "d-1", Some("d-1")),
        (effect.to_owned(), None, "act-1", None),
    ];
    for (rest, flag, claimed, recorded) in cases {
        let text = description(&format!("{ACCEPT}{rest}"));
        let made = Action::describe(text.as_bytes(), &beside(flag)).unwrap().produce().unwrap();
        let claim = made.claims.iter().find(|(name, _)| *name == "capsule_decision_id").unwrap();
        assert_eq!(claim.1, claimed, "{text}");
        let (record, noticed) = CapsuleRecord::read(&made.payload);
        assert_eq!(record.text("effect", "decision_id"), recorded, "{text}");
        assert_eq!((record.class1().ok, noticed), (Some(true), Vec::new()), "{text}");
    }
    for (rest, flag) in [(named, Some("d-2")), (r#","decision_id":"""#, None), ("", Some(""))] {
        let text = description(&format!("{ACCEPT}{rest}"));
        let error = Action::describe(text.as_bytes(), &beside(flag)).unwrap_err();
        assert!(error.to_string().starts_with("/decision_id must be"), "{text}: {error}");
    }
}

/// What the types allow but the checks do not: a verdict that never
/// dispatches beside an effect that was.
#[test]
fn a_blocked_action_has_no_effect() {
    let text = description(
        r#","disposition":{"decision":"reject","approver":"policy","verdict_class":"blocked"},"effect":{"status":"dispatched"}"#,
    );
    let action = Action::describe(text.as_bytes(), &with(Some("{}"), None)).unwrap();
    let error = action.produce().unwrap_err();
    assert_eq!(error.code(), "capsule-forbidden");
    assert!(error.to_string().contains("verdict_effect_conflict"), "{error}");
}

#[test]
fn evidence_is_bound_by_its_digest() {
    let text = description(&format!(
        r#"{ACCEPT},"constraints":[{{"id":"com.example.floor","result":"pass","severity":"high","blocking":true}}]"#
    ));
    let evidence = vec![("com.example.floor".to_owned(), json(r#"{"margin":"0.21"}"#))];
    let action =
        Action::describe(text.as_bytes(), &Attachments { evidence, ..with(None, None) }).unwrap();
    let expected = Suite::JcsN.digest(&json(r#"{"margin":"0.21"}"#)).unwrap().hex();
    let found = action.constraints[0].get("evidence_digest").and_then(Json::text);
    assert_eq!(found, Some(expected.as_str()));
}

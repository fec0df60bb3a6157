//! Each condition both ways, each mistake of a policy file, and the policies
//! we ship.

mod conditions;

use super::condition::Pattern;
use super::*;
use crate::envelope::fixture::{ISSUER, NOW, SUBJECT, Sketch, ed25519, es256};
use crate::envelope::{AuthContext, Resolved, RulesVersion, SignedStatement};
use crate::key::SigningKey;
use crate::profile;
use crate::trust::TrustAnchors;

const OPEN: &str = include_str!("../../../policy/open.toml");
const ISSUERS: &str = include_str!("../../../policy/issuers.toml");

fn authentic(sketch: &Sketch, key: &SigningKey, trust: &TrustAnchors) -> Authentic {
    let statement = SignedStatement::parse(sketch.sign(key)).unwrap();
    statement.authenticate(&AuthContext::new(trust, &Resolved::default(), NOW)).unwrap()
}

fn own(sketch: &Sketch, key: &SigningKey) -> Authentic {
    authentic(sketch, key, &TrustAnchors::default())
}

/// `None` when admitted.
fn refusal(policy: &str, statement: &Authentic) -> Option<Refusal> {
    let policy = Policy::parse(policy).unwrap();
    match policy.decide(statement.clone(), &profile::read(statement), &Facts::default()) {
        Decision::Admit(admitted) => {
            assert_eq!(admitted.statement().id(), statement.id());
            assert_eq!(admitted.into_statement().id(), statement.id());
            None
        }
        Decision::Refuse(refusal) => Some(refusal),
    }
}

fn with(condition: &str) -> String {
    format!("name = \"test\"\n[[allow]]\n{condition}\n")
}

#[test]
fn every_condition_holds_and_fails() {
    let key = es256();
    let statement = own(&Sketch::self_certified(&key), &key);
    let size = statement.canonical().len();
    let exactly = format!("statement_bytes_max = {size}");
    let below = format!("statement_bytes_max = {}", size - 1);
    let cases: [(&str, &str, &str); 7] = [
        ("algorithm", "algorithm = [\"EdDSA\", \"ES256\"]", "algorithm = \"ES384\""),
        ("binding", "binding = \"self-certified\"", "binding = [\"pinned\", \"x5chain\"]"),
        ("content_type", "content_type = \"application/*\"", "content_type = \"text/*\""),
        ("issuer", "issuer = [\"urn:x\", \"https://*\"]", "issuer = \"https://agent.example/\""),
        ("profile", "profile = \"opaque\"", "profile = \"hash\""),
        ("statement_bytes_max", &exactly, &below),
        ("subject", "subject = \"urn:example:*\"", "subject = \"urn:example\""),
    ];
    for (name, holds, fails) in cases {
        assert_eq!(refusal(&with(holds), &statement), None, "{holds}");
        let refused = refusal(&with(fails), &statement).unwrap();
        assert_eq!(refused.code(), "policy-refused");
        assert_eq!(refused.policy(), "test");
        let [trace] = refused.rules() else { panic!("one rule was written") };
        let [condition] = trace.conditions.as_slice() else { panic!("one condition") };
        assert_eq!((condition.condition, condition.held), (name, false));
        assert_eq!(trace.rule, "allow 1");
    }
}

#[test]
fn all_conditions_of_one_rule_or_none() {
    let key = es256();
    let statement = own(&Sketch::self_certified(&key), &key);
    let half = "issuer = \"*\"\nsubject = \"other\"";
    let other_half = "issuer = \"other\"\nsubject = \"*\"";
    let split = format!("name = \"x\"\n[[allow]]\n{half}\n[[allow]]\n{other_half}\n");
    assert_eq!(refusal(&split, &statement).unwrap().rules().len(), 2, "rules do not add up");
    let second = format!("name = \"x\"\n[[allow]]\n{half}\n[[allow]]\nissuer = \"*\"\n");
    assert_eq!(refusal(&second, &statement), None, "one rule is enough");
    let none = refusal("name = \"nobody\"", &statement).unwrap();
    assert_eq!(none.to_string(), "policy \"nobody\" has no rule that admits this statement");
}

#[test]
fn a_refusal_names_every_condition_that_failed() {
    let key = es256();
    let statement = own(&Sketch::self_certified(&key), &key);
    let policy = "name = \"strict\"\n[[allow]]\nname = \"first\"\nalgorithm = \"EdDSA\"\n\
                  issuer = \"*\"\nsubject = \"urn:other\"\n[[allow]]\nbinding = \"pinned\"\n";
    let text = refusal(policy, &statement).unwrap().to_string();
    let expected = format!(
        "policy \"strict\" has no rule that admits this statement; \
         rule \"first\": algorithm is ES256, the policy wants EdDSA; \
         rule \"first\": subject is {SUBJECT}, the policy wants urn:other; \
         rule \"allow 2\": binding is self-certified, the policy wants pinned"
    );
    assert_eq!(text, expected);
}

#[test]
fn statements_without_a_content_type_match_no_pattern_for_one() {
    let key = es256();
    let bare = own(&Sketch::self_certified(&key).without(3), &key);
    assert!(refusal(&with("content_type = \"*\""), &bare).is_some());
    assert_eq!(refusal(&with("profile = \"opaque\""), &bare), None);
    assert_eq!(profile::read(&bare).findings[0].code, "content-type-missing");
    let hashed = Sketch::self_certified(&key).without(3).with(258, -16).payload(&[7; 32]);
    let hashed = own(&hashed, &key);
    assert_eq!(refusal(&with("profile = \"hash\""), &hashed), None);
    assert!(refusal(&with("content_type = \"*\""), &hashed).is_some());
    let odd = Sketch::self_certified(&key).without(3).with(258, -999).payload(&[7; 3]);
    assert_eq!(profile::read(&own(&odd, &key)).findings[0].code, "hash-algorithm-unknown");
    let coap = own(&Sketch::self_certified(&key).with(3, 50), &key);
    assert_eq!(refusal(&with("content_type = \"50\""), &coap), None);
}

#[test]
fn patterns() {
    let cases = [
        ("", "", true),
        ("", "a", false),
        ("*", "", true),
        ("*", "anything", true),
        ("a", "a", true),
        ("a", "A", false),
        ("a*", "a", true),
        ("a*", "ba", false),
        ("*a", "a", true),
        ("*a", "aab", false),
        ("a*b", "ab", true),
        ("a*b", "axb", true),
        ("a*b", "axbx", false),
        ("a*a", "a", false),
        ("a*b*c", "a-b-c", true),
        ("a*b*c", "acb", false),
        ("*b*b*", "b", false),
        ("*b*b*", "abab", true),
        ("a*ab", "aab", true),
        ("a*ab", "aabab", true),
        ("**", "x", true),
        ("https://*.example", "https://evil.test/.example", true),
        ("a.c", "abc", false),
        ("[a]", "a", false),
        ("é*", "école", true),
    ];
    for (pattern, text, expected) in cases {
        assert_eq!(Pattern(pattern.to_owned()).matches(text), expected, "{pattern} {text}");
    }
    // Not exponential: each star costs one pass at most.
    let hostile = Pattern(format!("{}b", "a*".repeat(2000)));
    assert!(!hostile.matches(&"a".repeat(60_000)));
}

#[test]
fn files_that_cannot_run() {
    let cases = [
        ("name = ", "policy-not-toml"),
        ("name = \"a\"\nname = \"b\"", "policy-not-toml"),
        ("", "policy-missing"),
        ("name = 1", "policy-wrong-kind"),
        ("name = \"a\"\nalow = 1", "policy-unknown-key"),
        ("name = \"a\"\nallow = 1", "policy-wrong-kind"),
        ("name = \"a\"\nallow = [1]", "policy-wrong-kind"),
        ("name = \"a\"\n[[allow]]", "policy-empty-rule"),
        ("name = \"a\"\n[[allow]]\nname = \"all\"", "policy-empty-rule"),
        ("name = \"a\"\n[[allow]]\nisuer = \"*\"", "policy-unknown-key"),
        ("name = \"a\"\n[[allow]]\nissuer = 1", "policy-wrong-kind"),
        ("name = \"a\"\n[[allow]]\nissuer = []", "policy-wrong-kind"),
        ("name = \"a\"\n[[allow]]\nissuer = [\"x\", 1]", "policy-wrong-kind"),
        ("name = \"a\"\n[[allow]]\nname = 1\nissuer = \"*\"", "policy-wrong-kind"),
        ("name = \"a\"\n[[allow]]\nbinding = \"any\"", "policy-unknown-word"),
        ("name = \"a\"\n[[allow]]\nalgorithm = \"RS256\"", "policy-unknown-word"),
        ("name = \"a\"\n[[allow]]\nprofile = \"control\"", "policy-unknown-word"),
        ("name = \"a\"\n[[allow]]\nwithout_findings = \"*_lost\"", "policy-unknown-word"),
        ("name = \"a\"\n[[allow]]\nwithout_findings = \"subject_*\"", "ok"),
        ("name = \"a\"\n[[allow]]\nstatement_bytes_max = \"1\"", "policy-wrong-kind"),
        ("name = \"a\"\n[[allow]]\nstatement_bytes_max = -1", "policy-wrong-kind"),
        ("name = \"a\"\nrate = 1", "policy-wrong-kind"),
        ("name = \"a\"\n[rate]", "policy-missing"),
        ("name = \"a\"\n[rate]\nper_minute = 0", "policy-wrong-kind"),
        ("name = \"a\"\n[rate]\nper_minute = 4294967296", "policy-wrong-kind"),
        ("name = \"a\"\n[rate]\nper_second = 1", "policy-unknown-key"),
        ("name = \"a\"\n[rate]\nper_minute = 1_000", "ok"),
        ("name = \"a\"\n[[allow]]\nstatement_bytes_max = 0x400", "ok"),
    ];
    for (text, expected) in cases {
        let found = Policy::parse(text).map_or_else(|e| e.code(), |_| "ok");
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn mistakes_name_their_line() {
    let text = "# first\nname = \"a\"\n\n[[allow]]\nissuer = \"*\"\nisuer = \"*\"\n";
    let error = Policy::parse(text).unwrap_err();
    assert_eq!(error.to_string(), "line 6: unknown key isuer; did you mean issuer?");
    let error = Policy::parse("name = \"a\"\n[[allow]]\nbinding = \"any\"").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 3: \"any\" is not a word of binding; known are did:key, did:web, pinned, self-certified, x5chain"
    );
    let misspelt =
        "name = \"a\"\n[[allow]]\nwithout_findings = [\"claim_not_text\", \"subject_mismach\"]";
    assert_eq!(
        Policy::parse(misspelt).unwrap_err().to_string(),
        "line 3: \"subject_mismach\" is not a word of without_findings; did you mean subject_mismatch?"
    );
}

#[test]
fn the_policies_we_ship() {
    let (key, raw) = (es256(), ed25519());
    let pinned = TrustAnchors::default().with_issuer(ISSUER, std::slice::from_ref(key.public()));
    let known = authentic(&Sketch::new(&key), &key, &pinned);
    let stranger = own(&Sketch::self_certified(&raw), &raw);
    assert_eq!(refusal(OPEN, &known), None);
    assert_eq!(refusal(OPEN, &stranger), None);
    assert_eq!(refusal(ISSUERS, &known), None);
    let refused = refusal(ISSUERS, &stranger).unwrap().to_string();
    assert!(refused.contains("binding is self-certified"), "{refused}");
    assert_eq!(Policy::parse(ISSUERS).unwrap().rate(), Some(Rate { per_minute: 60_000 }));
    assert_eq!(Policy::parse(OPEN).unwrap().rate(), None);
    let policy = Policy::parse(OPEN).unwrap();
    assert_eq!((policy.name(), policy.text()), ("open", OPEN));
    assert_eq!(policy.digest(), Digest::of(OPEN.as_bytes()));
}

/// Control statements are the log's own, whatever the policy says.
#[test]
fn control_statements_are_reserved() {
    let key = es256();
    for control in Control::ALL {
        let sketch = Sketch::self_certified(&key).with(3, control.content_type());
        let statement = own(&sketch, &key);
        let refused = refusal(OPEN, &statement).unwrap();
        assert_eq!(refused.code(), "control-reserved");
        assert!(refused.to_string().contains(control.content_type()));
        assert!(Policy::own(statement, ISSUER).is_none(), "not pinned under the log's name");
        let trust = TrustAnchors::default().with_issuer(ISSUER, std::slice::from_ref(key.public()));
        let statement = authentic(&sketch, &key, &trust);
        assert!(Policy::own(statement.clone(), "https://log.example").is_none());
        let (_, found) = Policy::own(statement, ISSUER).unwrap();
        assert_eq!(found, control);
    }
    let trust = TrustAnchors::default().with_issuer(ISSUER, std::slice::from_ref(key.public()));
    assert!(Policy::own(authentic(&Sketch::new(&key), &key, &trust), ISSUER).is_none());
}

/// A Capsule that claims a dispatch which it does not show: nobody looked for
/// that before version 2 of the rules.
#[test]
fn new_findings_do_not_change_old_decisions() {
    let capsule = r#"{"spec_version":"draft-mih-scitt-agent-action-capsule-01",
        "format_version":"2","action_id":"1","action_type":"fyi","operator":"acme",
        "developer":"https://agent.example","timestamp":"2026-06-01T00:00:00Z",
        "assurance":{"attestation_mode":"self_attested","effect_mode":"dispatched_unconfirmed",
        "ledger_mode":"standalone"}}"#;
    let capsule = crate::wire::json::Json::read(capsule.as_bytes()).unwrap();
    let id = crate::wire::jcs::Suite::JcsN.digest(&capsule).unwrap().hex();
    let mut members = capsule.members().unwrap().to_vec();
    members.push(("capsule_id".to_owned(), id.into()));
    let payload = crate::wire::jcs::canonical(&crate::wire::json::Json::Object(members)).unwrap();
    let key = es256();
    let draft = crate::envelope::Draft {
        content_type: profile::capsule::CONTENT_TYPE,
        issuer: "https://agent.example",
        subject: "urn:agent-action-capsule:acme:1",
        issued_at: None,
        payload: payload.as_bytes(),
    };
    let claims = [("capsule_statement_type", "agent_action".to_owned())];
    let bytes = crate::envelope::seal_with_claims(&draft, &claims, &key).unwrap();
    let trust = TrustAnchors::default().with_issuer(draft.issuer, &[key.public().clone()]);
    let resolved = Resolved::default();
    let by = |rules| {
        let statement = SignedStatement::parse(bytes.clone()).unwrap();
        statement
            .authenticate(&AuthContext { rules, ..AuthContext::new(&trust, &resolved, NOW) })
            .unwrap()
    };
    let conditions = [
        "findings_at_most = \"none\"",
        "without_findings = \"effect_mode_*\"",
        "without_findings = \"*\"",
        #[cfg(feature = "rego")]
        "rego = \"package policy\\nallow := true\\n\
         errors contains f.code if some f in input.capstan.findings\"",
    ];
    for condition in conditions {
        let [then, now] = [RulesVersion::V1, RulesVersion::V2].map(by);
        assert_eq!(refusal(&with(condition), &then), None, "{condition}");
        assert!(refusal(&with(condition), &now).is_some(), "{condition}");
    }
    assert_eq!(profile::read(&by(RulesVersion::V2)).summary.ok, Some(true));
}

/// The kind is known from the table of kinds alone.
#[test]
fn conditions_know_every_kind_of_the_table() {
    use crate::profile::tests::toy;
    let key = es256();
    let toy = |text: &[u8]| {
        own(&Sketch::self_certified(&key).with(3, toy::CONTENT_TYPE).payload(text), &key)
    };
    let (calm, loud, empty) = (toy(b"hello"), toy(b"hello!"), toy(b""));
    for (condition, admitted) in [
        ("profile = \"toy\"", [true, true, true]),
        ("profile = [\"pacr\", \"opaque\"]", [false, false, false]),
        ("without_findings = \"toy-*\"", [true, false, false]),
        ("findings_at_most = \"warning\"", [true, true, false]),
        ("ok = true\noperator = \"acme\"", [true, true, false]),
        ("payload = \"clear\"", [true, true, true]),
    ] {
        let found = [&calm, &loud, &empty].map(|one| refusal(&with(condition), one).is_none());
        assert_eq!(found, admitted, "{condition}");
    }
    for kind in profile::KINDS {
        let parsed = Policy::parse(&with(&format!("profile = {:?}", kind.name)));
        assert_eq!(parsed.is_ok(), kind.role != profile::Role::Control, "{}", kind.name);
    }
}

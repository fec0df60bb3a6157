//! Every condition both ways, on one capsule; refusing rules; Rego; and the
//! cases beside the policies we ship.

use super::super::condition::KINDS;
use super::*;
use crate::key::Algorithm;

const AGENTS: &str = include_str!("../../../../policy/agents.cases.toml");

/// The capsule of the shipped cases, with one case of our own.
fn case(extra: &str) -> Cases {
    let base = &AGENTS[..AGENTS.find("[[case]]").unwrap()];
    Cases::parse(&format!("{base}\n[[case]]\nname = \"one\"\nexpect = \"admit\"\n{extra}")).unwrap()
}

fn run(rules: &str, extra: &str) -> CaseOutcome {
    let policy = Policy::parse(&format!("name = \"test\"\n{rules}")).unwrap();
    case(extra).run(&policy).remove(0)
}

/// Key, a value that holds, one that does not, and facts for both.
const BOTH_WAYS: &[(&str, &str, &str, &str)] = &[
    ("action_type", "'decide'", "'fyi'", ""),
    ("algorithm", "['EdDSA', 'ES256']", "'EdDSA'", ""),
    ("anchor", "['acme *', 'other']", "'partner *'", "binding = 'x5chain'\nanchor = 'acme root'"),
    ("approver", "'human'", "'policy'", ""),
    ("binding", "'pinned'", "['x5chain', 'did:web']", ""),
    (
        "claim",
        "{ capsule_statement_type = 'agent_*', '1' = true, '6' = false }",
        "{ '6' = true }",
        "",
    ),
    ("concealed", "false", "true", ""),
    ("content_type", "'application/agent-*'", "'text/*'", ""),
    ("decision", "'accept'", "'reject'", ""),
    ("developer", "'https://*'", "'other'", ""),
    ("effect_attestation", "'runtime_claimed'", "'gate_executed'", ""),
    ("effect_mode", "'dispatched_unconfirmed'", "'confirmed'", ""),
    ("effect_status", "['planned', 'dispatched']", "'confirmed'", ""),
    ("effect_type", "'write_*'", "'send_payment'", ""),
    ("findings_at_most", "'info'", "'none'", "claim = { capsule_x = '1' }"),
    ("human_disposed", "true", "false", ""),
    (
        "intervention",
        "['observe', 'do-digital']",
        "'counterfactual'",
        "content_type = 'application/pacr+json'\npayload = '{\"payload\":\"UEFDUgI=\"}'",
    ),
    ("irreversibility", "'two_way'", "'one_way_*'", ""),
    ("irreversibility_max", "'one_way_recoverable'", "'none'", ""),
    ("issuer", "['urn:x', 'https://agent.example']", "'https://agent.example/'", ""),
    ("nonce", "'new'", "['none', 'used']", "facts = { nonce = 'new' }"),
    ("ok", "true", "false", ""),
    ("operator", "'acme'", "'ac'", ""),
    ("parent", "'known'", "['none', 'unknown']", "facts = { parent = 'known' }"),
    ("parent_operator", "'other'", "'same'", "facts = { parent_operator = 'other' }"),
    ("parent_superseded", "true", "false", "facts = { parent_superseded = true }"),
    (
        "payload",
        "['empty', 'hashed']",
        "'clear'",
        "content_type = 'application/pacr+json'\npayload = '{\"payload\":\"UEFDUgI=\"}'",
    ),
    ("predecessors", "'known'", "['none', 'unknown']", "facts = { predecessors = 'known' }"),
    ("profile", "'capsule'", "['opaque', 'hash']", ""),
    ("record_id", "'known'", "['new', 'other-chain']", "facts = { record_id = 'known' }"),
    #[cfg(feature = "rego")]
    (
        "rego",
        "\"package policy\\nallow if input.payload.operator == 'acme'\"",
        "\"package policy\\nallow if input.phdr.cwt.iss == 1\"",
        "",
    ),
    ("session", "['new', 'extends']", "'none'", "facts = { session = 'extends' }"),
    ("statement_bytes_max", "60000", "100", ""),
    ("subject", "'urn:agent-action-capsule:acme:*'", "'urn:x'", ""),
    ("verdict", "['denied', 'executed']", "'blocked'", ""),
    (
        "without_conflicts",
        "['denied', 'expired']",
        "'no-request'",
        "facts = { conflicts = ['no-request', 'other-issuer'] }",
    ),
    ("without_findings", "['subject_*']", "['unknown_*']", "claim = { capsule_x = '1' }"),
];

#[test]
fn every_kind_of_condition_admits_and_refuses() {
    let mut tested: Vec<&str> = BOTH_WAYS.iter().map(|(key, ..)| *key).collect();
    let mut known: Vec<&str> = KINDS.iter().map(|kind| kind.key).collect();
    known.retain(|key| cfg!(feature = "rego") || *key != "rego");
    tested.sort_unstable();
    known.sort_unstable();
    assert_eq!(tested, known);
    for (key, holds, fails, extra) in BOTH_WAYS {
        // Rego has text in double quotes only.
        let (holds, fails) = if *key == "rego" {
            (holds.replace('\'', "\\\""), fails.replace('\'', "\\\""))
        } else {
            (holds.to_string(), fails.to_string())
        };
        let outcome = run(&format!("[[allow]]\n{key} = {holds}"), extra);
        assert!(outcome.admitted, "{key} = {holds}: {}", outcome.detail);
        let outcome = run(&format!("[[allow]]\n{key} = {fails}"), extra);
        assert!(!outcome.admitted, "{key} = {fails}");
        assert!(outcome.detail.contains(&format!("{key} is ")), "{}", outcome.detail);
        if *key != "rego" {
            let both = format!("[[allow]]\nissuer = '*'\n[[refuse]]\n{key} = {holds}");
            let outcome = run(&both, extra);
            assert!(!outcome.admitted, "a rule that refuses goes first: {key}");
            assert!(outcome.detail.contains("by rule \"refuse 1\""), "{}", outcome.detail);
            let neither = format!("[[allow]]\nissuer = '*'\n[[refuse]]\n{key} = {fails}");
            assert!(run(&neither, extra).admitted, "{key}");
        }
    }
}

/// A policy that keeps words in clear off the log: a digest passes, and what
/// cannot be read does not.
#[test]
fn causal_records_in_clear_are_refused() {
    const ENVELOPE: &[u8] = &[0x82, 0xa1, 0x19, 0x01, 0x02, 0x2f, 0x58, 0x20];
    let hashed = |tag: &[u8]| [tag, ENVELOPE, &[7; 32]].concat();
    let rows: [(&str, Vec<u8>, &str); 9] = [
        ("nothing", vec![], "empty"),
        ("a tag", b"PACR\x02".to_vec(), "empty"),
        ("a digest", hashed(b""), "hashed"),
        ("a tagged digest", hashed(b"PACR\x01"), "hashed"),
        ("a simulation", hashed(b"PACR\x05\x3f\xe0\x00\x00\x00\x00\x00\x00"), "hashed"),
        ("words", b"Alice".to_vec(), "clear"),
        ("tagged words", b"PACR\x02Alice".to_vec(), "clear"),
        ("a digest and words", [hashed(b"PACR\x02"), b"Alice".to_vec()].concat(), "clear"),
        ("a tag nobody knows", hashed(b"PACR\x09"), "clear"),
    ];
    let refuses = "[[allow]]\nissuer = '*'\n[[refuse]]\nprofile = 'pacr'\npayload = 'clear'";
    let record = |payload: &str| {
        format!("content_type = 'application/pacr+json'\npayload = '{{{payload}}}'")
    };
    for (what, payload, form) in rows {
        let text = crate::wire::text::base64(&payload);
        let case = record(&format!("\"payload\":\"{text}\""));
        let outcome = run(&format!("[[allow]]\npayload = '{form}'"), &case);
        assert!(outcome.admitted, "{what}: {}", outcome.detail);
        let outcome = run(refuses, &case);
        assert_eq!(outcome.admitted, form != "clear", "{what}: {}", outcome.detail);
    }
    for payload in ["\"payload\":7", ""] {
        assert!(!run(refuses, &record(payload)).admitted, "unread is clear: {payload:?}");
    }
    assert!(run(refuses, "").admitted, "a capsule has no such payload");
    // The policy that the documentation shows, and words beside the payload.
    let page = include_str!("../../../../docs/profiles/pacr.md");
    let shown = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let digest = format!("\"payload\":\"{}\"", crate::wire::text::base64(&hashed(b"PACR\x02")));
    for (members, admitted) in [
        (digest.clone(), true),
        (format!("{digest},\"name\":\"Alice\""), false),
        ("\"payload\":\"QWxpY2U=\"".to_owned(), false),
    ] {
        let outcome = run(shown, &record(&members));
        assert_eq!(outcome.admitted, admitted, "{members}: {}", outcome.detail);
    }
}

#[test]
fn closed_lists_are_those_of_the_code() {
    for name in Algorithm::all().map(Algorithm::name) {
        assert!(Policy::parse(&with(&format!("algorithm = {name:?}"))).is_ok(), "{name}");
    }
    for binding in Binding::ALL {
        assert!(Policy::parse(&with(&format!("binding = \"{binding}\""))).is_ok(), "{binding}");
    }
}

#[test]
fn a_case_can_have_any_binding() {
    for binding in Binding::ALL {
        for algorithm in ["ES256", "ES384", "EdDSA"] {
            let extra = format!("binding = '{binding}'\nalgorithm = '{algorithm}'");
            let outcome = run(&format!("[[allow]]\nbinding = '{binding}'"), &extra);
            assert!(outcome.admitted, "{extra}: {}", outcome.detail);
        }
    }
}

#[test]
fn an_effect_that_does_not_say_how_final_it_is_passes_no_limit() {
    let limit = "[[allow]]\nirreversibility_max = 'one_way_terminal'";
    let outcome = run(limit, "set = { '/effect/irreversibility_class' = '' }");
    assert!(outcome.detail.contains("irreversibility_max is unstated"), "{}", outcome.detail);
    assert!(run(limit, "set = { '/effect' = '' }").admitted, "no effect, nothing to undo");
    assert!(!run(limit, "set = { '/effect/irreversibility_class' = 'odd' }").admitted);
}

#[cfg(not(feature = "rego"))]
#[test]
fn build_without_rego_says_how_to_get_it() {
    let error = Policy::parse("name = 'p'\n[[allow]]\nrego = 'package policy'").unwrap_err();
    assert_eq!(error.code(), "policy-rego");
    assert!(error.to_string().contains("--features rego"), "{error}");
}

#[cfg(feature = "rego")]
#[test]
fn rego_that_errs_or_never_ends_refuses() {
    let rule = |module: &str| format!("[[allow]]\nrego = '''\npackage policy\n{module}\n'''");
    let refused = [
        ("allow if false", "allow is undefined"),
        ("allow := 1", "allow is 1"),
        ("allow := true\nerrors contains \"too late\" if true", "too late"),
        (
            "allow if { input.phdr; some a in numbers.range(1, 4000); \
             some b in numbers.range(1, 4000); a * b == -1 }",
            "allow was stopped after 100000 operations",
        ),
        (
            "allow := true\nerrors contains \"x\" if { input.phdr; some a in numbers.range(1, 4000); \
             some b in numbers.range(1, 4000); a * b == -1 }",
            "errors was stopped after 100000 operations",
        ),
    ];
    for (module, because) in refused {
        let outcome = run(&rule(module), "");
        assert!(!outcome.admitted && outcome.detail.contains(because), "{}", outcome.detail);
        assert_eq!(run(&rule(module), ""), outcome, "a replay says the same");
    }
    let facts = "allow if { input.capstan.facts.parent == \"known\"; \
                 input.capstan.summary.operator == \"acme\"; input.phdr.alg == -7 }";
    assert!(run(&rule(facts), "facts = { parent = 'known' }").admitted);
    let endless = "allow if { some a in numbers.range(1, 4000); \
                   some b in numbers.range(1, 4000); a * b == -1 }";
    let unusable = [endless, "allow if {", "allow := rand.intn(\"x\", 2) == 1", "deny := true"];
    for module in unusable {
        let error = Policy::parse(&format!("name = 'x'\n{}", rule(module))).unwrap_err();
        assert_eq!(error.code(), "policy-rego", "{module}");
    }
    let refuse = "name = 'x'\n[[refuse]]\nrego = 'package p\nallow := true'";
    assert!(Policy::parse(refuse).is_err());
}

#[test]
fn the_cases_beside_the_shipped_policies() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../policy");
    let mut ran = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.ends_with(".toml") || name.ends_with(".cases.toml") {
            continue;
        }
        let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
        let policy = Policy::parse(&read(&path)).unwrap();
        let cases = Cases::parse(&read(&path.with_extension("cases.toml"))).unwrap();
        let outcomes = cases.run(&policy);
        for outcome in &outcomes {
            assert!(outcome.ok, "{name}: {}: {}", outcome.name, outcome.detail);
        }
        assert!(outcomes.iter().any(|o| o.admitted) && outcomes.iter().any(|o| !o.admitted));
        ran += 1;
    }
    assert_eq!(ran, 5);
}

#[test]
fn cases_that_cannot_be_read() {
    assert!(Cases::parse("case = 1").is_err());
    let odd = "[[case]]\nname = 'a'\nexpect = 'admit'\nbindig = 'pinned'";
    assert_eq!(Cases::parse(odd).unwrap_err(), "unknown key bindig");
    for wrong in ["binding = 'x509'", "payload_hex = 'x'", "algorithm = 'X'", "claim = { a = 1.5 }"]
    {
        let outcome = run("[[allow]]\nissuer = '*'", wrong);
        assert!(!outcome.ok && outcome.detail.starts_with("no statement"), "{}", outcome.detail);
    }
}

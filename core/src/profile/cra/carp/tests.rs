use super::*;
use crate::profile::exchange::{CLOCK_SKEW_SECONDS_MAX, Part};

const ID: &str = "01939c6e-0000-7000-8000-00000000000a";
const OTHER: &str = "01939c6e-0000-7000-8000-00000000000b";

fn request() -> String {
    format!(
        r#"{{"carp_version":"1.0","request_id":"{ID}","timestamp":"2024-12-28T12:00:00.000Z","operation":"resolve","requester":{{"agent_id":"bot","session_id":"{ID}","parent_session_id":null}},"task":{{"goal":"g","risk_tier":"low"}},"atlas_ids":["com.example.a-b"],"context":{{}}}}"#
    )
}

fn execute() -> String {
    let execution = format!(
        r#""execution":{{"resolution_id":"{OTHER}","action_id":"t.look","parameters":{{"n":1}},"idempotency_key":null}},"context""#
    );
    let resolve = request().replace(r#""resolve""#, r#""execute""#);
    resolve
        .replace(r#""task":{"goal":"g","risk_tier":"low"},"#, "")
        .replace(r#""context""#, &execution)
}

fn resolution() -> String {
    format!(
        r#"{{"carp_version":"1.0","resolution_id":"{OTHER}","request_id":"{ID}","timestamp":"2024-12-28T12:00:00Z","decision":{{"type":"partial","reason":null,"approval_id":null,"expires_at":null}},"context_blocks":[{{"block_id":"b","source":"com.example.a","content_type":"text/markdown","content":"","priority":1,"token_estimate":0}}],"allowed_actions":[{{"action_id":"t.look","name":"n","description":"d","parameters_schema":{{"type":"object","required":["n"]}},"rate_limit":{{"max_calls":1,"window_seconds":1}}}}],"denied_actions":[{{"action_id":"t.drop","reason":"r","policy_id":"p"}}],"constraints":[{{"constraint_id":"c","type":"budget","parameters":{{}}}}],"ttl_seconds":300,"trace_id":"{ID}"}}"#
    )
}

fn response() -> String {
    format!(
        r#"{{"carp_version":"1.0","execution_id":"{ID}","request_id":"{ID}","resolution_id":"{OTHER}","timestamp":"2024-12-28T12:00:00Z","status":"success","result":{{}},"error":null,"trace_id":"{ID}"}}"#
    )
}

fn listed(text: &str) -> Vec<(&'static str, String)> {
    let (record, findings) = CarpRecord::read(text.as_bytes());
    let broken = findings.iter().any(|finding| finding.severity == Severity::Error);
    assert_eq!(record.summary().ok, Some(!broken));
    findings.into_iter().map(|finding| (finding.code, finding.at)).collect()
}

#[test]
fn sound_documents_are_told_apart_and_summed_up() {
    let summary = |text: &str| {
        assert_eq!(listed(text), [], "{text}");
        CarpRecord::read(text.as_bytes()).0.summary()
    };
    let asked = summary(&request());
    assert_eq!((asked.record_id.as_deref(), asked.developer.as_deref()), (Some(ID), Some("bot")));
    assert_eq!((asked.decision_id, asked.content.unwrap().len()), (None, 64));
    let wanted = summary(&execute());
    assert_eq!(
        (wanted.record_id.as_deref(), wanted.decision_id.as_deref()),
        (Some(ID), Some(OTHER))
    );
    let given = summary(&resolution());
    assert_eq!(
        (given.record_id.as_deref(), given.decision_id.as_deref()),
        (Some(OTHER), Some(OTHER))
    );
    assert_eq!((given.decision, given.verdict), (None, None), "partial is neither");
    let done = summary(&response());
    assert_eq!((done.action_id.as_deref(), done.verdict.as_deref()), (Some(ID), Some("executed")));
    assert_eq!(done.decision_id.as_deref(), Some(OTHER));
    let waits = summary(&response().replace("success", "pending_approval"));
    assert_eq!(waits.verdict.as_deref(), Some("hitl_dispatched"));
    let asks = resolution()
        .replace("partial", "requires_approval")
        .replace(r#""approval_id":null"#, r#""approval_id":"a""#);
    let asks = summary(&asks);
    assert_eq!(
        (asks.decision.as_deref(), asks.verdict.as_deref()),
        (Some("needs_input"), Some("hitl_dispatched"))
    );
    let names = [Kind::Request, Kind::Resolution, Kind::Response].map(Kind::name);
    assert_eq!(names, ["request", "resolution", "execute response"]);
}

#[test]
fn every_violation_is_named_by_its_pointer() {
    let cases: [(&str, String, &[&str]); 18] = [
        ("version", request().replace(r#""1.0""#, r#""2.0""#), &["/carp_version"]),
        ("no task", request().replace(r#""task""#, r#""tusk""#), &["/task"]),
        ("no execution", execute().replace(r#""execution""#, r#""execute""#), &["/execution"]),
        ("no requester", request().replace(r#""requester""#, r#""asker""#), &["/requester"]),
        ("operation", request().replace("resolve", "guess"), &["/operation"]),
        ("time", request().replace("12:00:00.000Z", "12:00:00"), &["/timestamp"]),
        (
            "uuid",
            request().replace("01939c6e", "01939C6E"),
            &["/request_id", "/requester/session_id"],
        ),
        ("risk", request().replace(r#""low""#, r#""none""#), &["/task/risk_tier"]),
        ("atlas", request().replace("com.example.a-b", "Example"), &["/atlas_ids/0"]),
        ("action", execute().replace("t.look", "look"), &["/execution/action_id"]),
        (
            "decision",
            resolution().replace("partial", "allow_with_constraints"),
            &["/decision/type"],
        ),
        ("ttl", resolution().replace("300", "-1"), &["/ttl_seconds"]),
        ("ttl text", resolution().replace(":300", ":1e999"), &["/ttl_seconds"]),
        ("media", resolution().replace("markdown", "plain"), &["/context_blocks/0/content_type"]),
        (
            "denied",
            resolution().replace(r#","policy_id":"p""#, ""),
            &["/denied_actions/0/policy_id"],
        ),
        (
            "rate",
            resolution().replace(r#""max_calls":1"#, r#""max_calls":0"#),
            &["/allowed_actions/0/rate_limit/max_calls"],
        ),
        ("constraint", resolution().replace("budget", "scope"), &["/constraints/0/type"]),
        (
            "error",
            response().replace("success", "error").replace(r#""error":null,"#, ""),
            &["/error"],
        ),
    ];
    for (name, text, pointers) in cases {
        let mut at: Vec<String> = listed(&text)
            .into_iter()
            .map(|(code, at)| {
                assert_eq!(code, "carp-schema-violation", "{name}");
                at
            })
            .collect();
        at.sort();
        assert_eq!(at, pointers, "{name}");
    }
    assert_eq!(listed("{}"), [("carp-kind-unknown", String::new())]);
    assert_eq!(listed("[1]"), [("carp-kind-unknown", String::new())]);
    let both = resolution().replace(r#""ttl_seconds""#, r#""operation":"resolve","ttl_seconds""#);
    assert_eq!(listed(&both), [("carp-kind-unknown", String::new())]);
    assert_eq!(listed("{")[0].0, "json-truncated");
    let v4 = request().replace("-7000-", "-4000-");
    assert_eq!(listed(&v4), [("carp-uuid-not-v7", "/request_id".to_owned())]);
}

#[test]
fn a_decision_fits_its_actions() {
    let conflict = resolution().replace(r#""partial""#, r#""deny""#);
    assert_eq!(listed(&conflict), [("carp-decision-conflict", "/decision/type".to_owned())]);
    let doubtful = [
        resolution().replace("requires", "").replace(r#""partial""#, r#""requires_approval""#),
        resolution().replace(r#"{"action_id":"t.drop","reason":"r","policy_id":"p"}"#, ""),
    ];
    for text in doubtful {
        assert_eq!(
            listed(&text),
            [("carp-decision-doubtful", "/decision/type".to_owned())],
            "{text}"
        );
    }
    let both = resolution().replace("t.drop", "t.look");
    assert_eq!(
        listed(&both),
        [("carp-action-conflict", "/allowed_actions/0/action_id".to_owned())]
    );
    let empty = resolution().replace(r#""partial""#, r#""allow""#);
    let (start, rest) = empty.split_once(r#""allowed_actions":["#).unwrap();
    let (_, end) = rest.split_once(r#"],"denied"#).unwrap();
    let empty = format!(r#"{start}"allowed_actions":[],"denied{end}"#);
    assert_eq!(listed(&empty), [("carp-decision-doubtful", "/decision/type".to_owned())]);
}

#[test]
fn a_clock_is_asked_only_where_somebody_has_one() {
    let (record, findings) = CarpRecord::read(request().as_bytes());
    assert_eq!(findings, [], "an old record is not late");
    let asked = |text: &str| match CarpRecord::read(text.as_bytes()).0.summary().exchange {
        Some(part) => match *part {
            Part::Request(asked) => Some(asked),
            _ => None,
        },
        None => None,
    };
    let claimed = record.claimed_at().unwrap().seconds();
    for (now, is_late) in [
        (claimed, false),
        (claimed + 300, false),
        (claimed - 300, false),
        (claimed + 301, true),
        (claimed - 301, true),
    ] {
        let asked = asked(&request()).unwrap();
        let late = asked.clock_skew(UnixSeconds::new(now), CLOCK_SKEW_SECONDS_MAX);
        assert_eq!(late.map(|finding| finding.code), is_late.then_some("carp-clock-skew"));
    }
    assert_eq!(asked(&resolution()), None, "only requests come in live");
}

#[test]
fn a_resolution_covers_an_execution_or_says_why_not() {
    let read = |text: &str| CarpRecord::read(text.as_bytes()).0;
    let made = read(&resolution()).claimed_at().unwrap().seconds();
    let judge = |resolution: &str, request: &str, after: u64| {
        authorises(&read(resolution), &read(request), UnixSeconds::new(made + after))
            .map_err(|e| e.code())
    };
    let (resolution, execute) = (resolution(), execute());
    assert_eq!(judge(&resolution, &execute, 300), Ok(()));
    let early =
        resolution.replace(r#""expires_at":null"#, r#""expires_at":"2024-12-28T12:00:10Z""#);
    let asks = resolution.replace(r#""partial""#, r#""requires_approval""#);
    let (start, rest) = resolution.split_once(r#""allowed_actions":["#).unwrap();
    let (_, end) = rest.split_once(r#"],"denied"#).unwrap();
    let refused = format!(r#"{start}"allowed_actions":[],"denied{end}"#);
    let refused = refused.replace(r#""partial""#, r#""deny""#);
    let foreign = resolution.replace(r#""required":["n"]"#, r#""required":7"#);
    let cases = [
        (&resolution, &execute, 301, "execution-resolution-expired"),
        (&early, &execute, 11, "execution-resolution-expired"),
        (&resolution, &request(), 0, "execution-not-asked"),
        (&resolution, &execute.replace("t.look", "t.drop"), 0, "execution-denied"),
        (&resolution, &execute.replace("t.look", "t.fly"), 0, "execution-not-allowed"),
        (&refused, &execute, 0, "execution-denied"),
        (&asks, &execute, 0, "execution-not-allowed"),
        (&resolution, &execute.replace(OTHER, ID), 0, "execution-other-resolution"),
        (&execute, &execute, 0, "execution-other-resolution"),
        (&resolution, &execute.replace(r#"{"n":1}"#, "{}"), 0, "execution-parameters"),
        (&foreign, &execute, 0, "execution-parameters"),
    ];
    for (resolution, request, after, code) in cases {
        assert_eq!(judge(resolution, request, after), Err(code));
    }
}

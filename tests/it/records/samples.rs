//! Valid records of every kind, and sessions of events.

use capstan::profile::cra::trace::{Event, GENESIS};
use capstan::profile::cra::{atlas, carp, trace};
use capstan::profile::pacr::{self, Encoding};
use capstan::profile::pca;
use capstan::wire::json::Json as Text;
use serde_json::{Value, json};

use super::{AGENT, SESSION};

/// The id of a causal record.
pub(super) fn name(n: u32) -> String {
    format!("0190A1B2C3D4E5F60718293A{n:08X}")
}

pub(super) fn tuple(id: &str, predecessors: &[&str], with: Value) -> pacr::SixTuple {
    let mut description = json!({
        "id": id,
        "predecessors": predecessors,
        "landauer_cost": 3e-21,
        "resources": { "energy": 5e-19, "time": 0.002, "space": 512 },
        "cognitive_split": { "statistical_complexity": 2.5, "entropy_rate": 0.5 },
    });
    description.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    pacr::describe(description.to_string().as_bytes()).unwrap().0
}

/// A valid causal record in JSON.
pub(super) fn causal(id: &str, predecessors: &[&str], with: Value) -> Vec<u8> {
    tuple(id, predecessors, with).encode(Encoding::Json)
}

/// Lines of a session's events, and the hash of the last. Different values of
/// `story` give different histories.
pub(super) fn events(
    session: &str,
    (first, count): (u64, u64),
    previous: &str,
    story: &str,
) -> (String, String) {
    let (mut text, mut head) = (String::new(), previous.to_owned());
    for sequence in first..first + count {
        let id = |kind: u64| format!("01939c6e-0000-7000-8000-{kind:04x}{sequence:08x}");
        let payload = json!({ "policy_id": story, "result": "allow" }).to_string();
        let mut event = Event {
            line: 0,
            at: String::new(),
            event_id: id(1),
            trace_id: id(2),
            span_id: id(3),
            parent_span_id: None,
            session_id: session.to_owned(),
            sequence,
            timestamp: format!("2024-12-28T12:{:02}:{:02}.000000Z", sequence / 60, sequence % 60),
            event_type: "policy.evaluated".to_owned(),
            payload: Text::read(payload.as_bytes()).unwrap(),
            hash: String::new(),
            previous: head,
        };
        text += &event.seal().unwrap();
        text.push('\n');
        head = event.hash;
    }
    (text, head)
}

/// Consecutive batches of two events, from the start of the session.
pub(super) fn batches(session: &str, count: u64) -> Vec<String> {
    let mut head = GENESIS.to_owned();
    let next = |n| {
        let (lines, end) = events(session, (2 * n, 2), &head, "p");
        head = end;
        lines
    };
    (0..count).map(next).collect()
}

pub(super) fn certificate(planner: &str, nonce: &str) -> Value {
    let digest = "ab".repeat(32);
    json!({
        "pc_version": "1.0", "pc_id": "plan-1", "issued_at": "2026-04-02T08:00:00Z",
        "planner_id": planner, "constraints_version_id": "limits-4",
        "constraints_digest": digest, "plan_digest": digest,
        "effective_time": { "not_before": "2026-04-01T00:00:00Z", "not_after": "2026-04-30T23:59:59Z" },
        "steps": [{ "action_type": "charge", "parameters": { "amount": 4 }, "required_capabilities": ["pay"] }],
        "nonce": nonce,
    })
}

/// One document of an exchange; ids are given by their last digits.
pub(super) enum Carp {
    Resolve { request: u32, session: u32 },
    Execute { request: u32, session: u32, resolution: u32, action: &'static str, at: u32 },
    Resolution { resolution: u32, request: u32, decision: &'static str, ttl: u32 },
    Response { execution: u32, request: u32, resolution: u32, status: &'static str },
}

impl Carp {
    pub(super) fn id(number: u32) -> String {
        format!("01939c6e-0000-7000-8000-{number:012x}")
    }

    pub(super) fn payload(&self) -> Vec<u8> {
        let id = Self::id;
        let at = |second: u32| format!("2024-12-28T12:00:{second:02}Z");
        let asked = |request: u32, session: u32, second: u32, operation: &str| {
            json!({
                "carp_version": "1.0", "request_id": id(request), "timestamp": at(second),
                "operation": operation,
                "requester": { "agent_id": "bot", "session_id": id(session), "parent_session_id": null },
            })
        };
        let document = match *self {
            Self::Resolve { request, session } => {
                let mut asked = asked(request, session, 0, "resolve");
                asked["task"] = json!({ "goal": "g", "risk_tier": "low" });
                asked
            }
            Self::Execute { request, session, resolution, action, at } => {
                let mut asked = asked(request, session, at, "execute");
                let resolution = id(resolution);
                asked["execution"] =
                    json!({ "resolution_id": resolution, "action_id": action, "parameters": {} });
                asked
            }
            Self::Resolution { resolution, request, decision, ttl } => {
                let look = json!([{ "action_id": "t.look", "name": "n", "description": "d" }]);
                let drop = json!([{ "action_id": "t.drop", "reason": "r", "policy_id": "p" }]);
                let (allowed, denied) = match decision {
                    "deny" => (json!([]), json!([])),
                    _ => (look, drop),
                };
                json!({
                    "carp_version": "1.0", "resolution_id": id(resolution),
                    "request_id": id(request), "timestamp": at(0),
                    "decision": { "type": decision, "reason": null, "approval_id": null, "expires_at": null },
                    "context_blocks": [], "allowed_actions": allowed, "denied_actions": denied,
                    "constraints": [], "ttl_seconds": ttl, "trace_id": id(request),
                })
            }
            Self::Response { execution, request, resolution, status } => json!({
                "carp_version": "1.0", "execution_id": id(execution), "request_id": id(request),
                "resolution_id": id(resolution), "timestamp": at(9), "status": status,
                "result": {}, "error": null, "trace_id": id(request),
            }),
        };
        document.to_string().into_bytes()
    }
}

/// Profile, content type and payload of one record of each kind.
pub(super) fn one_of_each() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let (id, other) =
        ("01939c6e-0000-7000-8000-00000000000a", "01939c6e-0000-7000-8000-00000000000b");
    let asked = json!({
        "carp_version": "1.0", "request_id": id, "timestamp": "2024-12-28T12:00:00.000Z",
        "operation": "resolve",
        "requester": { "agent_id": "bot", "session_id": id, "parent_session_id": null },
        "task": { "goal": "g", "risk_tier": "low" }, "atlas_ids": ["com.example.desk"], "context": {},
    });
    let resolved = json!({
        "carp_version": "1.0", "resolution_id": other, "request_id": id,
        "timestamp": "2024-12-28T12:00:00Z",
        "decision": { "type": "deny", "reason": "r", "approval_id": null, "expires_at": null },
        "context_blocks": [], "allowed_actions": [],
        "denied_actions": [{ "action_id": "t.drop", "reason": "r", "policy_id": "p" }],
        "constraints": [], "ttl_seconds": 300, "trace_id": id,
    });
    let manifest = json!({
        "atlas_version": "1.0", "atlas_id": "com.example.desk", "version": "1.2.3", "name": "n",
        "description": "d", "authors": ["a"], "license": "MIT", "domains": ["x"],
        "capabilities": [{ "capability_id": "read", "name": "n", "description": "d", "actions": ["t.look"], "context_packs": [] }],
        "context_packs": [],
        "policies": [{ "policy_id": "a", "type": "allow", "conditions": {}, "actions": ["t.look"] }],
        "actions": [{ "action_id": "t.look", "name": "n", "description": "d" }],
        "dependencies": {},
    });
    let proofs = json!([{ "type": "audit", "digest": "cd".repeat(32) }]);
    let evidence = json!({ "capsule_version": "1.0", "proofs": proofs });
    let (event, head) = events(SESSION, (0, 1), GENESIS, "p");
    let json = |value: Value| value.to_string().into_bytes();
    let in_cbor = tuple(&name(0xB), &[&name(0xA)], json!({"intervention": "do-digital"}));
    vec![
        ("pacr", pacr::JSON_CONTENT_TYPE, causal(&name(0xA), &[], json!({}))),
        ("pacr", pacr::CBOR_CONTENT_TYPE, in_cbor.encode(Encoding::Cbor)),
        ("pca-certificate", pca::CERTIFICATE_CONTENT_TYPE, json(certificate(AGENT, "n-1"))),
        ("pca-evidence", pca::EVIDENCE_CONTENT_TYPE, json(evidence)),
        ("trace", trace::CONTENT_TYPE, event.trim_end().as_bytes().to_vec()),
        ("trace", trace::BATCH_CONTENT_TYPE, events(SESSION, (1, 3), &head, "p").0.into_bytes()),
        ("carp", carp::CONTENT_TYPE, json(asked)),
        ("carp", carp::CONTENT_TYPE, json(resolved)),
        ("atlas", atlas::CONTENT_TYPE, json(manifest)),
    ]
}

//! Comparison with upstream's four JSON Schemas: one row for each difference, and
//! some without. The differences are listed in docs/profiles/cra.md.

use capstan::profile::Record;
use capstan::profile::cra::trace::Form;
use capstan::profile::cra::{AtlasRecord, CarpRecord, TraceRecord};
use capstan::wire::json::Json;
use serde_json::{Value, json};

use super::{bytes, event, published};

/// Name, document, whether it is valid here, whether it is valid upstream.
type Row = (&'static str, Value, bool, bool);

fn compare(schema: &str, rows: Vec<Row>, sound: impl Fn(&[u8]) -> bool) {
    let Some(folder) = published("cra") else { return };
    let path = folder.join("schemas").join(format!("{schema}.schema.json"));
    let schema: Value = serde_json::from_slice(&bytes(&path)).unwrap();
    let origin =
        jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema");
    for (name, document, ours, theirs) in rows {
        assert_eq!(sound(document.to_string().as_bytes()), ours, "{name}: ours");
        assert_eq!(origin.is_valid(&document), theirs, "{name}: theirs");
    }
}

/// A document with one member set, at a JSON pointer to its parent.
fn with(document: &Value, parent: &str, name: &str, value: Value) -> Value {
    let mut document = document.clone();
    document.pointer_mut(parent).unwrap()[name] = value;
    document
}

fn without(document: &Value, parent: &str, name: &str) -> Value {
    let mut document = document.clone();
    document.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
    document
}

const ID: &str = "01939c6e-0000-7000-8000-00000000000a";

#[test]
fn carp_requests() {
    let base = json!({
        "carp_version": "1.0", "request_id": ID, "timestamp": "2024-12-28T12:00:00Z",
        "operation": "resolve", "requester": { "agent_id": "a", "session_id": ID },
        "task": { "goal": "g" },
    });
    let execution = json!({ "resolution_id": ID, "action_id": "t.look", "parameters": {} });
    let mut execute = with(&base, "", "execution", execution);
    execute["operation"] = "execute".into();
    let rows = vec![
        ("resolve", base.clone(), true, true),
        ("execute with a task", execute.clone(), true, true),
        ("execute without a task", without(&execute, "", "task"), true, false),
        ("execute without an execution", without(&execute, "", "execution"), false, false),
        ("resolve without a task", without(&base, "", "task"), false, false),
        ("another version", with(&base, "", "carp_version", "1.1".into()), false, false),
        (
            "a uuid in capitals",
            with(&base, "", "request_id", ID.to_uppercase().into()),
            false,
            true,
        ),
        (
            "a time without zone",
            with(&base, "", "timestamp", "2024-12-28T12:00:00".into()),
            false,
            false,
        ),
        ("an unknown member", with(&base, "", "x", 1.into()), true, false),
        ("an unknown member of the task", with(&base, "/task", "x", 1.into()), true, false),
        (
            "a long agent id",
            with(&base, "/requester", "agent_id", "a".repeat(256).into()),
            true,
            false,
        ),
        ("a long goal", with(&base, "/task", "goal", "a".repeat(10_001).into()), true, false),
        (
            "a long key",
            with(&execute, "/execution", "idempotency_key", "a".repeat(256).into()),
            true,
            false,
        ),
        ("no atlas id", with(&base, "", "atlas_ids", json!(["Atlas"])), false, false),
        ("no action id", with(&execute, "/execution", "action_id", "look".into()), false, false),
    ];
    compare("carp-request", rows, |bytes| CarpRecord::read(bytes).0.is_ok());
}

#[test]
fn carp_resolutions() {
    let base = json!({
        "carp_version": "1.0", "resolution_id": ID, "request_id": ID,
        "timestamp": "2024-12-28T12:00:00Z", "decision": { "type": "partial" },
        "context_blocks": [{ "block_id": "b", "source": "com.example.a",
            "content_type": "text/markdown", "content": "", "priority": 1 }],
        "allowed_actions": [{ "action_id": "t.look", "name": "n", "description": "d", "idempotent": true }],
        "denied_actions": [{ "action_id": "t.drop", "reason": "r", "policy_id": "p" }],
        "constraints": [{ "constraint_id": "c", "type": "budget" }],
        "ttl_seconds": 300, "trace_id": ID,
    });
    let (block, allowed, denied) = ("/context_blocks/0", "/allowed_actions/0", "/denied_actions/0");
    let rows = vec![
        ("a resolution", base.clone(), true, true),
        ("no constraints", without(&base, "", "constraints"), false, false),
        (
            "allow_with_constraints",
            with(&base, "/decision", "type", "allow_with_constraints".into()),
            false,
            false,
        ),
        ("a denial that allows", with(&base, "/decision", "type", "deny".into()), false, true),
        ("allowed and denied", with(&base, denied, "action_id", "t.look".into()), false, true),
        ("plain text", with(&base, block, "content_type", "text/plain".into()), false, true),
        ("a source that is no atlas", with(&base, block, "source", "here".into()), false, true),
        ("a high priority", with(&base, block, "priority", 1001.into()), true, false),
        ("an unknown member", with(&base, allowed, "x", 1.into()), true, false),
        ("a denial without policy", without(&base, denied, "policy_id"), false, true),
        ("a denied name", with(&base, denied, "action_id", "drop".into()), false, true),
        ("a scope", with(&base, "/constraints/0", "type", "scope".into()), false, true),
        ("a long life", with(&base, "", "ttl_seconds", 86_401.into()), true, false),
        ("a negative life", with(&base, "", "ttl_seconds", (-1).into()), false, false),
        ("no rate", with(&base, allowed, "rate_limit", json!({ "max_calls": 1 })), false, false),
    ];
    compare("carp-resolution", rows, |bytes| CarpRecord::read(bytes).0.is_ok());
}

fn manifest() -> Value {
    json!({
        "atlas_version": "1.0", "atlas_id": "com.example.sandbox", "version": "1.0.0", "name": "n",
        "description": "d",
        "capabilities": [{ "capability_id": "read", "name": "n", "actions": ["t.look"] }],
        "context_packs": [{ "pack_id": "p", "name": "n", "files": ["a.md"], "conditions": {} }],
        "policies": [{ "policy_id": "a", "type": "allow", "actions": ["t.*"] }],
        "actions": [{ "action_id": "t.look", "name": "n", "description": "d" }],
        "dependencies": { "com.example.base": "^1.0.0" },
    })
}

#[test]
fn atlas_manifests() {
    let base = manifest();
    let (capability, pack, policy) = ("/capabilities/0", "/context_packs/0", "/policies/0");
    let put = |parent, name, value| with(&base, parent, name, value);
    let twice =
        json!([{ "policy_id": "a", "type": "allow" }, { "policy_id": "a", "type": "deny" }]);
    let rows = vec![
        ("a manifest", base.clone(), true, true),
        ("no description", without(&base, "", "description"), false, false),
        ("no version", put("", "version", "1.0".into()), false, false),
        ("a name that is no atlas", put("", "atlas_id", "Sandbox".into()), false, false),
        ("a long name", put("", "name", "n".repeat(101).into()), true, false),
        ("a long description", put("", "description", "d".repeat(1001).into()), true, false),
        ("a homepage that is none", put("", "homepage", "home".into()), true, false),
        ("an unknown member", put("", "x", 1.into()), true, false),
        ("a capability in capitals", put(capability, "capability_id", "Read".into()), true, false),
        ("an unknown action", put(capability, "actions", json!(["t.drop"])), false, true),
        ("a high priority", put(pack, "priority", 1001.into()), true, false),
        ("a condition of one's own", put(pack, "conditions", json!({ "x": 1 })), true, false),
        ("a file outside", put(pack, "files", json!(["../a.md"])), false, true),
        ("actions as an object", put(policy, "actions", json!({})), true, false),
        ("a policy for nothing", put(policy, "actions", json!(["t.drop"])), false, true),
        ("a scope", put(policy, "type", "scope".into()), false, true),
        ("an id twice", put("", "policies", twice), false, true),
        ("a short timeout", put("/actions/0", "timeout_seconds", 0.into()), true, false),
        (
            "a range that is none",
            put("/dependencies", "com.example.base", "newest".into()),
            false,
            true,
        ),
        ("no dependency", put("/dependencies", "Base", "^1".into()), false, true),
    ];
    compare("atlas-manifest", rows, |bytes| AtlasRecord::read(bytes).0.summary().ok == Some(true));
}

#[test]
fn trace_events() {
    let base = json!({
        "trace_version": "1.0", "event_id": ID, "trace_id": ID, "span_id": ID,
        "parent_span_id": null, "session_id": ID, "sequence": 0,
        "timestamp": "2024-12-28T12:00:00.000000Z", "event_type": "action.denied",
        "payload": { "action_id": "a", "reason": "r", "policy_id": "p" },
        "previous_event_hash": "0".repeat(64), "event_hash": "0".repeat(64),
    });
    let sealed = |document: &Value| {
        let event = event(&Json::read(document.to_string().as_bytes()).unwrap());
        let hash = Form::CraTraceV1.digest(&event).unwrap().to_string();
        with(document, "", "event_hash", hash.into())
    };
    let sound = sealed(&base);
    let rows = vec![
        ("an event", sound.clone(), true, true),
        ("no parent", without(&sound, "", "parent_span_id"), true, true),
        ("an empty parent", with(&sound, "", "parent_span_id", "".into()), false, false),
        ("another hash", base.clone(), false, true),
        ("a hash in capitals", with(&sound, "", "event_hash", "A".repeat(64).into()), false, false),
        (
            "a uuid in capitals",
            sealed(&with(&base, "", "span_id", ID.to_uppercase().into())),
            false,
            true,
        ),
        ("an unknown member", with(&sound, "", "x", 1.into()), false, false),
        (
            "an event of one's own",
            sealed(&with(&base, "", "event_type", "context.stale".into())),
            true,
            false,
        ),
        (
            "error.occurred",
            sealed(&with(&base, "", "event_type", "error.occurred".into())),
            true,
            true,
        ),
        ("a denial without policy", sealed(&without(&base, "/payload", "policy_id")), false, true),
        ("an empty payload", sealed(&with(&base, "", "payload", json!({}))), false, true),
        ("a sequence with a fraction", with(&sound, "", "sequence", json!(0.0)), false, true),
        ("a sequence before the first", with(&sound, "", "sequence", (-1).into()), false, false),
    ];
    compare("trace-event", rows, |bytes| TraceRecord::read(bytes).0.summary().ok == Some(true));
}

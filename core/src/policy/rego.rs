//! A rule in Rego, for those who bring their own.
//!
//! In: a module, compiled when the policy is read, and a statement in the
//! shape scitt-ccf-ledger gives its policies. Out: yes, if `allow` is true
//! and `errors` is empty. The module has no clock, no network and no chance,
//! and it is stopped after a number of operations, not after a time: what it
//! decides today it decides in any replay, on any machine.

use std::num::NonZeroU32;
use std::time::Duration;

use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, LimitError, Value};
use serde_json::json;

use super::case::Case;
use crate::envelope::{Claims, RulesVersion};
use crate::profile::exchange::Conflict;

/// How many operations a module may take: far more than any honest policy
/// needs, and few enough for a full queue.
const OPERATIONS: NonZeroU32 = NonZeroU32::MIN.saturating_add(99_999);

/// The library counts operations and looks at its clock after every so many.
/// With no time allowed, its first look is the last: it says stop after
/// exactly that many operations, however fast the machine is. Another version
/// of the library may count otherwise; `Cargo.lock` holds this one.
const LIMIT: ExecutionTimerConfig =
    ExecutionTimerConfig { limit: Duration::ZERO, check_interval: OPERATIONS };

/// What answers differently each time it is asked.
const NOT_REPLAYABLE: &[&str] = &["rand.intn", "time.now_ns", "opa.runtime", "http.send"];

/// A module that compiled.
#[derive(Clone)]
pub(super) struct Program {
    engine: Engine,
    package: String,
    has_errors: bool,
}

impl Program {
    /// Compiles a module, or says why not. It is run once on nothing, so
    /// that one that cannot run is found before it is in force.
    pub(super) fn compile(text: &str) -> Result<Self, String> {
        if let Some(name) = NOT_REPLAYABLE.iter().find(|name| text.contains(**name)) {
            return Err(format!("{name} cannot be replayed"));
        }
        let mut engine = Engine::new();
        engine.set_execution_timer_config(LIMIT);
        let added = engine.add_policy("policy.rego".to_owned(), text.to_owned());
        let package = added.map_err(|e| e.to_string())?;
        engine.set_input(Value::new_object());
        let mut trial = engine.clone();
        ask(&mut trial, &package, "allow")?;
        let errors = ask(&mut trial, &package, "errors");
        // A rule of that name that fails on nothing is still a rule.
        let has_errors = errors.is_ok() || text.contains("errors");
        if let (true, Err(detail)) = (has_errors, errors) {
            return Err(detail);
        }
        Ok(Self { engine, package, has_errors })
    }

    /// Runs the module. Anything but a clear yes is a reason to refuse.
    pub(super) fn run(&self, case: &Case<'_>) -> Result<(), String> {
        let mut engine = self.engine.clone();
        engine.set_input_json(&input(case).to_string()).map_err(|e| e.to_string())?;
        if self.has_errors {
            let errors = ask(&mut engine, &self.package, "errors")?;
            let none = match &errors {
                Value::Undefined => true,
                Value::Set(all) => all.is_empty(),
                Value::Array(all) => all.is_empty(),
                _ => false,
            };
            if !none {
                return Err(format!("errors {errors}"));
            }
        }
        match ask(&mut engine, &self.package, "allow")? {
            Value::Bool(true) => Ok(()),
            Value::Undefined => Err("allow is undefined".to_owned()),
            other => Err(format!("allow is {other}")),
        }
    }
}

/// The value of one rule. The library's own words for a module that was
/// stopped name a time, which differs each time.
fn ask(engine: &mut Engine, package: &str, rule: &str) -> Result<Value, String> {
    engine.eval_rule(format!("{package}.{rule}")).map_err(|e| match e.downcast_ref() {
        Some(LimitError::TimeLimitExceeded { .. }) => {
            format!("{rule} was stopped after {OPERATIONS} operations, the limit of a module")
        }
        _ => e.to_string(),
    })
}

fn input(case: &Case<'_>) -> serde_json::Value {
    let header = case.header();
    let claims = &header.claims;
    let cwt = cwt(claims, case.statement.rules());
    let content_type = header.content_type.as_ref().map(ToString::to_string);
    let phdr = json!({
        "alg": header.algorithm,
        "content_type": content_type,
        "cty": content_type,
        "cwt": cwt,
    });
    let mut input = json!({ "phdr": phdr, "capstan": ours(case) });
    let payload = serde_json::from_slice::<serde_json::Value>(case.statement.payload());
    if let (Some(input), Ok(payload)) = (input.as_object_mut(), payload) {
        input.insert("payload".to_owned(), payload);
    }
    input
}

/// The claims by name. A claim labelled by text never takes the place of a
/// registered one, which is labelled by its number; in version 1 of the rules
/// it did.
fn cwt(claims: &Claims, rules: RulesVersion) -> serde_json::Value {
    let named = claims.named.iter().map(|(name, text)| (name.clone(), json!(text)));
    let mut registered =
        vec![("iss".to_owned(), json!(claims.issuer)), ("sub".to_owned(), json!(claims.subject))];
    registered.extend(claims.issued_at.map(|at| ("iat".to_owned(), json!(at.seconds()))));
    match rules {
        RulesVersion::V1 => registered.into_iter().chain(named).collect(),
        RulesVersion::V2 => named.chain(registered).collect(),
    }
}

/// What only this log knows.
fn ours(case: &Case<'_>) -> serde_json::Value {
    let s = case.summary();
    let finding = |f: &crate::profile::Finding| json!({ "code": f.code, "severity": f.severity.name(), "at": f.at });
    let mut ours = json!({
        "binding": case.statement.issuer().binding.name(),
        "anchor": case.statement.issuer().anchor,
        "profile": case.read.record.profile(),
        "findings": case.findings().map(finding).collect::<Vec<_>>(),
        "facts": {
            "parent": case.parent(),
            "parent_operator": case.parent_operator(),
            "parent_superseded": case.facts.parent_superseded,
            "record_id": case.record_id(),
            "predecessors": case.predecessors(),
            "session": case.session(),
            "nonce": case.nonce(),
        },
        "summary": {
            "record_id": s.record_id,
            "action_id": s.action_id,
            "decision_id": s.decision_id,
            "operator": s.operator,
            "developer": s.developer,
            "action_type": s.action_type,
            "verdict": s.verdict,
            "decision": s.decision,
            "approver": s.approver,
            "human_disposed": s.human_disposed,
            "effect_type": s.effect_type,
            "effect_status": s.effect_status,
            "effect_mode": s.effect_mode,
            "effect_attestation": s.effect_attestation,
            "irreversibility": s.irreversibility,
            "external_ref": s.external_ref,
            "intervention": s.intervention,
            "predecessors": s.predecessors,
            "session": s.session.as_ref().map(|span| &span.session),
            "ok": s.ok,
            "concealed": s.is_concealed,
        },
    });
    // An input that nobody had at the time must not change what came of it.
    if case.statement.rules() >= RulesVersion::V2
        && let Some(facts) = ours.get_mut("facts").and_then(serde_json::Value::as_object_mut)
    {
        let conflicts: Vec<&str> = case.facts.conflicts.iter().map(Conflict::name).collect();
        facts.insert("conflicts".to_owned(), json!(conflicts));
    }
    ours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registered_claims_win_since_version_2() {
        let named = ["iss", "sub", "iat", "svn"];
        let claims = Claims {
            issuer: Some("https://mallory.example".to_owned()),
            subject: Some("urn:x".to_owned()),
            issued_at: Some(crate::wire::time::UnixSeconds::new(7)),
            named: named.map(|name| (name.to_owned(), Some("forged".to_owned()))).to_vec(),
            ..Claims::default()
        };
        let true_ones =
            json!({ "iss": "https://mallory.example", "sub": "urn:x", "iat": 7, "svn": "forged" });
        assert_eq!(cwt(&claims, RulesVersion::V2), true_ones);
        let forged = json!({ "iss": "forged", "sub": "forged", "iat": "forged", "svn": "forged" });
        assert_eq!(cwt(&claims, RulesVersion::V1), forged, "as it was decided then");
    }
}

//! The payloads of the hammer's statements: small, sound, and new each time.

use std::fmt;

use capstan::profile::capsule::{
    Action, ActionKind, Attested, Disposer, Disposition, Effect, EffectState,
};
use capstan::profile::cra::trace::{Event, GENESIS};
use capstan::profile::pacr::{CausalId, CognitiveSplit, Estimate, Resources, SixTuple};
use capstan::profile::pca::{Label, StepInputs, plan_digest, step_digest};
use capstan::wire::digest::Digest;
use capstan::wire::jcs::{Suite, canonical};
use capstan::wire::json::Json;
use capstan::wire::text;
use capstan::wire::time::UnixSeconds;

/// How long a plan certificate holds.
const DAY: u64 = 86_400;

/// What tells a record from all others: the run, the worker, and its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    pub(super) salt: u64,
    pub(super) worker: u16,
    pub(super) number: u64,
}

impl Name {
    /// 16 bytes, never all zero.
    pub(super) fn bytes(&self) -> [u8; 16] {
        let place = u64::from(self.worker) << 48 | (self.number & 0xffff_ffff_ffff);
        (u128::from(self.salt) << 64 | u128::from(place)).to_be_bytes()
    }

    /// A UUID of version 7; `role` tells apart what shares a number.
    fn uuid(&self, role: u16) -> String {
        let (high, low) = (self.salt >> 32, self.salt >> 16 & 0xffff);
        let worker = self.worker & 0xfff;
        format!(
            "{high:08x}-{low:04x}-7{role:03x}-8{worker:03x}-{:012x}",
            self.number & 0xffff_ffff_ffff
        )
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::hex(&self.bytes()))
    }
}

/// A payment that was decided and made.
pub(super) fn action(name: &Name, developer: &str) -> anyhow::Result<Action> {
    let response = Suite::JcsN.digest(&Json::Text(format!("response {name}")))?;
    Ok(Action {
        action_id: format!("pay-{name}"),
        kind: ActionKind::Decide,
        operator: "hammer".to_owned(),
        developer: developer.to_owned(),
        timestamp: capstan::service::now(),
        disposition: Some(Disposition {
            decision: "accept".to_owned(),
            by: Disposer::Policy { authority: None },
            verdict: Some("executed".to_owned()),
            reason: None,
            expiry: None,
        }),
        effect: Some(Effect {
            kind: Some("payment".to_owned()),
            external_ref: Some(format!("order-{name}")),
            irreversibility: Some("reversible".to_owned()),
            state: EffectState::Confirmed {
                request: Some(response),
                response,
                by: Attested::GateExecuted,
            },
        }),
        constraints: Vec::new(),
        model_attestation: None,
        decision_id: None,
        supersedes: None,
    })
}

/// A causal record.
pub(super) fn six_tuple(name: &Name, causes: Vec<CausalId>) -> anyhow::Result<SixTuple> {
    let estimate = |point: f64| Estimate { point, lower: point / 2.0, upper: point * 2.0 };
    let id = CausalId::from_bytes(&name.bytes());
    Ok(SixTuple {
        id: id.ok_or_else(|| anyhow::anyhow!("a causal id has 16 bytes"))?,
        predecessors: causes.into_iter().collect(),
        landauer_cost: estimate(3e-21),
        resources: Resources {
            energy: estimate(5e-19),
            time: estimate(0.002),
            space: estimate(512.0),
        },
        cognitive_split: CognitiveSplit {
            statistical_complexity: estimate(2.5),
            entropy_rate: estimate(0.5),
            info_gain: Estimate::ZERO,
        },
        payload: b"PACR\x02paid".to_vec(),
    })
}

/// The event after `before`, or the first of a new session. It has no hash
/// before it is sealed.
pub(super) fn event(name: &Name, before: Option<&Event>) -> Event {
    let same = |own: fn(&Event) -> &String, role: u16| {
        before.map_or_else(|| name.uuid(role), |event| own(event).clone())
    };
    let payload =
        Json::object([("policy_id", Json::from("hammer")), ("result", Json::from("allow"))]);
    Event {
        line: 0,
        at: String::new(),
        event_id: name.uuid(1),
        trace_id: same(|event| &event.trace_id, 2),
        span_id: same(|event| &event.span_id, 3),
        parent_span_id: None,
        session_id: same(|event| &event.session_id, 4),
        sequence: before.map_or(0, |event| event.sequence + 1),
        timestamp: "2026-06-01T00:00:00.000000Z".to_owned(),
        event_type: "policy.evaluated".to_owned(),
        payload,
        previous: before.map_or_else(|| GENESIS.to_owned(), |event| event.hash.clone()),
        hash: String::new(),
    }
}

/// A plan of one step, in canonical JSON.
pub(super) fn plan_certificate(
    name: &Name,
    planner: &str,
    now: UnixSeconds,
) -> anyhow::Result<String> {
    let suite = Suite::PcaV1;
    let limits = Json::object([("currency", Json::from("EUR")), ("most", Json::from(250))]);
    let constraints = Label::Constraints.digest(suite, &limits)?.hex();
    let parameters =
        Json::object([("account", Json::from("acc-7")), ("amount", Json::from(3_i64))]);
    let step = Json::object([
        ("action_type", Json::from("charge")),
        ("parameters", parameters),
        ("required_capabilities", vec![Json::from("payments.write")].into()),
    ]);
    let input = Digest::of(&name.bytes());
    let inputs = StepInputs { state: input, goal: input, policy: input, config: input };
    let digest = step_digest(suite, &inputs, &constraints, &step)?.hex();
    let digest = Digest::from_hex(&digest).ok_or_else(|| anyhow::anyhow!("no step digest"))?;
    let until = UnixSeconds::new(now.seconds() + DAY);
    let window = Json::object([
        ("not_before", Json::from(now.to_string())),
        ("not_after", Json::from(until.to_string())),
    ]);
    Ok(canonical(&Json::object([
        ("pc_version", Json::from("1.0")),
        ("pc_id", format!("plan-{name}").into()),
        ("issued_at", now.to_string().into()),
        ("planner_id", planner.into()),
        ("constraints_version_id", "limits-4".into()),
        ("constraints_digest", constraints.into()),
        ("effective_time", window),
        ("plan_digest", plan_digest(suite, &[digest])?.hex().into()),
        ("steps", vec![step].into()),
        ("nonce", format!("nonce-{name}").into()),
    ]))?)
}

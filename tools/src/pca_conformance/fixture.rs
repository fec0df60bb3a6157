//! A plan of three steps for which everything is known and well.

use capstan::profile::pca::{
    Constraints, Label, MerkleRule, PcaCertificateRecord, StepInputs, plan_digest, step_digest,
};
use capstan::wire::digest::Digest;
use capstan::wire::jcs::{Error, Suite, canonical};
use capstan::wire::json::Json;

/// Certificate, constraints and observations, as JSON to be changed.
pub(super) struct Fixture {
    pub(super) certificate: Json,
    pub(super) constraints: Json,
    pub(super) observations: Json,
    pub(super) steps: Vec<Digest>,
}

const RULE: MerkleRule = MerkleRule::Rfc9162;

impl Fixture {
    /// The nonce is the test's, so that tests may share a memory.
    pub(super) fn new(nonce: &str) -> Result<Self, Error> {
        let payload = Json::object([("currency", Json::from("EUR")), ("most", Json::from(250))]);
        let constraints_digest = Label::Constraints.digest(Suite::PcaV1, &payload)?.hex();
        let actions = [("reserve", 3), ("charge", 4), ("notify", 5)]
            .map(|(kind, amount)| action(kind, amount));
        let inputs = inputs()?;
        let steps: Result<Vec<Digest>, Error> = actions
            .iter()
            .map(|action| step_digest(Suite::PcaV1, &inputs, &constraints_digest, action))
            .map(|digest| digest.map(|d| digest_of(&d.hex())))
            .collect();
        let steps = steps?;
        let plan = plan_digest(Suite::PcaV1, &steps)?.hex();
        let root = RULE.root(&steps).to_string();
        let certificate = certificate((nonce, &constraints_digest, &plan, &root), actions.to_vec());
        let constraints = constraints(payload, &constraints_digest);
        let observations = observations(&certificate, &inputs)?;
        Ok(Self { certificate, constraints, observations, steps })
    }

    pub(super) fn constraints(&self) -> Constraints {
        Constraints::read(canonical(&self.constraints).unwrap_or_default().as_bytes())
    }

    /// A proof of one of the steps, as observations give it.
    pub(super) fn proof(&self, index: usize) -> Json {
        let Some(proof) = RULE.prove(&self.steps, index) else { return Json::Null };
        let path: Vec<Json> = proof.path.iter().map(|node| node.to_string().into()).collect();
        Json::object([
            ("index", number(proof.index)),
            ("leaf_count", number(proof.leaf_count)),
            ("step_digest", proof.leaf.to_string().into()),
            ("path", path.into()),
        ])
    }
}

/// Puts a member in place of one of the same name.
pub(super) fn set(object: &mut Json, name: &str, value: impl Into<Json>) {
    if let Json::Object(members) = object {
        members.retain(|(known, _)| known != name);
        members.push((name.to_owned(), value.into()));
    }
}

/// Takes a member away.
pub(super) fn unset(object: &mut Json, name: &str) {
    if let Json::Object(members) = object {
        members.retain(|(known, _)| known != name);
    }
}

fn number(value: u64) -> Json {
    Json::Number(value.to_string())
}

fn digest_of(hex: &str) -> Digest {
    Digest::from_hex(hex).unwrap_or_else(|| Digest::of(hex.as_bytes()))
}

fn action(kind: &str, amount: i64) -> Json {
    let parameters = Json::object([("account", Json::from("acc-7")), ("amount", amount.into())]);
    let capabilities = vec![Json::from("payments.write")];
    Json::object([
        ("action_type", Json::from(kind)),
        ("parameters", parameters),
        ("required_capabilities", capabilities.into()),
    ])
}

fn inputs() -> Result<StepInputs, Error> {
    let value = |name: &str| Json::object([("name", Json::from(name))]);
    let digest = |label: Label, name: &str| {
        label.digest(Suite::PcaV1, &value(name)).map(|digest| digest_of(&digest.hex()))
    };
    Ok(StepInputs {
        state: digest(Label::State, "cart open")?,
        goal: digest(Label::Goal, "cart paid")?,
        policy: digest(Label::Policy, "retail")?,
        config: digest(Label::Config, "default")?,
    })
}

fn window() -> Json {
    Json::object([
        ("not_before", Json::from("2026-04-01T00:00:00Z")),
        ("not_after", Json::from("2026-04-30T23:59:59Z")),
    ])
}

fn certificate(
    (nonce, constraints, plan, root): (&str, &str, &str, &str),
    steps: Vec<Json>,
) -> Json {
    Json::object([
        ("pc_version", Json::from("1.0")),
        ("pc_id", "plan-1".into()),
        ("issued_at", "2026-04-02T08:00:00Z".into()),
        ("planner_id", "planner.example".into()),
        ("constraints_version_id", "limits-4".into()),
        ("constraints_digest", constraints.into()),
        ("effective_time", window()),
        ("plan_digest", plan.into()),
        ("merkle_root", root.into()),
        ("metadata", Json::object([("merkle_rule", Json::from(RULE.name()))])),
        ("steps", steps.into()),
        ("nonce", nonce.into()),
    ])
}

fn constraints(payload: Json, digest: &str) -> Json {
    Json::object([
        ("version_id", Json::from("limits-4")),
        ("effective_time", window()),
        ("payload", payload),
        ("digest", digest.into()),
    ])
}

fn observations(certificate: &Json, inputs: &StepInputs) -> Result<Json, Error> {
    let record = PcaCertificateRecord::of(certificate.clone());
    let expected = record.pc_digest().map(|digest| digest.hex()).unwrap_or_default();
    let one = Json::object([
        ("state_digest", Json::from(inputs.state.to_string())),
        ("goal_digest", inputs.goal.to_string().into()),
        ("policy_digest", inputs.policy.to_string().into()),
        ("config_digest", inputs.config.to_string().into()),
    ]);
    Ok(Json::object([
        ("expected_pc_digest", Json::from(expected)),
        ("now", "2026-04-10T12:00:00+02:00".into()),
        ("step_inputs", vec![one.clone(), one.clone(), one].into()),
        ("observed_state_digest", inputs.state.to_string().into()),
        ("conflict", false.into()),
        ("brs_score", 40.into()),
        ("brs_threshold", 70.into()),
        ("ood", false.into()),
        ("disclosure_used", 10.into()),
        ("disclosure_budget", 10.into()),
        ("asserted_by", "conformance".into()),
    ]))
}

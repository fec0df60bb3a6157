//! The nine kinds of digest (PCA-SPEC 5, 6), each under its own label.

use crate::wire::digest::Digest;
use crate::wire::jcs::{Error, Suite, SuiteDigest};
use crate::wire::json::Json;

/// What a digest is of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Label {
    /// The state of the world.
    State,
    /// What is to be reached.
    Goal,
    /// The payload of constraints.
    Constraints,
    /// The policy.
    Policy,
    /// The planner's configuration.
    Config,
    /// One step with all it was planned under.
    Step,
    /// All steps in their order.
    Plan,
    /// A plan certificate.
    Certificate,
    /// One action (Action IR).
    Action,
}

impl Label {
    /// All nine, as the specification lists them.
    pub const ALL: [Self; 9] = [
        Self::State,
        Self::Goal,
        Self::Constraints,
        Self::Policy,
        Self::Config,
        Self::Step,
        Self::Plan,
        Self::Certificate,
        Self::Action,
    ];

    /// What is hashed in front of the value.
    pub fn name(self) -> &'static str {
        match self {
            Self::State => "STATEv1",
            Self::Goal => "GOALv1",
            Self::Constraints => "CONSv1",
            Self::Policy => "POLv1",
            Self::Config => "CFGv1",
            Self::Step => "STEPv1",
            Self::Plan => "PLANv1",
            Self::Certificate => "PCv1",
            Self::Action => "AIRv1",
        }
    }

    /// The digest of a value under this label.
    pub fn digest(self, suite: Suite, value: &Json) -> Result<SuiteDigest, Error> {
        suite.labelled(self.name(), value, &[])
    }
}

/// Members of a certificate that never influence its digest (6.3).
const SIGNATURE_FIELDS: [&str; 3] = ["signature", "signatures", "pc_digest"];

/// Optional members for which the schema allows null: null is absent (4.5).
const NULLABLE: [&str; 2] = ["merkle_root", "metadata"];

/// The digest of a certificate. Members we do not know are hashed: what the
/// schema refuses must not pass as something else.
pub fn pc_digest(suite: Suite, certificate: &Json) -> Result<SuiteDigest, Error> {
    let null = NULLABLE.into_iter().filter(|name| certificate.get(name) == Some(&Json::Null));
    let without: Vec<&str> = SIGNATURE_FIELDS.into_iter().chain(null).collect();
    suite.labelled(Label::Certificate.name(), certificate, &without)
}

/// What a step was planned under, besides the constraints of its certificate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StepInputs {
    /// Under `STATEv1`.
    pub state: Digest,
    /// Under `GOALv1`.
    pub goal: Digest,
    /// Under `POLv1`.
    pub policy: Digest,
    /// Under `CFGv1`.
    pub config: Digest,
}

/// The digest of one step (6.1).
pub fn step_digest(
    suite: Suite,
    inputs: &StepInputs,
    constraints_digest: &str,
    action: &Json,
) -> Result<SuiteDigest, Error> {
    let air = Label::Action.digest(suite, action)?;
    let step = Json::object(
        [
            ("state_digest", inputs.state.to_string()),
            ("goal_digest", inputs.goal.to_string()),
            ("constraints_digest", constraints_digest.to_owned()),
            ("policy_digest", inputs.policy.to_string()),
            ("config_digest", inputs.config.to_string()),
            ("air_digest", air.hex()),
        ]
        .map(|(name, digest)| (name, Json::from(digest))),
    );
    Label::Step.digest(suite, &step)
}

/// The digest of a plan (6.2): the steps' digests in their order.
pub fn plan_digest(suite: Suite, steps: &[Digest]) -> Result<SuiteDigest, Error> {
    let steps: Vec<Json> = steps.iter().map(|step| step.to_string().into()).collect();
    Label::Plan.digest(suite, &Json::object([("step_digests", Json::from(steps))]))
}

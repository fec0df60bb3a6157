//! The nine kinds of digest (PCA-SPEC 5, 6), each under its own label.

use strum::{IntoStaticStr, VariantArray};

use crate::wire::digest::Digest;
use crate::wire::jcs::{Error, Suite, SuiteDigest};
use crate::wire::json::Json;

/// What a digest is of.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq, VariantArray)]
#[strum(serialize_all = "UPPERCASE", suffix = "v1")]
pub enum Label {
    /// The state of the world.
    State,
    Goal,
    /// The payload of a constraints document.
    #[strum(serialize = "CONS")]
    Constraints,
    #[strum(serialize = "POL")]
    Policy,
    /// The planner's configuration.
    #[strum(serialize = "CFG")]
    Config,
    /// One step, with the digests of everything it was planned under.
    Step,
    /// All steps in order.
    Plan,
    #[strum(serialize = "PC")]
    Certificate,
    /// One action (Action IR).
    #[strum(serialize = "AIR")]
    Action,
}

impl Label {
    /// All nine, in the order of the specification.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The prefix that is hashed before the value.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The digest of a value under this label.
    pub fn digest(self, suite: Suite, value: &Json) -> Result<SuiteDigest, Error> {
        suite.labelled(self.name(), value, &[])
    }
}

/// Members of a certificate that never influence its digest (6.3).
const SIGNATURE_FIELDS: [&str; 3] = ["signature", "signatures", "pc_digest"];

/// Optional members that may be null, which means absent (4.5).
const NULLABLE: [&str; 2] = ["merkle_root", "metadata"];

/// The digest of a certificate. Unknown members are hashed too: a certificate
/// that the schema refuses must not have the digest of one that it accepts.
pub fn pc_digest(suite: Suite, certificate: &Json) -> Result<SuiteDigest, Error> {
    let null = NULLABLE.into_iter().filter(|name| certificate.get(name) == Some(&Json::Null));
    let without: Vec<&str> = SIGNATURE_FIELDS.into_iter().chain(null).collect();
    suite.labelled(Label::Certificate.name(), certificate, &without)
}

/// The digests a step was planned under, besides that of the constraints.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StepInputs {
    pub state: Digest,
    pub goal: Digest,
    pub policy: Digest,
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

/// The digest of a plan (6.2): over the steps' digests in order.
pub fn plan_digest(suite: Suite, steps: &[Digest]) -> Result<SuiteDigest, Error> {
    let steps: Vec<Json> = steps.iter().map(|step| step.to_string().into()).collect();
    Label::Plan.digest(suite, &Json::object([("step_digests", Json::from(steps))]))
}

//! The documents an executor gives besides the certificate: the constraints
//! in force, and what it observed, in the words of the released vectors and
//! ours.

use super::certificate::STEPS_MAX;
use super::digest::{Label, StepInputs};
use super::merkle::MerkleProof;
use super::shape::{Shape, Window};
use crate::profile::finding::Finding;
use crate::wire::digest::Digest;
use crate::wire::jcs::{Suite, SuiteDigest};
use crate::wire::json::Json;
use crate::wire::limits::PATH_NODES_MAX;

/// A constraints document, which a certificate names by version and digest.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraints {
    document: Json,
    window: Option<Window>,
    findings: Vec<Finding>,
}

impl Constraints {
    /// Reads and judges a document; never fails.
    pub fn read(bytes: &[u8]) -> Self {
        let mut shape = Shape::default();
        let required = ["version_id", "effective_time", "payload", "digest"];
        let document = shape.json(bytes).filter(|json| shape.object(json, "", &required, &[]));
        let mut window = None;
        if let Some(document) = &document {
            shape.filled(document, "", "version_id");
            shape.digest(document, "", "digest");
            shape.an_object(document, "", "payload", false);
            window = shape.window(document);
            shape.numbers(document);
        }
        Self { document: document.unwrap_or(Json::Null), window, findings: shape.findings }
    }

    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    pub(super) fn window(&self) -> Option<Window> {
        self.window
    }

    pub(super) fn version_id(&self) -> Option<&str> {
        self.document.get("version_id")?.text()
    }

    /// The digest it states, with the suite under which its payload has it;
    /// otherwise what is wrong.
    pub(super) fn digest(&self) -> Result<SuiteDigest, String> {
        let stated = self.document.get("digest").and_then(Json::text);
        let payload = self.document.get("payload");
        let (Some(stated), Some(payload)) = (stated, payload) else {
            return Err("the constraints lack payload or digest".to_owned());
        };
        let computed = [Suite::PcaV1, Suite::PcaPython]
            .into_iter()
            .filter_map(|suite| Label::Constraints.digest(suite, payload).ok());
        let found = computed.into_iter().find(|digest| digest.hex() == stated);
        found.ok_or_else(|| "the digest of the constraints is not that of their payload".to_owned())
    }
}

/// The known members. Any other is refused: it may be a misspelt signal.
const KNOWN: [&str; 18] = [
    "expected_pc_digest",
    "constraints_version_id",
    "constraints_digest",
    "now",
    "toctou_drift",
    "planned_state_digest",
    "observed_state_digest",
    "conflict",
    "merkle_ok",
    "merkle_proofs",
    "brs_score",
    "brs_threshold",
    "ood",
    "disclosure_used",
    "disclosure_budget",
    "step_digests",
    "step_inputs",
    "asserted_by",
];

/// What an executor observed.
#[derive(Clone, Debug, PartialEq)]
pub struct Observations {
    document: Json,
    findings: Vec<Finding>,
}

/// The value of one member.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Signal<T> {
    Absent,
    Malformed(String),
    Given(T),
}

impl Observations {
    /// Reads and judges a document; never fails.
    pub fn read(bytes: &[u8]) -> Self {
        let mut shape = Shape::default();
        let document = shape.json(bytes);
        Self::judge(document.unwrap_or(Json::Null), shape)
    }

    /// The same for parsed JSON.
    pub fn of(document: Json) -> Self {
        Self::judge(document, Shape::default())
    }

    fn judge(document: Json, mut shape: Shape) -> Self {
        let is_object = shape.findings.is_empty() && shape.object(&document, "", &[], &KNOWN);
        let document = if is_object { document } else { Json::Null };
        Self { document, findings: shape.findings }
    }

    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Who vouches for what was not computed.
    pub fn asserted_by(&self) -> Option<&str> {
        self.document.get("asserted_by")?.text()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.document.get(name).is_some()
    }

    fn signal<T>(&self, name: &str, wanted: &str, take: impl Fn(&Json) -> Option<T>) -> Signal<T> {
        let Some(value) = self.document.get(name) else { return Signal::Absent };
        let wrong = || Signal::Malformed(format!("{name} is not {wanted}"));
        take(value).map_or_else(wrong, Signal::Given)
    }

    pub(super) fn text(&self, name: &str) -> Signal<String> {
        self.signal(name, "a text", |value| value.text().map(str::to_owned))
    }

    pub(super) fn flag(&self, name: &str) -> Signal<bool> {
        self.signal(name, "true or false", Json::bool)
    }

    pub(super) fn digest(&self, name: &str) -> Signal<Digest> {
        self.signal(name, "64 lowercase hex digits", |value| Digest::from_hex(value.text()?))
    }

    /// Only a number that a double holds exactly can be compared.
    pub(super) fn number(&self, name: &str) -> Signal<f64> {
        self.signal(name, "a number that a double holds exactly", |value| match value {
            Json::Number(token) if Suite::PcaV1.refused(value).is_empty() => token.parse().ok(),
            _ => None,
        })
    }

    pub(super) fn step_digests(&self) -> Signal<Vec<Digest>> {
        self.signal("step_digests", "a list of digests", digests)
    }

    pub(super) fn step_inputs(&self) -> Signal<Vec<StepInputs>> {
        self.signal("step_inputs", "a list of four digests for each step", |value| {
            let items = value.array().filter(|items| items.len() <= STEPS_MAX)?;
            items.iter().map(step_inputs).collect()
        })
    }

    pub(super) fn merkle_proofs(&self) -> Signal<Vec<MerkleProof>> {
        self.signal("merkle_proofs", "a list of proofs", |value| {
            let items = value.array().filter(|items| items.len() <= STEPS_MAX)?;
            items.iter().map(merkle_proof).collect()
        })
    }
}

fn digests(value: &Json) -> Option<Vec<Digest>> {
    let items = value.array().filter(|items| items.len() <= STEPS_MAX)?;
    items.iter().map(|item| Digest::from_hex(item.text()?)).collect()
}

fn step_inputs(value: &Json) -> Option<StepInputs> {
    let digest = |name: &str| Digest::from_hex(value.get(name)?.text()?);
    let inputs = StepInputs {
        state: digest("state_digest")?,
        goal: digest("goal_digest")?,
        policy: digest("policy_digest")?,
        config: digest("config_digest")?,
    };
    (value.members()?.len() == 4).then_some(inputs)
}

fn merkle_proof(value: &Json) -> Option<MerkleProof> {
    let number = |name: &str| u64::try_from(value.get(name)?.int()?).ok();
    let path = digests(value.get("path")?).filter(|path| path.len() <= PATH_NODES_MAX)?;
    let proof = MerkleProof {
        index: number("index")?,
        leaf_count: number("leaf_count")?,
        leaf: Digest::from_hex(value.get("step_digest")?.text()?)?,
        path,
    };
    (value.members()?.len() == 4).then_some(proof)
}

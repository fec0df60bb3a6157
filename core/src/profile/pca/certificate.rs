//! Plan certificates.

use super::digest::pc_digest;
use super::merkle::MerkleRule;
use super::shape::{Moment, Shape, Window};
use crate::envelope::Header;
use crate::profile::finding::{Finding, Severity};
use crate::profile::{Record, Summary};
use crate::wire::digest::Digest;
use crate::wire::jcs::{Suite, SuiteDigest};
use crate::wire::json::Json;
use crate::wire::time::UnixSeconds;

/// Steps in one certificate. A statement of 60 KiB holds about 800.
pub const STEPS_MAX: usize = 4096;

const REQUIRED: [&str; 10] = [
    "pc_version",
    "pc_id",
    "issued_at",
    "planner_id",
    "constraints_version_id",
    "constraints_digest",
    "effective_time",
    "plan_digest",
    "steps",
    "nonce",
];
const OPTIONAL: [&str; 3] = ["merkle_root", "metadata", "signature"];
const STEP_REQUIRED: [&str; 3] = ["action_type", "parameters", "required_capabilities"];
const STEP_OPTIONAL: [&str; 2] = ["predicted_effect", "egress_class"];

/// A plan certificate, judged by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct PcaCertificateRecord {
    payload: Json,
    pc_digest: Option<SuiteDigest>,
    second_digest: Option<SuiteDigest>,
    window: Option<Window>,
    findings: Vec<Finding>,
}

impl PcaCertificateRecord {
    /// Reads and judges a payload; never fails.
    pub fn read(bytes: &[u8]) -> Self {
        let mut shape = Shape::default();
        let payload = shape.json(bytes);
        Self::judge(payload.unwrap_or(Json::Null), shape)
    }

    /// The same for parsed JSON.
    pub fn of(payload: Json) -> Self {
        Self::judge(payload, Shape::default())
    }

    fn judge(payload: Json, mut shape: Shape) -> Self {
        let is_object =
            shape.findings.is_empty() && shape.object(&payload, "", &REQUIRED, &OPTIONAL);
        if !is_object {
            let (payload, findings) = (Json::Null, shape.findings);
            return Self { payload, pc_digest: None, second_digest: None, window: None, findings };
        }
        let window = members(&mut shape, &payload);
        let own = pc_digest(Suite::PcaV1, &payload).ok();
        let second_digest = pc_digest(Suite::PcaPython, &payload).ok();
        digests(&mut shape, &payload, own.as_ref(), second_digest.as_ref());
        Self { payload, pc_digest: own, second_digest, window, findings: shape.findings }
    }

    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The payload; null if it is not an object.
    pub fn payload(&self) -> &Json {
        &self.payload
    }

    /// Its digest under `pca-v1`; none without a canonical form.
    pub fn pc_digest(&self) -> Option<&SuiteDigest> {
        self.pc_digest.as_ref()
    }

    /// Its digest under `pca-python`, which other implementations compute.
    pub fn second_digest(&self) -> Option<&SuiteDigest> {
        self.second_digest.as_ref()
    }

    /// Whether it follows the schema.
    pub fn ok(&self) -> bool {
        !self.findings.iter().any(|finding| finding.gating)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.payload.get(name)?.text()
    }

    pub(super) fn window(&self) -> Option<Window> {
        self.window
    }

    /// The planned actions.
    pub fn steps(&self) -> &[Json] {
        self.payload.get("steps").and_then(Json::array).unwrap_or_default()
    }

    pub(super) fn merkle_root(&self) -> Option<Digest> {
        Digest::from_hex(self.text("merkle_root")?)
    }

    /// The rule that its metadata names, by default the released one; an error
    /// quotes an unknown name.
    pub(super) fn merkle_rule(&self) -> Result<MerkleRule, String> {
        match self.payload.pointer("/metadata/merkle_rule") {
            None => Ok(MerkleRule::Pairs),
            Some(name) => name
                .text()
                .and_then(|name| name.parse().ok())
                .ok_or_else(|| format!("metadata.merkle_rule is {name:?}")),
        }
    }
}

impl Record for PcaCertificateRecord {
    fn summary(&self) -> Summary {
        let own = |name| self.text(name).map(str::to_owned);
        let action = match self.steps() {
            [only] => only.get("action_type").and_then(Json::text),
            _ => None,
        };
        let issued = self.text("issued_at").filter(|at| Moment::parse(at).is_some());
        Summary {
            record_id: self.pc_digest.as_ref().map(SuiteDigest::hex),
            developer: own("planner_id"),
            action_type: action.map(str::to_owned),
            nonce: own("nonce"),
            claimed_at: issued.and_then(UnixSeconds::from_rfc3339),
            ok: Some(self.ok()),
            ..Summary::default()
        }
    }
}

/// The schema of certificates, member by member.
fn members(shape: &mut Shape, payload: &Json) -> Option<Window> {
    shape.constant(payload, "pc_version", "1.0");
    for name in ["pc_id", "planner_id", "constraints_version_id", "nonce", "signature"] {
        shape.text(payload, "", name);
    }
    shape.moment(payload, "", "issued_at");
    for name in ["constraints_digest", "plan_digest"] {
        shape.digest(payload, "", name);
    }
    if payload.get("merkle_root") != Some(&Json::Null) {
        shape.digest(payload, "", "merkle_root");
    }
    shape.an_object(payload, "", "metadata", true);
    let window = shape.window(payload);
    let steps = shape.array(payload, "", "steps", STEPS_MAX);
    for (i, item) in steps.iter().enumerate() {
        step(shape, item, &format!("/steps/{i}"));
    }
    if payload.get("steps").and_then(Json::array).is_some_and(<[Json]>::is_empty) {
        shape.note(Severity::Warning, "pca_no_steps", "/steps", "the plan has no steps");
    }
    window
}

/// The schema of one action (Action IR).
fn step(shape: &mut Shape, item: &Json, at: &str) {
    if !shape.object(item, at, &STEP_REQUIRED, &STEP_OPTIONAL) {
        return;
    }
    shape.filled(item, at, "action_type");
    shape.an_object(item, at, "parameters", false);
    for name in STEP_OPTIONAL {
        shape.text(item, at, name);
    }
    let capabilities = shape.array(item, at, "required_capabilities", STEPS_MAX);
    let mut seen = std::collections::HashSet::new();
    for (i, capability) in capabilities.iter().enumerate() {
        let place = format!("{at}/required_capabilities/{i}");
        match capability.text() {
            None => {
                let detail = format!("a {}, not a string", capability.kind());
                shape.error("pca_member_type", &place, detail);
            }
            Some(name) if !seen.insert(name) => {
                shape.error("pca_capability_repeated", &place, format!("{name:?} is repeated"));
            }
            Some(_) => {}
        }
    }
}

/// Notes what a certificate alone shows about its digests.
fn digests(
    shape: &mut Shape,
    payload: &Json,
    own: Option<&SuiteDigest>,
    second: Option<&SuiteDigest>,
) {
    shape.numbers(payload);
    let stated = payload.get("pc_digest").and_then(Json::text);
    if let Some((own, _)) = own.zip(stated).filter(|(own, stated)| own.hex() != *stated) {
        let detail = format!("the digest is {}", own.hex());
        shape.error("pca_digest_mismatch", "/pc_digest", detail);
    }
    if own.map(SuiteDigest::hex) != second.map(SuiteDigest::hex) && own.is_some() {
        let detail = "released canonicalisers differ on its numbers or texts: others may \
                      compute another pc_digest";
        shape.note(Severity::Warning, "pca_canonical_divergent", "", detail);
    }
    let detail = "a certificate does not contain what its steps were planned under";
    shape.note(Severity::Info, "pca_plan_unverified", "/plan_digest", detail);
    if payload.get("signature").is_some() {
        let detail = "only the signature of the statement was checked, not this one";
        shape.note(Severity::Info, "pca_signature_not_checked", "/signature", detail);
    }
}

/// Reads the payload of a statement under its header.
pub(super) fn read(header: &Header, bytes: &[u8]) -> (PcaCertificateRecord, Vec<Finding>) {
    let record = PcaCertificateRecord::read(bytes);
    let mut findings = record.findings.clone();
    let (issuer, planner) = (header.claims.issuer.as_deref(), record.text("planner_id"));
    if planner.is_some() && issuer != planner {
        let detail = format!(
            "{} signed for {}",
            issuer.unwrap_or("an unnamed issuer"),
            planner.unwrap_or_default()
        );
        findings.push(Finding::new(Severity::Info, "pca_issuer_not_planner", "iss", detail));
    }
    (record, findings)
}

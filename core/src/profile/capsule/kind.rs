//! Capsules, outcomes and bare capsule ids as kinds of records.

use serde_json::{Value, json};

use super::payload::Payload;
use super::{CONTENT_TYPE, CapsuleRecord, Format, ID_CONTENT_TYPE, OPEN, OUTCOME_CONTENT_TYPE};
use super::{OutcomeRecord, claims};
use crate::envelope::{Header, RulesVersion};
use crate::profile::finding::{Finding, Severity};
use crate::profile::kind::{Codes, Record, RecordKind, Role, boxed};
use crate::profile::{Parent, Summary};
use crate::wire::digest::Digest;
use crate::wire::json::{self, Json};
use crate::wire::time::UnixSeconds;

const PAGE: &str = "docs/profiles/capsule.md";

/// Agent Action Capsules.
pub static KIND: RecordKind = RecordKind {
    name: "capsule",
    role: Role::Record,
    content_types: &[CONTENT_TYPE],
    read: |header, payload| boxed(read(header, payload)),
    codes: &[
        Codes::new(CODES),
        Codes { since: RulesVersion::V2, list: CODES_2 },
        Codes::new(CLAIM_CODES),
        Codes::new(ID_CODES),
        Codes::new(json::CODES),
    ],
    later_codes: LATER_CODES,
    page: PAGE,
};

/// Outcomes of actions recorded by Capsules.
pub static OUTCOME_KIND: RecordKind = RecordKind {
    name: "capsule-outcome",
    role: Role::Record,
    content_types: &[OUTCOME_CONTENT_TYPE],
    read: |header, payload| boxed(OutcomeRecord::read(header, payload)),
    codes: &[Codes::new(OUTCOME_CODES), Codes::new(CLAIM_CODES), Codes::new(json::CODES)],
    later_codes: &[],
    page: PAGE,
};

/// Capsule ids without their Capsules.
pub static ID_KIND: RecordKind = RecordKind {
    name: "capsule-id",
    role: Role::Record,
    content_types: &[ID_CONTENT_TYPE],
    read: |_, payload| boxed(CapsuleIdRecord::read(payload)),
    codes: &[Codes::new(ID_CODES)],
    later_codes: &[],
    page: PAGE,
};

/// Reads a Capsule under its header.
fn read(header: &Header, bytes: &[u8]) -> (CapsuleRecord, Vec<Finding>) {
    let (mut record, stricter) = CapsuleRecord::read(bytes);
    record.decision_claim = claims::decision_id(header).map(str::to_owned);
    let mut findings = record.class1.findings.clone();
    findings.extend(claims::header(header, "agent_action"));
    if record.format == Format::Two {
        findings.extend(claims::binding(header, &Payload(&record.payload)));
    }
    findings.extend(stricter);
    (record, findings)
}

impl Record for CapsuleRecord {
    /// Of a format we do not know, nothing.
    fn summary(&self) -> Summary {
        let ok = self.class1.ok;
        if self.format != Format::Two || self.payload == Json::Null {
            return Summary { ok, is_concealed: self.is_concealed, ..Summary::default() };
        }
        let view = Payload(&self.payload);
        let own = |name| view.get(name).and_then(Json::text).map(str::to_owned);
        let text = |block, name| view.text(block, name).map(str::to_owned);
        let effect_mode = self.class1.derived.map(|derived| derived.effect.name().to_owned());
        let verdict = view.text("disposition", "verdict_class");
        Summary {
            record_id: self.capsule_id(),
            action_id: own("action_id"),
            decision_id: view
                .decision_id()
                .map(str::to_owned)
                .or_else(|| self.decision_claim.clone()),
            operator: own("operator"),
            developer: own("developer"),
            action_type: own("action_type"),
            is_open: !self.is_concealed && verdict.is_some_and(|verdict| OPEN.contains(&verdict)),
            verdict: verdict.map(str::to_owned),
            decision: text("disposition", "decision"),
            approver: text("disposition", "approver"),
            human_disposed: view.member("disposition", "human_disposed").and_then(Json::bool),
            effect_type: text("effect", "type"),
            effect_status: text("effect", "status"),
            effect_mode: effect_mode.filter(|_| !self.is_concealed),
            effect_attestation: text("effect", "effect_attestation"),
            irreversibility: text("effect", "irreversibility_class"),
            external_ref: text("effect", "external_ref"),
            claimed_at: own("timestamp").and_then(|at| UnixSeconds::from_rfc3339(&at)),
            parent: parent(&view),
            expires_after: view
                .member("disposition", "expiry_policy")
                .and_then(|policy| policy.get("ttl_seconds")?.int())
                .and_then(|seconds| u64::try_from(seconds).ok()),
            ok,
            is_concealed: self.is_concealed,
            ..Summary::default()
        }
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        let modes = self.class1().derived.map(|derived| {
            let modes = json!({
                "attestation_mode": derived.attestation.name(),
                "effect_mode": derived.effect.name(),
                "ledger_mode": derived.ledger.name(),
            });
            ("derived", modes)
        });
        modes.into_iter().collect()
    }
}

fn parent(view: &Payload<'_>) -> Option<Parent> {
    Some(Parent {
        record_id: view.digest("chain", "parent_capsule_id")?.to_owned(),
        relation: view.text("chain", "relation")?.to_owned(),
    })
}

/// A statement over nothing but a capsule id: the raw 32 bytes, whatever the
/// format of the Capsule. Later drafts separate identity from signing, and
/// today's producers do too.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CapsuleIdRecord {
    /// The capsule id; none when the payload is not 32 bytes.
    pub id: Option<Digest>,
}

impl CapsuleIdRecord {
    fn read(bytes: &[u8]) -> (Self, Vec<Finding>) {
        let id = Digest::from_slice(bytes);
        let wrong = id.is_none().then(|| {
            let detail = format!("{} bytes, a capsule id has 32", bytes.len());
            Finding::new(Severity::Error, "capsule_id_malformed", "", detail).of_check(1)
        });
        (Self { id }, wrong.into_iter().collect())
    }
}

impl Record for CapsuleIdRecord {
    fn summary(&self) -> Summary {
        Summary {
            record_id: self.id.map(|id| id.to_string()),
            is_id_only: true,
            ok: Some(self.id.is_some()),
            ..Summary::default()
        }
    }
}

/// About a Capsule.
const CODES: &[&str] = &[
    "action_type_invalid",
    "action_type_mismatch",
    "approver_invalid",
    "assurance_missing",
    "assurance_mode_unknown",
    "assurance_overclaim",
    "block_not_object",
    "blocking_constraint_ignored",
    "capsule_id_mismatch",
    "chain_check_store_level",
    "chain_parent_malformed",
    "chain_self_reference",
    "concealed_not_evaluated",
    "confirmed_without_response",
    "constraint_id_bare",
    "constraint_malformed",
    "constraints_not_array",
    "decision_id_mismatch",
    "decision_id_not_action_id",
    "digest_malformed",
    "dishonest_human_disposed",
    "dispatch_consequence_unknown",
    "disposition_missing",
    "domain_not_string",
    "effect_attestation_graded_floor",
    "effect_attestation_missing",
    "effect_attestation_present",
    "effect_digest_conflict",
    "effect_status_missing",
    "effect_status_unknown",
    "errored_without_dispatch",
    "expiry_policy_malformed",
    "expiry_policy_misplaced",
    "field_empty",
    "field_not_bool",
    "field_not_string",
    "float_in_digest_field",
    "issuer_not_developer",
    "member_not_text",
    "missing_required_field",
    "model_attestation_incomplete",
    "non_normalised_payload",
    "not_an_object",
    "provenance_not_string",
    "request_digest_missing",
    "reverted_without_reference",
    "subject_mismatch",
    "timestamp_not_utc",
    "unknown_registry_value",
    "unsafe_integer_in_digest_field",
    "unsupported_format_version",
    "verdict_decision_conflict",
    "verdict_effect_conflict",
];

/// The same, since the second version of the rules.
const CODES_2: &[&str] = &[
    "constraint_evidence_inline",
    "constraint_label_bare",
    "constraint_label_malformed",
    "effect_mode_overclaim",
    "effect_mode_underclaim",
    "framework_tag_bare",
    "framework_tags_malformed",
    "reason_on_executed",
    "source_kind_unknown",
    "sources_malformed",
    "verdict_class_missing",
];

/// About the header claims of a Capsule or an outcome.
const CLAIM_CODES: &[&str] = &[
    "claim_not_text",
    "statement_type_mismatch",
    "statement_type_missing",
    "unknown_capsule_claim",
];

/// About a capsule id, alone or in its Capsule.
const ID_CODES: &[&str] = &["capsule_id_malformed"];

/// About an outcome.
const OUTCOME_CODES: &[&str] =
    &["outcome_not_object", "outcome_reference_missing", "subject_not_action"];

/// About a ledger of Capsules, or a Capsule and a manifest.
const LATER_CODES: &[&str] = &[
    "capsule_id_equivocation",
    "chain_parent_missing",
    "chain_parent_not_earlier",
    "concurrent_supersedes",
    "evidence_digest_mismatch",
    "evidence_missing",
    "evidence_schema_violation",
    "evidence_unbound",
    "evidence_unreadable",
    "manifest_constraint_unknown",
    "threshold_not_applied",
    "threshold_uncheckable",
];

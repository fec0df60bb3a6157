//! Decisions and reason codes of PCA-RC-v1, as released. Other spellings are
//! mapped to the released ones and flagged.

use strum::{IntoStaticStr, VariantArray};

/// What an executor must do.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "UPPERCASE")]
pub enum Decision {
    /// Every required check passed.
    Execute,
    /// A required check failed or could not be made.
    Fallback,
}

impl Decision {
    /// As released.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Reads a decision of either dictionary. Only a permission to execute
    /// becomes `Execute`.
    pub fn import(word: &str) -> Option<Imported<Self>> {
        let (value, is_released) = match word {
            "EXECUTE" => (Self::Execute, true),
            "FALLBACK" => (Self::Fallback, true),
            "ALLOW" => (Self::Execute, false),
            "DENY" | "ESCALATE" => (Self::Fallback, false),
            _ => return None,
        };
        Some(Imported { value, is_released })
    }
}

/// The reason for a decision.
#[derive(Clone, Copy, Debug, Eq, PartialEq, VariantArray)]
pub enum ReasonCode {
    /// All checks passed.
    Ok,
    /// The nonce was used.
    PcReplay,
    /// A digest or the version of the constraints differs.
    IntegrityMismatch,
    /// Reasons are not deterministic.
    ReasonUnstable,
    /// The state of the world is not that of the plan.
    Toctou,
    /// Outside the effective time.
    EffectiveTime,
    /// The conflict detector reported a conflict.
    Conflict,
    /// A Merkle root or proof is wrong.
    MerkleProof,
    /// The behavioural risk score is too high.
    BrsGate,
    /// Out of distribution.
    OodTripwire,
    /// The disclosure budget is exceeded.
    DisclosureBudget,
    /// Any other deterministic reason.
    Unknown,
}

/// A word of some dictionary, mapped to ours.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Imported<T> {
    pub value: T,
    /// Whether the word is the released spelling.
    pub is_released: bool,
}

impl ReasonCode {
    /// The whole released dictionary.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// As released.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "RC_OK",
            Self::PcReplay => "RC_PC_REPLAY",
            Self::IntegrityMismatch => "INTEGRITY_MISMATCH",
            Self::ReasonUnstable => "RC_REASON_UNSTABLE",
            Self::Toctou => "RC_TOCTOU",
            Self::EffectiveTime => "RC_EFFECTIVE_TIME",
            Self::Conflict => "RC_CONFLICT",
            Self::MerkleProof => "RC_MERKLE_PROOF",
            Self::BrsGate => "RC_BRS_GATE",
            Self::OodTripwire => "RC_OOD_TRIPWIRE",
            Self::DisclosureBudget => "RC_DISCLOSURE_BUDGET",
            Self::Unknown => "RC_UNKNOWN",
        }
    }

    /// Reads a code of any known dictionary.
    pub fn import(word: &str) -> Option<Imported<Self>> {
        let released = Self::ALL.iter().copied().find(|code| code.name() == word);
        let mapped = || Some(Imported { value: mapped(word)?, is_released: false });
        released.map(|value| Imported { value, is_released: true }).or_else(mapped)
    }
}

/// Earlier and reserved spellings, and those of the closed list that was never
/// merged upstream; codes of that list without a counterpart are `RC_UNKNOWN`.
fn mapped(word: &str) -> Option<ReasonCode> {
    Some(match word {
        "RC_INTEGRITY_MISMATCH"
        | "RC_DOMAIN_SEPARATION"
        | "RC_CONSTRAINTS_MISMATCH"
        | "CONSTRAINTS_VERSION_MISMATCH"
        | "CONSTRAINTS_DIGEST_MISMATCH"
        | "INTEGRITY_FAIL" => ReasonCode::IntegrityMismatch,
        "VERIFY_ALLOW" => ReasonCode::Ok,
        "EXEC_DENY_GATE" => ReasonCode::PcReplay,
        "EXEC_FALLBACK_SAFE_MODE" => ReasonCode::Toctou,
        "LEGAL_EFFECTIVE_TIME_MISMATCH" => ReasonCode::EffectiveTime,
        "VERIFY_CONFLICT" => ReasonCode::Conflict,
        "EVIDENCE_HASH_MISMATCH" => ReasonCode::MerkleProof,
        "RISK_BLAST_RADIUS_EXCEEDED" => ReasonCode::BrsGate,
        "OOD_TRIGGERED" => ReasonCode::OodTripwire,
        "DISCLOSURE_BUDGET_EXCEEDED" => ReasonCode::DisclosureBudget,
        "PLAN_OK"
        | "PLAN_NO_PATH"
        | "PLAN_EXHAUSTED_TIME"
        | "PLAN_EXHAUSTED_EXPANDS"
        | "PLAN_EXHAUSTED_MAXLEN"
        | "PLAN_TIEBREAK_APPLIED"
        | "VERIFY_DENY_SAFETY"
        | "VERIFY_DENY_RESOURCE"
        | "VERIFY_DENY_DOMAIN"
        | "VERIFY_DENY_POLICY"
        | "VERIFY_ESCALATE_REQUIRED"
        | "POLICY_VERSION_MISMATCH"
        | "POLICY_DIGEST_MISMATCH"
        | "LEGAL_SNAPSHOT_MISMATCH"
        | "OUTPUT_CANONICALIZATION_FAIL"
        | "AUDIT_INCOMPLETE"
        | "EVIDENCE_MISSING" => ReasonCode::Unknown,
        _ => return None,
    })
}

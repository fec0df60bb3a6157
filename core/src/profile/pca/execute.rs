//! The certified execution protocol (PCA-SPEC 8): every check runs, and the
//! first that fails gives the reason.
//!
//! In: a certificate, constraints, observations, the used nonces. Out: an
//! `Evaluation`, which has a verdict for each level.

mod checks;
mod signals;

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};

use strum::{IntoStaticStr, VariantArray};

use super::certificate::PcaCertificateRecord;
use super::inputs::{Constraints, Observations};
use super::reason::{Decision, ReasonCode};
use crate::wire::jcs::Suite;

/// The checks, in the order in which they give reasons.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Check {
    /// Certificate, constraints and observations follow their schemas.
    Inputs,
    /// The nonce was not used before.
    Replay,
    /// The certificate has the expected digest.
    PcDigest,
    /// It names the version of the constraints in force.
    ConstraintsVersion,
    /// It names the digest of the constraints in force.
    ConstraintsDigest,
    /// The steps give the plan digest.
    #[strum(serialize = "plan_digest")]
    Plan,
    /// The present time is within the effective time.
    EffectiveTime,
    /// The state is the one planned for.
    Toctou,
    /// The conflict detector reports nothing.
    Conflict,
    /// The steps, or proofs of them, lead to the Merkle root.
    Merkle,
    /// The behavioural risk score is at most the threshold.
    Brs,
    /// Not out of distribution.
    Ood,
    /// The disclosure budget is kept.
    Disclosure,
}

impl Check {
    /// All of them, in order.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The reason code when it fails.
    pub fn reason(self) -> ReasonCode {
        match self {
            Self::Inputs => ReasonCode::Unknown,
            Self::Replay => ReasonCode::PcReplay,
            Self::PcDigest | Self::ConstraintsVersion | Self::ConstraintsDigest | Self::Plan => {
                ReasonCode::IntegrityMismatch
            }
            Self::EffectiveTime => ReasonCode::EffectiveTime,
            Self::Toctou => ReasonCode::Toctou,
            Self::Conflict => ReasonCode::Conflict,
            Self::Merkle => ReasonCode::MerkleProof,
            Self::Brs => ReasonCode::BrsGate,
            Self::Ood => ReasonCode::OodTripwire,
            Self::Disclosure => ReasonCode::DisclosureBudget,
        }
    }

    /// The lowest level at which an unknown outcome counts as a failure.
    pub fn needed_from(self) -> Level {
        match self {
            Self::Merkle | Self::Brs => Level::Silver,
            Self::Ood | Self::Disclosure => Level::Gold,
            _ => Level::Bronze,
        }
    }
}

/// A conformance profile (PCA-SPEC 11) that an executor claims.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, Ord, PartialEq, PartialOrd)]
#[strum(serialize_all = "lowercase")]
pub enum Level {
    /// Linear plan digest, mandatory checks, reason codes.
    Bronze,
    /// Also Merkle trees, and the risk score.
    Silver,
    /// Also the tripwire and the disclosure budget.
    Gold,
}

impl Level {
    /// From the weakest to the strongest.
    pub const ALL: [Self; 3] = [Self::Bronze, Self::Silver, Self::Gold];

    /// Its name in reports and flags.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Which outcomes must be known before anything is executed. There is no
/// default: the caller chooses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Demand {
    /// Whatever this conformance profile needs; an unknown outcome is a
    /// failure (PCA-SPEC 9: fail closed).
    Level(Level),
    /// As in the released vectors, an absent signal is ignored: each vector
    /// gives only the signals it tests, so at a level most would fall back.
    /// Not for executing anything.
    ReleasedVectors,
}

impl Demand {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Level(level) => level.name(),
            Self::ReleasedVectors => "released-vectors",
        }
    }

    fn needs(self, check: Check) -> bool {
        match self {
            Self::Level(level) => check.needed_from() <= level,
            Self::ReleasedVectors => false,
        }
    }
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    Passed,
    Failed,
    /// The signal it needs was not given.
    Unknown,
}

/// Where an outcome comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    Computed,
    /// The caller's word.
    Asserted,
    /// No signal was given.
    Absent,
}

/// The result of one check.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Checked {
    pub check: Check,
    pub outcome: Outcome,
    pub source: Source,
    /// A few words for people.
    pub detail: String,
}

/// What to do, and why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Verdict {
    pub decision: Decision,
    pub reason_code: ReasonCode,
}

/// The input of an evaluation.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub certificate: &'a PcaCertificateRecord,
    /// The constraints in force, if available.
    pub constraints: Option<&'a Constraints>,
    pub observations: &'a Observations,
    pub demand: Demand,
}

/// The results of all checks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Evaluation {
    /// In order.
    pub checks: Vec<Checked>,
    pub demand: Demand,
    /// The suite under which the certificate has the expected digest.
    pub suite: Option<Suite>,
    /// Whether this evaluation used up the nonce.
    pub is_burned: bool,
}

impl Evaluation {
    /// The verdict under its own demand.
    pub fn verdict(&self) -> Verdict {
        self.verdict_by(self.demand)
    }

    /// The verdict under another demand.
    pub fn verdict_by(&self, demand: Demand) -> Verdict {
        match self.first_failure_by(demand) {
            None => Verdict { decision: Decision::Execute, reason_code: ReasonCode::Ok },
            Some(first) => {
                let reason_code = first.check.reason();
                Verdict { decision: Decision::Fallback, reason_code }
            }
        }
    }

    /// The check that gives the reason code.
    pub fn first_failure(&self) -> Option<&Checked> {
        self.first_failure_by(self.demand)
    }

    fn first_failure_by(&self, demand: Demand) -> Option<&Checked> {
        self.checks.iter().find(|checked| match checked.outcome {
            Outcome::Passed => false,
            Outcome::Failed => true,
            Outcome::Unknown => demand.needs(checked.check),
        })
    }

    /// The outcome of a check.
    pub fn outcome(&self, check: Check) -> Outcome {
        let found = self.checks.iter().find(|checked| checked.check == check);
        found.map_or(Outcome::Unknown, |checked| checked.outcome)
    }
}

/// Which nonces were used. Only a certificate that is executed burns its nonce,
/// in one step with the test whether it was used: of two executors that share
/// a memory, only one proceeds.
pub trait NonceMemory {
    type Error;

    /// Whether a nonce was used.
    fn is_burned(&self, nonce: &str) -> Result<bool, Self::Error>;

    /// Marks a nonce as used, durably and atomically; false if it already was.
    fn burn(&self, nonce: &str) -> Result<bool, Self::Error>;
}

/// A memory of nonces that lasts as long as the value.
#[derive(Debug, Default)]
pub struct Nonces {
    used: Mutex<HashSet<String>>,
}

impl NonceMemory for Nonces {
    type Error = Infallible;

    fn is_burned(&self, nonce: &str) -> Result<bool, Infallible> {
        Ok(self.used.lock().unwrap_or_else(PoisonError::into_inner).contains(nonce))
    }

    fn burn(&self, nonce: &str) -> Result<bool, Infallible> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(used.insert(nonce.to_owned()))
    }
}

/// Runs every check and, if the verdict is to execute, burns the nonce. There
/// is no verdict if the memory of nonces fails.
pub fn check<M: NonceMemory>(
    request: &Request<'_>,
    memory: Option<&M>,
) -> Result<Evaluation, M::Error> {
    let nonce = request.certificate.text("nonce");
    let is_burned = match (memory, nonce) {
        (Some(memory), Some(nonce)) => Some(memory.is_burned(nonce)?),
        _ => None,
    };
    let checks = Check::ALL.iter().map(|check| match check {
        Check::Replay => checks::replay(memory.is_some(), nonce, is_burned),
        other => checks::run(*other, request),
    });
    let (demand, suite) = (request.demand, checks::suite(request));
    let mut evaluation = Evaluation { checks: checks.collect(), demand, suite, is_burned: false };
    let executes = evaluation.verdict().decision == Decision::Execute;
    if let (true, Some(memory), Some(nonce)) = (executes, memory, nonce) {
        evaluation.is_burned = memory.burn(nonce)?;
        if !evaluation.is_burned {
            let replay = evaluation.checks.iter_mut().find(|c| c.check == Check::Replay);
            replay.into_iter().for_each(|c| *c = checks::replay(true, Some(nonce), Some(true)));
        }
    }
    Ok(evaluation)
}

//! The certified execution protocol (PCA-SPEC 8): every check is made, the
//! first one that fails gives the reason.
//!
//! In: a certificate, constraints, observations, a memory of nonces. Out: an
//! `Evaluation`, from which the verdict of any level follows.

mod checks;
mod signals;

use super::certificate::PcaCertificateRecord;
use super::constraints::Constraints;
use super::memory::NonceMemory;
use super::observations::Observations;
use super::reason::{Decision, ReasonCode};
use crate::wire::jcs::Suite;

/// The checks, in the order in which they give reasons.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Check {
    /// Certificate, constraints and observations are what their schemas say.
    Inputs,
    /// The nonce was not used.
    Replay,
    /// The certificate is the expected one.
    PcDigest,
    /// It names the version of the constraints in force.
    ConstraintsVersion,
    /// It names their digest, and they have it.
    ConstraintsDigest,
    /// The steps give the plan digest.
    Plan,
    /// Now is within the window.
    EffectiveTime,
    /// The state is that of the plan.
    Toctou,
    /// Nothing conflicts.
    Conflict,
    /// The steps, or proofs of them, lead to the Merkle root.
    Merkle,
    /// The behavioural risk score is at most the threshold.
    Brs,
    /// Not out of distribution.
    Ood,
    /// No more is disclosed than may be.
    Disclosure,
}

impl Check {
    /// All of them, in order.
    pub const ALL: [Self; 13] = [
        Self::Inputs,
        Self::Replay,
        Self::PcDigest,
        Self::ConstraintsVersion,
        Self::ConstraintsDigest,
        Self::Plan,
        Self::EffectiveTime,
        Self::Toctou,
        Self::Conflict,
        Self::Merkle,
        Self::Brs,
        Self::Ood,
        Self::Disclosure,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inputs => "inputs",
            Self::Replay => "replay",
            Self::PcDigest => "pc_digest",
            Self::ConstraintsVersion => "constraints_version",
            Self::ConstraintsDigest => "constraints_digest",
            Self::Plan => "plan_digest",
            Self::EffectiveTime => "effective_time",
            Self::Toctou => "toctou",
            Self::Conflict => "conflict",
            Self::Merkle => "merkle",
            Self::Brs => "brs",
            Self::Ood => "ood",
            Self::Disclosure => "disclosure",
        }
    }

    /// The reason that its failing gives.
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

    /// The lowest level at which not knowing is failing. The others always
    /// know.
    pub fn needed_from(self) -> Level {
        match self {
            Self::Merkle | Self::Brs => Level::Silver,
            Self::Ood | Self::Disclosure => Level::Gold,
            _ => Level::Bronze,
        }
    }
}

/// A conformance profile (PCA-SPEC 11) that an executor claims.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Level {
    /// Linear plan digest, mandatory checks, reason codes.
    Bronze,
    /// Also Merkle trees, and the risk score.
    Silver,
    /// Also the tripwire and the disclosure budget.
    Gold,
}

impl Level {
    /// From the least to the most.
    pub const ALL: [Self; 3] = [Self::Bronze, Self::Silver, Self::Gold];

    /// Its name in reports and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bronze => "bronze",
            Self::Silver => "silver",
            Self::Gold => "gold",
        }
    }
}

/// What has to be known before anything is executed. There is no default: who
/// judges a certificate says by which measure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Demand {
    /// Whatever this conformance profile needs; not knowing it is failing
    /// (PCA-SPEC 9: fail closed).
    Level(Level),
    /// As the released vectors: a signal that nobody gave does not count.
    /// They give no signal that their test is not about, so at a level most
    /// of them would fall back. Not fit for executing anything.
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

/// What a check came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It holds.
    Passed,
    /// It does not.
    Failed,
    /// Nobody said.
    Unknown,
}

/// Where an outcome comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// We computed it.
    Computed,
    /// The caller said so.
    Asserted,
    /// There is nothing to go by.
    Absent,
}

/// One check, made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Checked {
    /// Which.
    pub check: Check,
    /// What it came to.
    pub outcome: Outcome,
    /// What that rests on.
    pub source: Source,
    /// A few words for people.
    pub detail: String,
}

/// What to do, and why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Verdict {
    /// What to do.
    pub decision: Decision,
    /// Why.
    pub reason_code: ReasonCode,
}

/// What is to be judged.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The certificate.
    pub certificate: &'a PcaCertificateRecord,
    /// The constraints in force, when they are at hand.
    pub constraints: Option<&'a Constraints>,
    /// What the executor observed.
    pub observations: &'a Observations,
    /// What has to be known.
    pub demand: Demand,
}

/// All checks, made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Evaluation {
    /// In order.
    pub checks: Vec<Checked>,
    /// What had to be known.
    pub demand: Demand,
    /// The suite under which the expected digest is the certificate's.
    pub suite: Option<Suite>,
    /// Whether this evaluation used up the nonce.
    pub is_burned: bool,
}

impl Evaluation {
    /// The verdict by the demand it was made with.
    pub fn verdict(&self) -> Verdict {
        self.verdict_by(self.demand)
    }

    /// The verdict by another demand.
    pub fn verdict_by(&self, demand: Demand) -> Verdict {
        match self.first_failure_by(demand) {
            None => Verdict { decision: Decision::Execute, reason_code: ReasonCode::Ok },
            Some(first) => {
                let reason_code = first.check.reason();
                Verdict { decision: Decision::Fallback, reason_code }
            }
        }
    }

    /// The check that gives the reason to fall back.
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

    /// What a check came to.
    pub fn outcome(&self, check: Check) -> Outcome {
        let found = self.checks.iter().find(|checked| checked.check == check);
        found.map_or(Outcome::Unknown, |checked| checked.outcome)
    }
}

/// Makes every check and, if the verdict is to execute, burns the nonce. A
/// memory that cannot be asked gives no verdict at all.
pub fn check<M: NonceMemory>(
    request: &Request<'_>,
    memory: Option<&M>,
) -> Result<Evaluation, M::Error> {
    let nonce = request.certificate.text("nonce");
    let is_burned = match (memory, nonce) {
        (Some(memory), Some(nonce)) => Some(memory.is_burned(nonce)?),
        _ => None,
    };
    let checks = Check::ALL.map(|check| match check {
        Check::Replay => checks::replay(memory.is_some(), nonce, is_burned),
        other => checks::make(other, request),
    });
    let (demand, suite) = (request.demand, checks::suite(request));
    let mut evaluation = Evaluation { checks: checks.to_vec(), demand, suite, is_burned: false };
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

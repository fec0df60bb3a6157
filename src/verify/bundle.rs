//! A bundle: a statement with everything needed to see, without any network,
//! that it was logged and why it was admitted.
//!
//! `{0: "capstan-bundle-1", 1: statement, 2: policy entry, 3: trust entry,
//! 4: [earlier records], 5: checkpoint, 6: collateral, 7: registration time}`;
//! all statements are Transparent Statements, each with its own receipt.

use super::report::{Check, Outcome, Report};
use super::{Evidence, capsule, checkpoint, log_keys, malformed, record, statement};
use crate::checkpoint::SignedCheckpoint;
use crate::envelope::{ContentType, Door, Resolved, RulesVersion, SignedStatement};
use crate::key::PublicKey;
use crate::policy::{Decision, Facts, Memory, Policy};
use crate::profile::{self, Control};
use crate::receipt::{Proofs, Receipt, attached};
use crate::trust::TrustAnchors;
use crate::wire::cbor::{self, Value};
use crate::wire::time::UnixSeconds;

const KIND: &str = "capstan-bundle-1";

/// What a bundle holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bundle {
    /// The Transparent Statement it is about.
    pub statement: Vec<u8>,
    /// The policy entry in force at its turn.
    pub policy: Vec<u8>,
    /// The trust entry in force at its turn.
    pub trust: Vec<u8>,
    /// The records its chain leads back to, its predecessors, and the batch
    /// its session goes on from, oldest first.
    pub chain: Vec<Vec<u8>>,
    /// A checkpoint that covers all of them.
    pub checkpoint: String,
    /// What else authentication needed.
    pub collateral: Vec<u8>,
    /// When the log says it registered it.
    pub time: UnixSeconds,
}

impl Bundle {
    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        cbor::map(&mut out, 8);
        cbor::int(&mut out, 0);
        cbor::text(&mut out, KIND);
        for (label, bytes) in [(1, &self.statement), (2, &self.policy), (3, &self.trust)] {
            cbor::int(&mut out, label);
            cbor::bytes(&mut out, bytes);
        }
        cbor::int(&mut out, 4);
        cbor::array(&mut out, self.chain.len());
        self.chain.iter().for_each(|record| cbor::bytes(&mut out, record));
        cbor::int(&mut out, 5);
        cbor::text(&mut out, &self.checkpoint);
        cbor::int(&mut out, 6);
        cbor::bytes(&mut out, &self.collateral);
        cbor::int(&mut out, 7);
        cbor::int(&mut out, self.time.seconds());
        out
    }

    /// Reads a file that is one, without judging it.
    pub fn open(bytes: &[u8]) -> Option<Self> {
        let value = Value::read(bytes).ok()?;
        if Self::is_one(&value) { Self::read(&value) } else { None }
    }

    /// Whether a file says that it is one.
    pub(super) fn is_one(value: &Value<'_>) -> bool {
        value.get(0).and_then(Value::text) == Some(KIND)
    }

    fn read(value: &Value<'_>) -> Option<Self> {
        let bytes = |label: i64| Some(value.get(label)?.bytes()?.to_vec());
        let chain = value.get(4)?.array()?.iter().map(|one| Some(one.bytes()?.to_vec()));
        Some(Self {
            statement: bytes(1)?,
            policy: bytes(2)?,
            trust: bytes(3)?,
            chain: chain.collect::<Option<_>>()?,
            checkpoint: value.get(5)?.text()?.to_owned(),
            collateral: bytes(6)?,
            time: UnixSeconds::new(value.get(7)?.int()?),
        })
    }
}

/// Checks every part, and decides the admission again.
pub(super) fn report(value: &Value<'_>, evidence: &Evidence<'_>) -> Report {
    let Some(bundle) = Bundle::read(value) else {
        let detail = "it calls itself a bundle and lacks a part of one".to_owned();
        return malformed("bundle", "bundle-incomplete", detail);
    };
    let subject = match SignedStatement::parse_any_size(bundle.statement.clone()) {
        Ok(subject) => subject,
        Err(e) => return malformed("bundle", e.code(), format!("its statement: {e}")),
    };
    let mut report = statement::envelope_report(&subject, evidence);
    report.artefact = "bundle";
    let place = place_of(&subject);
    let policy = part("policy", &bundle.policy, Some(Control::Policy), (evidence, place));
    let trust = part("trust", &bundle.trust, Some(Control::Trust), (evidence, place));
    let chain: Vec<_> =
        bundle.chain.iter().map(|one| part("chain", one, None, (evidence, place))).collect();
    let is_logged = |check: &Check| check.outcome == Outcome::Yes;
    let logged: Vec<_> =
        chain.iter().filter(|(c, _)| is_logged(c)).filter_map(|(_, one)| one.as_ref()).collect();
    capsule::add(&mut report, &subject, evidence.payload, &logged);
    record::add(&mut report, &subject, evidence.payload);
    let admitted = match (&policy.1, &trust.1) {
        (Some(policy), Some(trust)) => {
            let earlier: Vec<_> = chain.iter().filter_map(|(_, one)| one.as_ref()).collect();
            admitted(&subject, &bundle, (policy, trust, &earlier), &mut report.warnings)
        }
        _ => Check::not_checked("admitted", "policy or trust cannot be read"),
    };
    report.checks.extend([policy.0, trust.0]);
    report.checks.extend(chain.into_iter().map(|(check, _)| check));
    report.checks.push(admitted);
    match SignedCheckpoint::parse(&bundle.checkpoint) {
        Ok(note) => report.checks.extend(checkpoint::report(&note, evidence).checks),
        Err(e) => report.checks.push(Check::no("published", e.code(), e.to_string())),
    }
    report.not_shown.push("that no other policy or trust entry stands between these and it");
    report.not_shown.push("that no record outside the bundle changed what the policy asked about");
    report
}

/// One of the statements beside the subject: logged, before it, and of the
/// kind it must be.
fn part(
    name: &'static str,
    bytes: &[u8],
    control: Option<Control>,
    (evidence, place): (&Evidence<'_>, Option<u64>),
) -> (Check, Option<SignedStatement>) {
    let statement = match SignedStatement::parse_any_size(bytes.to_vec()) {
        Ok(statement) => statement,
        Err(e) => return (Check::no(name, e.code(), e.to_string()), None),
    };
    let Some(receipt) = receipt_of(&statement) else {
        return (Check::no(name, "receipt-missing", "it has no receipt".to_owned()), None);
    };
    let (log, keys) = log_keys(&receipt, evidence.trust);
    if let Some(control) = control {
        let own = statement.header().claims.issuer.as_deref() == Some(log.as_str());
        let kind = ContentType::Media(control.content_type().to_owned());
        if !own || statement.header().content_type.as_ref() != Some(&kind) {
            let detail = format!("not the {} of {log}", control.subject());
            return (Check::no(name, "bundle-other-control", detail), None);
        }
        let own = TrustAnchors::default().with_issuer(&log, &keys);
        let (resolved, now) = (Resolved::default(), evidence.now);
        let door = Door { log: Some(&log), ..Door::new(&own, &resolved, now) };
        if !keys.is_empty()
            && let Err(e) = statement.issuer(&door, None)
        {
            return (Check::no(name, e.code(), e.to_string()), None);
        }
    }
    if place_of(&statement).zip(place).is_some_and(|(one, subject)| one >= subject) {
        let detail = "it was logged after the statement".to_owned();
        return (Check::no(name, "bundle-order", detail), None);
    }
    let logged =
        statement::logged(&receipt, &statement.canonical(), evidence.trust, &mut Vec::new()).0;
    (Check { name, ..logged }, Some(statement))
}

fn receipt_of(statement: &SignedStatement) -> Option<Receipt> {
    let receipts = attached(statement).ok()?;
    Receipt::parse(receipts.into_iter().next()?).ok()
}

/// The leaf index a statement's receipt proves, once the receipt verifies.
fn place_of(statement: &SignedStatement) -> Option<u64> {
    match receipt_of(statement)?.proofs() {
        Proofs::Inclusion(proofs) => proofs.first().map(|proof| proof.index),
        _ => None,
    }
}

/// The decision, made again from the entries in the bundle, by the rules that
/// its policy entry put in force.
fn admitted(
    subject: &SignedStatement,
    bundle: &Bundle,
    entries: (&SignedStatement, &SignedStatement, &[&SignedStatement]),
    warnings: &mut Vec<String>,
) -> Check {
    let rules = match RulesVersion::of_policy(entries.0.header()) {
        Ok(rules) => rules,
        Err(e) => return Check::cannot_tell("admitted", e.code(), e.to_string()),
    };
    let check = decided(subject, bundle, entries, rules);
    if check.outcome != Outcome::No && rules < RulesVersion::CURRENT {
        let today = decided(subject, bundle, entries, RulesVersion::CURRENT);
        if today.outcome == Outcome::No {
            warnings.push(outdated(rules, &today.detail));
        }
    }
    check
}

/// What to say of a statement that was logged by rules since made stricter.
fn outdated(rules: RulesVersion, detail: &str) -> String {
    let number = rules.number();
    format!("version {number} of the rules at the door let it in; today's would not: {detail}")
}

fn decided(
    subject: &SignedStatement,
    bundle: &Bundle,
    (policy, trust, earlier): (&SignedStatement, &SignedStatement, &[&SignedStatement]),
    rules: RulesVersion,
) -> Check {
    let no = |code, detail: String| Check::no("admitted", code, detail);
    let text =
        |s: &SignedStatement| String::from_utf8_lossy(s.payload().unwrap_or_default()).into_owned();
    let policy = match Policy::parse(&text(policy)) {
        Ok(policy) => policy,
        Err(e) => return no(e.code(), format!("the policy entry: {e}")),
    };
    let trust = match TrustAnchors::parse_any(&text(trust)) {
        Ok(trust) => trust,
        Err(e) => return no(e.code(), format!("the trust entry: {e}")),
    };
    let collateral = Value::read(&bundle.collateral).unwrap_or(Value::Null);
    if collateral.get(1).is_some() {
        let detail = "its certificates travelled outside the statement".to_owned();
        return Check::cannot_tell("admitted", "certificates-outside", detail);
    }
    let key = collateral.get(2).and_then(Value::bytes).map(PublicKey::from_cose_key);
    let resolved = Resolved { keys: key.into_iter().filter_map(Result::ok).collect() };
    let log = receipt_of(subject).and_then(|r| r.envelope().header().claims.issuer.clone());
    let (log, now) = (log.as_deref(), bundle.time);
    let door = Door { rules, log, trust: &trust, resolved: &resolved, now };
    let authentic = match subject.clone().authenticate(&door) {
        Ok(authentic) => authentic,
        Err(e) => return no(e.code(), e.to_string()),
    };
    let read = profile::read(&authentic);
    let issuer = &authentic.issuer().name;
    let Ok(facts) = Facts::look_up(issuer, &read.summary, &remember(earlier), rules);
    let with_all = Facts { predecessors_known: Some(true), ..facts };
    if facts.predecessors_known == Some(false)
        && !policy.admits(&authentic, &read, &facts)
        && policy.admits(&authentic, &read, &with_all)
    {
        let detail = "the policy asks for predecessors that the bundle does not show".to_owned();
        return Check::cannot_tell("admitted", "predecessors-not-shown", detail);
    }
    match policy.decide(authentic, &read, &facts) {
        Decision::Admit(_) => {
            Check::yes("admitted", format!("policy {:?} admits it", policy.name()))
        }
        Decision::Refuse(refusal) => no(refusal.code(), refusal.to_string()),
    }
}

fn remember(earlier: &[&SignedStatement]) -> Memory {
    let mut memory = Memory::default();
    for statement in earlier {
        let header = statement.header();
        let read = profile::read_payload(header, statement.payload().unwrap_or_default());
        let issuer = header.claims.issuer.as_deref().unwrap_or_default();
        memory.hear(issuer, &read.record, &read.summary);
    }
    memory
}

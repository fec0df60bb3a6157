//! The admission decision, repeated with the content of a bundle.

use super::Bundle;
use crate::envelope::{AuthContext, Authentic, Binding, Resolved, RulesVersion, SignedStatement};
use crate::key::PublicKey;
use crate::policy::{Decision, Facts, Memory, Policy};
use crate::profile;
use crate::trust::TrustAnchors;
use crate::verify::report::{Check, Outcome};
use crate::wire::cbor::Value;
use crate::wire::label;
use crate::wire::time::UnixSeconds;

/// The input of the decision.
pub(super) struct Admission<'a> {
    pub(super) subject: &'a SignedStatement,
    pub(super) bundle: &'a Bundle,
    pub(super) policy: &'a SignedStatement,
    pub(super) trust: &'a SignedStatement,
    /// The other statements of the bundle, which were logged before.
    pub(super) earlier: &'a [&'a SignedStatement],
    /// The log that the subject's receipt names.
    pub(super) log: Option<&'a str>,
    /// The time of the subject's receipt, which the log signed.
    pub(super) receipt_time: Option<UnixSeconds>,
    /// The trust of the verifier.
    pub(super) own_trust: &'a TrustAnchors,
}

/// The rules of the log when the subject was registered.
struct Rules {
    version: RulesVersion,
    policy: Policy,
    trust: TrustAnchors,
    /// A key from an issuer's did:web document, without proof of that origin.
    resolved: Resolved,
}

fn no(code: &'static str, detail: String) -> Check {
    Check::no("admitted", code, detail)
}

/// The warning for a statement that the current rules would refuse.
fn outdated(rules: RulesVersion, detail: &str) -> String {
    let number = rules.number();
    format!(
        "version {number} of the authentication rules admitted it; the current version would not: {detail}"
    )
}

impl Admission<'_> {
    /// The decision by the rules that the policy entry put into effect.
    pub(super) fn check(&self, warnings: &mut Vec<String>) -> Check {
        let rules = match self.rules() {
            Ok(rules) => rules,
            Err(check) => return check,
        };
        let check = self.decided(&rules);
        if check.outcome != Outcome::No && rules.version < RulesVersion::CURRENT {
            let version = rules.version;
            let today = self.decided(&Rules { version: RulesVersion::CURRENT, ..rules });
            if today.outcome == Outcome::No {
                warnings.push(outdated(version, &today.detail));
            }
        }
        check
    }

    /// The decision, if it is the same for every possible registration time.
    fn decided(&self, rules: &Rules) -> Check {
        let claimed = self.bundle.time;
        if self.receipt_time.is_some_and(|receipt| claimed > receipt) {
            let detail = format!("the registration time {claimed} is after the receipt");
            return no("bundle-time", detail);
        }
        let check = self.decide(rules, claimed);
        // The time is unsigned. It is after the policy and trust entries and
        // before the receipt.
        let written = |entry: &SignedStatement| entry.header().claims.issued_at;
        let bounds = [written(self.policy).max(written(self.trust)), self.receipt_time];
        for bound in bounds.into_iter().flatten() {
            if self.decide(rules, bound).outcome != check.outcome {
                let detail = format!(
                    "the decision depends on the registration time, and {claimed} is unsigned"
                );
                return Check::cannot_tell("admitted", "time-not-shown", detail);
            }
        }
        check
    }

    fn rules(&self) -> Result<Rules, Check> {
        let version = RulesVersion::of_policy(self.policy.header())
            .map_err(|e| Check::cannot_tell("admitted", e.code(), e.to_string()))?;
        let text = |entry: &SignedStatement| {
            String::from_utf8_lossy(entry.payload().unwrap_or_default()).into_owned()
        };
        let policy = Policy::parse(&text(self.policy))
            .map_err(|e| no(e.code(), format!("the policy entry: {e}")))?;
        let trust = TrustAnchors::parse_any(&text(self.trust))
            .map_err(|e| no(e.code(), format!("the trust entry: {e}")))?;
        let collateral = Value::read(&self.bundle.collateral).unwrap_or(Value::Null);
        if collateral.get(label::collateral::CERTIFICATES).is_some() {
            let detail = "its certificates were outside the signed statement".to_owned();
            return Err(Check::cannot_tell("admitted", "certificates-outside", detail));
        }
        let key = collateral
            .get(label::collateral::KEY)
            .and_then(Value::bytes)
            .map(PublicKey::from_cose_key);
        let keys = key.into_iter().filter_map(Result::ok).collect();
        Ok(Rules { version, policy, trust, resolved: Resolved { keys } })
    }

    /// The decision at a time.
    fn decide(&self, rules: &Rules, now: UnixSeconds) -> Check {
        let Rules { version, policy, trust, resolved } = rules;
        let context = AuthContext { rules: *version, log: self.log, trust, resolved, now };
        let authentic = match self.subject.clone().authenticate(&context) {
            Ok(authentic) => authentic,
            Err(e) => return no(e.code(), e.to_string()),
        };
        let is_key_shown = self.is_key_shown(&authentic, now);
        let read = profile::read(&authentic);
        let issuer = &authentic.issuer().name;
        let Ok(facts) = Facts::look_up(issuer, &read.summary, &remember(self.earlier), *version);
        let with_all = Facts { predecessors_known: Some(true), ..facts };
        if facts.predecessors_known == Some(false)
            && !policy.admits(&authentic, &read, &facts)
            && policy.admits(&authentic, &read, &with_all)
        {
            let detail =
                "the policy asks for predecessors that the bundle does not show".to_owned();
            return Check::cannot_tell("admitted", "predecessors-not-shown", detail);
        }
        match policy.decide(authentic, &read, &facts) {
            Decision::Refuse(refusal) => no(refusal.code(), refusal.to_string()),
            Decision::Admit(_) if !is_key_shown => {
                let detail = "nothing proves that the key was in the issuer's did:web document; \
                              `capstan trust issuer` binds it to the name, if you know it"
                    .to_owned();
                Check::cannot_tell("admitted", "key-not-shown", detail)
            }
            Decision::Admit(_) => {
                Check::yes("admitted", format!("policy {:?} admits it", policy.name()))
            }
        }
    }

    /// A key that only the collateral binds to the issuer counts only if the
    /// verifier has pinned it.
    fn is_key_shown(&self, authentic: &Authentic, now: UnixSeconds) -> bool {
        let issuer = authentic.issuer();
        let known = || self.own_trust.pinned(&issuer.name, None, now).unwrap_or_default();
        issuer.binding != Binding::DidWeb || known().contains(&issuer.key)
    }
}

fn remember(earlier: &[&SignedStatement]) -> Memory {
    let mut memory = Memory::default();
    for statement in earlier {
        let header = statement.header();
        let read = profile::read_payload(header, statement.payload().unwrap_or_default());
        let issuer = header.claims.issuer.as_deref().unwrap_or_default();
        memory.add(issuer, &read.summary);
    }
    memory
}

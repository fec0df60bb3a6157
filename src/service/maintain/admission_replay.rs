//! The rules of a log, followed from its first entry: which key signs for
//! it, whom it believes, what it admits.

use std::collections::HashMap;

use crate::envelope::{
    AuthContext, Authentic, Resolved, RulesVersion, SignedStatement, StatementId,
};
use crate::key::PublicKey;
use crate::log::LeafIndex;
use crate::policy::{Decision, Facts, Memory, Policy};
use crate::profile::{self, Control, Read, Resumption, Succession};
use crate::service::Identity;
use crate::store::Stored;
use crate::trust::TrustAnchors;
use crate::trust::x509::Scope;
use crate::wire::cbor::{self, Value};
use crate::wire::label;

/// What is wrong with one statement: a stable word and a sentence.
pub type Wrong = (&'static str, String);

/// What a statement shows without the log before it, but for whom the log
/// believes: signatures take nearly all the time of a walk, and nothing stops
/// several from being looked at beside each other.
pub(in crate::service) struct Seen {
    id: StatementId,
    /// Its id with the other ECDSA signature that verifies.
    twin: Option<StatementId>,
    read: Read,
    authentic: Result<Authentic, Wrong>,
}

/// The rules in force at one index.
pub(in crate::service) struct AdmissionReplay {
    issuer: String,
    /// The key that signs for the log now.
    active: PublicKey,
    /// Keys the store names that have not come up yet, the next one last.
    coming: Vec<PublicKey>,
    /// The built-in rules; none when the log names some we do not know.
    version: Option<RulesVersion>,
    trust: TrustAnchors,
    policy: Option<Policy>,
    /// Decides in place of the log's own policy, to see what it would change.
    instead: Option<Policy>,
    /// What the log before the next statement says.
    memory: Memory,
    /// Where statements with an ECDSA signature stand.
    ecdsa: HashMap<StatementId, LeafIndex>,
    last: [Option<LeafIndex>; Control::ALL.len()],
}

impl AdmissionReplay {
    /// Before the first entry. `keys` are those the store names, the active
    /// one first, so the first one of all is the last.
    pub(in crate::service) fn new(identity: &Identity, mut keys: Vec<PublicKey>) -> Option<Self> {
        Some(Self {
            issuer: identity.issuer.clone(),
            active: keys.pop()?,
            coming: keys,
            version: Some(RulesVersion::V1),
            trust: TrustAnchors::default(),
            policy: None,
            instead: None,
            memory: Memory::default(),
            ecdsa: HashMap::new(),
            last: [None; Control::ALL.len()],
        })
    }

    /// Lets another policy decide than the one the log had.
    pub(in crate::service) fn decide_by(&mut self, policy: Policy) {
        self.instead = Some(policy);
    }

    /// Judges the next statement, and lets it change the rules if it is one
    /// of the log's own.
    pub(in crate::service) fn judge(
        &mut self,
        index: LeafIndex,
        statement: &SignedStatement,
        stored: &Stored,
    ) -> Vec<Wrong> {
        let outcome = match self.control(statement) {
            Some(control) => self.govern(index, control, statement, stored),
            None => self.admit(index, statement, self.look(statement, stored)),
        };
        outcome.err().into_iter().collect()
    }

    /// The kind of control statement this is, if it is one of the log's own:
    /// only these change the rules.
    pub(in crate::service) fn control(&self, statement: &SignedStatement) -> Option<Control> {
        let own = statement.header().claims.issuer.as_deref() == Some(self.issuer.as_str());
        control_of(statement).filter(|_| own)
    }

    /// Looks at a statement by the trust in force now.
    pub(in crate::service) fn look(&self, statement: &SignedStatement, stored: &Stored) -> Seen {
        let payload = statement.payload().unwrap_or_default();
        Seen {
            id: StatementId::of(statement),
            twin: statement.twin(),
            read: profile::read_payload(statement.header(), payload),
            authentic: self.authenticate(statement, stored, &self.trust, self.version),
        }
    }

    /// The anchor that vouched for the issuer of a statement, and the scope
    /// of just this name; none without a certificate, and for names that
    /// would be patterns or cannot be written in a scope.
    pub(in crate::service) fn vouched_for(
        &self,
        statement: &SignedStatement,
        stored: &Stored,
    ) -> Option<(String, Scope)> {
        let header = statement.header();
        if header.x5t.is_none() && header.chain.is_empty() && stored.collateral == NO_COLLATERAL {
            return None;
        }
        let authentic = self.look(statement, stored).authentic.ok()?;
        let (issuer, header) = (authentic.issuer(), authentic.statement().header());
        let anchor = issuer.anchor.clone()?;
        let unscoped = authentic.rules().unscoped();
        let chains = self.trust.chains();
        let found = chains.speaking_for(&header.chain, &issuer.name, unscoped, stored.time);
        let scope = found.ok()?.1.scope();
        (scope.mistake().is_none() && !scope.has_patterns()).then_some((anchor, scope))
    }

    /// Where the last control statement of a kind stands.
    pub(in crate::service) fn last(&self, control: Control) -> Option<LeafIndex> {
        let place = Control::ALL.iter().position(|kind| *kind == control)?;
        self.last.get(place).copied().flatten()
    }

    /// Keys the store serves that no succession on the log has named.
    pub(in crate::service) fn keys_left_over(&self) -> Option<String> {
        let next = self.coming.last()?;
        Some(format!("{} keys have no succession, {} first", self.coming.len(), next.id()))
    }

    /// Decides about the next statement, which is none of the log's own and
    /// was looked at under the rules still in force.
    pub(in crate::service) fn admit(
        &mut self,
        index: LeafIndex,
        statement: &SignedStatement,
        seen: Seen,
    ) -> Result<(), Wrong> {
        let Seen { id, twin, read, authentic } = seen;
        let earlier = twin.and_then(|twin| self.ecdsa.get(&twin).copied());
        if twin.is_some() {
            self.ecdsa.insert(id, index);
        }
        let issuer = statement.header().claims.issuer.as_deref().unwrap_or_default();
        let rules = self.version.unwrap_or(RulesVersion::CURRENT);
        let Ok(facts) = Facts::look_up(issuer, &read.summary, &self.memory, rules);
        self.memory.add(issuer, &read.summary);
        let authentic = authentic?;
        if let Some(earlier) = earlier.filter(|_| authentic.rules() >= RulesVersion::V2) {
            let detail = format!(
                "entry #{earlier} is this statement with the other ECDSA signature that verifies"
            );
            return Err(("signature-twin", detail));
        }
        let policy = self.instead.as_ref().or(self.policy.as_ref());
        let policy = policy.ok_or(("policy-missing", NO_POLICY.to_owned()))?;
        match policy.decide(authentic, &read, &facts) {
            Decision::Admit(_) => Ok(()),
            Decision::Refuse(refusal) => Err(("policy-refuses", refusal.to_string())),
        }
    }

    fn govern(
        &mut self,
        index: LeafIndex,
        control: Control,
        statement: &SignedStatement,
        stored: &Stored,
    ) -> Result<(), Wrong> {
        let keys = std::slice::from_ref(&self.active);
        let trust = TrustAnchors::default().with_issuer(&self.issuer, keys);
        // Its own statements are bound by the active key in every version.
        let version = self.version.or(Some(RulesVersion::CURRENT));
        let authentic = self.authenticate(statement, stored, &trust, version)?;
        let place = Control::ALL.iter().position(|kind| *kind == control);
        if let Some(slot) = place.and_then(|place| self.last.get_mut(place)) {
            *slot = Some(index);
        }
        let text = || String::from_utf8_lossy(authentic.payload()).into_owned();
        match control {
            Control::Policy => {
                let policy = Policy::parse(&text()).map_err(|e| (e.code(), e.to_string()))?;
                self.policy = Some(policy);
                let version = RulesVersion::of_policy(statement.header());
                self.version = version.as_ref().ok().copied();
                version.map_err(|e| (e.code(), e.to_string()))?;
            }
            Control::Trust => {
                self.trust =
                    TrustAnchors::parse_any(&text()).map_err(|e| (e.code(), e.to_string()))?;
            }
            Control::Succession => self.succeed(authentic.payload())?,
            Control::Resumption => {
                let wrong = |detail: &str| ("resumption-invalid", detail.to_owned());
                let resumption = Resumption::read(authentic.payload()).map_err(wrong)?;
                if resumption.size != index.get() {
                    return Err(wrong("it goes on from another size than its own place"));
                }
            }
        }
        Ok(())
    }

    /// Authenticates a logged statement as its log did.
    fn authenticate(
        &self,
        statement: &SignedStatement,
        stored: &Stored,
        trust: &TrustAnchors,
        version: Option<RulesVersion>,
    ) -> Result<Authentic, Wrong> {
        let rules = version.ok_or(("rules-version-unknown", UNKNOWN_RULES.to_owned()))?;
        let resolved = Resolved::default();
        let log = Some(self.issuer.as_str());
        let context = AuthContext { rules, log, trust, resolved: &resolved, now: stored.time };
        authenticate(statement, stored, &context)
    }

    /// The old key has signed; the new one must agree, and be the one the
    /// store says came next.
    fn succeed(&mut self, payload: &[u8]) -> Result<(), Wrong> {
        let wrong = |detail: &str| ("succession-invalid", detail.to_owned());
        let succession = Succession::read(payload).map_err(wrong)?;
        if !succession.follows(&self.active) {
            return Err(wrong("it follows another key than the active one"));
        }
        let key = succession.new;
        if self.coming.pop().is_some_and(|next| next != key) {
            return Err(wrong("the store serves another key in its place"));
        }
        self.active = key;
        Ok(())
    }
}

/// An empty map: authentication needed nothing besides the statement.
const NO_COLLATERAL: &[u8] = &[0xa0];
const NO_POLICY: &str = "no policy was in force yet";
const UNKNOWN_RULES: &str =
    "the log works by rules here that this program does not know; use a newer one";

fn control_of(statement: &SignedStatement) -> Option<Control> {
    match &statement.header().content_type {
        Some(crate::envelope::ContentType::Media(name)) => Control::from_content_type(name),
        _ => None,
    }
}

/// Authenticates a logged statement with what was kept beside it, by the
/// rules, trust and time of its registration, which are in this context.
pub(in crate::service) fn authenticate(
    statement: &SignedStatement,
    stored: &Stored,
    context: &AuthContext<'_>,
) -> Result<Authentic, Wrong> {
    let collateral = Value::read(&stored.collateral).map_err(|e| (e.code(), e.to_string()))?;
    let key = collateral.get(label::collateral::KEY).and_then(Value::bytes);
    let key = key.map(PublicKey::from_cose_key).transpose();
    let keys = key.map_err(|e| (e.code(), e.to_string()))?.into_iter().collect();
    let statement = match collateral.get(label::collateral::CERTIFICATES) {
        None => statement.clone(),
        Some(certificates) => with_chain(statement, certificates)?,
    };
    let resolved = &Resolved { keys };
    let authentic = statement
        .authenticate(&AuthContext { resolved, ..*context })
        .map_err(|e| (e.code(), e.to_string()))?;
    if authentic.collateral() != stored.collateral {
        let detail = "what is kept beside the statement is not what authentication needed";
        return Err(("collateral-differs", detail.to_owned()));
    }
    Ok(authentic)
}

/// Puts certificates that stood in the unprotected map back there.
fn with_chain(
    statement: &SignedStatement,
    certificates: &Value<'_>,
) -> Result<SignedStatement, Wrong> {
    let mut out = Vec::new();
    cbor::tag(&mut out, label::COSE_SIGN1_TAG);
    cbor::array(&mut out, 4);
    cbor::bytes(&mut out, statement.protected());
    cbor::map(&mut out, 1);
    cbor::int(&mut out, label::header::X5CHAIN);
    match certificates.array() {
        Some([one]) => out.extend(one.encode()),
        _ => out.extend(certificates.encode()),
    }
    cbor::bytes(&mut out, statement.payload().unwrap_or_default());
    cbor::bytes(&mut out, statement.signature());
    SignedStatement::parse_any_size(out).map_err(|e| (e.code(), e.to_string()))
}

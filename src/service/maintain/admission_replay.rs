//! The rules of a log, replayed from its first entry: which key signs for it,
//! which issuers it trusts, what its policy admits.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crate::envelope::{
    AuthContext, Authentic, Resolved, RulesVersion, SignedStatement, StatementId,
};
use crate::key::PublicKey;
use crate::log::LeafIndex;
use crate::policy::{Decision, Facts, Memory, Policy};
use crate::profile::{self, Control, Read, Resumption, Succession};
use crate::service::open::identity_of;
use crate::service::{ControlError, Identity};
use crate::store::{self, Backend, Store, Stored};
use crate::trust::TrustAnchors;
use crate::trust::x509::Scope;
use crate::wire::cbor::{self, Value};
use crate::wire::label;

/// Why a logged statement would not be admitted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AdmissionError {
    /// A stable kebab-case word.
    pub code: &'static str,
    /// A sentence for people.
    pub detail: String,
}

impl AdmissionError {
    /// From a code and anything that can be printed.
    pub fn new(code: &'static str, detail: impl ToString) -> Self {
        Self { code, detail: detail.to_string() }
    }
}

/// The part of a decision that needs the trust in force but not the entries
/// before the statement. Signatures take nearly all the time of a replay, and
/// this part can run in parallel.
pub(in crate::service) struct Inspected {
    id: StatementId,
    /// Its id with the other ECDSA signature that verifies.
    twin: Option<StatementId>,
    read: Read,
    authentic: Result<Authentic, AdmissionError>,
}

/// The rules in force at one index.
pub(in crate::service) struct AdmissionReplay {
    issuer: String,
    /// The key that signs for the log now.
    active: PublicKey,
    /// Keys of the store that no succession has named yet, the next one last.
    successors: Vec<PublicKey>,
    /// The built-in rules; none if the log names a version we do not know.
    version: Option<RulesVersion>,
    trust: TrustAnchors,
    policy: Option<Policy>,
    /// Decides in place of the log's own policy, to see what it would change.
    policy_override: Option<Policy>,
    /// What the entries before the next statement say.
    memory: Memory,
    /// The indices of statements with an ECDSA signature.
    ecdsa: HashMap<StatementId, LeafIndex>,
    last: [Option<LeafIndex>; Control::ALL.len()],
}

impl AdmissionReplay {
    /// Before the first entry. `keys` are those of the store, the newest first.
    pub(in crate::service) fn new(identity: &Identity, mut keys: Vec<PublicKey>) -> Option<Self> {
        Some(Self {
            issuer: identity.issuer.clone(),
            active: keys.pop()?,
            successors: keys,
            version: Some(RulesVersion::V1),
            trust: TrustAnchors::default(),
            policy: None,
            policy_override: None,
            memory: Memory::default(),
            ecdsa: HashMap::new(),
            last: [None; Control::ALL.len()],
        })
    }

    /// Decides by this policy instead of the one the log had.
    pub(in crate::service) fn override_policy(&mut self, policy: Policy) {
        self.policy_override = Some(policy);
    }

    /// Decides about the next statement; a control statement changes the rules.
    pub(in crate::service) fn replay(
        &mut self,
        index: LeafIndex,
        statement: &SignedStatement,
        stored: &Stored,
    ) -> Result<(), AdmissionError> {
        match self.control(statement) {
            Some(control) => self.apply_control(index, control, statement, stored),
            None => self.admit(index, statement, self.inspect(statement, stored)),
        }
    }

    /// The kind of control statement this is, if it is one of the log's own:
    /// only these change the rules.
    pub(in crate::service) fn control(&self, statement: &SignedStatement) -> Option<Control> {
        let own = statement.header().claims.issuer.as_deref() == Some(self.issuer.as_str());
        control_of(statement).filter(|_| own)
    }

    /// Authenticates and reads a statement by the trust in force now.
    pub(in crate::service) fn inspect(
        &self,
        statement: &SignedStatement,
        stored: &Stored,
    ) -> Inspected {
        let payload = statement.payload().unwrap_or_default();
        Inspected {
            id: StatementId::of(statement),
            twin: statement.twin(),
            read: profile::read_payload(statement.header(), payload),
            authentic: self.authenticate(statement, stored, &self.trust, self.version),
        }
    }

    /// The anchor that certified the issuer of a statement, and the scope of
    /// just this name; none without a certificate, and for names that would be
    /// patterns or cannot be written in a scope.
    fn certified_by(
        &self,
        statement: &SignedStatement,
        stored: &Stored,
    ) -> Option<(String, Scope)> {
        let header = statement.header();
        if header.x5t.is_none() && header.chain.is_empty() && stored.collateral == NO_COLLATERAL {
            return None;
        }
        let authentic = self.inspect(statement, stored).authentic.ok()?;
        let (issuer, header) = (authentic.issuer(), authentic.statement().header());
        let anchor = issuer.anchor.clone()?;
        let unscoped = authentic.rules().unscoped();
        let chains = self.trust.chains();
        let found = chains.speaking_for(&header.chain, &issuer.name, unscoped, stored.time);
        let scope = found.ok()?.1.scope();
        (scope.mistake().is_none() && !scope.has_patterns()).then_some((anchor, scope))
    }

    /// The index of the last control statement of a kind.
    pub(in crate::service) fn last(&self, control: Control) -> Option<LeafIndex> {
        let place = Control::ALL.iter().position(|kind| *kind == control)?;
        self.last.get(place).copied().flatten()
    }

    /// Keys the store serves that no succession on the log has named.
    pub(in crate::service) fn keys_left_over(&self) -> Option<String> {
        let next = self.successors.last()?;
        Some(format!("{} keys have no succession, {} first", self.successors.len(), next.id()))
    }

    /// Decides about the next statement, which is no control statement and was
    /// inspected under the rules still in force.
    pub(in crate::service) fn admit(
        &mut self,
        index: LeafIndex,
        statement: &SignedStatement,
        inspected: Inspected,
    ) -> Result<(), AdmissionError> {
        let Inspected { id, twin, read, authentic } = inspected;
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
            return Err(AdmissionError::new("signature-twin", detail));
        }
        let policy = self.policy_override.as_ref().or(self.policy.as_ref());
        let missing = || AdmissionError::new("policy-missing", "no policy was in force yet");
        let policy = policy.ok_or_else(missing)?;
        match policy.decide(authentic, &read, &facts) {
            Decision::Admit(_) => Ok(()),
            Decision::Refuse(refusal) => Err(AdmissionError::new("policy-refuses", refusal)),
        }
    }

    fn apply_control(
        &mut self,
        index: LeafIndex,
        control: Control,
        statement: &SignedStatement,
        stored: &Stored,
    ) -> Result<(), AdmissionError> {
        let keys = std::slice::from_ref(&self.active);
        let trust = TrustAnchors::default().with_issuer(&self.issuer, keys);
        // Control statements are signed by the active key in every version.
        let version = self.version.or(Some(RulesVersion::CURRENT));
        let authentic = self.authenticate(statement, stored, &trust, version)?;
        let place = Control::ALL.iter().position(|kind| *kind == control);
        if let Some(slot) = place.and_then(|place| self.last.get_mut(place)) {
            *slot = Some(index);
        }
        let text = || String::from_utf8_lossy(authentic.payload()).into_owned();
        match control {
            Control::Policy => {
                let policy =
                    Policy::parse(&text()).map_err(|e| AdmissionError::new(e.code(), e))?;
                self.policy = Some(policy);
                let version = RulesVersion::of_policy(statement.header());
                self.version = version.as_ref().ok().copied();
                version.map_err(|e| AdmissionError::new(e.code(), e))?;
            }
            Control::Trust => {
                self.trust = TrustAnchors::parse_any(&text())
                    .map_err(|e| AdmissionError::new(e.code(), e))?;
            }
            Control::Succession => self.succeed(authentic.payload())?,
            Control::Resumption => {
                let invalid = |detail: &str| AdmissionError::new("resumption-invalid", detail);
                let resumption = Resumption::read(authentic.payload()).map_err(invalid)?;
                if resumption.size != index.get() {
                    return Err(invalid("it names another size than its own index"));
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
    ) -> Result<Authentic, AdmissionError> {
        let unknown = || AdmissionError::new("rules-version-unknown", UNKNOWN_RULES);
        let rules = version.ok_or_else(unknown)?;
        let resolved = Resolved::default();
        let log = Some(self.issuer.as_str());
        let context = AuthContext { rules, log, trust, resolved: &resolved, now: stored.time };
        authenticate(statement, stored, &context)
    }

    /// The old key has signed the succession; the new key must have signed its
    /// payload, and be the next one of the store.
    fn succeed(&mut self, payload: &[u8]) -> Result<(), AdmissionError> {
        let invalid = |detail: &str| AdmissionError::new("succession-invalid", detail);
        let succession = Succession::read(payload).map_err(invalid)?;
        if !succession.follows(&self.active) {
            return Err(invalid("it follows another key than the active one"));
        }
        let key = succession.new;
        if self.successors.pop().is_some_and(|next| next != key) {
            return Err(invalid("the store serves another key in its place"));
        }
        self.active = key;
        Ok(())
    }
}

/// An empty map: authentication needed nothing besides the statement.
const NO_COLLATERAL: &[u8] = &[0xa0];
const UNKNOWN_RULES: &str =
    "the log follows rules here that this program does not know; use a newer one";

fn control_of(statement: &SignedStatement) -> Option<Control> {
    match &statement.header().content_type {
        Some(crate::envelope::ContentType::Media(name)) => Control::from_content_type(name),
        _ => None,
    }
}

/// Authenticates a logged statement with its stored collateral. The context
/// has the rules, trust and time of its registration.
pub(in crate::service) fn authenticate(
    statement: &SignedStatement,
    stored: &Stored,
    context: &AuthContext<'_>,
) -> Result<Authentic, AdmissionError> {
    let collateral =
        Value::read(&stored.collateral).map_err(|e| AdmissionError::new(e.code(), e))?;
    let key = collateral.get(label::collateral::KEY).and_then(Value::bytes);
    let key = key.map(PublicKey::from_cose_key).transpose();
    let keys = key.map_err(|e| AdmissionError::new(e.code(), e))?.into_iter().collect();
    let statement = match collateral.get(label::collateral::CERTIFICATES) {
        None => statement.clone(),
        Some(certificates) => with_chain(statement, certificates)?,
    };
    let resolved = &Resolved { keys };
    let authentic = statement
        .authenticate(&AuthContext { resolved, ..*context })
        .map_err(|e| AdmissionError::new(e.code(), e))?;
    if authentic.collateral() != stored.collateral {
        let detail = "the stored collateral is not what authentication needed";
        return Err(AdmissionError::new("collateral-differs", detail));
    }
    Ok(authentic)
}

/// Puts certificates back into the unprotected map they came in.
fn with_chain(
    statement: &SignedStatement,
    certificates: &Value<'_>,
) -> Result<SignedStatement, AdmissionError> {
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
    SignedStatement::parse_any_size(out).map_err(|e| AdmissionError::new(e.code(), e))
}

/// The names under which statements were admitted, by the name of the anchor
/// that certified them. No other process may have the log open.
pub fn anchors_used(path: &Path) -> Result<BTreeMap<String, Scope>, ControlError> {
    let identity = identity_of(path)?;
    let (store, head) = Store::open_unchecked(Backend::open(path)?)?;
    let mut admission =
        AdmissionReplay::new(&identity, store.keys()?).ok_or(store::Error::KeysUnreadable)?;
    let mut used: BTreeMap<String, Scope> = BTreeMap::new();
    for index in (0..head.size().get()).map(LeafIndex::new) {
        let stored = store.statement(index)?.ok_or(store::Error::StatementMissing { index })?;
        let statement = SignedStatement::parse_any_size(stored.canonical.clone())?;
        if admission.control(&statement).is_some() {
            // `fsck` reports control statements that are invalid.
            let _invalid = admission.replay(index, &statement, &stored);
        } else if let Some((anchor, scope)) = admission.certified_by(&statement, &stored) {
            used.entry(anchor).or_default().extend(scope);
        }
    }
    Ok(used)
}

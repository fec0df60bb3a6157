//! From the description of a statement to an authentic one.

use std::collections::BTreeMap;

use super::{Sketch, certificate};
use crate::envelope::{AuthContext, Authentic, Binding, Resolved, SignedStatement, sig_structure};
use crate::key::{Algorithm, SigningKey};
use crate::profile::capsule::{self, CapsuleRecord};
use crate::trust::TrustAnchors;
use crate::trust::did_key::did_key;
use crate::wire::label::{COSE_SIGN1_TAG, claim, header};
use crate::wire::time::UnixSeconds;
use crate::wire::{cbor, text};

/// 2026-06-01T00:00:00Z; nothing a case describes depends on the time.
const NOW: UnixSeconds = UnixSeconds::new(1_780_272_000);

impl Sketch {
    /// This one where it says something, and otherwise the base.
    pub(super) fn over(&self, base: &Self) -> Self {
        let either = |own: &Option<String>, base: &Option<String>| own.clone().or(base.clone());
        let merge = |own: &BTreeMap<String, toml::Value>, base: &BTreeMap<String, toml::Value>| {
            let mut all = base.clone();
            all.extend(own.clone());
            all
        };
        let is_capsule = self.payload.is_none() && self.payload_hex.is_none();
        Self {
            algorithm: either(&self.algorithm, &base.algorithm),
            binding: either(&self.binding, &base.binding),
            anchor: either(&self.anchor, &base.anchor),
            issuer: either(&self.issuer, &base.issuer),
            subject: either(&self.subject, &base.subject),
            content_type: either(&self.content_type, &base.content_type),
            payload: either(&self.payload, &base.payload),
            payload_hex: either(&self.payload_hex, &base.payload_hex),
            capsule: either(&self.capsule, &base.capsule).filter(|_| is_capsule),
            set: merge(&self.set, &base.set),
            claim: merge(&self.claim, &base.claim),
            facts: self.facts.clone(),
            unknown: BTreeMap::new(),
        }
    }

    /// Signs and authenticates it.
    pub(super) fn build(&self) -> Result<Authentic, String> {
        let algorithm = self.algorithm.as_deref().unwrap_or("ES256");
        let algorithm = Algorithm::from_name(algorithm).ok_or("unknown algorithm")?;
        let key = SigningKey::generate(algorithm).map_err(|e| e.to_string())?;
        let capsule = self.capsule.as_ref().map(|text| self.capsule(text)).transpose()?;
        let mut header = HeaderSketch::of(self, capsule.as_ref());
        let payload = match (&capsule, &self.payload_hex) {
            (Some(capsule), _) => capsule.to_string().into_bytes(),
            (None, Some(hex)) => text::from_hex(hex).ok_or("payload_hex is not hex")?,
            (None, None) => self.payload.clone().unwrap_or_else(|| "{}".to_owned()).into_bytes(),
        };
        let name = self.binding.as_deref().unwrap_or("pinned");
        let public = std::slice::from_ref(key.public());
        let nobody = TrustAnchors::default;
        let (leaf, trust, keys) = match Binding::from_name(name) {
            Some(Binding::Pinned) => {
                (None, nobody().with_issuer(&header.issuer, public), Vec::new())
            }
            Some(Binding::DidKey) => {
                if self.issuer.is_some() {
                    return Err("the key is made for the run, and did:key names it".to_owned());
                }
                header.issuer = did_key(key.public()).ok_or("the key has no did:key name")?;
                (None, nobody(), Vec::new())
            }
            Some(Binding::DidWeb) => {
                header.issuer = self.issuer.clone().unwrap_or("did:web:agent.example".to_owned());
                (None, nobody(), public.to_vec())
            }
            Some(Binding::SelfCertified) => (None, nobody(), Vec::new()),
            Some(Binding::X5Chain) => {
                let anchor = self.anchor.as_deref().unwrap_or("ca");
                let (leaf, trust) = certificate::certify(&header.issuer, key.public(), anchor)?;
                let trust = TrustAnchors::parse(&trust).map_err(|e| e.to_string())?;
                (Some(leaf), trust, Vec::new())
            }
            None => return Err(format!("there is no binding {name:?}")),
        };
        let resolved = Resolved { keys };
        let bytes = header.sign(&key, leaf.as_deref(), &payload)?;
        let statement = SignedStatement::parse(bytes).map_err(|e| e.to_string())?;
        let context = AuthContext::new(&trust, &resolved, NOW);
        statement.authenticate(&context).map_err(|e| e.to_string())
    }

    /// The capsule with its changes made and its id computed.
    fn capsule(&self, text: &str) -> Result<serde_json::Value, String> {
        let mut capsule: serde_json::Value =
            serde_json::from_str(text).map_err(|e| e.to_string())?;
        for (pointer, value) in &self.set {
            let (parent, member) =
                pointer.rsplit_once('/').ok_or("a JSON pointer starts with /")?;
            let parent = capsule.pointer_mut(parent).and_then(serde_json::Value::as_object_mut);
            let parent = parent.ok_or_else(|| format!("nothing is at {pointer}"))?;
            if value.as_str() == Some("") {
                parent.remove(member);
            } else {
                let value = serde_json::to_value(value).map_err(|e| e.to_string())?;
                parent.insert(member.to_owned(), value);
            }
        }
        let (record, _) = CapsuleRecord::read(capsule.to_string().as_bytes());
        if let (Some(members), Some(id)) = (capsule.as_object_mut(), record.capsule_id())
            && !members.contains_key("capsule_id")
        {
            members.insert("capsule_id".to_owned(), id.into());
        }
        Ok(capsule)
    }
}

/// The header of the statement to be signed.
struct HeaderSketch {
    content_type: String,
    issuer: String,
    subject: String,
    claims: BTreeMap<String, toml::Value>,
}

impl HeaderSketch {
    fn of(sketch: &Sketch, capsule: Option<&serde_json::Value>) -> Self {
        let member = |name: &str| {
            let found = capsule.and_then(|capsule| capsule.get(name)?.as_str());
            found.unwrap_or("unnamed").to_owned()
        };
        let own = |given: &Option<String>, otherwise: &str| {
            given.clone().unwrap_or_else(|| otherwise.to_owned())
        };
        let mut claims = BTreeMap::new();
        let (content_type, issuer, subject) = match capsule {
            Some(_) => {
                claims.insert("capsule_statement_type".to_owned(), "agent_action".into());
                let subject = capsule::subject(&member("operator"), &member("action_id"));
                (capsule::CONTENT_TYPE, member("developer"), subject)
            }
            None => ("application/json", "https://agent.example".to_owned(), "urn:x:1".to_owned()),
        };
        claims.extend(sketch.claim.clone());
        claims.retain(|_, value| value.as_str() != Some(""));
        Self {
            content_type: own(&sketch.content_type, content_type),
            issuer: own(&sketch.issuer, &issuer),
            subject: own(&sketch.subject, &subject),
            claims,
        }
    }

    fn sign(
        &self,
        key: &SigningKey,
        leaf: Option<&[u8]>,
        payload: &[u8],
    ) -> Result<Vec<u8>, String> {
        let protected = self.protected(key, leaf)?;
        let message = sig_structure(&protected, payload);
        let signature = key.sign(&message).map_err(|e| e.to_string())?;
        let mut out = Vec::new();
        cbor::tag(&mut out, COSE_SIGN1_TAG);
        cbor::array(&mut out, 4);
        cbor::bytes(&mut out, &protected);
        cbor::map(&mut out, 0);
        cbor::bytes(&mut out, payload);
        cbor::bytes(&mut out, &signature);
        Ok(out)
    }

    fn protected(&self, key: &SigningKey, leaf: Option<&[u8]>) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        cbor::map(&mut out, 4 + usize::from(leaf.is_some()));
        cbor::int(&mut out, header::ALG);
        cbor::int(&mut out, key.algorithm().cose());
        cbor::int(&mut out, header::CONTENT_TYPE);
        cbor::text(&mut out, &self.content_type);
        cbor::int(&mut out, header::KID);
        cbor::bytes(&mut out, key.public().id().as_bytes());
        cbor::int(&mut out, header::CWT_CLAIMS);
        cbor::map(&mut out, 3 + self.claims.len());
        cbor::int(&mut out, claim::ISS);
        cbor::text(&mut out, &self.issuer);
        cbor::int(&mut out, claim::SUB);
        cbor::text(&mut out, &self.subject);
        cbor::int(&mut out, claim::CNF);
        cbor::map(&mut out, 1);
        cbor::int(&mut out, claim::CNF_COSE_KEY);
        out.extend(key.public().to_cose_key());
        for (name, value) in &self.claims {
            match name.parse::<i64>() {
                Ok(number) => cbor::int(&mut out, number),
                Err(_) => cbor::text(&mut out, name),
            }
            match value {
                toml::Value::String(text) => cbor::text(&mut out, text),
                toml::Value::Integer(number) => cbor::int(&mut out, *number),
                _ => return Err(format!("claim {name} must be text or a whole number")),
            }
        }
        if let Some(leaf) = leaf {
            cbor::int(&mut out, header::X5CHAIN);
            cbor::bytes(&mut out, leaf);
        }
        Ok(out)
    }
}

//! Whom we believe: issuers' keys, certificate anchors, logs.
//!
//! In: the text of a trust file. Out: `TrustAnchors`. The text is
//! self-contained (keys stand in it, not paths), so that a log can register
//! exactly the trust it applied.

pub mod did_document;

pub mod did_key;

pub mod did_x509;

pub mod edit;

pub mod x509;

mod upgrade;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::key::{self, PublicKey};
use crate::wire::text::toml_mistake;
use crate::wire::time::UnixSeconds;

pub use upgrade::{Upgraded, upgrade};

/// Everything a trust file says, ready for use.
#[derive(Clone, Debug)]
pub struct TrustAnchors {
    issuers: BTreeMap<String, Vec<PinnedKey>>,
    chains: x509::ChainTrust,
    logs: Vec<TrustedLog>,
}

/// A key that speaks for an issuer, for a while or for ever.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PinnedKey {
    /// The key.
    pub key: PublicKey,
    /// Not before this time.
    pub from: Option<UnixSeconds>,
    /// And not from this time on.
    pub until: Option<UnixSeconds>,
}

/// A log whose receipts and checkpoints we believe.
#[derive(Clone, Debug)]
pub struct TrustedLog {
    /// The issuer its receipts name.
    pub name: String,
    /// Its keys, past and present.
    pub keys: Vec<PublicKey>,
    /// The verifier key of its checkpoints, in note form.
    pub checkpoint: Option<String>,
}

impl Default for TrustAnchors {
    fn default() -> Self {
        let chains = x509::ChainTrust::empty();
        Self { issuers: BTreeMap::new(), chains, logs: Vec::new() }
    }
}

impl TrustAnchors {
    /// Reads a trust file that is to be put in force. Every anchor says whom
    /// it may speak for.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let trust = Self::parse_any(text)?;
        match trust.unscoped() {
            none if none.is_empty() => Ok(trust),
            names => Err(Error::Unscoped { names }),
        }
    }

    /// Reads a trust file that was in force at some time. Its anchors may
    /// lack a scope; what they spoke for then is for the caller to know.
    pub fn parse_any(text: &str) -> Result<Self, Error> {
        let file: File =
            toml::from_str(text).map_err(|e| Error::NotToml { detail: toml_mistake(&e, text) })?;
        let mut trust = Self::default();
        for issuer in file.issuer {
            for pem in &issuer.keys {
                trust.pin(
                    &issuer.name,
                    read_key(&issuer.name, pem)?,
                    (&issuer.from, &issuer.until),
                )?;
            }
        }
        for anchor in file.anchor {
            let scope = anchor.scope();
            trust
                .chains
                .add(&anchor.name, &anchor.certificate, anchor.eku.as_deref(), scope)
                .map_err(|source| Error::Anchor { name: anchor.name, source })?;
        }
        for log in file.log {
            let keys: Result<_, _> = log.keys.iter().map(|pem| read_key(&log.name, pem)).collect();
            trust.logs.push(TrustedLog { keys: keys?, name: log.name, checkpoint: log.checkpoint });
        }
        Ok(trust)
    }

    fn pin(
        &mut self,
        name: &str,
        key: PublicKey,
        (from, until): (&Option<toml::value::Datetime>, &Option<toml::value::Datetime>),
    ) -> Result<(), Error> {
        let time = |at: &Option<toml::value::Datetime>| {
            at.map(|at| {
                UnixSeconds::from_rfc3339(&at.to_string())
                    .ok_or(Error::Time { name: name.to_owned(), found: at.to_string() })
            })
            .transpose()
        };
        let pinned = PinnedKey { key, from: time(from)?, until: time(until)? };
        self.issuers.entry(name.to_owned()).or_default().push(pinned);
        Ok(())
    }

    /// The same trust, which also believes `keys` under `name`, for ever.
    #[must_use]
    pub fn with_issuer(mut self, name: &str, keys: &[PublicKey]) -> Self {
        let pins = keys.iter().map(|key| PinnedKey { key: key.clone(), from: None, until: None });
        self.issuers.entry(name.to_owned()).or_default().extend(pins);
        self
    }

    /// The same trust, which also believes a log.
    #[must_use]
    pub fn with_log(mut self, log: TrustedLog) -> Self {
        self.logs.push(log);
        self
    }

    /// The keys that speak for `issuer` at `now`, the one `kid` names first.
    /// `None` when the issuer is not pinned at all; an issuer whose pins are
    /// all outside their time has no keys, and nobody else may stand in.
    pub fn pinned(
        &self,
        issuer: &str,
        kid: Option<&[u8]>,
        now: UnixSeconds,
    ) -> Option<Vec<PublicKey>> {
        let pins = self.issuers.get(issuer)?;
        let mut keys: Vec<PublicKey> = pins
            .iter()
            .filter(|pin| pin.from.is_none_or(|from| from <= now))
            .filter(|pin| pin.until.is_none_or(|until| now < until))
            .map(|pin| pin.key.clone())
            .collect();
        keys.sort_by_key(|key| kid != Some(key.id().as_bytes()));
        Some(keys)
    }

    /// Names of the anchors that do not say whom they may speak for.
    pub fn unscoped(&self) -> Vec<String> {
        let unscoped = self.chains.anchors().filter(|(_, scope)| scope.is_none());
        let mut names: Vec<String> = unscoped.map(|(name, _)| name.to_owned()).collect();
        names.dedup();
        names
    }

    /// The certificate anchors.
    pub fn chains(&self) -> &x509::ChainTrust {
        &self.chains
    }

    /// The logs we believe.
    pub fn logs(&self) -> &[TrustedLog] {
        &self.logs
    }

    /// Names of all pinned issuers.
    pub fn issuers(&self) -> impl Iterator<Item = (&str, usize)> {
        self.issuers.iter().map(|(name, pins)| (name.as_str(), pins.len()))
    }

    /// All keys pinned for an issuer, at whatever time.
    pub fn pins(&self, issuer: &str) -> impl Iterator<Item = &PinnedKey> {
        self.issuers.get(issuer).into_iter().flatten()
    }

    /// Whether nobody is believed.
    pub fn is_empty(&self) -> bool {
        self.issuers.is_empty() && self.logs.is_empty() && self.chains.is_empty()
    }
}

/// An `[[issuer]]` block for the end of a trust file; none for a key that has
/// no PEM.
pub fn issuer_block(name: &str, pin: &PinnedKey) -> Option<String> {
    let name = toml::Value::from(name);
    let pem = pin.key.to_pem()?;
    let bound = |word: &str, at: Option<UnixSeconds>| {
        at.map(|at| format!("{word} = {at}\n")).unwrap_or_default()
    };
    let (from, until) = (bound("from", pin.from), bound("until", pin.until));
    Some(format!("\n[[issuer]]\nname = {name}\nkeys = [\"\"\"\n{pem}\"\"\"]\n{from}{until}"))
}

/// A `[[log]]` block for the end of a trust file.
pub fn log_block(log: &TrustedLog) -> String {
    let pems: Vec<String> = log
        .keys
        .iter()
        .filter_map(PublicKey::to_pem)
        .map(|pem| format!("\"\"\"\n{pem}\"\"\""))
        .collect();
    let name = toml::Value::from(log.name.as_str());
    let checkpoint = log
        .checkpoint
        .as_deref()
        .map(|vkey| format!("checkpoint = {}\n", toml::Value::from(vkey)))
        .unwrap_or_default();
    format!("\n[[log]]\nname = {name}\nkeys = [{}]\n{checkpoint}", pems.join(", "))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    issuer: Vec<IssuerEntry>,
    #[serde(default)]
    anchor: Vec<AnchorEntry>,
    #[serde(default)]
    log: Vec<LogEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IssuerEntry {
    name: String,
    keys: Vec<String>,
    from: Option<toml::value::Datetime>,
    until: Option<toml::value::Datetime>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnchorEntry {
    name: String,
    certificate: String,
    eku: Option<String>,
    spiffe: Option<Vec<String>>,
    dns: Option<Vec<String>>,
    uri: Option<Vec<String>>,
    did_x509: Option<bool>,
}

impl AnchorEntry {
    /// What it says it may speak for, if it says anything about that.
    fn scope(&self) -> Option<x509::Scope> {
        let lists = [&self.spiffe, &self.dns, &self.uri];
        let is_said = self.did_x509.is_some() || lists.iter().any(|list| list.is_some());
        let [spiffe, dns, uri] = lists.map(|list| list.clone().unwrap_or_default());
        let did_x509 = self.did_x509.unwrap_or_default();
        is_said.then_some(x509::Scope { spiffe, dns, uri, did_x509 })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogEntry {
    name: String,
    keys: Vec<String>,
    checkpoint: Option<String>,
}

fn read_key(name: &str, pem: &str) -> Result<PublicKey, Error> {
    PublicKey::from_pem(pem).map_err(|source| Error::Key { name: name.to_owned(), source })
}

/// Why a trust file cannot be used.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "trust-")]
pub enum Error {
    /// A certificate anchor that cannot be used.
    #[error("anchor {name}: {source}")]
    Anchor { name: String, source: x509::Error },
    /// A key that cannot be read.
    #[error("key of {name}: {source}")]
    Key { name: String, source: key::Error },
    /// Not TOML, or keys we do not know.
    #[error("the trust file cannot be read: {detail}")]
    NotToml { detail: String },
    /// A validity bound that is not a full date and time.
    #[error("{found} of {name} must be a date and time with offset")]
    Time { name: String, found: String },
    /// Anchors that do not say whom they may speak for.
    #[error(
        "the trust file does not say whom anchor {} may speak for: \
         `capstan trust upgrade FILE` adds it",
        names.join(", anchor ")
    )]
    #[strum(serialize = "anchor-unscoped")]
    Unscoped { names: Vec<String> },
}

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

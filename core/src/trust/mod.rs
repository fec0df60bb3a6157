//! The trust configuration: issuers' keys, certificate anchors, logs.
//!
//! In: the text of a trust file. Out: `TrustAnchors`. The text is
//! self-contained (it holds keys, not paths), so that a log can register
//! exactly the trust it applied.

pub mod did_document;
pub mod did_key;
pub mod did_x509;
pub mod edit;
mod upgrade;
pub mod x509;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::key::{self, PublicKey};
use crate::wire::text::toml_mistake;
use crate::wire::time::UnixSeconds;

pub use upgrade::{Upgraded, upgrade};

/// A parsed trust file.
#[derive(Clone, Debug)]
pub struct TrustAnchors {
    issuers: BTreeMap<String, Vec<PinnedKey>>,
    chains: x509::ChainTrust,
    logs: Vec<TrustedLog>,
}

/// A key pinned for an issuer, with an optional validity period.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PinnedKey {
    /// The key.
    pub key: PublicKey,
    /// Valid from this time on.
    pub from: Option<UnixSeconds>,
    /// Valid before this time.
    pub until: Option<UnixSeconds>,
}

/// A log whose receipts and checkpoints are trusted.
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
    /// Reads a trust file that is to take effect. Every anchor needs a scope.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let trust = Self::parse_any(text)?;
        match trust.unscoped() {
            none if none.is_empty() => Ok(trust),
            names => Err(Error::Unscoped { names }),
        }
    }

    /// Reads a trust file that was in effect at some time. Its anchors may
    /// lack a scope; the caller decides what that means.
    pub fn parse_any(text: &str) -> Result<Self, Error> {
        let file: File =
            toml::from_str(text).map_err(|e| Error::NotToml { detail: toml_mistake(&e, text) })?;
        let mut trust = Self::default();
        for issuer in file.issuer {
            let time = |at: Option<toml::value::Datetime>| {
                let Some(found) = at.map(|at| at.to_string()) else { return Ok(None) };
                let time = UnixSeconds::from_rfc3339(&found);
                let wrong = || Error::Time { name: issuer.name.clone(), found };
                time.map(Some).ok_or_else(wrong)
            };
            for pem in &issuer.keys {
                let key = read_key(&issuer.name, pem)?;
                let pin = PinnedKey { key, from: time(issuer.from)?, until: time(issuer.until)? };
                trust.issuers.entry(issuer.name.clone()).or_default().push(pin);
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

    /// The same trust with `keys` pinned for `name`, without time limit.
    #[must_use]
    pub fn with_issuer(mut self, name: &str, keys: &[PublicKey]) -> Self {
        let pins = keys.iter().map(|key| PinnedKey { key: key.clone(), from: None, until: None });
        self.issuers.entry(name.to_owned()).or_default().extend(pins);
        self
    }

    /// The same trust with one more log.
    #[must_use]
    pub fn with_log(mut self, log: TrustedLog) -> Self {
        self.logs.push(log);
        self
    }

    /// The keys pinned for `issuer` at `now`, the one `kid` names first.
    /// `None` when the issuer is not pinned at all; the list is empty when all
    /// its pins are outside their validity, and then no other key may be used.
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

    /// Names of the anchors without a scope.
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

    /// The trusted logs.
    pub fn logs(&self) -> &[TrustedLog] {
        &self.logs
    }

    /// All pinned issuers with the number of their keys.
    pub fn issuers(&self) -> impl Iterator<Item = (&str, usize)> {
        self.issuers.iter().map(|(name, pins)| (name.as_str(), pins.len()))
    }

    /// All keys pinned for an issuer, valid or not.
    pub fn pins(&self, issuer: &str) -> impl Iterator<Item = &PinnedKey> {
        self.issuers.get(issuer).into_iter().flatten()
    }

    /// Whether nothing is trusted.
    pub fn is_empty(&self) -> bool {
        self.issuers.is_empty() && self.logs.is_empty() && self.chains.is_empty()
    }
}

/// An `[[issuer]]` block to append to a trust file; `None` for a key that has
/// no PEM form.
pub fn issuer_block(name: &str, pin: &PinnedKey) -> Option<String> {
    let name = toml::Value::from(name);
    let pem = pin.key.to_pem()?;
    let bound = |word: &str, at: Option<UnixSeconds>| {
        at.map(|at| format!("{word} = {at}\n")).unwrap_or_default()
    };
    let (from, until) = (bound("from", pin.from), bound("until", pin.until));
    Some(format!("\n[[issuer]]\nname = {name}\nkeys = [\"\"\"\n{pem}\"\"\"]\n{from}{until}"))
}

/// A `[[log]]` block to append to a trust file.
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
    /// Its scope, if the file gives one.
    fn scope(&self) -> Option<x509::Scope> {
        let lists = [&self.spiffe, &self.dns, &self.uri];
        let is_scoped = self.did_x509.is_some() || lists.iter().any(|list| list.is_some());
        let [spiffe, dns, uri] = lists.map(|list| list.clone().unwrap_or_default());
        let did_x509 = self.did_x509.unwrap_or_default();
        is_scoped.then_some(x509::Scope { spiffe, dns, uri, did_x509 })
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
    /// Not TOML, or with unknown keys.
    #[error("the trust file cannot be read: {detail}")]
    NotToml { detail: String },
    /// A validity bound that is not a date and time with offset.
    #[error("{found} of {name} must be a date and time with offset")]
    Time { name: String, found: String },
    /// Anchors without a scope.
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

//! DID documents: the keys an issuer publishes for its assertions.
//!
//! In: the requested DID, JSON bytes. Out: `DidKey`s. A key counts only when
//! `assertionMethod` lists it and its id belongs to the DID; kinds of key that
//! cannot sign statements are skipped.

#[cfg(test)]
mod tests;

use serde::Deserialize;

use super::did_key::{Jwk, multikey};
use crate::key::{self, PublicKey};

/// Verification methods read from one document. Documents in use have fewer
/// than ten; each costs a point check of about 50 us.
const METHODS_MAX: usize = 64;

/// A key with the name its document gives it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DidKey {
    /// The DID URL of the verification method, always absolute.
    pub id: String,
    /// The key.
    pub key: PublicKey,
}

#[derive(Deserialize)]
struct Document {
    id: String,
    #[serde(default, rename = "verificationMethod")]
    verification_method: Vec<Method>,
    #[serde(default, rename = "assertionMethod")]
    assertion_method: Vec<Reference>,
}

/// DID Core, 5.3: a relationship names a method or holds it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Reference {
    Named(String),
    Embedded(Method),
}

#[derive(Deserialize)]
struct Method {
    id: String,
    #[serde(default)]
    controller: Option<String>,
    #[serde(default, rename = "publicKeyJwk")]
    jwk: Option<Jwk>,
    #[serde(default, rename = "publicKeyMultibase")]
    multibase: Option<String>,
}

/// Reads the assertion keys of `did` from its document.
pub fn parse_did_document(did: &str, json: &[u8]) -> Result<Vec<DidKey>, Error> {
    let document: Document = serde_json::from_slice(json)
        .map_err(|e| Error::NotADocument { line: e.line(), column: e.column() })?;
    if document.id != did {
        return Err(Error::OtherDid { found: document.id });
    }
    let count = document.verification_method.len() + document.assertion_method.len();
    if count > METHODS_MAX {
        return Err(Error::TooManyMethods { count, limit: METHODS_MAX });
    }
    let mut listed = Vec::new();
    let mut methods = document.verification_method;
    for reference in document.assertion_method {
        match reference {
            Reference::Named(id) => listed.push(absolute(did, &id)),
            Reference::Embedded(method) => {
                listed.push(absolute(did, &method.id));
                methods.push(method);
            }
        }
    }
    let mut keys: Vec<DidKey> = Vec::new();
    for method in methods {
        let id = absolute(did, &method.id);
        let own = id.strip_prefix(did).is_some_and(|rest| rest.starts_with('#'))
            && method.controller.as_ref().is_none_or(|c| c == did);
        if !own || !listed.contains(&id) {
            continue;
        }
        if keys.iter().any(|key| key.id == id) {
            return Err(Error::DuplicateMethod { id });
        }
        if let Some(key) = method.key(&id)? {
            keys.push(DidKey { id, key });
        }
    }
    if keys.is_empty() { Err(Error::NoAssertionKey) } else { Ok(keys) }
}

/// DID URLs in a document may be relative to its DID: `#key-1`.
fn absolute(did: &str, id: &str) -> String {
    if id.starts_with('#') { format!("{did}{id}") } else { id.to_owned() }
}

impl Method {
    /// `None` for kinds of key we do not verify with.
    fn key(&self, id: &str) -> Result<Option<PublicKey>, Error> {
        let id = || id.to_owned();
        match (&self.jwk, &self.multibase) {
            (Some(_), Some(_)) => Err(Error::AmbiguousKey { id: id() }),
            (Some(jwk), None) if jwk.is_private() => Err(Error::PrivateKey { id: id() }),
            (Some(jwk), None) => jwk.key().map_err(|source| Error::BadKey { id: id(), source }),
            (None, Some(text)) => {
                multikey(text).map_err(|source| Error::BadKey { id: id(), source })
            }
            (None, None) => Ok(None),
        }
    }
}

/// Why bytes are not the document of a DID, or contain no usable key.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "did-document-")]
pub enum Error {
    /// Two keys in one verification method.
    #[error("the verification method {id} has two keys")]
    AmbiguousKey { id: String },
    /// An invalid key.
    #[error("the key of {id} is not usable")]
    BadKey {
        id: String,
        #[source]
        source: key::Error,
    },
    /// One name for two verification methods.
    #[error("two verification methods are called {id}")]
    DuplicateMethod { id: String },
    /// No key to verify statements with.
    #[error("the DID document lists no key we can verify assertions with")]
    NoAssertionKey,
    /// Not JSON, or not of the shape of a DID document.
    #[error("not a DID document (line {line}, column {column})")]
    #[strum(serialize = "unreadable")]
    NotADocument { line: usize, column: usize },
    /// The document of another DID.
    #[error("the DID document belongs to {found:?}")]
    OtherDid { found: String },
    /// A private key, with which every reader could sign.
    #[error("the DID document publishes the private key of {id}")]
    PrivateKey { id: String },
    /// More methods than are read.
    #[error("{count} verification methods, at most {limit} are accepted")]
    TooManyMethods { count: usize, limit: usize },
}

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

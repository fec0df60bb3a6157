//! Everything that can be wrong with a Signed Statement.

use crate::key::{self, KeyId};
use crate::trust;
use crate::wire::cbor;

/// Why bytes are not an authentic Signed Statement.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case")]
pub enum Error {
    /// Label 1 is absent.
    #[error("the protected header has no algorithm (label 1)")]
    AlgorithmMissing,
    /// Label 1 names something we do not verify.
    #[error("algorithm {number} (label 1) is not supported")]
    AlgorithmUnsupported { number: i64 },
    /// The certificates do not lead to an anchor, or do not fit the issuer.
    #[error("the certificate chain (label 33) is not accepted: {0}")]
    #[strum(transparent)]
    Chain(#[source] trust::x509::Error),
    /// A hash of a certificate, and no certificate.
    #[error("label 34 (x5t) names a certificate, but label 33 (x5chain) is missing")]
    ChainMissing,
    /// A claim of the wrong kind.
    #[error("CWT claim {claim} has the wrong kind of value")]
    ClaimKind { claim: &'static str },
    /// A claim labelled by text that looks like a registered one.
    #[error(
        "the CWT claim {name:?} has the name of registered claim {number} as a text label; use the number \
         as label, or rename the claim"
    )]
    ClaimNameReserved { name: String, number: i64 },
    /// Label 15 is not a map.
    #[error("label 15 (CWT claims) must be a map, found {found}")]
    ClaimsKind { found: &'static str },
    /// The key in claim 8 is not usable.
    #[error("the confirmation key (CWT claim 8) is not usable: {0}")]
    ConfirmationKey(#[source] key::Error),
    /// RFC 9995 forbids label 3 beside 258.
    #[error("label 3 (content type) is not allowed together with label 258 (hash envelope)")]
    ContentTypeInHashEnvelope,
    /// `crit` lists a label that is not there.
    #[error("label 2 (crit) lists {label}, which the protected header does not have")]
    CritAbsent { label: i64 },
    /// `crit` lists a label we do not understand.
    #[error("label 2 (crit) lists {label}, which is not understood")]
    CritUnknown { label: String },
    /// A hash envelope whose payload has another length.
    #[error("the payload of the hash envelope has {found} bytes, its hash has {expected}")]
    HashLength { expected: usize, found: usize },
    /// A header bucket that is not a map.
    #[error("the {bucket} header must be a map, found {found}")]
    HeaderKind { bucket: &'static str, found: &'static str },
    /// A label with the wrong kind of value.
    #[error("label {label} must be {expected}")]
    HeaderValue { label: i64, expected: &'static str },
    /// Two identifiers name different keys.
    #[error("two keys are named for {issuer}, and they differ")]
    IdentifierConflict { issuer: String },
    /// An issuer name too long, or empty, beside X.509 headers.
    #[error(
        "iss (CWT claim 1) has {chars} characters; beside certificates it must have 1 to {limit}"
    )]
    IssuerLength { chars: usize, limit: usize },
    /// Claim 1 is absent.
    #[error("iss (CWT claim 1 in label 15) is missing")]
    IssuerMissing,
    /// No way to a key for this issuer.
    #[error("no key is known for issuer {issuer}; {hint}")]
    IssuerUnknown { issuer: String, hint: &'static str },
    /// A key that cannot be used as the header wants.
    #[error("the issuer's key cannot verify this statement: {0}")]
    #[strum(transparent)]
    Key(#[source] key::Error),
    /// Neither kid nor certificate.
    #[error(
        "no key identifier: the protected header has neither kid (4) nor x5t (34) nor x5chain (33)"
    )]
    KeyIdentifierMissing,
    /// One label in both header maps.
    #[error("label {label} is in both the protected and the unprotected header")]
    LabelInBothBuckets { label: String },
    /// A label that is neither number nor text.
    #[error("{found} is not a label; labels are integers or text")]
    LabelKind { found: String },
    /// A did:key or did:jwk name from which no key can be read.
    #[error("no key that we verify with can be read from the name {issuer}: {source}")]
    NameKey { issuer: String, source: key::Error },
    /// A key that the statement brought, under a name that needs more.
    #[error("the key in the statement itself is no proof for the name {issuer:?}: {hint}")]
    NameNeedsProof { issuer: String, hint: &'static str },
    /// A label that must be protected.
    #[error("label {label} must be in the protected header")]
    MustBeProtected { label: i64 },
    /// CBOR that is not what we take.
    #[error("{0}")]
    #[strum(transparent)]
    NotCbor(#[from] cbor::Error),
    /// The outermost item is not a tagged array.
    #[error("expected COSE_Sign1 (tag 18, an array of four): {source}")]
    NotSign1 { source: cbor::Error },
    /// The payload is nil.
    #[error("the payload is detached; it must be inside the statement")]
    PayloadMissing,
    /// The protected byte string does not hold strict CBOR.
    #[error("in the protected header, {source}")]
    #[strum(transparent)]
    ProtectedHeader { source: cbor::Error },
    /// A policy statement that names rules we do not know.
    #[error(
        "the log uses version {found:?} of the authentication rules, which this program does not \
         know; use a newer version of it"
    )]
    RulesVersionUnknown { found: String },
    /// The signature does not verify under the issuer's key.
    #[error("the signature does not verify under key {kid}")]
    SignatureInvalid { kid: KeyId },
    /// Claim 2 is absent.
    #[error("sub (CWT claim 2 in label 15) is missing")]
    SubjectMissing,
    /// Longer than a statement may be.
    #[error("the statement has {size} bytes; the limit is {limit}")]
    TooLarge { size: usize, limit: usize },
    /// An array of another length.
    #[error("COSE_Sign1 is an array of 4, found {found}")]
    WrongLength { found: u64 },
    /// Another tag.
    #[error("expected tag 18 (COSE_Sign1), found tag {found}")]
    WrongTag { found: u64 },
    /// The leaf certificate is not the one label 34 names.
    #[error("the leaf certificate does not match label 34 (x5t)")]
    X5tMismatch,
}

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

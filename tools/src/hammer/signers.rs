//! Who signs what the hammer sends: one key of each kind, made for the run
//! or kept in a directory, and the trust file a log needs to know them.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use capstan::cli::{CliError, files};
use capstan::envelope::{Draft, SignedStatement, seal_certified, seal_with_claims};
use capstan::key::{Algorithm, SigningKey};
use capstan::policy::certify;
use capstan::store::write_private;
use capstan::wire::cbor;
use capstan::wire::label::COSE_SIGN1_TAG;

/// How a key speaks for its issuer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, clap::ValueEnum)]
pub(super) enum KeyKind {
    Es256,
    Ed25519,
    X5chain,
}

impl KeyKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Es256 => "es256",
            Self::Ed25519 => "ed25519",
            Self::X5chain => "x5chain",
        }
    }

    fn algorithm(self) -> Algorithm {
        if self == Self::Ed25519 { Algorithm::EdDsa } else { Algorithm::Es256 }
    }
}

/// One issuer.
pub(super) struct Signer {
    pub(super) kind: KeyKind,
    pub(super) issuer: String,
    key: SigningKey,
    /// The certificate of the key.
    leaf: Option<Vec<u8>>,
    /// What a trust file says about the issuer.
    trust: String,
}

impl Signer {
    /// A new issuer of this kind.
    pub(super) fn new(kind: KeyKind) -> anyhow::Result<Self> {
        let key = SigningKey::generate(kind.algorithm())?;
        let issuer = issuer(kind);
        if kind != KeyKind::X5chain {
            let trust = pin(&issuer, &key);
            return Ok(Self { kind, issuer, key, leaf: None, trust });
        }
        let certified =
            certify(&issuer, key.public(), "ca").map_err(|e| CliError::failed("certificate", e));
        let (leaf, trust) = certified?;
        Ok(Self { kind, issuer, key, leaf: Some(leaf), trust })
    }

    /// The one kept in a directory, made the first time.
    fn kept(kind: KeyKind, directory: &Path) -> anyhow::Result<Self> {
        let path = |ending: &str| directory.join(format!("{}.{ending}", kind.name()));
        if !path("key").exists() {
            let made = Self::new(kind)?;
            if let Some(leaf) = &made.leaf {
                files::write_file(&path("der"), leaf)?;
            }
            files::write_file(&path("trust"), made.trust.as_bytes())?;
            write_private(&path("key"), made.key.to_pem()?.as_bytes())?;
            return Ok(made);
        }
        let leaf = (kind == KeyKind::X5chain).then(|| files::read(&path("der"))).transpose()?;
        let (key, trust) = (files::signing_key(&path("key"))?, files::read_text(&path("trust"))?);
        Ok(Self { kind, issuer: issuer(kind), key, leaf, trust })
    }

    /// Signs. A certificate goes into the unprotected header, where most
    /// producers put it, and the protected one names it.
    pub(super) fn seal(
        &self,
        draft: &Draft<'_>,
        claims: &[(&str, String)],
    ) -> anyhow::Result<Vec<u8>> {
        Ok(match &self.leaf {
            Some(leaf) => seal_certified(draft, claims, &self.key, leaf)?,
            None => seal_with_claims(draft, claims, &self.key)?,
        })
    }
}

/// A statement with another unprotected header, payload or signature.
pub(super) fn assemble(
    statement: &SignedStatement,
    unprotected: &[u8],
    payload: &[u8],
    signature: &[u8],
) -> Vec<u8> {
    let mut out = Vec::with_capacity(statement.bytes().len() + unprotected.len());
    cbor::tag(&mut out, COSE_SIGN1_TAG);
    cbor::array(&mut out, 4);
    cbor::bytes(&mut out, statement.protected());
    out.extend_from_slice(unprotected);
    cbor::bytes(&mut out, payload);
    cbor::bytes(&mut out, signature);
    out
}

/// One signer of each kind, from the directory if there is one.
pub(super) fn signers(kinds: &[KeyKind], directory: Option<&Path>) -> anyhow::Result<Vec<Signer>> {
    let Some(directory) = directory else { return kinds.iter().map(|k| Signer::new(*k)).collect() };
    std::fs::create_dir_all(directory).with_context(|| format!("{}", directory.display()))?;
    kinds.iter().map(|kind| Signer::kept(*kind, directory)).collect()
}

/// The trust file that a log must have to know the signers.
pub(super) fn trust(signers: &[Signer]) -> String {
    signers.iter().map(|signer| signer.trust.as_str()).collect()
}

/// Reserved for ever (RFC 2606): nobody's statements but ours.
fn issuer(kind: KeyKind) -> String {
    format!("https://{}.hammer.invalid", kind.name())
}

fn pin(issuer: &str, key: &SigningKey) -> String {
    let pem = key.public().to_pem().unwrap_or_default();
    let mut text = String::new();
    let _infallible = write!(text, "[[issuer]]\nname = \"{issuer}\"\nkeys = ['''\n{pem}''']\n\n");
    text
}

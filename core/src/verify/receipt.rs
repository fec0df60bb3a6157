//! Verification of receipts, used by the service for those it issues and by the
//! command line for those it receives.

use std::sync::Arc;

use crate::envelope::{self, SignedStatement, StatementId, sig_structure};
use crate::key::{KeyId, PublicKey};
use crate::log::{self, PathMemo, consistency_roots, leaf_hash, leaf_hash_of_bytes};
use crate::receipt::{CcfConsistency, CcfInclusion, Inclusion, Proofs, Receipt};
use crate::wire::digest::Digest;

/// Which bytes are the log entry of a statement; RFC 9943 does not say.
#[derive(Clone, Copy, Debug, Eq, PartialEq, strum::IntoStaticStr)]
pub enum EntryRule {
    /// The leaf holds SHA-256 of the statement, as ours do.
    #[strum(serialize = "RFC 9162, leaf of the digest")]
    Digest,
    /// The leaf holds the statement's bytes.
    #[strum(serialize = "RFC 9162, leaf of the bytes")]
    Bytes,
    /// A CCF ledger's data hash.
    #[strum(serialize = "CCF ledger")]
    Ccf,
}

impl EntryRule {
    /// Its description in a report.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What a verified inclusion receipt proves.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Included {
    /// Leaf index and tree size, where the tree has them. The proof contains
    /// them, but the signature does not cover them.
    pub place: Option<(u64, u64)>,
    /// The root that was signed.
    pub root: Digest,
    /// The entry rule under which it verifies.
    pub rule: EntryRule,
    /// The log key that signed.
    pub key: KeyId,
}

/// What a verified consistency receipt proves.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Extended {
    /// Sizes of the older and the newer tree, where the proof names them.
    pub sizes: Option<(u64, u64)>,
    /// The newer root, which was signed.
    pub root: Digest,
    /// The log key that signed.
    pub key: KeyId,
}

/// Caches what receipts of one head share: the last verified signature and one
/// Merkle path. It changes no result, and is cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Memo {
    head: Option<Arc<KnownHead>>,
    path: PathMemo,
}

#[derive(Debug)]
struct KnownHead {
    protected: Vec<u8>,
    root: Digest,
    signature: Vec<u8>,
    key: KeyId,
}

impl KnownHead {
    /// Whether these are exactly the bytes that verified.
    fn is(&self, envelope: &SignedStatement, root: &Digest) -> bool {
        self.root == *root
            && self.protected == envelope.protected()
            && self.signature == envelope.signature()
    }
}

/// Checks that `receipt` proves the statement with canonical bytes
/// `canonical` under one of `keys`.
pub fn inclusion(
    receipt: &Receipt,
    canonical: &[u8],
    keys: &[PublicKey],
    memo: &mut Memo,
) -> Result<Included, Error> {
    match receipt.proofs() {
        Proofs::Inclusion(proofs) => {
            let mut under = |rule, leaf| {
                let root = |p: &Inclusion| {
                    let found = memo.path.inclusion_root(leaf, p.index, p.size, &p.path);
                    found.map_err(Error::Path)
                };
                let root = agree(proofs.iter().map(root))?;
                let key = signed(receipt.envelope(), &root, keys, memo)?;
                Ok(Included { place: proofs.first().map(|p| (p.index, p.size)), root, rule, key })
            };
            let by_digest = leaf_hash(StatementId::of_canonical(canonical).entry());
            under(EntryRule::Digest, by_digest).or_else(|error| {
                under(EntryRule::Bytes, leaf_hash_of_bytes(canonical)).map_err(|_| error)
            })
        }
        Proofs::CcfInclusion(proofs) => {
            let id = StatementId::of_canonical(canonical);
            let roots = proofs.iter().map(|proof| ccf_root(proof, &id));
            let root = agree(roots)?;
            let key = signed(receipt.envelope(), &root, keys, memo)?;
            Ok(Included { place: None, root, rule: EntryRule::Ccf, key })
        }
        Proofs::Consistency(_) | Proofs::CcfConsistency(_) => Err(Error::NotInclusion),
    }
}

/// Checks that `receipt` proves growth from a tree with root `older`.
pub fn consistency(
    receipt: &Receipt,
    older: &Digest,
    keys: &[PublicKey],
    memo: &mut Memo,
) -> Result<Extended, Error> {
    let (root, sizes) = match receipt.proofs() {
        Proofs::Consistency(proofs) => {
            let newer = |p: &crate::receipt::Consistency| {
                consistency_roots(p.from, p.to, *older, &p.path)
                    .map(|(_, newer)| newer)
                    .map_err(Error::Path)
            };
            let sizes = proofs.first().map(|p| (p.from, p.to));
            (agree(proofs.iter().map(newer))?, sizes)
        }
        Proofs::CcfConsistency(proofs) => {
            (agree(proofs.iter().map(|proof| ccf_newer_root(proof, older)))?, None)
        }
        Proofs::Inclusion(_) | Proofs::CcfInclusion(_) => return Err(Error::NotConsistency),
    };
    let key = signed(receipt.envelope(), &root, keys, memo)?;
    Ok(Extended { sizes, root, key })
}

/// All proofs of one receipt must lead to the same root.
fn agree(roots: impl Iterator<Item = Result<Digest, Error>>) -> Result<Digest, Error> {
    let mut common = None;
    for root in roots {
        let root = root?;
        if common.is_some_and(|c| c != root) {
            return Err(Error::RootsDiffer);
        }
        common = Some(root);
    }
    common.ok_or(Error::RootsDiffer)
}

/// CCF trees have no 0x00/0x01 prefixes; the leaf contains the ledger's own
/// transaction and the hash of the statement, which is compared here.
fn ccf_root(proof: &CcfInclusion, id: &StatementId) -> Result<Digest, Error> {
    if proof.data != *id.entry() {
        return Err(Error::DataHash { found: proof.data });
    }
    let evidence = Digest::of(proof.evidence.as_bytes());
    let leaf = Digest::of_parts(&[
        proof.transaction.as_bytes(),
        evidence.as_bytes(),
        proof.data.as_bytes(),
    ]);
    Ok(proof.path.iter().fold(leaf, |hash, (left, sibling)| {
        if *left { ccf_node(sibling, &hash) } else { ccf_node(&hash, sibling) }
    }))
}

/// Both roots are computed from the anchor; a sibling on the right is new. The
/// path starts on the right, or the anchor would not be canonical.
fn ccf_newer_root(proof: &CcfConsistency, older: &Digest) -> Result<Digest, Error> {
    if proof.path.first().is_none_or(|(left, _)| *left) {
        return Err(Error::CcfPathStart);
    }
    let (mut before, mut after) = (proof.anchor, proof.anchor);
    for (left, sibling) in &proof.path {
        if *left {
            before = ccf_node(sibling, &before);
            after = ccf_node(sibling, &after);
        } else {
            after = ccf_node(&after, sibling);
        }
    }
    if before == *older { Ok(after) } else { Err(Error::OlderRoot { found: before }) }
}

fn ccf_node(left: &Digest, right: &Digest) -> Digest {
    Digest::of_parts(&[left.as_bytes(), right.as_bytes()])
}

/// Checks the log's signature over `root`, under the key `kid` names if it
/// is among `keys`, else under any of them.
fn signed(
    envelope: &SignedStatement,
    root: &Digest,
    keys: &[PublicKey],
    memo: &mut Memo,
) -> Result<KeyId, Error> {
    if envelope.payload().is_some_and(|attached| attached != root.as_bytes()) {
        return Err(Error::AttachedRoot);
    }
    if let Some(known) = &memo.head
        && known.is(envelope, root)
        && keys.iter().any(|k| k.id() == known.key)
    {
        return Ok(known.key);
    }
    let message = sig_structure(envelope.protected(), root.as_bytes());
    let algorithm = envelope.algorithm().map_err(Error::Envelope)?;
    let named = |key: &&PublicKey| envelope.header().kid.as_deref() == Some(key.id().as_bytes());
    let others = keys.iter().filter(|key| !named(key));
    for key in keys.iter().filter(named).chain(others) {
        if key.verify(algorithm, &message, envelope.signature()).is_ok() {
            memo.head = Some(Arc::new(KnownHead {
                protected: envelope.protected().to_vec(),
                root: *root,
                signature: envelope.signature().to_vec(),
                key: key.id(),
            }));
            return Ok(key.id());
        }
    }
    Err(if keys.is_empty() { Error::LogUnknown } else { Error::HeadSignature })
}

/// Why a receipt proves nothing.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case")]
pub enum Error {
    /// The attached root differs from the computed one.
    #[error("the root attached to the receipt is not the one its path leads to")]
    AttachedRoot,
    /// A CCF consistency path that starts on the wrong side.
    #[error("the CCF consistency path starts on the left, so its anchor is not canonical")]
    CcfPathStart,
    /// A CCF receipt for another statement.
    #[error("the receipt is for a statement with hash {found}, not for this one")]
    DataHash { found: Digest },
    /// The receipt's envelope cannot be verified.
    #[error("{0}")]
    #[strum(transparent)]
    Envelope(#[source] envelope::Error),
    /// The signature does not cover the computed root.
    #[error(
        "the log's signature does not verify over the root that the statement and the path give"
    )]
    HeadSignature,
    /// No key of that log is trusted.
    #[error("no trusted key for the log that issued the receipt")]
    LogUnknown,
    /// An inclusion receipt where consistency is needed.
    #[error("the receipt shows inclusion, not consistency")]
    NotConsistency,
    /// A consistency receipt where inclusion is needed.
    #[error("the receipt shows consistency, not inclusion")]
    NotInclusion,
    /// The proof starts from another tree.
    #[error("the proof starts from a tree with root {found}, not from the one given")]
    OlderRoot { found: Digest },
    /// The path does not fit index and size.
    #[error("{0}")]
    #[strum(transparent)]
    Path(#[source] log::Error),
    /// The proofs lead to different roots.
    #[error("the proofs of the receipt lead to different roots")]
    RootsDiffer,
}

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

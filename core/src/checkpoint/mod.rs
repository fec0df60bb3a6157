//! C2SP tlog-checkpoint: a tree head as a signed note.
//!
//! In: origin, size and root with an Ed25519 key; or the text of a note. Out:
//! the note; or the checkpoint, after a known key verified it. Signatures of
//! unknown keys are ignored, so witnesses may add theirs.

mod note;

#[cfg(test)]
mod tests;

use crate::key::{self, Algorithm, SigningKey};
use crate::log::TreeSize;
use crate::wire::digest::Digest;
use crate::wire::text;

pub use note::VerifierKey;

/// Signature lines read from one note: one of the log and up to 99 of witnesses.
pub const SIGNATURES_MAX: usize = 100;

/// Bytes of one note: 100 Ed25519 signature lines of about 200 bytes are
/// 20 KiB, and a few post-quantum ones of 5 KiB still fit.
pub const NOTE_BYTES_MAX: usize = 64 * 1024;

/// A tree head with the origin of its log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Checkpoint {
    /// The name of the log: one line, not empty.
    pub origin: String,
    /// The number of leaves.
    pub size: TreeSize,
    /// The root at that size.
    pub root: Digest,
}

impl Checkpoint {
    /// The note text: origin, size and base64 root, one per line.
    pub fn text(&self) -> String {
        let root = text::base64(self.root.as_bytes());
        format!("{}\n{}\n{root}\n", self.origin, self.size)
    }

    /// The whole note, signed by one Ed25519 key under `name`, which should
    /// be the origin.
    pub fn sign(&self, name: &str, key: &SigningKey) -> Result<String, Error> {
        if self.origin.is_empty() || self.origin.contains(note::is_control) {
            return Err(Error::Malformed { part: "origin" });
        }
        let verifier = VerifierKey::new(name, key.public())?;
        let text = self.text();
        let signature = key.sign(text.as_bytes()).map_err(Error::Key)?;
        Ok(format!("{text}\n{}", verifier.signature_line(&signature)))
    }
}

/// A parsed checkpoint whose signatures are not verified yet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SignedCheckpoint {
    checkpoint: Checkpoint,
    text: String,
    extensions: Vec<String>,
    signatures: Vec<note::Signature>,
}

impl SignedCheckpoint {
    /// Parses a note strictly.
    pub fn parse(note: &str) -> Result<Self, Error> {
        if note.len() > NOTE_BYTES_MAX {
            return Err(Error::TooLong { bytes: note.len() });
        }
        if note.contains(|c| c != '\n' && note::is_control(c)) {
            return Err(Error::Malformed { part: "text" });
        }
        // No line of a checkpoint is empty, so the first empty line ends it.
        let (body, signatures) =
            note.split_once("\n\n").ok_or(Error::Malformed { part: "blank line" })?;
        let mut lines = body.split('\n');
        let mut line =
            |part| lines.next().filter(|l| !l.is_empty()).ok_or(Error::Malformed { part });
        let origin = line("origin")?.to_owned();
        let size = size(line("size")?).ok_or(Error::Malformed { part: "size" })?;
        let root = text::from_base64(line("root")?)
            .and_then(|bytes| Digest::from_slice(&bytes))
            .ok_or(Error::Malformed { part: "root" })?;
        Ok(Self {
            checkpoint: Checkpoint { origin, size, root },
            text: format!("{body}\n"),
            extensions: lines.map(str::to_owned).collect(),
            signatures: note::signatures(signatures)?,
        })
    }

    /// The checkpoint, if this key has signed it. Any signature line under
    /// the key's name and hash must verify.
    pub fn verify(&self, key: &VerifierKey) -> Result<Checkpoint, Error> {
        let mut ours = self.signatures.iter().filter(|s| s.is_by(key)).peekable();
        if ours.peek().is_none() {
            return Err(Error::NotSigned { by: key.name().to_owned() });
        }
        ours.try_for_each(|s| {
            key.public().verify(Algorithm::EdDsa, self.text.as_bytes(), s.bytes())
        })
        .map_err(Error::Key)?;
        Ok(self.checkpoint.clone())
    }

    /// The origin it claims, before anything is verified.
    pub fn origin(&self) -> &str {
        &self.checkpoint.origin
    }

    /// Lines after the root, which the signatures cover too.
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }
}

fn size(line: &str) -> Option<TreeSize> {
    let size: u64 = line.parse().ok()?;
    (size.to_string() == line).then_some(TreeSize::new(size))
}

/// Why text is not a checkpoint, or not signed by a key.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "checkpoint-")]
pub enum Error {
    /// The key cannot sign, or its signature does not verify.
    #[error("the key did not sign the checkpoint")]
    #[strum(transparent)]
    Key(#[source] key::Error),
    /// Only Ed25519 is supported.
    #[error("checkpoints are signed with Ed25519 keys only")]
    KeyKind,
    /// A part is missing or not canonical.
    #[error("the checkpoint has no well-formed {part}")]
    Malformed { part: &'static str },
    /// No signature line has the name and hash of the key.
    #[error("the checkpoint is not signed by {by}")]
    NotSigned { by: String },
    /// More bytes than are read.
    #[error("a checkpoint of {bytes} bytes is longer than {NOTE_BYTES_MAX}")]
    TooLong { bytes: usize },
    /// More signature lines than are read.
    #[error("the checkpoint has more than {SIGNATURES_MAX} signatures")]
    TooManySignatures,
    /// Text that is not `name+hash+key`, or whose hash does not match.
    #[error("not a verifier key of the form name+hash+key")]
    VerifierKey,
}

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

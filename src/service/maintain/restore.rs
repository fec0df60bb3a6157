//! Restoring a log from a copy, and letting it write again.
//!
//! A copy may be older than the last signed head, and the copy alone does not
//! show it. So a restored log, and one without its guard, does not write until
//! its head equals one known elsewhere, or the operator confirms it. The first
//! statement it then logs says what was compared.

use std::path::{Path, PathBuf};

use super::backup::transfer;
use crate::checkpoint::VerifierKey;
use crate::log::{LeafIndex, TreeSize};
use crate::profile::{Compared, Reason, Resumption, Source};
use crate::receipt::Head;
use crate::service::open::{
    check_published, checkpoint_verifier, guard_of, identity_of, published_head,
};
use crate::service::{ControlError, Writer, now};
use crate::store::{
    self, Backend, Copy, DataDir, Guard, Manifest, Store, read_private, write_private,
};
use crate::wire::digest::Digest;

/// A checkpoint of the log from another party.
#[derive(Clone, Debug)]
pub struct Note {
    /// Where it comes from.
    pub source: Source,
    /// The note as it was signed.
    pub text: String,
    /// The address of a peer.
    pub address: Option<String>,
    /// Whether that address takes registrations for this log.
    pub writes: bool,
}

/// What is known about the log from outside.
#[derive(Clone, Debug, Default)]
pub struct Proof {
    /// The guard, unless beside the data directory.
    pub guard: Option<PathBuf>,
    /// Checkpoints from other parties.
    pub notes: Vec<Note>,
    /// The head as typed by the operator, who confirms that nobody else writes.
    pub word: Option<(u64, Digest)>,
}

/// What to make a log from.
#[derive(Clone, Debug, Default)]
pub struct RestoreOptions {
    /// Where the private keys are kept; a copy has none.
    pub keys: PathBuf,
    /// Restore also when a known head is ahead: such a log never writes.
    pub read_only: bool,
    /// What shows that the copy is the newest.
    pub proof: Proof,
}

/// What was restored.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The head of the copy.
    pub head: Head,
    /// Why it must never write, if it must not.
    pub behind: Option<String>,
    /// How it was resumed, if it may write.
    pub resumed: Option<Resumed>,
}

/// A log that writes again.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// The head it continues from.
    pub head: Head,
    /// The index of the resumption statement.
    pub index: LeafIndex,
    /// What was compared.
    pub compared: Vec<Compared>,
}

/// A head known from outside the copy.
struct KnownHead {
    head: Head,
    source: Source,
    address: Option<String>,
    writes: bool,
}

impl KnownHead {
    fn of_note(note: &Note, key: &VerifierKey) -> Result<Self, ControlError> {
        let Note { source, text, address, writes } = note;
        let head = published_head(text, key)?;
        Ok(Self { head, source: *source, address: address.clone(), writes: *writes })
    }

    fn of_guard(head: Head) -> Self {
        Self { head, source: Source::Guard, address: None, writes: false }
    }
}

/// Makes a log from a copy. It is read-only until something shows that the
/// copy is the newest.
pub fn restore(
    from: &Path,
    data: &Path,
    options: &RestoreOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Restored, ControlError> {
    let identity = identity_of(from)?;
    let (store, head, edge) = Store::open(Backend::open(from)?)?;
    let key = checkpoint_verifier(store.dir(), &identity)?;
    let guard = options.proof.guard.as_deref();
    let guard = guard.map_or_else(|| DataDir::guard_beside(data), Guard::at);
    let mut known = known_heads(&guard, &options.proof, &key)?;
    let path = data.join("checkpoint");
    match std::fs::read_to_string(&path) {
        // All that is left of a lost directory: newer than any copy of it.
        Ok(note) => {
            let head = published_head(&note, &key)?;
            known.push(KnownHead {
                head,
                source: Source::Checkpoint,
                address: None,
                writes: false,
            });
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(source) => return Err(store::Error::Io { path, source }.into()),
    }
    let mut behind: Option<(store::Error, Head)> = None;
    for one in &known {
        match store.check_extends(&head, &edge, &one.head, one.source.name()) {
            Ok(()) => {}
            Err(error) if options.read_only => {
                if behind.as_ref().is_none_or(|(_, other)| one.head.size > other.size) {
                    behind = Some((error, one.head));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    let compared = match &behind {
        Some(_) => None,
        None => compare_with_known(&head.head(), &known, &options.proof)?,
    };
    let manifest = Manifest::of(&store, key.to_string())?;
    let copy = Copy::create(data)?;
    copy_keys(&store, data, &options.keys)?;
    if let Some((_, ahead)) = &behind {
        // So that no later start lets this log write.
        guard.replace(ahead)?;
    }
    let head = transfer(&store, &manifest, copy, progress)?;
    let resumed = match compared.filter(|_| !options.read_only) {
        Some(compared) => {
            let mut writer = Writer::open(data, None, true)?;
            Some(resume_writing(&mut writer, &guard, Reason::Restored, compared)?)
        }
        None => None,
    };
    Ok(Restored { head, behind: behind.map(|(error, _)| error.to_string()), resumed })
}

/// Lets a restored log, or one without its guard, write again. Does nothing to
/// a log that may write already.
pub fn resume(data: &Path, proof: &Proof) -> Result<Option<Resumed>, ControlError> {
    let mut writer = Writer::open(data, None, true)?;
    let guard = guard_of(writer.store.dir(), proof.guard.as_deref());
    let _alone = guard.lock()?;
    let key = checkpoint_verifier(writer.store.dir(), &writer.identity)?;
    let known = known_heads(&guard, proof, &key)?;
    for one in &known {
        let KnownHead { head, source, .. } = one;
        writer.store.check_extends(&writer.head, &writer.edge, head, source.name())?;
    }
    check_published(&writer.store, &writer.head, &writer.edge, &writer.identity)?;
    let reason = match (writer.store.dir().is_copy()?, guard.read()?) {
        (true, _) => Reason::Restored,
        (false, None) => Reason::GuardMissing,
        (false, Some(_)) => return Ok(None),
    };
    let head = writer.head.head();
    let unproven = || unproven(head.size, &known);
    let compared = compare_with_known(&head, &known, proof)?.ok_or_else(unproven)?;
    resume_writing(&mut writer, &guard, reason, compared).map(Some)
}

fn known_heads(
    guard: &Guard,
    proof: &Proof,
    key: &VerifierKey,
) -> Result<Vec<KnownHead>, ControlError> {
    let mut known: Vec<KnownHead> = guard.read()?.map(KnownHead::of_guard).into_iter().collect();
    for note in &proof.notes {
        known.push(KnownHead::of_note(note, key)?);
    }
    Ok(known)
}

/// What shows that nothing newer than `head` exists: a known head equals it, or
/// the operator typed it. A smaller head says nothing about what came after it.
fn compare_with_known(
    head: &Head,
    known: &[KnownHead],
    proof: &Proof,
) -> Result<Option<Vec<Compared>>, ControlError> {
    if let Some(other) = known.iter().find(|one| one.writes) {
        let at = other.address.clone().unwrap_or_default();
        return Err(store::Error::OtherWriter { at }.into());
    }
    let mut compared: Vec<Compared> = known
        .iter()
        .map(|one| Compared {
            source: one.source,
            size: one.head.size.get(),
            root: one.head.root,
            address: one.address.clone(),
        })
        .collect();
    if let Some((size, root)) = proof.word {
        if (size, root) != (head.size.get(), head.root) {
            let (typed, found) = (format!("{size}:{root}"), format!("{}:{}", head.size, head.root));
            return Err(store::Error::HeadDiffers { typed, found }.into());
        }
        compared.push(Compared { source: Source::Operator, size, root, address: None });
    }
    let newest = compared.iter().any(|one| one.size == head.size.get());
    Ok(newest.then_some(compared))
}

fn unproven(size: TreeSize, known: &[KnownHead]) -> store::Error {
    let sizes =
        known.iter().map(|one| format!("the {} knows {}", one.source.name(), one.head.size));
    let sizes: Vec<String> = sizes.collect();
    let compared =
        if sizes.is_empty() { String::new() } else { format!(" ({})", sizes.join(", ")) };
    store::Error::Unproven { size, compared }
}

/// Logs what was compared, then advances the guard, then removes the mark of a
/// copy: after a crash in between the log must be resumed again.
fn resume_writing(
    writer: &mut Writer,
    guard: &Guard,
    reason: Reason,
    compared: Vec<Compared>,
) -> Result<Resumed, ControlError> {
    let head = writer.head.head();
    let (size, root) = (head.size.get(), head.root);
    let resumption = Resumption { size, root, reason, time: now(), compared };
    writer.resume(&resumption)?;
    guard.advance(&writer.head.head())?;
    writer.store.dir().clear_copy_mark()?;
    Ok(Resumed { head, index: LeafIndex::new(size), compared: resumption.compared })
}

/// The active service key and the checkpoint key.
fn copy_keys(store: &Store, data: &Path, keys: &Path) -> Result<(), ControlError> {
    let active = store.keys()?.first().map(|key| format!("service-{}.pem", key.id()));
    let active = active.ok_or(store::Error::KeysUnreadable)?;
    for name in [active.as_str(), "checkpoint.pem"] {
        let pem = read_private(&keys.join(name))?;
        write_private(&data.join("keys").join(name), pem.as_bytes())?;
    }
    Ok(())
}

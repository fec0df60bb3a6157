//! A copy of a log in another directory, made from its statements.
//!
//! In: a manifest and the stored statements in order, from a store or from a
//! running log. Out: a data directory without private keys, whose tree was
//! recomputed from the bytes and has the root in the manifest.

use std::collections::BTreeMap;
use std::path::Path;

use super::{
    Backend, Commit, Error, HeadRecord, Lease, NewEntry, Store, Stored, Terms, write_public,
};
use crate::envelope::StatementId;
use crate::key::{PublicKey, key_set};
use crate::log::{Edge, LeafIndex, TreeSize, leaf_hash};
use crate::profile::Control;
use crate::receipt::Head;
use crate::wire::cbor::{self, Value};

/// The public key of checkpoints in note form: a copy has no private one.
pub const CHECKPOINT_PUB: &str = "checkpoint.pub";
/// What is copied as it is. Private keys are not among them.
const FILES: [&str; 6] =
    ["name", "policy.toml", "trust.toml", "capstan.toml", "checkpoint", CHECKPOINT_PUB];
/// Statements in one commit of a copy.
const BATCH: usize = 1024;

/// Everything about a log but its statements.
#[derive(Clone, Debug)]
pub struct Manifest {
    head: HeadRecord,
    keys: Vec<PublicKey>,
    controls: Vec<(Control, LeafIndex)>,
    files: BTreeMap<&'static str, Vec<u8>>,
}

impl Manifest {
    /// What a store holds now. The checkpoint is read before the head, so it
    /// is never ahead of it.
    pub fn of(store: &Store, checkpoint_key: String) -> Result<Self, Error> {
        let mut files = BTreeMap::from([(CHECKPOINT_PUB, checkpoint_key.into_bytes())]);
        for name in FILES.into_iter().filter(|name| *name != CHECKPOINT_PUB) {
            let path = store.dir().path().join(name);
            match std::fs::read(&path) {
                Ok(content) => drop(files.insert(name, content)),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(source) => return Err(Error::Io { path, source }),
            }
        }
        loop {
            // Controls that are the same before and after the head was read
            // are those of the head.
            let controls = controls_of(store)?;
            let head = store.head()?.ok_or(Error::HeadMissing)?;
            let keys = store.keys()?;
            if controls == controls_of(store)? {
                return Ok(Self { head, keys, controls, files });
            }
        }
    }

    /// The head that the copy will have.
    pub fn head(&self) -> Head {
        self.head.head()
    }

    /// `[head, keys, [control index + 1, ...], {name: content}]`
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        cbor::array(&mut out, 4);
        cbor::bytes(&mut out, &self.head.encode());
        cbor::bytes(&mut out, &key_set(self.keys.iter()));
        cbor::array(&mut out, Control::ALL.len());
        for control in Control::ALL {
            let at = self.controls.iter().find(|(kind, _)| *kind == control);
            cbor::int(&mut out, at.map_or(0, |(_, index)| index.get().saturating_add(1)));
        }
        cbor::array(&mut out, FILES.len());
        for name in FILES {
            cbor::bytes(&mut out, self.files.get(name).map_or(&[], Vec::as_slice));
        }
        out
    }

    /// Reads one that `encode` wrote.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let value = Value::read(bytes).ok()?;
        let [head, keys, controls, files] = value.array()? else { return None };
        let set = Value::read(keys.bytes()?).ok()?;
        let keys = set.array()?.iter().map(|key| PublicKey::from_cose_value(key).ok());
        let mut seen = Vec::new();
        for (control, at) in Control::ALL.into_iter().zip(controls.array()?) {
            let at: u64 = at.int()?;
            seen.extend(at.checked_sub(1).map(|index| (control, LeafIndex::new(index))));
        }
        let mut found = BTreeMap::new();
        for (name, content) in FILES.into_iter().zip(files.array()?) {
            let content = content.bytes()?;
            if !content.is_empty() {
                found.insert(name, content.to_vec());
            }
        }
        Some(Self {
            head: HeadRecord::decode(head.bytes()?)?,
            keys: keys.collect::<Option<_>>()?,
            controls: seen,
            files: found,
        })
    }
}

fn controls_of(store: &Store) -> Result<Vec<(Control, LeafIndex)>, Error> {
    let mut found = Vec::new();
    for control in Control::ALL {
        found.extend(store.control(control)?.map(|index| (control, index)));
    }
    Ok(found)
}

/// A copy that is being made, or brought up to date.
pub struct Copy {
    store: Store,
    lease: Lease,
    head: HeadRecord,
    edge: Edge,
    /// Statements that are not committed yet, all of one second.
    rows: Vec<Stored>,
}

impl Copy {
    /// Begins in an empty directory.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let store = Store::create(Backend::create(path)?)?;
        Self::on(store, HeadRecord::empty(), Edge::empty())
    }

    /// Continues a copy that was finished once, or begins one.
    pub fn open_or_create(path: &Path) -> Result<Self, Error> {
        if !path.join("FORMAT").exists() {
            return Self::create(path);
        }
        if path.join("keys").join("checkpoint.pem").exists() {
            return Err(Error::Exists { path: path.to_owned() });
        }
        let (store, head) = Store::open_unchecked(Backend::open(path)?)?;
        let edge = store.rebuild_edge(head.size())?;
        Self::on(store, head, edge)
    }

    /// Rows come without their index, which is made again at the end.
    fn on(store: Store, head: HeadRecord, edge: Edge) -> Result<Self, Error> {
        let lease = store.take_over()?;
        store.drop_index()?;
        Ok(Self { store, lease, head, edge, rows: Vec::new() })
    }

    /// How many statements it has.
    pub fn size(&self) -> TreeSize {
        let pending = u64::try_from(self.rows.len()).unwrap_or(u64::MAX);
        TreeSize::new(self.head.size().get().saturating_add(pending))
    }

    /// Adds the next statement, as a row of the store.
    pub fn push(&mut self, row: &[u8]) -> Result<(), Error> {
        let damaged = Error::StatementDamaged { index: LeafIndex::new(self.size().get()) };
        let Some(stored) = Stored::decode(row) else { return Err(damaged) };
        let before = self.rows.last().map_or(self.head.time(), |last| last.time);
        if stored.time < before {
            return Err(damaged);
        }
        if self.rows.len() >= BATCH || stored.time > before {
            self.flush()?;
        }
        self.rows.push(stored);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.rows);
        let Some(time) = rows.first().map(|row| row.time) else { return Ok(()) };
        let terms = Terms::default();
        let mut frontier = self.head.frontier().clone();
        let (mut entries, mut tiles) = (Vec::with_capacity(rows.len()), Vec::new());
        for Stored { canonical, collateral, .. } in &rows {
            let id = StatementId::of_canonical(canonical);
            let leaf = leaf_hash(id.entry());
            frontier.append(leaf);
            tiles.extend(self.edge.append(leaf));
            entries.push(NewEntry { id, canonical, collateral: collateral.clone(), terms: &terms });
        }
        let head = self.head.next(frontier, time);
        let (controls, keys) = (&[], None);
        let (entries, tiles) = (&entries, &tiles);
        let before = &self.head;
        let commit = Commit { before, entries, tiles, head: &head, controls, keys };
        self.store.commit(&self.lease, &commit)?;
        self.head = head;
        Ok(())
    }

    /// Finishes the copy if its tree is the one in the manifest. Until then a
    /// new directory is not a log; from then on it is one that does not write.
    pub fn finish(mut self, manifest: &Manifest) -> Result<(), Error> {
        self.flush()?;
        let (size, root) = (self.head.size(), self.head.root());
        if (size, root) != (manifest.head.size(), manifest.head.root()) {
            let (expected, found) = (manifest.head.root(), root);
            return Err(Error::CopyDiffers { size, expected, found });
        }
        let commit = Commit {
            before: &self.head,
            entries: &[],
            tiles: &[],
            head: &manifest.head,
            controls: &manifest.controls,
            keys: Some(&manifest.keys),
        };
        self.store.commit(&self.lease, &commit)?;
        self.store.reindex(size, &mut |_| {})?;
        for (name, content) in &manifest.files {
            write_public(&self.store.dir().path().join(name), content)?;
        }
        self.store.dir().mark_as_copy()?;
        self.store.dir().write_format()
    }
}

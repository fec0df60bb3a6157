//! The directory in which sealed records wait for their log.
//!
//! ```text
//! OUTBOX/LOCK                          held while a record enters
//! OUTBOX/waiting/ID.cose               sealed, and not receipted yet
//! OUTBOX/waiting/ID.json               the log it is for, and since when
//! OUTBOX/waiting/ID.unverified         what a log sent that does not verify
//! OUTBOX/receipted/ID.transparent.cose with a receipt that verified
//! OUTBOX/refused/ID.cose, ID.json      what a log refused, and why
//! OUTBOX/seen/DIGEST                   the first and the last record of a description
//! OUTBOX/keys/DIGEST                   the record of an idempotency key
//! ```
//!
//! Files are 0600 and whole: each is synced before its name is there. Whoever
//! sends a record holds a lock on its file, so that no two processes do.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::cli::{CliError, files};
use crate::wire::digest::Digest;

const PARTS: [&str; 5] = ["waiting", "receipted", "refused", "seen", "keys"];

/// What is remembered beside a record.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Item {
    /// The log it is for.
    #[serde(default)]
    pub(super) url: Option<String>,
    /// When it entered.
    #[serde(default)]
    pub(super) queued_at: Option<String>,
    /// Why the log refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// The stable word for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<String>,
}

/// Records with one description.
pub(super) struct Earlier {
    pub(super) first: String,
    pub(super) last: String,
}

/// Where a record is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    Waiting,
    Receipted,
    Refused,
}

/// A record this process alone may send.
pub(super) struct Claim {
    id: String,
    pub(super) statement: Vec<u8>,
    /// Holds the lock until it is dropped.
    _file: File,
}

/// Whether a record can be had.
pub(super) enum Claimed {
    Mine(Claim),
    /// Another process sends it now.
    Busy,
    /// It does not wait any more.
    Gone,
}

pub(super) struct Outbox {
    pub(super) path: PathBuf,
}

impl Outbox {
    pub(super) fn open(flag: Option<&Path>) -> anyhow::Result<Self> {
        let path = flag
            .map(Path::to_owned)
            .or_else(|| files::variable("CAPSTAN_OUTBOX"))
            .or_else(|| {
                files::variable("HOME").map(|home| home.join(".local/state/capstan/outbox"))
            })
            .context("no place for the outbox; give --outbox DIR")?;
        for part in PARTS {
            let dir = path.join(part);
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
            made.with_context(|| format!("{}", dir.display()))?;
        }
        Ok(Self { path })
    }

    /// Held while a record enters: looking whether it is there and putting it
    /// there are one step.
    pub(super) fn lock(&self) -> anyhow::Result<File> {
        let path = self.path.join("LOCK");
        let context = || format!("{}", path.display());
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.open(&path).with_context(context)?;
        flock(&file, FlockOperation::LockExclusive).with_context(context)?;
        Ok(file)
    }

    /// Puts a record there; durable when this returns.
    pub(super) fn keep(&self, id: &str, statement: &[u8], item: &Item) -> anyhow::Result<()> {
        write(&self.path_of(id, "waiting", "json"), &serde_json::to_vec(item)?)?;
        write(&self.path_of(id, "waiting", "cose"), statement)
    }

    /// Takes a record to send it.
    pub(super) fn claim(&self, id: &str) -> anyhow::Result<Claimed> {
        let path = self.path_of(id, "waiting", "cose");
        let context = || format!("{}", path.display());
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Claimed::Gone),
            Err(e) => return Err(e).with_context(context),
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(Claimed::Busy);
        }
        // Whoever had it before may have finished with it.
        let same = std::fs::metadata(&path).is_ok_and(|there| {
            file.metadata().is_ok_and(|open| (open.dev(), open.ino()) == (there.dev(), there.ino()))
        });
        if !same {
            return Ok(Claimed::Gone);
        }
        let mut statement = Vec::new();
        file.read_to_end(&mut statement).with_context(context)?;
        Ok(Claimed::Mine(Claim { id: id.to_owned(), statement, _file: file }))
    }

    /// The receipt verified: the record leaves, after its receipt is durable.
    pub(super) fn receipted(&self, claim: Claim, transparent: &[u8]) -> anyhow::Result<PathBuf> {
        let output = self.path_of(&claim.id, "receipted", "transparent.cose");
        write(&output, transparent)?;
        for ending in ["cose", "json", "unverified"] {
            let path = self.path_of(&claim.id, "waiting", ending);
            match std::fs::remove_file(&path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(e).with_context(|| format!("{}", path.display()));
                }
                _ => {}
            }
        }
        sync(&self.path.join("waiting"))?;
        Ok(output)
    }

    /// The log says no: the record is kept with the reason.
    pub(super) fn refused(&self, claim: Claim, error: &CliError) -> anyhow::Result<PathBuf> {
        let item = Item {
            reason: Some(error.what.clone()),
            code: Some(error.code.to_owned()),
            ..self.item(&claim.id)
        };
        write(&self.path_of(&claim.id, "refused", "json"), &serde_json::to_vec(&item)?)?;
        let output = self.path_of(&claim.id, "refused", "cose");
        write(&output, &claim.statement)?;
        for ending in ["cose", "json", "unverified"] {
            let _absent = std::fs::remove_file(self.path_of(&claim.id, "waiting", ending));
        }
        sync(&self.path.join("waiting"))?;
        Ok(output)
    }

    /// The log's answer does not verify: both are kept, and the record waits.
    pub(super) fn unverified(&self, claim: &Claim, answer: &[u8]) -> anyhow::Result<PathBuf> {
        let output = self.path_of(&claim.id, "waiting", "unverified");
        write(&output, answer)?;
        Ok(output)
    }

    /// What is remembered beside a record; nothing for one of an older version.
    pub(super) fn item(&self, id: &str) -> Item {
        let read = |part| std::fs::read(self.path_of(id, part, "json")).ok();
        let bytes = read("waiting").or_else(|| read("refused"));
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    pub(super) fn stage(&self, id: &str) -> Option<(Stage, PathBuf)> {
        let places = [
            (Stage::Receipted, self.path_of(id, "receipted", "transparent.cose")),
            (Stage::Waiting, self.path_of(id, "waiting", "cose")),
            (Stage::Refused, self.path_of(id, "refused", "cose")),
        ];
        places.into_iter().find(|(_, path)| path.exists())
    }

    /// The first and the last record with this description.
    pub(super) fn earlier(&self, description: &Digest) -> Option<Earlier> {
        let path = self.path.join("seen").join(description.to_string());
        let text = std::fs::read_to_string(path).ok()?;
        let (first, last) = text.split_once(' ')?;
        self.stage(first)?;
        Some(Earlier { first: first.to_owned(), last: last.to_owned() })
    }

    pub(super) fn remember_earlier(
        &self,
        description: &Digest,
        earlier: &Earlier,
    ) -> anyhow::Result<()> {
        let text = format!("{} {}", earlier.first, earlier.last);
        write(&self.path.join("seen").join(description.to_string()), text.as_bytes())
    }

    /// The record that entered with an idempotency key, and its description.
    pub(super) fn of_key(&self, key: &str) -> Option<(String, Digest)> {
        let text = std::fs::read_to_string(self.key_path(key)).ok()?;
        let (id, description) = text.split_once(' ')?;
        let found = (id.to_owned(), Digest::from_hex(description)?);
        self.stage(id).map(|_| found)
    }

    /// Comes before the record itself: a key of a record that never entered is
    /// as good as new.
    pub(super) fn remember_key(
        &self,
        key: &str,
        id: &str,
        description: &Digest,
    ) -> anyhow::Result<()> {
        write(&self.key_path(key), format!("{id} {description}").as_bytes())
    }

    fn key_path(&self, key: &str) -> PathBuf {
        self.path.join("keys").join(Digest::of(key.as_bytes()).to_string())
    }

    fn path_of(&self, id: &str, part: &str, ending: &str) -> PathBuf {
        self.path.join(part).join(format!("{id}.{ending}"))
    }

    /// Ids of the records in one part, oldest first.
    pub(super) fn list(&self, part: &str) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        let dir = self.path.join(part);
        for entry in std::fs::read_dir(&dir).with_context(|| format!("{}", dir.display()))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some((id, "cose" | "transparent.cose")) = name.split_once('.')
                && let Ok(modified) = entry.metadata().and_then(|there| there.modified())
            {
                found.push((modified, id.to_owned()));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }
}

/// Writes a file that only its owner can read, whole and durable.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let fresh = PathBuf::from(name);
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh);
    let written = file
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&fresh, path));
    written.with_context(|| format!("cannot write {}", path.display()))?;
    sync(path.parent().unwrap_or(Path::new(".")))
}

fn sync(dir: &Path) -> anyhow::Result<()> {
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.with_context(|| format!("{}", dir.display()))
}

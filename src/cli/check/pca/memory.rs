//! Used nonces in a file, one JSON string per line. A lock file beside it is
//! held from the lookup to the burn; the file is replaced atomically.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;

use crate::cli::CliError;
use crate::profile::pca::NonceMemory;
use crate::store::write_public;

/// 5 s in all: a check takes milliseconds, so a longer wait means that the
/// other process hangs.
const LOCK_TRIES: u32 = 250;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// The nonce file, locked by this process.
pub(super) struct NonceFile {
    path: PathBuf,
    used: RefCell<BTreeSet<String>>,
    /// Held for its lock; released by the operating system with the process.
    _lock: File,
}

impl NonceFile {
    /// Locks and reads the file; a missing one is empty.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let lock = lock(Path::new(&name))?;
        let text = match std::fs::read_to_string(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => String::new(),
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let used: Result<BTreeSet<String>, _> = text.lines().map(serde_json::from_str).collect();
        let used = used.map_err(|e| {
            let what = format!("{} is not a nonce file: {e}", path.display());
            CliError::failed("memory-damaged", what)
        })?;
        Ok(Self { path: path.to_owned(), used: RefCell::new(used), _lock: lock })
    }
}

fn lock(path: &Path) -> anyhow::Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    let file = file.with_context(|| format!("cannot write {}", path.display()))?;
    let locked = (0..LOCK_TRIES).any(|attempt| {
        if attempt > 0 {
            std::thread::sleep(LOCK_PAUSE);
        }
        file.try_lock().is_ok()
    });
    if !locked {
        let what = format!("another process holds {}", path.display());
        return Err(CliError::failed("memory-locked", what).into());
    }
    Ok(file)
}

impl NonceMemory for NonceFile {
    type Error = anyhow::Error;

    fn is_burned(&self, nonce: &str) -> anyhow::Result<bool> {
        Ok(self.used.borrow().contains(nonce))
    }

    /// Written to disk first, then remembered.
    fn burn(&self, nonce: &str) -> anyhow::Result<bool> {
        let mut used = self.used.borrow().clone();
        if !used.insert(nonce.to_owned()) {
            return Ok(false);
        }
        let lines: Result<Vec<String>, _> = used.iter().map(serde_json::to_string).collect();
        let text = lines?.join("\n") + "\n";
        write_public(&self.path, text.as_bytes())?;
        self.used.replace(used);
        Ok(true)
    }
}

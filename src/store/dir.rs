//! The files around the engine.
//!
//! ```text
//! DATA/FORMAT       the format version; written last by `init`
//! DATA/LOCK         held by the one writer
//! DATA/name         what the log calls itself: `iss` of its receipts
//! DATA/store/       the engine
//! DATA/keys/        service-<kid>.pem, checkpoint.pem: private, mode 0600
//! DATA/policy.toml  the registration policy
//! DATA/trust.toml   whom the log believes
//! DATA/capstan.toml settings
//! DATA/refusals.jsonl  the last refusals; not part of the log
//! DATA/unproven.jsonl  the last statements that did not authenticate; not either
//! DATA/checkpoint   the last published checkpoint
//! DATA/checkpoint.pub  its public key, in a copy that has no keys
//! DATA/scrub        where the scrub continues
//! DATA/read-only    in a copy: it does not write until it is shown to be the newest
//! DATA/backup.sock  where a running log sends copies of itself
//! DATA.guard        the last signed head, outside what a backup restores
//! DATA.guard.lock   held by the one writer that has this guard
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};

use super::engine::{Created, Objects, Version};
use super::{Error, Guard};
use crate::key::KeyId;

const FORMAT: &str = "capstan 1\n";

const COPY_MARK: &str = "read-only";
const COPY_TEXT: &str = "\
This directory was made from a copy of a log. It does not write until
`capstan resume` has seen that no newer copy exists.
";

/// A process that ends takes a moment to let go of its lock.
const LOCK_TRIES: u32 = 25;
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

/// A file that this process alone has locked.
pub struct Lock(File);

impl Lock {
    /// Takes the lock; none when another process has it.
    pub(super) fn take(path: &Path) -> Result<Option<Self>, Error> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o644);
        let file = options.open(path).map_err(io(path))?;
        let taken = (0..LOCK_TRIES).any(|attempt| {
            if attempt > 0 {
                std::thread::sleep(LOCK_PAUSE);
            }
            flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
        });
        Ok(taken.then_some(Self(file)))
    }
}

/// Unlocks explicitly, because closing the file is not enough: a child that
/// another thread has just forked has the file open until it runs its own
/// program.
impl Drop for Lock {
    fn drop(&mut self) {
        let _closed_anyway = flock(&self.0, FlockOperation::Unlock);
    }
}

/// A data directory that this process has locked.
pub struct DataDir {
    path: PathBuf,
    _lock: Lock,
}

impl DataDir {
    /// Whether a log could be made here.
    pub fn check_free(path: &Path) -> Result<(), Error> {
        if path.join("FORMAT").exists() || path.join("store").exists() {
            return Err(Error::Exists { path: path.to_owned() });
        }
        Ok(())
    }

    /// Makes a new directory, or takes an empty one.
    pub fn create(path: &Path) -> Result<Self, Error> {
        Self::check_free(path)?;
        fs::create_dir_all(path.join("keys")).map_err(io(path))?;
        for private in [path.to_owned(), path.join("keys")] {
            let mode = fs::Permissions::from_mode(0o700);
            fs::set_permissions(&private, mode).map_err(io(&private))?;
        }
        Self::lock(path)
    }

    /// Takes a directory that holds a log.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if !path.join("FORMAT").exists() {
            return Err(Error::NotFound { path: path.to_owned() });
        }
        Self::lock(path)
    }

    fn lock(path: &Path) -> Result<Self, Error> {
        let lock = Lock::take(&path.join("LOCK"))?;
        let lock = lock.ok_or_else(|| Error::Locked { path: path.to_owned() })?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn store_path(&self) -> PathBuf {
        self.path.join("store")
    }

    /// The registration policy.
    pub fn policy_path(&self) -> PathBuf {
        self.path.join("policy.toml")
    }

    /// The trust file.
    pub fn trust_path(&self) -> PathBuf {
        self.path.join("trust.toml")
    }

    /// The settings.
    pub fn config_path(&self) -> PathBuf {
        self.path.join("capstan.toml")
    }

    /// The private key of the service with this id.
    pub fn service_key_path(&self, id: KeyId) -> PathBuf {
        self.path.join("keys").join(format!("service-{id}.pem"))
    }

    /// The private key that signs checkpoints.
    pub fn checkpoint_key_path(&self) -> PathBuf {
        self.path.join("keys").join("checkpoint.pem")
    }

    /// The socket on which a running log sends copies of itself.
    pub fn backup_path(path: &Path) -> PathBuf {
        path.join("backup.sock")
    }

    /// Marks the directory as a copy, which does not write until it was shown
    /// that no newer one exists.
    pub fn mark_as_copy(&self) -> Result<(), Error> {
        write_public(&self.path.join(COPY_MARK), COPY_TEXT.as_bytes())
    }

    /// Whether it is a copy that must not write yet. Not knowing is an error,
    /// never a no.
    pub fn is_copy(&self) -> Result<bool, Error> {
        let path = self.path.join(COPY_MARK);
        path.try_exists().map_err(io(&path))
    }

    /// Lets a copy write, durably.
    pub fn clear_copy_mark(&self) -> Result<(), Error> {
        let path = self.path.join(COPY_MARK);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(io(&path)(e)),
            _ => sync_parent(&path),
        }
    }

    /// Where the guard lies unless settings say otherwise: beside the
    /// directory, so that restoring an old copy of it leaves the guard alone.
    pub fn guard_path(&self) -> PathBuf {
        Self::guard_beside(&self.path).path().to_owned()
    }

    /// The guard of a directory that may not be there.
    pub fn guard_beside(path: &Path) -> Guard {
        let mut name = path.as_os_str().to_owned();
        name.push(".guard");
        Guard::at(Path::new(&name))
    }

    /// Marks the directory as one that holds a log: the last step of `init`.
    pub fn write_format(&self) -> Result<(), Error> {
        write_public(&self.path.join("FORMAT"), FORMAT.as_bytes())
    }

    pub(super) fn check_format(&self) -> Result<(), Error> {
        let path = self.path.join("FORMAT");
        let found = fs::read_to_string(&path).map_err(io(&path))?;
        if found == FORMAT {
            return Ok(());
        }
        Err(Error::Format { found: found.trim().to_owned(), known: FORMAT.trim() })
    }

    /// Bytes left for this user on the file system of the directory.
    pub fn free_bytes(&self) -> Result<u64, Error> {
        let stat = rustix::fs::statvfs(&self.path).map_err(|e| io(&self.path)(e.into()))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// A directory as a place for objects. It has one writer: the data directory
/// and the guard are locked by whoever writes.
pub(super) struct Directory {
    path: PathBuf,
}

impl Directory {
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }
}

impl Objects for Directory {
    fn get(&self, path: &Path) -> Result<Option<(Vec<u8>, Version)>, Error> {
        let path = self.path.join(path);
        match fs::read(&path) {
            Ok(bytes) => {
                let version = Version::of(&bytes);
                Ok(Some((bytes, version)))
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(io(&path)(e)),
        }
    }

    fn create(&self, path: &Path, bytes: &[u8]) -> Result<Created, Error> {
        if self.get(path)?.is_some() {
            return Ok(Created::Exists);
        }
        write_public(&self.path.join(path), bytes)?;
        Ok(Created::New(Version::of(bytes)))
    }

    fn replace(&self, path: &Path, bytes: &[u8], seen: &Version) -> Result<Version, Error> {
        if self.get(path)?.is_none_or(|(_, version)| version != *seen) {
            return Err(Error::ObjectChanged { path: self.path.join(path) });
        }
        write_public(&self.path.join(path), bytes)?;
        Ok(Version::of(bytes))
    }
}

/// Whether a process has the log in a directory open.
pub fn is_in_use(path: &Path) -> Result<bool, Error> {
    match DataDir::open(path) {
        Ok(_) => Ok(false),
        Err(Error::Locked { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Reads a private key file, unless others could read it too.
pub fn read_private(path: &Path) -> Result<String, Error> {
    let mut file = File::open(path).map_err(io(path))?;
    let mode = file.metadata().map_err(io(path))?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(Error::WorldReadable { path: path.to_owned() });
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(io(path))?;
    Ok(text)
}

/// Writes a new file that only its owner can read. An existing file is never
/// replaced: it may hold the only copy of a key.
pub fn write_private(path: &Path, content: &[u8]) -> Result<(), Error> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = file.map_err(io(path))?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(io(path))?;
    sync_parent(path)
}

/// Replaces a file atomically: readers see the old content or the new. Others
/// may read it, and never write it, whatever the umask: the guard lies outside
/// the data directory.
pub fn write_public(path: &Path, content: &[u8]) -> Result<(), Error> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    // Two threads that write one file do not share a temporary one.
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new-{}", COUNTER.fetch_add(1, Ordering::Relaxed)));
    let fresh = PathBuf::from(name);
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&fresh);
    let mut file = file.map_err(io(&fresh))?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(io(&fresh))?;
    fs::rename(&fresh, path).map_err(io(path))?;
    sync_parent(path)
}

/// A file is durable under its name once its directory is.
fn sync_parent(path: &Path) -> Result<(), Error> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent).and_then(|dir| dir.sync_all()).map_err(io(parent))
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { path: path.clone(), source }
}

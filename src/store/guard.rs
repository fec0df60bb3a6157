//! The guard: the largest head ever signed, kept where a restored backup
//! does not reach. A store behind its guard must not write.

use std::path::{Path, PathBuf};

use super::dir::Lock;
use super::{Error, write_public};
use crate::log::TreeSize;
use crate::receipt::Head;
use crate::wire::digest::Digest;
use crate::wire::time::UnixSeconds;

const TITLE: &str = "capstan guard 1";

/// A file with one head in it.
#[derive(Clone, Debug)]
pub struct Guard {
    path: PathBuf,
}

impl Guard {
    /// The guard at a path, whether the file exists or not.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The head it remembers; none when there is no file. A guard that
    /// cannot be read is an error, never an empty guard.
    pub fn read(&self) -> Result<Option<Head>, Error> {
        let io = |source| Error::Io { path: self.path.clone(), source };
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(io(e)),
        };
        let damaged = || io(std::io::Error::other("the guard file is damaged"));
        parse(&text).map(Some).ok_or_else(damaged)
    }

    /// Keeps others away that write under the same guard: copies of one
    /// directory may have settings that name one file. None when there is no
    /// guard.
    pub fn lock(&self) -> Result<Option<Lock>, Error> {
        if self.read()?.is_none() {
            return Ok(None);
        }
        let mut name = self.path.as_os_str().to_owned();
        name.push(".lock");
        let taken = Lock::take(Path::new(&name))?;
        taken.map(Some).ok_or_else(|| Error::GuardInUse { path: self.path.clone() })
    }

    /// Remembers a head, durably.
    pub fn write(&self, head: &Head) -> Result<(), Error> {
        let Head { size, root, time } = head;
        let text = format!("{TITLE}\nsize {size}\nroot {root}\ntime {}\n", time.seconds());
        write_public(&self.path, text.as_bytes())
    }
}

fn parse(text: &str) -> Option<Head> {
    let mut lines = text.lines();
    if lines.next()? != TITLE {
        return None;
    }
    let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
    Some(Head {
        size: TreeSize::new(value("size")?.parse().ok()?),
        root: Digest::from_hex(value("root")?)?,
        time: UnixSeconds::new(value("time")?.parse().ok()?),
    })
}

//! The guard: the largest head ever signed, kept where a restored backup
//! does not reach. A store behind its guard must not write.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::Error;
use super::dir::{Directory, Lock};
use super::engine::{Objects, put_object};
use crate::log::TreeSize;
use crate::receipt::Head;
use crate::wire::digest::Digest;
use crate::wire::time::UnixSeconds;

const TITLE: &str = "capstan guard 1";

/// An object with one head in it.
#[derive(Clone)]
pub struct Guard {
    objects: Arc<dyn Objects>,
    name: PathBuf,
    path: PathBuf,
    /// Locked while it is written: the writer and the publisher share a guard.
    writing: Arc<Mutex<()>>,
}

impl Guard {
    /// The guard at a path, whether the file exists or not.
    pub fn at(path: &Path) -> Self {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let objects = Arc::new(Directory::at(parent.unwrap_or(Path::new("."))));
        let name = PathBuf::from(path.file_name().unwrap_or_default());
        Self { objects, name, path: path.to_owned(), writing: Arc::default() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The head it remembers; none when there is no file. A guard that
    /// cannot be read is an error, never an empty guard.
    pub fn read(&self) -> Result<Option<Head>, Error> {
        let Some((bytes, _)) = self.objects.get(&self.name)? else { return Ok(None) };
        let source = || std::io::Error::other("the guard file is damaged");
        let damaged = || Error::Io { path: self.path.clone(), source: source() };
        str::from_utf8(&bytes).ok().and_then(parse).map(Some).ok_or_else(damaged)
    }

    /// Keeps other processes from writing under the same guard: copies of one
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

    /// Records a head durably, unless it is smaller than the recorded one: the
    /// publisher may come with a head that the committer has overtaken.
    pub fn advance(&self, head: &Head) -> Result<(), Error> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.read()?.is_some_and(|recorded| recorded.size > head.size) {
            return Ok(());
        }
        self.put(head)
    }

    /// Records a head durably in place of any other: for a head that shows a
    /// restored copy to be behind or forked.
    pub fn replace(&self, head: &Head) -> Result<(), Error> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.put(head)
    }

    fn put(&self, head: &Head) -> Result<(), Error> {
        let Head { size, root, time } = head;
        let text = format!("{TITLE}\nsize {size}\nroot {root}\ntime {}\n", time.seconds());
        put_object(&*self.objects, &self.name, text.as_bytes())
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

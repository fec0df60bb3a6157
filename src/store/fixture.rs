//! A log on each engine, for tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::fjall::Fjall;
use super::memory::Memory;
use super::{Backend, DataDir, Engine, Error, Guard, KeyRange, KeyValue, Space};

/// A directory for a log, and its rows if they are in memory.
pub(crate) struct TestLog {
    outside: Arc<TempDir>,
    pub(crate) path: PathBuf,
    memory: Option<Memory>,
}

impl TestLog {
    /// Room for a log on each engine.
    pub(crate) fn on_each_engine() -> [Self; 2] {
        [Self::new(None), Self::new(Some(Memory::default()))]
    }

    pub(crate) fn on_fjall() -> Self {
        Self::new(None)
    }

    fn new(memory: Option<Memory>) -> Self {
        let outside = Arc::new(tempfile::tempdir().unwrap());
        Self { path: outside.path().join("data"), outside, memory }
    }

    pub(crate) fn engine(&self) -> &'static str {
        if self.memory.is_some() { "memory" } else { "fjall" }
    }

    fn backend(&self, dir: DataDir) -> Result<Backend, Error> {
        let engine: Box<dyn Engine> = match &self.memory {
            Some(memory) => Box::new(memory.clone()),
            None => Box::new(Fjall::open(&dir.store_path())?),
        };
        Ok(Backend::new(engine, dir))
    }

    pub(crate) fn create(&self) -> Backend {
        self.backend(DataDir::create(&self.path).unwrap()).unwrap()
    }

    pub(crate) fn open(&self) -> Result<Backend, Error> {
        let dir = DataDir::open(&self.path)?;
        dir.check_format()?;
        self.backend(dir)
    }

    pub(crate) fn guard(&self) -> Guard {
        DataDir::guard_beside(&self.path)
    }

    /// The log as it is now once more, with its guard, beside this one.
    pub(crate) fn copy(&self, name: &str) -> Self {
        let path = self.outside.path().join(name);
        copy_tree(&self.path, &path);
        let memory = self.memory.as_ref().map(Memory::copy);
        let copy = Self { outside: self.outside.clone(), path, memory };
        std::fs::copy(self.guard().path(), copy.guard().path()).unwrap();
        copy
    }

    /// Damages a log that nobody has open.
    pub(crate) fn tamper(&self, space: Space, key: &[u8], value: Option<&[u8]>) {
        self.open().unwrap().engine.tamper(space, key, value);
    }

    /// The rows of a log that nobody has open.
    pub(crate) fn rows(&self, space: Space) -> Vec<KeyValue> {
        let forward = super::Direction::Forward;
        self.open().unwrap().engine.scan(space, &KeyRange::all(), forward, usize::MAX).unwrap()
    }

    pub(crate) fn get(&self, space: Space, key: &[u8]) -> Vec<u8> {
        self.open().unwrap().engine.get(space, &[key]).unwrap().remove(0).unwrap()
    }
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

//! A promise the log has broken, with everything that shows it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use capstan::cli::files;
use serde::Serialize;

/// What a log promises to whoever writes to it or reads from it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Promise {
    /// What it took before, it takes again.
    Admits,
    /// An answer is one the interface knows.
    Answers,
    /// A checkpoint is signed by the log's key.
    CheckpointVerifies,
    /// A statement keeps the one place it got, and no other has it.
    OnePlace,
    /// There is one tree of each size.
    OneRoot,
    /// A newer tree holds the older one.
    OnlyGrows,
    /// What was acknowledged is there.
    Keeps,
    /// A receipt proves the statement it was given for.
    ReceiptVerifies,
    /// What is not sound is not taken.
    Refuses,
    /// The same statement has the same Location.
    SameLocation,
    /// The tiles are those of the signed tree.
    TilesMatch,
    /// The log's own time does not run backwards.
    TimeGoesOn,
}

impl Promise {
    /// The stable name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Admits => "admits-as-before",
            Self::Answers => "answers-as-specified",
            Self::CheckpointVerifies => "checkpoint-verifies",
            Self::OnePlace => "one-place-per-statement",
            Self::OneRoot => "one-root-per-size",
            Self::OnlyGrows => "only-grows",
            Self::Keeps => "keeps-what-it-acknowledged",
            Self::ReceiptVerifies => "receipt-verifies",
            Self::Refuses => "refuses-what-is-not-sound",
            Self::SameLocation => "same-location-again",
            Self::TilesMatch => "tiles-match-the-root",
            Self::TimeGoesOn => "time-goes-on",
        }
    }
}

/// The content of `broken.json`.
#[derive(Serialize)]
struct BrokenFile<'a> {
    promise: &'static str,
    what: &'a str,
    files: Vec<&'a str>,
    run: &'a RunFacts,
}

/// The run in which a promise was broken.
#[derive(Default, Serialize)]
pub(super) struct RunFacts {
    pub(super) url: String,
    pub(super) seed: u64,
    pub(super) log_keys: Vec<String>,
    pub(super) heads: Vec<HeadView>,
}

#[derive(Serialize)]
pub(super) struct HeadView {
    pub(super) size: u64,
    pub(super) root: String,
}

/// The first broken promise ends the run.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", .promise.name())]
pub(super) struct Broken {
    pub(super) promise: Promise,
    /// What was expected and what was found.
    pub(super) what: String,
    /// Files for whoever looks into it.
    files: Vec<(String, Vec<u8>)>,
}

impl Broken {
    pub(super) fn new(promise: Promise, what: impl Into<String>) -> Self {
        Self { promise, what: what.into(), files: Vec::new() }
    }

    /// With a piece of evidence.
    pub(super) fn with(mut self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.files.push((name.to_owned(), bytes.as_ref().to_vec()));
        self
    }

    /// Writes the evidence; returns the paths.
    pub(super) fn save(&self, directory: &Path, run: &RunFacts) -> anyhow::Result<Vec<PathBuf>> {
        let directory = &unused(directory);
        std::fs::create_dir_all(directory).with_context(|| format!("{}", directory.display()))?;
        let mut paths = Vec::new();
        for (name, bytes) in &self.files {
            let path = directory.join(name);
            files::write_file(&path, bytes)?;
            paths.push(path);
        }
        let about = BrokenFile {
            promise: self.promise.name(),
            what: &self.what,
            files: self.files.iter().map(|(name, _)| name.as_str()).collect(),
            run,
        };
        let path = directory.join("broken.json");
        files::write_file(&path, serde_json::to_string_pretty(&about)?.as_bytes())?;
        paths.push(path);
        Ok(paths)
    }
}

/// The directory, or one with a number behind its name: evidence of an
/// earlier run is never overwritten.
fn unused(directory: &Path) -> PathBuf {
    let numbered = |number: u32| {
        let mut name = directory.as_os_str().to_owned();
        name.push(format!("-{number}"));
        PathBuf::from(name)
    };
    let mut names = std::iter::once(directory.to_owned()).chain((2..=u32::MAX).map(numbered));
    names.find(|name| !name.exists()).unwrap_or_else(|| directory.to_owned())
}

//! Finds published vectors on disk.

use std::path::{Path, PathBuf};

/// A file or directory of published vectors, if present: in the directory named
/// by `CAPSTAN_VECTORS`, or next to this repository.
pub(crate) fn published(part: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/vectors");
    let root = std::env::var_os("CAPSTAN_VECTORS").map_or_else(beside, PathBuf::from);
    let path = root.join(part);
    if !path.exists() {
        eprintln!("no vectors in {}; set CAPSTAN_VECTORS", root.display());
        return None;
    }
    Some(path)
}

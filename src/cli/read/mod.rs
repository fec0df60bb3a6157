//! Reading a log: search, single statements, proofs.

pub(super) mod lineage;
pub(super) mod names;
pub(super) mod search;

use super::{Answer, Stop, broken_store, client, files, output, program, settings, target};

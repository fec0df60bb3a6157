//! Reading a log: search, single statements, proofs.

pub(super) mod bundle;
pub(super) mod inspect;
pub(super) mod lineage;
pub(super) mod names;
pub(super) mod prove;
pub(super) mod search;

use super::client::target;
use super::{Answer, Stop, broken_store, client, files, output, program, settings};

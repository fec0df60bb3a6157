//! Reading a log: search, single statements, proofs.

pub(super) mod inspect;
pub(super) mod lineage;
pub(super) mod names;
pub(super) mod prove;
pub(super) mod search;

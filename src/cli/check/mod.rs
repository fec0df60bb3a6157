//! Checking files and logs from outside: what can be proved, and who is trusted.

pub(super) mod audit;
pub(super) mod pacr;
pub(super) mod pca;
pub(super) mod report;
pub(super) mod succession;
pub(super) mod trace;
pub(super) mod trust;
pub(super) mod verify;

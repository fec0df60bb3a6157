//! Running and maintaining a log.

pub(super) mod backup;
pub(super) mod config;
pub(super) mod dev;
pub(super) mod fsck;
pub(super) mod init;
pub(super) mod packaging;
pub(super) mod policy;
pub(super) mod replay;
pub(super) mod serve;

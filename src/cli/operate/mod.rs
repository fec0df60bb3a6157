//! Running and maintaining a log.

pub(super) mod backup;
pub(super) mod config;
pub(super) mod dev;
pub(super) mod fsck;
pub(super) mod health;
pub(super) mod init;
pub(super) mod key;
pub(super) mod packaging;
pub(super) mod policy;
pub(super) mod reindex;
pub(super) mod replay;
pub(super) mod restore;
pub(super) mod serve;

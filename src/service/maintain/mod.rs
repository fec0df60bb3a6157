//! What an operator does with a whole log: publish, check, back up, restore,
//! replay.

pub(super) mod admission_replay;
pub(super) mod backup;
pub(super) mod fsck;
pub(super) mod publish;
pub(super) mod replay;
pub(super) mod restore;
pub(super) mod scrub;

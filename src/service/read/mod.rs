//! What the log holds and can prove, as its last signed head covers it.
//! Nothing here changes the log.

pub(super) mod bundle;
pub(super) mod lineage;
pub(super) mod names;
pub(super) mod open_items;
pub(super) mod proof;
pub(super) mod reader;
pub(super) mod search;
pub(super) mod story;
pub mod views;

//! Capstan: a self-hosted SCITT transparency log for what AI agents did.
//!
//! Modules stand in the order a statement travels; a module uses what stands
//! above it, never below. Up to `verify` everything is pure: no files, no
//! sockets, no clock.

/// Bytes and text, read strictly.
pub mod wire;

/// Keys: what they are, how they are named, sign and verify.
pub mod key;

/// The Merkle log: trees, tiles, paths, and what a batch changes.
pub mod log;

/// A tree head as a signed note.
pub mod checkpoint;

//! Capstan: a self-hosted SCITT transparency log for what AI agents did.
//!
//! Modules stand in the order a statement travels; a module uses what stands
//! above it, never below. Up to `verify` everything is pure: no files, no
//! sockets, no clock.

/// Bytes and text, read strictly.
pub mod wire;

/// Keys: what they are, how they are named, sign and verify.
pub mod key;

// The working half, which touches the world.

/// Settings: file, variables, flags, and every mistake at once.
#[cfg(feature = "server")]
pub mod config;

/// Every metric, named and described in one table.
#[cfg(feature = "server")]
pub mod metrics;

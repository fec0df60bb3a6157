//! Capstan: a self-hosted SCITT transparency log for what AI agents did.
//!
//! Modules stand in the order a statement travels; a module uses what stands
//! above it, never below. Up to `verify` everything is pure: no files, no
//! sockets, no clock.

/// Bytes and text, read strictly.
pub mod wire;

/// Keys: what they are, how they are named, sign and verify.
pub mod key;

/// Whom we believe: issuers' keys, certificate anchors, logs.
pub mod trust;

/// A Signed Statement, from bytes to authentic.
pub mod envelope;

/// What a payload says, under the profile its content type names.
pub mod profile;

/// What a log holds, told in its own order.
pub mod story;

/// The registration policy: who may register what.
pub mod policy;

/// The Merkle log: trees, tiles, paths, and what a batch changes.
pub mod log;

/// A tree head as a signed note.
pub mod checkpoint;

/// COSE Receipts: made, read, attached.
pub mod receipt;

/// The only verifier.
pub mod verify;

// The working half, which touches the world.

/// Settings: file, variables, flags, and every mistake at once.
#[cfg(feature = "server")]
pub mod config;

/// Every metric, named and described in one table.
#[cfg(feature = "server")]
pub mod metrics;

/// The data directory: what the log is, durably.
#[cfg(feature = "server")]
pub mod store;

/// Issuers' keys from the network, bounded, off by default.
#[cfg(feature = "server")]
pub mod resolve;

/// The journey of a statement, and the one writer at its end.
#[cfg(feature = "server")]
pub mod service;

/// The road on which a runtime's verdicts reach the log.
#[cfg(feature = "server")]
pub mod gate;

/// SCRAPI over HTTP.
#[cfg(feature = "server")]
pub mod http;

/// The command line.
#[cfg(feature = "cli")]
pub mod cli;

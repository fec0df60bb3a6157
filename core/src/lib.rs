//! The pure half of Capstan: Signed Statements, record profiles, registration
//! policy, the Merkle log, receipts and the verifier.
//!
//! Nothing here opens files or sockets, reads the clock or draws random
//! numbers of its own accord: time is an argument, and so is every byte. A
//! program that only verifies needs no more than this crate.
//!
//! Modules are listed in the order a statement passes through them. A module
//! uses the modules above it, never those below.

/// Bytes and text, read strictly.
pub mod wire;

/// Keys: what they are, how they are named, sign and verify.
pub mod key;

/// Whom we trust: issuers' keys, certificate anchors, logs.
pub mod trust;

/// A Signed Statement, from bytes to authentic.
pub mod envelope;

/// What a payload says, under the profile its content type names.
pub mod profile;

/// What happened, put together from many statements.
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

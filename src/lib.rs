//! Capstan: a self-hosted SCITT transparency log for what AI agents did.
//!
//! The pure half is the crate `capstan-core`, whose modules are visible here
//! under the same names. Modules below are listed in the order a statement
//! passes through them; a module uses those above it, never those below.

pub use capstan_core::{
    checkpoint, envelope, key, log, policy, profile, receipt, story, trust, verify, wire,
};

/// A kind of record that the tests add to the others.
#[cfg(test)]
#[path = "../core/src/profile/tests/toy.rs"]
mod toy;

/// Settings: file, variables, flags, and every mistake at once.
pub mod config;

/// Every metric, named and described in one table.
pub mod metrics;

/// The data directory: what the log is, durably.
pub mod store;

/// Issuers' keys from the network, bounded, off by default.
pub mod resolve;

/// The registration of a statement, and the one writer at its end.
pub mod service;

/// Registers records of a runtime from within its own process.
pub mod recorder;

/// SCRAPI over HTTP.
pub mod http;

/// The command line.
#[cfg(feature = "cli")]
pub mod cli;

//! The tools as programs, against logs that run in this process.

// A failed step of a helper is a failed test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
// The test runner keeps what a test prints.
#![allow(clippy::disallowed_macros)]

/// `capstan-hammer` against logs that keep their promises.
mod hammer;

/// `capstan-hammer` against logs that break them.
mod lies;

/// `capstan-pca-conformance` on its own cases and on released vectors.
mod pca_conformance;

/// Changes what a log answers, on the way to the hammer.
mod proxy;

/// A log on a socket of this process.
mod server;

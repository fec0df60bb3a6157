//! Integration tests: one binary, one module per subject.

// A helper that fails fails the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
// The test runner captures output.
#![allow(clippy::disallowed_macros)]

/// The source itself: module order, purity, untested error codes.
mod tidy;

/// Published statements, receipts and trees.
mod vectors;

/// Finds published vectors on disk.
mod published;

/// Published Capsules and digests.
mod capsule_vectors;

/// Released PCA vectors and `capstan pca`.
mod pca_vectors;

/// `capstan verify` on a Capsule, with and without a manifest.
mod capsule_evidence;

/// Comparison with the reference implementation on thousands of Capsules.
mod capsule_reference;

/// Published causal records.
mod pacr_vectors;

/// Published TRACE chains, CARP and Atlas documents.
mod cra_vectors;

/// Registration through the service, without HTTP.
mod journey;

/// The same on each storage engine.
mod engines;

/// HTTP statuses, headers and problems, without a socket.
mod api;

/// Search, stories and open items over HTTP, and their index.
mod api_v1;

/// Search commands on a stopped log.
mod search;

/// The quick start of the README, as printed.
mod readme;

/// HTTPS without a proxy.
mod tls;

/// Agent actions with every verdict, registered over HTTP and verified offline.
mod actions;

/// Records of every profile, registered over HTTP, linked and verified offline.
mod records;

/// SIGKILL, SIGTERM and restored copies of a real process.
mod crash;

/// Slow clients.
mod slow;

/// Flipped bits in the files of a log.
mod flips;

/// Reads with small budgets: truncation, cursors and pages.
mod reads;

/// Backup and restore.
mod backup;

/// Logs that need a proof before they may write again.
mod resume;

/// No secrets in output; file modes.
mod secrets;

/// A server process for other tests.
mod live;

/// The command line.
mod cli;

/// Exit codes and JSON objects of every command.
mod answers;

/// Names of statements and records in every command.
mod names;

/// Escaping of text from outside in output and logs.
mod hostile;

/// Key rotation, and clients that trust the old key.
mod succession;

/// `capstan record`, its outbox, and faulty logs.
mod outbox;

/// Policy commands.
mod policy;

/// `capstan replay` by URL.
mod replay;

/// Logs older than versioned built-in rules.
mod rules;

/// Scopes of certificate anchors.
mod anchors;

/// `capstan trace` on files.
mod trace;

/// `capstan trust issuer` for a verifier and for a log.
mod trust_issuer;

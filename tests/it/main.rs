//! One binary for everything that is tested from outside.

// A failed step of a helper is a failed test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
// The test runner keeps what a test prints.
#![allow(clippy::disallowed_macros)]

/// The source itself: order of modules, purity, untested codes.
mod tidy;

/// What others have published, read and verified by us.
mod vectors;

/// Where the vectors of others lie.
mod published;

/// Capsules and digests that others have published, judged by us.
mod capsule_vectors;

/// Released PCA vectors, and `capstan pca` as people and scripts meet it.
mod pca_vectors;

/// `capstan verify` on a Capsule, with a manifest and without.
mod capsule_evidence;

/// Thousands of Capsules, judged by us and by the published reference.
mod capsule_reference;

/// Causal records that others have made up, judged by us.
mod pacr_vectors;

/// TRACE chains, CARP and Atlas documents that others have published.
mod cra_vectors;

/// A statement's whole way through a log, without HTTP.
mod journey;

/// Statuses, headers and problems of the HTTP surface, without a socket.
mod api;

/// Search, stories and open items over HTTP, and the index behind them.
mod api_v1;

/// The verbs that find things again, on a log that rests.
mod search;

/// The walk-through of the README, as it is printed.
mod readme;

/// HTTPS without a proxy in front.
mod tls;

/// What agents did, each ending registered over HTTP and proven offline.
mod actions;

/// Records of every profile, registered over HTTP, linked and proven offline.
mod records;

/// SIGKILL, SIGTERM and restored copies of a real process.
mod crash;

/// Clients that take their time.
mod slow;

/// Flipped bits in the files of a log.
mod flips;

/// Reads with little to spend: cuts, cursors and pages.
mod reads;

/// Copies of a running log, and logs made from copies.
mod backup;

/// Logs that must show that they are the newest before they write.
mod resume;

/// What a log keeps to itself: secrets in no line, modes of files.
mod secrets;

/// A real process with a real socket, for the others.
mod live;

/// The command line as people and scripts meet it.
mod cli;

/// One object, one exit code, and words for nothing.
mod answers;

/// One way to name a thing, in every verb.
mod names;

/// Text from outside on every screen and in every log.
mod hostile;

/// Keys of a log that change, and clients that trust the old ones.
mod succession;

/// `capstan record`, its outbox, and logs that do not answer as they should.
mod outbox;

/// The verbs around the registration policy.
mod policy;

/// `capstan replay` on a log behind an address.
mod replay;

/// Logs from before rules at the door had a version.
mod rules;

/// Certificates: whom an anchor may speak for.
mod anchors;

/// `capstan trace` on files.
mod trace;

/// `capstan trust issuer` for a verifier and for a log.
mod trust_issuer;

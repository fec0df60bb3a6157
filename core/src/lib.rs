//! The part of Capstan that does no I/O: Signed Statements, record profiles,
//! registration policy, the Merkle log, receipts and the verifier.
//!
//! Nothing here opens a file or socket or reads the clock: time is an
//! argument. The only randomness is that of key generation and ECDSA. A
//! program that only verifies needs this crate and nothing else:
//!
//! ```
//! use capstan_core::trust::TrustAnchors;
//! use capstan_core::verify::{Evidence, Outcome, verify};
//! use capstan_core::wire::time::UnixSeconds;
//!
//! /// What is wrong with a transparent statement; `None` if it can be relied on.
//! fn problem(statement: &[u8], trust_file: &str, now: UnixSeconds) -> Option<String> {
//!     let trust = match TrustAnchors::parse(trust_file) {
//!         Ok(trust) => trust,
//!         Err(error) => return Some(error.to_string()),
//!     };
//!     let report = verify(statement, &Evidence::new(&trust, now));
//!     match report.verdict() {
//!         Outcome::Yes => None,
//!         _ => Some(report.reason().map_or("nothing was checked".into(), |c| c.detail.clone())),
//!     }
//! }
//! # use capstan_core::envelope::{Draft, SignedStatement, StatementId, seal};
//! # use capstan_core::key::{Algorithm, SigningKey};
//! # use capstan_core::log::{Frontier, LeafIndex, leaf_hash};
//! # use capstan_core::receipt::{Head, SignedHead, attach};
//! # use capstan_core::trust::{PinnedKey, TrustedLog, issuer_block, log_block};
//! # use capstan_core::wire::digest::Digest;
//! # let (agent, log) = ("https://agent.example", "https://log.example");
//! # let [agent_key, log_key] = [(); 2].map(|()| SigningKey::generate(Algorithm::Es256).unwrap());
//! # let now = UnixSeconds::new(1_780_272_000);
//! # let draft = Draft {
//! #     content_type: "application/json",
//! #     issuer: agent,
//! #     subject: "order-7781",
//! #     issued_at: Some(now),
//! #     payload: b"{}",
//! # };
//! # let statement = SignedStatement::parse(seal(&draft, &agent_key).unwrap()).unwrap();
//! # let first = leaf_hash(&Digest::of(b"first entry"));
//! # let mut tree = Frontier::empty();
//! # tree.append(first);
//! # tree.append(leaf_hash(StatementId::of(&statement).entry()));
//! # let head = Head { size: tree.size(), root: tree.root(), time: now };
//! # let head = SignedHead::sign(head, log, &log_key).unwrap();
//! # let receipt = head.receipt(LeafIndex::new(1), &[first]);
//! # let transparent = attach(&statement, &receipt).unwrap();
//! # let pin = PinnedKey { key: agent_key.public().clone(), from: None, until: None };
//! # let keys = vec![log_key.public().clone()];
//! # let logs = log_block(&TrustedLog { name: log.to_owned(), keys, checkpoint: None });
//! # let issuers = issuer_block(agent, &pin).unwrap();
//! # assert_eq!(problem(&transparent, &format!("{issuers}{logs}"), now), None);
//! # let why = problem(&transparent, &issuers, now).unwrap();
//! # assert!(why.contains("no key of https://log.example is trusted"), "{why}");
//! # let why = problem(statement.bytes(), &format!("{issuers}{logs}"), now).unwrap();
//! # assert!(why.contains("no receipt is attached"), "{why}");
//! # assert!(problem(&transparent, "nonsense", now).unwrap().contains("trust file"));
//! ```
//!
//! Modules are listed in the order a statement passes through them. A module
//! uses the modules above it, never those below.

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;

/// Bytes and text, read strictly.
pub mod wire;

/// Keys: read, identified, used to sign and verify.
pub mod key;

/// Trust: the keys of issuers and logs, and certificate anchors.
pub mod trust;

/// Signed Statements: parsed, authenticated, made.
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

/// COSE Receipts: issued, read, attached.
pub mod receipt;

/// The verifier.
pub mod verify;

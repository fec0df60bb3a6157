//! A note that parses is within its bounds and verifies under no strange key.
#![no_main]

use capstan::checkpoint::{SignedCheckpoint, VerifierKey};
use libfuzzer_sys::fuzz_target;

/// The published key of the Go checksum database; no input is signed by it
/// but the one note we carry as a seed.
const KEY: &str = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8";

fuzz_target!(|text: &str| {
    let _ = VerifierKey::parse(text).map(|key| assert_eq!(key.to_string(), text));
    let Ok(note) = SignedCheckpoint::parse(text) else { return };
    assert!(!note.origin().is_empty());
    let key = VerifierKey::parse(KEY).expect("the constant is a verifier key");
    if let Ok(checkpoint) = note.verify(&key) {
        assert!(text.starts_with(&checkpoint.text()));
    }
});

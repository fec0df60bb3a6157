//! The verifier answers for any bytes, and with nobody to believe it never
//! says that something was logged or published.
#![no_main]

use capstan::trust::TrustAnchors;
use capstan::verify::{Evidence, Outcome, verify};
use capstan::wire::digest::Digest;
use capstan::wire::time::UnixSeconds;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let trust = TrustAnchors::default();
    let evidence = Evidence {
        statement: Some(bytes),
        payload: Some(b"payload"),
        older: Some(Digest::of(b"")),
        ..Evidence::new(&trust, UnixSeconds::new(1_800_000_000))
    };
    let report = verify(bytes, &evidence);
    // Nobody is trusted, so there is nothing to say yes to.
    assert_ne!(report.verdict(), Outcome::Yes, "{report:?}");
    for check in &report.checks {
        let needs_trust = matches!(check.name, "logged" | "extends" | "published");
        assert!(!(needs_trust && check.outcome == Outcome::Yes), "{check:?}");
    }
});

//! A trust file parses or says why not: keys, certificates and times inside.
#![no_main]

use capstan::trust::TrustAnchors;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| match TrustAnchors::parse(text) {
    Ok(trust) => {
        let _ = trust.is_empty();
    }
    Err(error) => assert!(!error.to_string().is_empty()),
});

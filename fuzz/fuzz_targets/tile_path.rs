//! Each tile has one spelling, and bundles of entries read back as written.
#![no_main]

use capstan::log::{TilePath, entry_bundle, parse_entry_bundle};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(path) = TilePath::parse(text)
    {
        assert_eq!(path.to_string(), text);
    }
    if let Ok(entries) = parse_entry_bundle(bytes) {
        assert_eq!(entry_bundle(&entries), bytes);
    }
});

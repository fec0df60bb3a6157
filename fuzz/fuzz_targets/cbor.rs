//! What the strict reader takes, it writes back byte for byte.
#![no_main]

use capstan::wire::cbor::Value;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(value) = Value::read(bytes) {
        assert_eq!(value.encode(), bytes, "two spellings of one value");
    }
});

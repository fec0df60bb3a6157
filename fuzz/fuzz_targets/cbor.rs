//! What the strict reader takes, it writes back byte for byte. Floats alone
//! come in three widths and are written in the widest; after that they are
//! stable too.
#![no_main]

use capstan::wire::cbor::Value;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = Value::read(bytes) else { return };
    let written = value.encode();
    if has_float(&value) {
        let again = Value::read(&written).expect("what was written is read");
        assert_eq!(again.encode(), written);
    } else {
        assert_eq!(written, bytes, "two spellings of one value");
    }
});

fn has_float(value: &Value<'_>) -> bool {
    match value {
        Value::Float(_) => true,
        Value::Array(items) => items.iter().any(has_float),
        Value::Map(entries) => entries.iter().any(|(k, v)| has_float(k) || has_float(v)),
        Value::Tag(_, inner) => has_float(inner),
        _ => false,
    }
}

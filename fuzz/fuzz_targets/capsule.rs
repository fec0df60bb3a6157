//! A Capsule is judged, whatever the bytes: never a panic, and what is read
//! has one canonical form.
#![no_main]

use capstan::profile::Record;
use capstan::profile::capsule::CapsuleRecord;
use capstan::wire::jcs::{canonical, normalise};
use capstan::wire::json::Json;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (record, _) = CapsuleRecord::read(bytes);
    record.summary();
    let Ok(json) = Json::read(bytes) else { return };
    let normal = normalise(json.clone());
    assert_eq!(normalise(normal.clone()), normal);
    if let Ok(text) = canonical(&json) {
        let again = Json::read(text.as_bytes()).unwrap();
        assert_eq!(canonical(&again).unwrap(), text);
    }
});

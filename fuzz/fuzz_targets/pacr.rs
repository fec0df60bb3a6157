//! A causal record is judged, whatever the bytes: never a panic, and what is
//! whole means the same in both encodings.
#![no_main]

use capstan::profile::Record;
use capstan::profile::pacr::{Encoding, PacrRecord, describe, prov};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for encoding in [Encoding::Json, Encoding::Cbor] {
        let (record, findings) = PacrRecord::read(encoding, bytes);
        let is_refused = findings.iter().any(|f| f.gating);
        assert_eq!(record.summary().ok, Some(!is_refused));
        let Some(tuple) = record.tuple() else { continue };
        for other in [Encoding::Json, Encoding::Cbor] {
            let (again, _) = PacrRecord::read(other, &tuple.encode(other));
            assert_eq!(again.tuple(), Some(tuple));
            assert_eq!(again.intervention(), record.intervention());
        }
        let counterfactual = record.intervention() == "counterfactual";
        assert_eq!(prov(&[tuple]).to_string().contains("pacr:counterfactual"), counterfactual);
    }
    PacrRecord::import(bytes);
    let _either = describe(bytes);
});

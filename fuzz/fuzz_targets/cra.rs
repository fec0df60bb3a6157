//! CARP and Atlas documents are judged, whatever the bytes: never a panic,
//! and `ok` says whether there is an error.
#![no_main]

use capstan::profile::Severity;
use capstan::profile::cra::carp::authorises;
use capstan::profile::cra::{AtlasRecord, CarpRecord};
use capstan::profile::exchange::Part;
use capstan::wire::time::UnixSeconds;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (carp, findings) = CarpRecord::read(bytes);
    let errors = findings.iter().any(|f| f.severity == Severity::Error);
    assert_eq!(carp.summary().ok, Some(!errors));
    if let Some(Part::Request(asked)) = carp.summary().exchange.as_deref() {
        asked.clock_skew(UnixSeconds::new(0), 5);
    }
    assert!(authorises(&carp, &carp, UnixSeconds::new(0)).is_err());
    let (atlas, findings) = AtlasRecord::read(bytes);
    let errors = findings.iter().any(|f| f.severity == Severity::Error);
    assert_eq!(atlas.summary().ok, Some(!errors));
});

//! PCA documents are judged, whatever the bytes: never a panic, no document
//! executes as its own certificate and observations, and what is read has one
//! canonical form under each suite.
#![no_main]

use capstan::profile::Record;
use capstan::profile::pca::{
    Check, Constraints, Decision, Demand, Level, Nonces, Observations, PcaCertificateRecord,
    PcaEvidenceRecord, Request, check,
};
use capstan::wire::jcs::Suite;
use capstan::wire::json::Json;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let certificate = PcaCertificateRecord::read(bytes);
    certificate.summary();
    PcaEvidenceRecord::read(bytes).summary();
    let constraints = Constraints::read(bytes);
    let observations = Observations::read(bytes);
    let request = Request {
        certificate: &certificate,
        constraints: Some(&constraints),
        observations: &observations,
        demand: Demand::Level(Level::Gold),
    };
    let made = check(&request, Some(&Nonces::default())).unwrap();
    assert_eq!(made.checks.len(), Check::ALL.len());
    assert_eq!(made.verdict().decision, Decision::Fallback);
    assert!(!made.is_burned);
    let Ok(json) = Json::read(bytes) else { return };
    for suite in [Suite::PcaV1, Suite::PcaPython] {
        if let Ok(text) = suite.canonical(&json) {
            let again = Json::read(text.as_bytes()).unwrap();
            assert_eq!(suite.canonical(&again).unwrap(), text);
        }
    }
});

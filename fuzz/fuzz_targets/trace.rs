//! TRACE events are judged, whatever the bytes: never a panic, and a part of
//! a session is named only when nothing about its chain is an error.
#![no_main]

use capstan::profile::{Record, Severity};
use capstan::profile::cra::TraceRecord;
use capstan::profile::cra::trace::{Form, GENESIS, History, compare};
use libfuzzer_sys::fuzz_target;

const BREAKS: [&str; 4] = ["chain-broken", "hash-mismatch", "invalid-genesis", "sequence-gap"];

fuzz_target!(|bytes: &[u8]| {
    TraceRecord::read(bytes).0.summary();
    let (record, findings) = TraceRecord::read_batch(bytes);
    let broken = findings.iter().any(|f| BREAKS.contains(&f.code));
    let errors = findings.iter().any(|f| f.severity == Severity::Error);
    assert_eq!(record.summary().ok, Some(!errors));
    if let Some(span) = record.span() {
        assert!(!broken);
        assert_eq!(span.first == 0, span.previous == GENESIS);
        assert!(record.events().iter().all(|event| event.form() == Some(Form::CraTraceV1)));
    }
    let history = History::read(bytes);
    assert_eq!(compare(&history, &history), []);
});

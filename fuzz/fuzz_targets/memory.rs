//! Reading takes memory in proportion to what is read, whatever it is.
//!
//! In: one byte that picks a reader (or all, when there is none of that
//! number), two that say how often a pattern is repeated, two that say where
//! it starts and how long it is. So a short input stands for a long one, and
//! the fuzzer looks for the pattern that costs most.
#![no_main]

use capstan::checkpoint::SignedCheckpoint;
use capstan::envelope::SignedStatement;
use capstan::log::{TilePath, parse_entry_bundle};
use capstan::policy::Policy;
use capstan::profile::capsule::CapsuleRecord;
use capstan::profile::cra::{AtlasRecord, CarpRecord, TraceRecord};
use capstan::profile::pacr::{Encoding, PacrRecord};
use capstan::profile::pca::{Constraints, Observations, PcaCertificateRecord, PcaEvidenceRecord};
use capstan::receipt::Receipt;
use capstan::trust::TrustAnchors;
use capstan::trust::did_document::parse_did_document;
use capstan::trust::x509::leaf_key_of;
use capstan::verify::{Evidence, verify};
use capstan::wire::cbor::{Value, split_sequence};
use capstan::wire::json::Json;
use capstan::wire::limits::{BATCH_STATEMENTS_MAX, STATEMENT_BYTES_MAX};
use capstan::wire::time::UnixSeconds;
use libfuzzer_sys::fuzz_target;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Name, bytes of memory for each byte of text, reader.
type Reader = (&'static str, usize, fn(&[u8]));

/// For what anyone may send. A list that grows is copied: `[0,0,…` takes up to
/// 48 bytes for each of its own at that moment.
const ANYONE: usize = 64;
/// For files of the operator: TOML keeps every error until the end.
const OPERATOR: usize = 256;
/// What a reader may take besides, however short the text.
const FLAT: usize = 64 * 1024;

/// `docs/threat-model.md` states the three figures.
const READERS: &[Reader] = &[
    ("json", ANYONE, |b| drop(Json::read(b))),
    ("cbor", ANYONE, |b| drop(Value::read(b))),
    ("sequence", ANYONE, |b| drop(split_sequence(b, BATCH_STATEMENTS_MAX))),
    ("statement", ANYONE, |b| drop(SignedStatement::parse(b.to_vec()))),
    ("receipt", ANYONE, |b| drop(Receipt::parse(b.to_vec()))),
    ("checkpoint", ANYONE, |b| text(b, |t| drop(SignedCheckpoint::parse(t)))),
    ("tile path", ANYONE, |b| text(b, |t| drop(TilePath::parse(t)))),
    ("entry bundle", ANYONE, |b| drop(parse_entry_bundle(b))),
    ("capsule", ANYONE, |b| drop(CapsuleRecord::read(b))),
    ("pacr in json", ANYONE, |b| drop(PacrRecord::read(Encoding::Json, b))),
    ("pacr in cbor", ANYONE, |b| drop(PacrRecord::read(Encoding::Cbor, b))),
    ("pca certificate", ANYONE, |b| drop(PcaCertificateRecord::read(b))),
    ("pca evidence", ANYONE, |b| drop(PcaEvidenceRecord::read(b))),
    ("pca constraints", ANYONE, |b| drop(Constraints::read(b))),
    ("pca observations", ANYONE, |b| drop(Observations::read(b))),
    ("trace", ANYONE, |b| drop(TraceRecord::read_batch(b))),
    ("carp", ANYONE, |b| drop(CarpRecord::read(b))),
    ("atlas", ANYONE, |b| drop(AtlasRecord::read(b))),
    ("policy", OPERATOR, |b| text(b, |t| drop(Policy::parse(t)))),
    ("trust", OPERATOR, |b| text(b, |t| drop(TrustAnchors::parse(t)))),
    ("did document", ANYONE, |b| drop(parse_did_document("did:web:example.org", b))),
    ("certificate", ANYONE, |b| drop(leaf_key_of(b))),
    ("verify", ANYONE, judge),
];

fn text(bytes: &[u8], read: impl FnOnce(&str)) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        read(text);
    }
}

fn judge(bytes: &[u8]) {
    let trust = TrustAnchors::default();
    let now = UnixSeconds::new(1_800_000_000);
    drop(verify(bytes, &Evidence::new(&trust, now)));
}

/// `[reader, count, count, start, length, pattern...]` as a long text.
fn spread(bytes: &[u8]) -> Option<(&'static [Reader], Vec<u8>)> {
    let [reader, high, low, start, length, rest @ ..] = bytes else { return None };
    let readers = READERS.get(usize::from(*reader)).map_or(READERS, std::slice::from_ref);
    let (head, rest) = rest.split_at(rest.len().min((*start).into()));
    let (pattern, tail) = rest.split_at(rest.len().min((*length).into()));
    let room = STATEMENT_BYTES_MAX.saturating_sub(head.len() + tail.len());
    let count = usize::from(u16::from_be_bytes([*high, *low]));
    let count = count.min(room / pattern.len().max(1));
    Some((readers, [head, &pattern.repeat(count), tail].concat()))
}

/// Schemas and tables that are made once are not what this counts.
fn warm_up() {
    for (_, _, read) in READERS {
        read(b"{}");
        read(b"\xa0");
    }
}

fuzz_target!(init: warm_up(), |bytes: &[u8]| {
    let Some((readers, text)) = spread(bytes) else { return };
    for (name, multiple, read) in readers {
        ALLOCATOR.reset_peak_usage();
        let before = ALLOCATOR.current_usage();
        read(&text);
        let taken = ALLOCATOR.peak_usage().saturating_sub(before);
        let allowed = text.len() * multiple + FLAT;
        assert!(taken <= allowed, "{name}: {taken} bytes of memory for {} bytes", text.len());
    }
});

//! Statements of a ledger in production.

use capstan::envelope::StatementId;
use capstan::trust::x509::leaf_key_of;

use super::*;

/// PS384, a hash envelope, x5t and x5chain, a CCF receipt: all of it offline.
#[test]
fn a_transparent_statement_in_production() {
    let Some(scitt) = published("scitt") else { return };
    let folder = scitt.join("scitt-ccf-ledger/transparent_statements");
    let bytes = read(&folder.join("uvm_0.2.10.cose"));
    let statement = parse(&bytes);
    let mut trust = anchored_by(&statement);
    // Short-lived certificates: only the log's word says they held then.
    let unlogged = report(&bytes, &trust, None);
    assert_eq!((unlogged.verdict(), unlogged.code()), (Outcome::No, "x509-expired"));
    assert_eq!(named(&unlogged, "logged").code, "log-unknown");
    for service in json(&folder.join("esrp-cts-db.json"))["parameters"].as_array().unwrap() {
        let der = text::from_base64(service["serviceCertificate"].as_str().unwrap()).unwrap();
        trust = trust.with_log(any_log(leaf_key_of(&der).unwrap()));
    }
    let found = report(&bytes, &trust, None);
    assert_eq!(found.verdict(), Outcome::Yes, "{found:?}");
    assert!(is_yes(named(&found, "conformant")), "{found:?}");
    assert!(named(&found, "logged").detail.contains("CCF ledger"));
    let envelope = statement.header().hash_envelope.as_ref().unwrap();
    assert_eq!((envelope.algorithm, envelope.digest_len()), (-43, Some(48)));
    // Nobody's word for the certificate: cannot tell, and not a no.
    let logs = trust.logs().iter().cloned();
    let only_logs = logs.fold(TrustAnchors::default(), TrustAnchors::with_log);
    let found = report(&bytes, &only_logs, None);
    assert_eq!((found.verdict(), found.code()), (Outcome::CannotTell, "x509-untrusted"));
    let mut changed = bytes;
    let at = changed.len() / 2;
    changed[at] ^= 1;
    assert_ne!(report(&changed, &trust, None).verdict(), Outcome::Yes);
}

/// Who signed, judged by the last certificate a statement brings; at the time
/// it was issued, because the certificates live for days.
fn answer(bytes: &[u8]) -> &'static str {
    let statement = match SignedStatement::parse_any_size(bytes.to_vec()) {
        Ok(statement) => statement,
        Err(e) => return e.code(),
    };
    assert_eq!(StatementId::of(&statement), StatementId::of(&parse(&statement.canonical())));
    let now = statement.header().claims.issued_at.unwrap_or(NOW);
    let trust = anchored_by(&statement);
    named(&verify(bytes, &Evidence::new(&trust, now)), "signed").code
}

/// Payloads sent to that ledger: what becomes of each here.
#[test]
fn statements_sent_to_a_ledger() {
    let Some(scitt) = published("scitt") else { return };
    let folder = scitt.join("scitt-ccf-ledger/payloads");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
        let bytes = read(&entry.path());
        let name = entry.file_name().into_string().unwrap();
        found.push((name, answer(&bytes)));
    }
    found.sort();
    // RFC 9052, 3.1: a critical label nobody here understands ("attestedsvc")
    // is a reason to refuse, whatever else may verify.
    let expected = [
        ("cosesign1tool-scitt-a3be7e5.cose", "ok"),
        ("css-attested-cosesign1-20250617.cose", "crit-unknown"),
        ("css-attested-cosesign1-20250812.cose", "crit-unknown"),
        ("css-attested-cosesign1-20250925.cose", "crit-unknown"),
        ("css-attested-cosesign1-20260302.cose", "crit-unknown"),
        ("cts-hashv-cwtclaims-b64url.cose", "ok"),
        ("manifest.spdx.json.sha384.digest.cose", "ok"),
    ];
    let expected: Vec<_> = expected.map(|(n, c)| (n.to_owned(), c)).into();
    assert_eq!(found, expected);
    // Receipts of other logs may be there before ours, and dates under tag 1.
    let prefilled = parse(&read(&folder.join("cts-hashv-cwtclaims-b64url.cose")));
    assert_eq!(attached(&prefilled).unwrap().len(), 1);
    assert_eq!(prefilled.header().claims.issued_at, Some(UnixSeconds::new(1_724_186_280)));
}

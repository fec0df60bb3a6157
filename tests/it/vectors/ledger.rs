//! Statements of a production ledger.

use capstan::envelope::StatementId;
use capstan::trust::x509::leaf_key_of;

use super::*;

/// PS384, a hash envelope, x5t and x5chain, a CCF receipt, verified offline.
#[test]
fn production_transparent_statement() {
    let Some(scitt) = published("scitt") else { return };
    let folder = scitt.join("scitt-ccf-ledger/transparent_statements");
    let bytes = read(&folder.join("uvm_0.2.10.cose"));
    let statement = parse(&bytes);
    let mut trust = anchored_by(&statement);
    // Short-lived certificates: only the log attests that they were valid.
    let unlogged = report(&bytes, &trust, None);
    assert_eq!((unlogged.verdict(), unlogged.code()), (Outcome::No, "x509-expired"));
    assert_eq!(check_named(&unlogged, "logged").code, "log-unknown");
    for service in json(&folder.join("esrp-cts-db.json"))["parameters"].as_array().unwrap() {
        let der = text::from_base64(service["serviceCertificate"].as_str().unwrap()).unwrap();
        trust = trust.with_log(any_log(leaf_key_of(&der).unwrap()));
    }
    let found = report(&bytes, &trust, None);
    assert_eq!(found.verdict(), Outcome::Yes, "{found:?}");
    assert!(is_yes(check_named(&found, "conformant")), "{found:?}");
    assert!(check_named(&found, "logged").detail.contains("CCF ledger"));
    let envelope = statement.header().hash_envelope.as_ref().unwrap();
    assert_eq!((envelope.algorithm, envelope.digest_len()), (-43, Some(48)));
    // Without an anchor for the certificate: cannot tell, not a no.
    let logs = trust.logs().iter().cloned();
    let only_logs = logs.fold(TrustAnchors::default(), TrustAnchors::with_log);
    let found = report(&bytes, &only_logs, None);
    assert_eq!((found.verdict(), found.code()), (Outcome::CannotTell, "x509-untrusted"));
    let mut changed = bytes;
    let at = changed.len() / 2;
    changed[at] ^= 1;
    assert_ne!(report(&changed, &trust, None).verdict(), Outcome::Yes);
}

/// The `signed` result under the last certificate of a statement, at the time it
/// was issued, because the certificates are valid for days.
fn issuer_outcome(bytes: &[u8]) -> &'static str {
    let statement = match SignedStatement::parse_any_size(bytes.to_vec()) {
        Ok(statement) => statement,
        Err(e) => return e.code(),
    };
    assert_eq!(StatementId::of(&statement), StatementId::of(&parse(&statement.canonical())));
    let now = statement.header().claims.issued_at.unwrap_or(NOW);
    let trust = anchored_by(&statement);
    check_named(&verify(bytes, &Evidence::new(&trust, now)), "signed").code
}

/// Payloads sent to that ledger, and the result here.
#[test]
fn ledger_statements() {
    let Some(scitt) = published("scitt") else { return };
    let folder = scitt.join("scitt-ccf-ledger/payloads");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
        let bytes = read(&entry.path());
        let name = entry.file_name().into_string().unwrap();
        found.push((name, issuer_outcome(&bytes)));
    }
    found.sort();
    // RFC 9052, 3.1: an unknown critical label ("attestedsvc") must be rejected.
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
    // Receipts of other logs may precede ours; dates may have tag 1.
    let prefilled = parse(&read(&folder.join("cts-hashv-cwtclaims-b64url.cose")));
    assert_eq!(attached(&prefilled).unwrap().len(), 1);
    assert_eq!(prefilled.header().claims.issued_at, Some(UnixSeconds::new(1_724_186_280)));
}

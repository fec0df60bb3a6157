//! Published statements, receipts and trees. The vectors are not part of this
//! repository; without them these tests are skipped.

mod ledger;
mod trees;

use std::path::Path;

use capstan::envelope::SignedStatement;
use capstan::key::PublicKey;
use capstan::receipt::attached;
use capstan::trust::{TrustAnchors, TrustedLog};
use capstan::verify::{ANY_LOG, Check, Evidence, Outcome, Report, verify};
use capstan::wire::text;
use capstan::wire::time::UnixSeconds;
use serde_json::Value as Json;

use crate::published::published;

/// 2026-07-01T00:00:00Z: most certificates of the vectors are valid then.
const NOW: UnixSeconds = UnixSeconds::new(1_782_864_000);

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn json(path: &Path) -> Json {
    serde_json::from_slice(&read(path)).unwrap()
}

fn pem_key(path: &Path) -> PublicKey {
    PublicKey::from_pem(std::str::from_utf8(&read(path)).unwrap()).unwrap()
}

fn any_log(key: PublicKey) -> TrustedLog {
    TrustedLog { name: ANY_LOG.to_owned(), keys: vec![key], checkpoint: None }
}

/// Trust in the last certificate of a statement.
fn anchored_by(statement: &SignedStatement) -> TrustAnchors {
    let Some(der) = statement.header().chain.last() else { return TrustAnchors::default() };
    let body = text::base64(der);
    let pem = format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n");
    let file = format!("[[anchor]]\nname = \"last\"\ncertificate = '''{pem}'''\ndid_x509 = true\n");
    TrustAnchors::parse(&file).unwrap()
}

fn parse(bytes: &[u8]) -> SignedStatement {
    SignedStatement::parse_any_size(bytes.to_vec()).unwrap()
}

fn report(bytes: &[u8], trust: &TrustAnchors, statement: Option<&[u8]>) -> Report {
    verify(bytes, &Evidence { statement, ..Evidence::new(trust, NOW) })
}

fn check_named<'a>(report: &'a Report, name: &str) -> &'a Check {
    report.checks.iter().find(|c| c.name == name).unwrap_or_else(|| panic!("{report:?}"))
}

fn is_yes(check: &Check) -> bool {
    check.outcome == Outcome::Yes
}

/// The vectors of scitt-cose v1, which the working group's examples reuse.
#[test]
fn scitt_cose_v1() {
    let Some(scitt) = published("scitt") else { return };
    let folder = scitt.join("scitt-cose/test-vectors/v1");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        scitt_cose_vector(&entry.path());
        seen += 1;
    }
    assert_eq!(seen, 6);
}

fn scitt_cose_vector(folder: &Path) {
    let expected = json(&folder.join("expected.json"));
    let name = folder.file_name().unwrap().to_str().unwrap();
    let (statement, receipt) =
        (read(&folder.join("statement.cose")), read(&folder.join("receipt.cose")));
    let parsed = parse(&statement);
    let trust = anchored_by(&parsed);
    let trust = if parsed.header().chain.is_empty() {
        let issuer = expected["protected_header"]["statement"]["issuer"].as_str().unwrap();
        trust.with_issuer(issuer, &[pem_key(&folder.join("issuer-key.pub"))])
    } else {
        trust
    };
    let trust = trust.with_log(any_log(pem_key(&folder.join("log-key.pub"))));
    let signed = report(&statement, &trust, None);
    let logged = report(&receipt, &trust, Some(&statement));
    let is_signed = is_yes(check_named(&signed, "signed"));
    let is_logged = logged.checks.iter().any(|check| check.name == "logged" && is_yes(check));
    assert_eq!(
        Some(is_signed),
        expected["statement_signature_valid"].as_bool(),
        "{name}: {signed:?}"
    );
    assert_eq!(Some(is_logged), expected["receipt_valid"].as_bool(), "{name}: {logged:?}");
    let valid = expected["result"].as_str() == Some("VALID");
    assert_eq!(is_signed && is_logged, valid, "{name}");
    // Valid signatures and conformance to RFC 9943 are separate results.
    let conformant = check_named(&signed, "conformant");
    let missing =
        if name == "valid-ccf-vds2" { "subject-missing" } else { "key-identifier-missing" };
    assert_eq!((conformant.outcome, conformant.code), (Outcome::No, missing), "{name}");
    // A statement that does not conform is a no.
    let signature = check_named(&signed, "signed").code;
    let first = if is_signed { missing } else { signature };
    assert_eq!((signed.verdict(), signed.code()), (Outcome::No, first), "{name}");
    let failed = |check: &&Check| check.outcome == Outcome::No && check.name != "conformant";
    let code = logged.checks.iter().find(failed).map_or("ok", |check| check.code);
    match name {
        "fail-tampered-path" => assert_eq!(code, "head-signature"),
        // Tree 2 is supported, but this proof does not have its form.
        "fail-unsupported-vds" => assert_eq!(code, "proof-shape"),
        "valid-ccf-vds2" => assert!(check_named(&logged, "logged").detail.contains("CCF ledger")),
        _ => assert!(
            check_named(&logged, "logged").detail.contains("leaf of the digest"),
            "{logged:?}"
        ),
    }
}

/// One statement in two logs of different kinds, and one in a log of one leaf.
#[test]
fn one_statement_in_two_kinds_of_tree() {
    let Some(scitt) = published("scitt") else { return };
    let vector = json(&scitt.join("scitt-cose/interop/ccf/shared-vector.json"));
    let hex = |v: &Json| text::from_hex(v.as_str().unwrap()).unwrap();
    let key = |v: &Json| PublicKey::from_pem(v.as_str().unwrap()).unwrap();

    let single = hex(&vector["statement"]["bytes_hex"]);
    let issuer = vector["statement"]["issuer"].as_str().unwrap();
    let trust = TrustAnchors::default()
        .with_issuer(issuer, &[key(&vector["statement"]["issuer_public_key_pem"])])
        .with_log(any_log(key(&vector["our_receipt"]["ts_public_key_pem"])));
    assert!(is_yes(check_named(&report(&single, &trust, None), "signed")));
    let receipt = hex(&vector["our_receipt"]["bytes_hex"]);
    let found = report(&receipt, &trust, Some(&single));
    assert!(is_yes(check_named(&found, "logged")), "{found:?}");
    assert!(check_named(&found, "logged").detail.contains("#0, tree of 1"), "{found:?}");

    let both = &vector["direction_flip"];
    let statement = text::from_base64(both["statement_bytes_base64"].as_str().unwrap()).unwrap();
    let trust = anchored_by(&parse(&statement))
        .with_log(any_log(key(&vector["ccf_receipt"]["ts_public_key_pem"])))
        .with_log(any_log(key(&both["our_receipt"]["ts_public_key_pem"])));
    // Its certificate was valid from 19 to 29 July.
    let now = UnixSeconds::new(1_784_505_600);
    let signed = verify(&statement, &Evidence::new(&trust, now));
    assert!(is_yes(check_named(&signed, "signed")), "{signed:?}");
    for (receipt, said) in [
        (&vector["ccf_receipt"]["receipt_bytes_hex"], "CCF ledger"),
        (&both["our_receipt"]["bytes_hex"], "#151, tree of 152"),
    ] {
        let found = report(&hex(receipt), &trust, Some(&statement));
        assert!(is_yes(check_named(&found, "logged")), "{found:?}");
        assert!(check_named(&found, "logged").detail.contains(said), "{found:?}");
        let other = report(&hex(receipt), &trust, Some(&single));
        assert!(!is_yes(check_named(&other, "logged")), "a receipt is of one statement");
    }
}

#[test]
fn vcp_statement() {
    let Some(scitt) = published("scitt") else { return };
    let folder = scitt.join("scitt-cose/interop/vcp");
    let statement = read(&folder.join("vcp-statement.cose"));
    let result = json(&folder.join("result.json"));
    let issuer = result["scitt_cose_result"]["issuer"].as_str().unwrap();
    let trust =
        TrustAnchors::default().with_issuer(issuer, &[pem_key(&folder.join("vcp-issuer-pub.pem"))]);
    let found = report(&statement, &trust, None);
    assert!(is_yes(check_named(&found, "signed")), "{found:?}");
    let parsed = parse(&statement);
    let subject = result["scitt_cose_result"]["subject"].as_str();
    assert_eq!(parsed.header().claims.subject.as_deref(), subject);
}

/// Removing the receipts in label 394 restores the statement.
#[test]
fn receipts_detach_from_transparent_statements() {
    let Some(scitt) = published("scitt") else { return };
    for (name, expected) in [("valid-es256", Outcome::Yes), ("fail-tampered-path", Outcome::No)] {
        let folder = scitt.join("scitt-ccf-ledger/pr424-vds1").join(name);
        let transparent = read(&folder.join("transparent-statement.cose"));
        let statement = read(&folder.join("statement.cose"));
        let parsed = parse(&transparent);
        assert_eq!(attached(&parsed).unwrap(), [read(&folder.join("receipt.cose"))]);
        assert_eq!(parsed.canonical(), parse(&statement).canonical());
        let trust = TrustAnchors::default().with_log(any_log(pem_key(&folder.join("log-key.pub"))));
        let found = report(&transparent, &trust, None);
        assert_eq!(check_named(&found, "logged").outcome, expected, "{name}: {found:?}");
        assert_eq!(found.artefact, "transparent statement");
    }
}

//! Bytes nobody means well with: findings and a FALLBACK, never a panic.

use super::*;

fn judged(bytes: &[u8]) -> Vec<(String, String)> {
    let record = PcaCertificateRecord::read(bytes);
    assert!(!record.ok());
    record.summary();
    let observations = Observations::read(bytes);
    let constraints = Constraints::read(bytes);
    let request = Request {
        certificate: &record,
        constraints: Some(&constraints),
        observations: &observations,
        demand: Demand::ReleasedVectors,
    };
    let made = check(&request, Some(&Nonces::default())).unwrap();
    assert_eq!(made.checks.len(), Check::ALL.len());
    assert_eq!(made.verdict().decision, Decision::Fallback);
    assert!(!made.is_burned);
    PcaEvidenceRecord::read(bytes).summary();
    record.findings().iter().map(|f| (f.code.to_owned(), f.at.clone())).collect()
}

#[test]
fn bad_texts() {
    let text = crate::wire::jcs::canonical(&certificate(&[])).unwrap();
    let with = |extra: &str| text.replacen('{', &format!("{{{extra},"), 1).into_bytes();
    let deep = |depth| [r#"{"x":"#.repeat(depth), "1".to_owned(), "}".repeat(depth)].concat();
    let cases: Vec<(Vec<u8>, &str, &str)> = vec![
        (with(r#""nonce":"other""#), "json-duplicate-key", "/nonce"),
        (with(r#""x":"\ud800""#), "json-lone-surrogate", "/x"),
        (with(r#""x":1e99999999999999999999"#), "pca_number_unsafe", "/x"),
        (with(r#""x":123456789012345678901234567890"#), "pca_number_unsafe", "/x"),
        (b"\xff\xfe".to_vec(), "json-bad-utf8", ""),
        (b"[]".to_vec(), "pca_not_an_object", ""),
        (b"null".to_vec(), "pca_not_an_object", ""),
        (b"NaN".to_vec(), "json-unexpected", ""),
    ];
    for (bytes, code, at) in cases {
        let found = judged(&bytes);
        assert!(found.contains(&(code.to_owned(), at.to_owned())), "{code}: {found:?}");
    }
    assert_eq!(judged(deep(10_000).as_bytes())[0].0, "json-too-deep");
    assert_eq!(judged(&vec![b'['; 59 * 1024])[0].0, "json-too-deep");
    assert_eq!(judged(&text.as_bytes()[..80])[0].0, "json-truncated");
}

#[test]
fn a_small_document_has_no_large_report() {
    let many = format!("[{}1]", "1,".repeat(STEPS_MAX));
    let found = PcaCertificateRecord::of(certificate(&[("steps", &many)]));
    let codes: Vec<_> = found.findings().iter().map(|f| f.code).collect();
    for code in ["pca_limit_exceeded", "pca_not_an_object", "pca_findings_left_out"] {
        assert!(codes.contains(&code), "{code} in {codes:?}");
    }
    assert!(codes.len() < 110, "{}", codes.len());
}

#[test]
fn every_member_of_every_type() {
    let values = ["null", "true", "-1", "1.5", "1e999", "\"\"", "\"x\"", "[]", "{}", "[[{}]]"];
    let names: Vec<String> =
        certificate(&[]).members().unwrap().iter().map(|(name, _)| name.clone()).collect();
    for name in names {
        for value in values {
            let changed = certificate(&[(&name, value)]);
            let record = PcaCertificateRecord::of(changed);
            let observations = super::execution::observations(&[]);
            let request = Request {
                certificate: &record,
                constraints: None,
                observations: &observations,
                demand: Demand::ReleasedVectors,
            };
            let verdict = check::<Nonces>(&request, None).unwrap().verdict();
            assert_eq!(verdict.decision, Decision::Fallback, "{name} {value}");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        judged(&bytes);
    }

    #[test]
    fn damaged_text(at in 0_usize..700, byte: u8, cut in 100_usize..900) {
        let mut bytes = crate::wire::jcs::canonical(&certificate(&[])).unwrap().into_bytes();
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        bytes.truncate(cut);
        let record = PcaCertificateRecord::read(&bytes);
        prop_assert_eq!(record.summary().ok, Some(record.ok()));
        PcaEvidenceRecord::read(&bytes).summary();
    }
}

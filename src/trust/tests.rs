//! The trust file: what it may say, and what it may not.

use super::*;
use crate::key::{Algorithm, SigningKey};

const NOW: UnixSeconds = UnixSeconds::new(1_780_272_000);

fn key() -> PublicKey {
    SigningKey::generate(Algorithm::Es256).unwrap().public().clone()
}

fn pem(key: &PublicKey) -> String {
    key.to_pem().unwrap()
}

#[test]
fn a_whole_file() {
    let (first, second, log) = (key(), key(), key());
    let root = x509::fixture::Ca::root("root");
    let text = format!(
        "[[issuer]]\nname = \"https://a.example\"\nkeys = ['''{}''', '''{}''']\n\
         [[issuer]]\nname = \"urn:b\"\nkeys = ['''{}''']\nuntil = 2020-01-01T00:00:00Z\n\
         [[anchor]]\nname = \"root\"\ncertificate = '''{}'''\neku = \"1.3.6.1.5.5.7.3.3\"\n\
         [[log]]\nname = \"https://log.example\"\nkeys = ['''{}''']\ncheckpoint = \"x+1+y\"\n",
        pem(&first),
        pem(&second),
        pem(&first),
        root.pem(),
        pem(&log),
    );
    let trust = TrustAnchors::parse(&text).unwrap();
    assert_eq!(trust.issuers().collect::<Vec<_>>(), [("https://a.example", 2), ("urn:b", 1)]);
    assert_eq!(trust.logs().len(), 1);
    assert_eq!(trust.logs()[0].keys, [log]);
    assert_eq!(trust.logs()[0].checkpoint.as_deref(), Some("x+1+y"));
    assert!(!trust.chains().is_empty() && !trust.is_empty());
    // The key that kid names is tried first.
    let keys = trust.pinned("https://a.example", Some(second.id().as_bytes()), NOW).unwrap();
    assert_eq!(keys, [second, first]);
    assert_eq!(trust.pinned("https://a.example/", None, NOW), None, "names are compared whole");
    assert_eq!(trust.pinned("urn:b", None, NOW), Some(Vec::new()), "pinned, past its time");
    assert!(TrustAnchors::parse("").unwrap().is_empty());
}

#[test]
fn files_that_cannot_be_used() {
    let good = pem(&key());
    let issuer = |rest: &str| format!("[[issuer]]\nname = \"a\"\nkeys = ['''{good}''']\n{rest}\n");
    let cases = [
        ("nonsense".to_owned(), "trust-not-toml"),
        ("[[isuer]]\nname = \"a\"\n".to_owned(), "trust-not-toml"),
        (issuer("colour = 1"), "trust-not-toml"),
        ("[[issuer]]\nname = \"a\"\n".to_owned(), "trust-not-toml"),
        ("[[issuer]]\nname = \"a\"\nkeys = [\"x\"]\n".to_owned(), "trust-key"),
        ("[[log]]\nname = \"a\"\nkeys = [\"x\"]\n".to_owned(), "trust-key"),
        ("[[anchor]]\nname = \"a\"\ncertificate = \"x\"\n".to_owned(), "trust-anchor"),
        (issuer("from = 2026-01-01"), "trust-time"),
        (issuer("until = 2026-01-01T00:00:00"), "trust-time"),
        (issuer("from = 1969-01-01T00:00:00Z"), "trust-time"),
        (issuer("from = \"2026-01-01T00:00:00Z\""), "trust-not-toml"),
        (issuer("from = 2026-01-01T00:00:00Z"), "ok"),
    ];
    for (text, expected) in cases {
        let found = TrustAnchors::parse(&text).map_or_else(|e| e.code(), |_| "ok");
        assert_eq!(found, expected, "{text}");
    }
    let error = TrustAnchors::parse(&issuer("from = 2026-01-01")).unwrap_err().to_string();
    assert_eq!(error, "2026-01-01 of a must be a date and time with offset");
}

#[test]
fn a_log_block_reads_back() {
    let keys = vec![key(), SigningKey::generate(Algorithm::EdDsa).unwrap().public().clone()];
    let name = "https://log.example/\"quoted\"\n".to_owned();
    for checkpoint in [None, Some("log.example+12345678+AAAA".to_owned())] {
        let log = TrustedLog { name: name.clone(), keys: keys.clone(), checkpoint };
        let first = "# whom we believe\n[[issuer]]\nname = \"a\"\nkeys = []\n";
        let trust = TrustAnchors::parse(&format!("{first}{}", log_block(&log))).unwrap();
        let [read] = trust.logs() else { panic!("one log was written") };
        assert_eq!((&read.name, &read.keys), (&log.name, &log.keys));
        assert_eq!(read.checkpoint, log.checkpoint);
    }
}

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
         spiffe = [\"prod.example\"]\ndns = [\"*.a.example\"]\nuri = [\"urn:a:*\"]\ndid_x509 = true\n\
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
    let [(name, Some(scope))] = trust.chains().anchors().collect::<Vec<_>>()[..] else {
        panic!("one anchor, with its scope")
    };
    let expected = "spiffe prod.example, dns *.a.example, uri urn:a:*, did:x509";
    assert_eq!((name, scope.to_string().as_str()), ("root", expected));
    // The key that kid names is tried first.
    let keys = trust.pinned("https://a.example", Some(second.id().as_bytes()), NOW).unwrap();
    assert_eq!(keys, [second, first]);
    assert_eq!(trust.pinned("https://a.example/", None, NOW), None, "names are compared whole");
    assert_eq!(trust.pinned("urn:b", None, NOW), Some(Vec::new()), "pinned, past its time");
    assert!(TrustAnchors::parse("").unwrap().is_empty());
}

#[test]
fn invalid_trust_files() {
    let good = pem(&key());
    let issuer = |rest: &str| format!("[[issuer]]\nname = \"a\"\nkeys = ['''{good}''']\n{rest}\n");
    let root = x509::fixture::Ca::root("root").pem();
    let anchor =
        |rest: &str| format!("[[anchor]]\nname = \"a\"\ncertificate = '''{root}'''\n{rest}\n");
    let cases = [
        ("nonsense".to_owned(), "trust-not-toml"),
        ("[[isuer]]\nname = \"a\"\n".to_owned(), "trust-not-toml"),
        (issuer("colour = 1"), "trust-not-toml"),
        ("[[issuer]]\nname = \"a\"\n".to_owned(), "trust-not-toml"),
        ("[[issuer]]\nname = \"a\"\nkeys = [\"x\"]\n".to_owned(), "trust-key"),
        ("[[log]]\nname = \"a\"\nkeys = [\"x\"]\n".to_owned(), "trust-key"),
        ("[[anchor]]\nname = \"a\"\ncertificate = \"x\"\n".to_owned(), "trust-anchor"),
        (anchor(""), "trust-anchor-unscoped"),
        (anchor("eku = '1.3.6.1.5.5.7.3.3'"), "trust-anchor-unscoped"),
        (anchor("dns = ['a.example']") + &anchor(""), "trust-anchor-unscoped"),
        (anchor("dns = ['https://a.example']"), "trust-anchor"),
        (anchor("spiffe = 'prod.example'"), "trust-not-toml"),
        (anchor("spiffe = []"), "ok"),
        (anchor("did_x509 = true"), "ok"),
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
    let error = TrustAnchors::parse(&anchor("")).unwrap_err().to_string();
    assert!(error.contains("anchor a") && error.contains("capstan trust upgrade"), "{error}");
    // What was in force once is read as it was.
    assert_eq!(TrustAnchors::parse_any(&anchor("")).unwrap().unscoped(), ["a"]);
}

#[test]
fn log_block_round_trips() {
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

/// Names and scopes of every anchor of a file.
fn scopes(text: &str) -> Vec<(String, String)> {
    let trust = TrustAnchors::parse_any(text).unwrap();
    let said = |scope: Option<&x509::Scope>| scope.map_or("?".to_owned(), ToString::to_string);
    trust.chains().anchors().map(|(name, scope)| (name.to_owned(), said(scope))).collect()
}

#[test]
fn upgrade_only_adds_scopes() {
    let pem = x509::fixture::Ca::root("root").pem();
    let lines = "spiffe = [\"prod.example\"]\ndns = [\"*.a.example\"]\ndid_x509 = true\n";
    let scope = x509::Scope {
        spiffe: vec!["prod.example".to_owned()],
        dns: vec!["*.a.example".to_owned()],
        uri: Vec::new(),
        did_x509: true,
    };
    let given = BTreeMap::from([("old".to_owned(), scope)]);
    let said = "spiffe prod.example, dns *.a.example, did:x509";
    let certificate = format!("certificate = '''{pem}'''\n");
    let one_line = pem.replace('\n', "\\n");
    // A file, and where the lines are expected: after this text, and `left`.
    let cases = [
        (
            format!(
                "# whom we believe\n[[anchor]] # the first\nname = \"old\" # kept\n{certificate}"
            ),
            "name = \"old\" # kept\n",
            vec![],
        ),
        (
            format!("[[anchor]]\n{certificate}eku = \"1.2.3\"\nname = \"old\""),
            "name = \"old\"\n",
            vec![],
        ),
        (
            format!(
                "[[anchor]]\nname = \"new\"\n{certificate}uri = [\"urn:x\"]\n\
                 [[anchor]]\nname = \"other\"\n{certificate}\
                 [[anchor]]\nname = 'old'\n{certificate}[[log]]\nname = \"l\"\nkeys = []\n"
            ),
            "name = 'old'\n",
            vec!["other".to_owned()],
        ),
    ];
    for (text, after, left) in cases {
        let upgraded = upgrade(&text, &given).unwrap();
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        let expected = format!("{text}{newline}").replace(after, &format!("{after}{lines}"));
        assert_eq!(upgraded.text, expected);
        assert_eq!(upgraded.left, left);
        assert!(scopes(&upgraded.text).contains(&("old".to_owned(), said.to_owned())));
        // What has scopes is left alone.
        let again = upgrade(&upgraded.text, &given).unwrap();
        assert_eq!((again.text, again.added), (upgraded.text, vec![]));
    }
    let windows = format!("[[anchor]]\nname = \"old\"\n{certificate}").replace('\n', "\r\n");
    let upgraded = upgrade(&windows, &given).unwrap().text;
    assert!(upgraded.contains("name = \"old\"\r\nspiffe = [\"prod.example\"]\r\n"), "{upgraded}");
    let inline =
        format!("anchor = [{{ name = \"old\", certificate = \"{one_line}\" }}] # inline\n");
    let upgraded = upgrade(&inline, &given).unwrap().text;
    assert_eq!(scopes(&upgraded), [("old".to_owned(), said.to_owned())]);
    assert!(upgraded.ends_with("# inline\n"), "{upgraded}");
    let spread = format!("anchor = [{{ certificate = \"{one_line}\",\n  name = \"old\", }}, ]\n");
    assert_eq!(scopes(&upgrade(&spread, &given).unwrap().text)[0].1, said);
    let dotted = format!("[[anchor]]\n\"na\\u006de\" = \"old\"\n{certificate}");
    assert_eq!(scopes(&upgrade(&dotted, &given).unwrap().text)[0].1, said);
}

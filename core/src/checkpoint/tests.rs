//! Published notes, a second library, and every way a note can be wrong.

use super::*;
use crate::wire::text::from_base64;

/// The Go checksum database: its published key and one of its tree heads.
const SUMDB_KEY: &str = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8";
const SUMDB_HEAD: &str = "go.sum database tree\n20852163\n\
    CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\
    — sum.golang.org Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/\
    Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n";

fn checkpoint() -> Checkpoint {
    let (size, root) = (TreeSize::new(1280), Digest::of(b"root"));
    Checkpoint { origin: "log.example/actions".to_owned(), size, root }
}

fn signed() -> (VerifierKey, String) {
    let key = SigningKey::generate(Algorithm::EdDsa).unwrap();
    let note = checkpoint().sign("log.example/actions", &key).unwrap();
    (VerifierKey::new("log.example/actions", key.public()).unwrap(), note)
}

#[test]
fn go_checksum_database_tree_head() {
    let key = VerifierKey::parse(SUMDB_KEY).unwrap();
    assert_eq!(key.to_string(), SUMDB_KEY);
    let head = SignedCheckpoint::parse(SUMDB_HEAD).unwrap().verify(&key).unwrap();
    assert_eq!(head.origin, "go.sum database tree");
    assert_eq!(head.size, TreeSize::new(20_852_163));
    assert!(SUMDB_HEAD.starts_with(&head.text()));
}

#[test]
fn foreign_library_verifies_our_signature() {
    let (key, note) = signed();
    let (text, line) = note.split_once("\n\n").unwrap();
    assert_eq!(format!("{text}\n"), checkpoint().text());
    let encoded = line.strip_prefix("— log.example/actions ").unwrap().trim_end();
    let bytes = from_base64(encoded).unwrap();
    let crate::key::Material::Ed25519(raw) = key.public().material() else { panic!() };
    let hashed = [b"log.example/actions\n\x01".as_slice(), raw].concat();
    assert_eq!(bytes[..4], Digest::of(&hashed).as_bytes()[..4]);
    let second = ed25519_dalek::VerifyingKey::from_bytes(raw).unwrap();
    let signature = ed25519_dalek::Signature::from_slice(&bytes[4..]).unwrap();
    second.verify_strict(checkpoint().text().as_bytes(), &signature).unwrap();
}

#[test]
fn extra_signatures_and_lines_are_allowed() {
    let (key, note) = signed();
    let (other, other_note) = signed();
    let witness = "— witness.example/w1 AAAAAQIDBAUG\n";
    let both = format!("{note}{witness}{}", other_note.split_once("\n\n").unwrap().1);
    let read = SignedCheckpoint::parse(&both).unwrap();
    assert_eq!(read.verify(&key), Ok(checkpoint()));
    assert_eq!(read.verify(&other), Ok(checkpoint()), "same name, another hash");
    assert!(read.extensions().is_empty());

    let pair = SigningKey::generate(Algorithm::EdDsa).unwrap();
    let key = VerifierKey::new("a", pair.public()).unwrap();
    let text = format!("{}one\n— two\n", checkpoint().text());
    let line = key.signature_line(&pair.sign(text.as_bytes()).unwrap());
    let read = SignedCheckpoint::parse(&format!("{text}\n{line}")).unwrap();
    assert_eq!(read.extensions(), ["one", "— two"]);
    assert_eq!(read.verify(&key), Ok(checkpoint()));
}

/// No byte of a note can change: it is then not a note, not signed by the
/// key, or not verified.
#[test]
fn changed_bytes_fail() {
    let (key, note) = signed();
    for at in 0..note.len() {
        for bit in 0..8 {
            let mut bytes = note.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            let Ok(text) = String::from_utf8(bytes) else { continue };
            let read = SignedCheckpoint::parse(&text).and_then(|note| note.verify(&key));
            assert!(read.is_err(), "byte {at}, bit {bit}");
        }
        if note.is_char_boundary(at) {
            let read = SignedCheckpoint::parse(&note[..at]);
            assert!(read.is_err(), "cut at {at}");
        }
    }
}

#[test]
fn notes_have_one_spelling() {
    let root = text::base64(Digest::of(b"root").as_bytes());
    let line = "— a AAAAAAE=\n";
    let cases = [
        (format!("o\n0\n{root}\n\n{line}"), None),
        (format!("\n1\n{root}\n\n{line}"), Some("origin")),
        (format!("o\n01\n{root}\n\n{line}"), Some("size")),
        (format!("o\n+1\n{root}\n\n{line}"), Some("size")),
        (format!("o\n-1\n{root}\n\n{line}"), Some("size")),
        (format!("o\n 1\n{root}\n\n{line}"), Some("size")),
        (format!("o\n18446744073709551616\n{root}\n\n{line}"), Some("size")),
        (format!("o\n\n{root}\n\n{line}"), Some("size")),
        ("o\n1\nAAAA\n\n— a AAAAAAE=\n".to_owned(), Some("root")),
        (format!("o\n1\n{}\n\n{line}", root.trim_end_matches('=')), Some("root")),
        (format!("o\n1\n\n{line}"), Some("root")),
        (format!("o\n1\n{root}\n{line}"), Some("blank line")),
        (format!("o\n1\n{root}\r\n\n{line}"), Some("text")),
        (format!("o\t\n1\n{root}\n\n{line}"), Some("text")),
        (format!("o\n1\n{root}\n\n"), Some("signature line")),
        (format!("o\n1\n{root}\n\n\n{line}"), Some("signature line")),
        (format!("o\n1\n{root}\n\next\n\n{line}"), Some("signature line")),
        (format!("o\n1\n{root}\n\n{}", line.trim_end()), Some("signature line")),
        (format!("o\n1\n{root}\n\n{line}\n"), Some("signature line")),
        (format!("o\n1\n{root}\n\n- a AAAAAAE=\n"), Some("signature line")),
        (format!("o\n1\n{root}\n\n— a+b AAAAAAE=\n"), Some("signature line")),
        (format!("o\n1\n{root}\n\n—  AAAAAAE=\n"), Some("signature line")),
        (format!("o\n1\n{root}\n\n— a\u{a0}b AAAAAAE=\n"), Some("signature line")),
        (format!("o\n1\n{root}\n\n— a AAAAAA==\n"), Some("signature line")),
        (format!("o\n1\n{root}\n\n— a AAAAAAE\n"), Some("signature line")),
        (format!("o\n1\n{root}\n\n— a AAAAAAE= \n"), Some("signature line")),
    ];
    for (note, part) in cases {
        let expected = part.map(|part| Error::Malformed { part });
        assert_eq!(SignedCheckpoint::parse(&note).err(), expected, "{note:?}");
    }
}

#[test]
fn verifier_keys_have_one_spelling() {
    let bad = [
        "",
        "sum.golang.org",
        "sum.golang.org+033de0ae",
        "sum.golang.org+033DE0AE+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8",
        "sum.golang.org+033de0af+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8",
        "sum.golang.com+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8",
        "sum.golang.org+033de0ae+As4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8",
        "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuA==",
        "+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8",
        "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8\n",
    ];
    for text in bad {
        assert_eq!(VerifierKey::parse(text), Err(Error::VerifierKey), "{text}");
    }
}

/// Each error, by its code.
#[test]
fn refusals() {
    let (key, note) = signed();
    let (stranger, _) = signed();
    let read = SignedCheckpoint::parse(&note).unwrap();
    let grown = SignedCheckpoint::parse(&note.replacen("1280", "1281", 1)).unwrap();
    let line = note.split_once("\n\n").unwrap().1;
    let es256 = SigningKey::generate(Algorithm::Es256).unwrap();
    let eddsa = SigningKey::generate(Algorithm::EdDsa).unwrap();
    let two_lines = Checkpoint { origin: "a\nb".to_owned(), ..checkpoint() };
    let with_lines =
        |count: usize| SignedCheckpoint::parse(&format!("{note}{}", line.repeat(count)));
    assert_eq!(with_lines(SIGNATURES_MAX - 1).unwrap().verify(&key), Ok(checkpoint()));
    let cases = [
        (grown.verify(&key).err(), "signature-invalid"),
        (checkpoint().sign("a", &es256).err(), "checkpoint-key-kind"),
        (checkpoint().sign("a b", &eddsa).err(), "checkpoint-malformed"),
        (two_lines.sign("a", &eddsa).err(), "checkpoint-malformed"),
        (read.verify(&stranger).err(), "checkpoint-not-signed"),
        (SignedCheckpoint::parse(&"x".repeat(NOTE_BYTES_MAX + 1)).err(), "checkpoint-too-long"),
        (with_lines(SIGNATURES_MAX).err(), "checkpoint-too-many-signatures"),
        (VerifierKey::parse("a").err(), "checkpoint-verifier-key"),
    ];
    for (error, code) in cases {
        assert_eq!(error.map(|e| e.code()), Some(code));
    }
}

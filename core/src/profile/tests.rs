//! The table of record kinds: what it lists is what the readers give and what
//! the pages say, and a new kind needs nothing else.

pub(crate) mod toy;

use std::path::Path;

use super::*;
use crate::envelope::fixture::{Sketch, es256};
use crate::envelope::{RulesVersion, SignedStatement};
use crate::wire::{cbor, json};

/// Called for every finding that any test of the library makes.
pub(super) fn is_listed(code: &str) {
    let later = KINDS.iter().flat_map(|kind| kind.later_codes).copied();
    let is_known = codes().chain(later).any(|known| known == code);
    assert!(is_known, "{code} is in no list of finding codes");
}

/// Called for every payload that any test of the library reads.
pub(super) fn are_listed(kind: &RecordKind, findings: &[Finding]) {
    for finding in findings {
        let is_own = kind.codes.iter().any(|codes| codes.list.contains(&finding.code));
        assert!(is_own, "{} is in no list of {}", finding.code, kind.name);
    }
}

/// Every list of the table once; kinds may share one.
fn lists() -> Vec<&'static [&'static str]> {
    let read = KINDS.iter().flat_map(|kind| kind.codes).map(|codes| codes.list);
    let mut lists: Vec<&[&str]> = Vec::new();
    for list in read.chain(KINDS.iter().map(|kind| kind.later_codes)) {
        if !lists.contains(&list) {
            lists.push(list);
        }
    }
    lists
}

#[test]
fn every_listed_code_is_given_somewhere_and_listed_once() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let text = sources(&Path::new(source).join("profile"));
    // These lists are derived from the errors themselves.
    let derived: Vec<&str> = [cbor::CODES, json::CODES].concat();
    let all: Vec<&str> = lists().concat();
    for code in all.iter().filter(|code| !code.starts_with("toy-")) {
        let is_given = derived.contains(code) || text.contains(&format!("\"{code}\""));
        assert!(is_given, "{code} is listed, but nothing gives it");
        assert_eq!(all.iter().filter(|other| *other == code).count(), 1, "{code}");
    }
}

/// Everything but tests and the lists themselves.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "tests" {
            text += &sources(&path);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let whole = std::fs::read_to_string(&path).unwrap();
            let mut pieces = whole.split("CODES: &[&str] = ");
            text += pieces.next().unwrap_or_default();
            text.extend(pieces.filter_map(|piece| Some(piece.split_once("];")?.1)));
        }
    }
    text
}

#[test]
fn kinds_have_names_and_content_types_of_their_own() {
    assert!(KINDS.is_sorted_by(|a, b| a.name < b.name), "by name, each once");
    let types: Vec<&str> = KINDS.iter().flat_map(|kind| kind.content_types).copied().collect();
    for (at, name) in types.iter().enumerate() {
        assert!(!types[..at].contains(name), "{name} names two kinds");
    }
}

#[test]
fn every_kind_is_documented_with_its_content_types_and_codes() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut missing = Vec::new();
    for kind in KINDS.iter().filter(|kind| !kind.page.is_empty()) {
        let page = std::fs::read_to_string(root.join(kind.page)).unwrap();
        let words: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
        let is_named = |name: &str| {
            let prefix = |word: &&str| word.strip_suffix('*').is_some_and(|p| name.starts_with(p));
            words.contains(&name) || words.iter().any(prefix)
        };
        let codes = kind.codes.iter().flat_map(|codes| codes.list);
        let names = codes.chain(kind.later_codes).chain(kind.content_types).chain([&kind.name]);
        let unnamed = names.filter(|name| !is_named(name));
        missing.extend(unnamed.map(|name| format!("{}: {name} of {}", kind.page, kind.name)));
    }
    assert!(missing.is_empty(), "not documented:\n{}", missing.join("\n"));
}

#[test]
fn a_kind_of_one_file_and_one_line_is_read_and_described() {
    let key = es256();
    let sketch = Sketch::self_certified(&key).with(3, toy::CONTENT_TYPE).payload(b"hello!");
    let statement = SignedStatement::parse(sketch.sign(&key)).unwrap();
    let read = read_payload(statement.header(), statement.payload().unwrap());
    assert_eq!(read.profile(), "toy");
    assert_eq!(read.summary.record_id.as_deref(), Some("toy-hello!"));
    assert_eq!(read.get::<toy::Toy>().unwrap().text, "hello!");
    assert!(read.get::<pacr::PacrRecord>().is_none());
    assert_eq!(read.record.fields(), [("letters", 6.into())]);
    assert_eq!(read.record.sizes()[0].setting, "toy.letters");
    let [finding] = read.findings.as_slice() else { panic!("{:?}", read.findings) };
    assert_eq!((finding.code, finding.since()), ("toy-loud", RulesVersion::V2));
    assert!(names().contains(&"toy") && codes().any(|code| code == "toy-empty"));
    assert_eq!(read.into_record::<toy::Toy>().unwrap().0.text, "hello!");
}

//! The lists of finding codes are those of the code.

use std::path::Path;

use super::*;

/// What is noticed elsewhere than in a statement's payload.
fn later() -> impl Iterator<Item = &'static str> {
    [capsule::LATER_CODES, pacr::IMPORT_CODES].into_iter().flatten().copied()
}

/// Called for every finding any test of the library brings about.
pub(super) fn listed(code: &str) {
    let known = codes().chain(later());
    assert!(known.into_iter().any(|known| known == code), "{code} is in no list of finding codes");
}

#[test]
fn every_listed_code_is_given_somewhere_and_stands_once() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let text = sources(&Path::new(source).join("profile"));
    // These lists are derived from the errors themselves.
    let derived: Vec<&str> = [cbor::CODES, json::CODES].concat();
    let all: Vec<&str> = codes().chain(later()).collect();
    for code in &all {
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
        } else if name.ends_with(".rs") && !["tests.rs", "codes.rs"].contains(&name) {
            let whole = std::fs::read_to_string(&path).unwrap();
            let mut pieces = whole.split("const CODES");
            text += pieces.next().unwrap_or_default();
            text.extend(pieces.filter_map(|piece| Some(piece.split_once("];")?.1)));
        }
    }
    text
}

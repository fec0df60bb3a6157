//! `capstan-pca-conformance` on the built-in cases and on released vectors.
//! Without the vectors, their tests say so and pass.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;

/// A directory of the PCA vectors, if they are here: below the directory that
/// `CAPSTAN_VECTORS` names, or beside this repository.
fn vectors(part: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors");
    let root = std::env::var_os("CAPSTAN_VECTORS").map_or_else(beside, PathBuf::from);
    let path = root.join("pca").join(part);
    if !path.exists() {
        eprintln!("no vectors in {}; set CAPSTAN_VECTORS", root.display());
        return None;
    }
    Some(path)
}

const RELEASED: &str = "released-v1.0.0/vectors-v1";

/// Standard output, after checking the exit code.
fn run(exit: i32, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_capstan-pca-conformance"));
    let output = command.args(arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "{arguments:?}\n{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(exit: i32, vectors: Option<&Path>) -> Json {
    let mut arguments = vec!["--json"];
    if let Some(folder) = vectors {
        arguments.extend(["--vectors", folder.to_str().unwrap()]);
    }
    serde_json::from_str(&run(exit, &arguments)).unwrap()
}

#[test]
fn built_in_cases_pass_at_every_profile() {
    let own = json(0, None);
    assert_eq!(own["test"], "PCA-TEST v1");
    let cases = own["suites"][0]["cases"].as_array().unwrap();
    for number in 1..=13 {
        let test = format!("T{number}");
        assert!(cases.iter().any(|case| case["test"] == test.as_str()), "no {test}");
    }
    assert!(cases.iter().all(|case| case["pass"] == true));
    let profiles = own["suites"][0]["profiles"].as_array().unwrap();
    assert!(profiles.len() == 3 && profiles.iter().all(|p| p["pass"] == true));
    assert!(run(0, &[]).contains("  gold   pass\n"));
}

#[test]
fn directory_without_vectors_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(json(2, Some(dir.path()))["code"], "no-vectors");
    let hostile = Command::new(env!("CARGO_BIN_EXE_capstan-pca-conformance"))
        .args(["--vectors", "\u{1b}[2Jgone"])
        .output()
        .unwrap();
    assert!(!hostile.stderr.contains(&0x1b), "what steers a screen is escaped");
    let help = run(0, &["--help"]);
    assert!(help.contains("Example: capstan-pca-conformance "), "{help}");
}

#[test]
fn released_vectors_give_equal_digests_and_reasons() {
    let Some(folder) = vectors(RELEASED) else { return };
    let suite = json(0, Some(&folder))["suites"][1].clone();
    let cases = suite["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 13);
    for case in cases {
        assert!(case["pass"] == true && case["notes"].as_array().unwrap().is_empty(), "{case}");
        assert_eq!(case["expected"], case["found"]);
    }
    assert!(suite["profiles"].as_array().unwrap().iter().all(|profile| profile["pass"] == true));
}

#[test]
fn unmerged_vectors_fall_back() {
    let Some(folder) = vectors("unmerged-50hjx7/vectors-v1") else { return };
    let suite = json(1, Some(&folder))["suites"][1].clone();
    let cases = suite["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        assert!(case["found"].as_str().unwrap().starts_with("FALLBACK"), "{case}");
    }
}

#[test]
fn changed_vectors_fail_and_other_spellings_are_mapped() {
    let Some(folder) = vectors(RELEASED) else { return };
    let dir = tempfile::tempdir().unwrap();
    let t9 = std::fs::read_to_string(folder.join("T9_merkle_proof.json")).unwrap();
    let with_reason = |reason: &str| {
        let changed = t9.replace("RC_MERKLE_PROOF", reason);
        std::fs::write(dir.path().join("T9_merkle_proof.json"), changed).unwrap();
        json(1, Some(dir.path()))["suites"][1]["cases"][0].clone()
    };
    assert_eq!(with_reason("RC_CONFLICT")["pass"], false);
    let case = with_reason("EVIDENCE_HASH_MISMATCH");
    assert_eq!(case["pass"], true);
    assert_eq!(case["notes"][0], "mapped: EVIDENCE_HASH_MISMATCH means RC_MERKLE_PROOF");
}

//! Published Capsules and digests. The vectors are not part of this repository;
//! without them these tests are skipped.

use std::path::{Path, PathBuf};

use capstan::profile::capsule::{CapsuleRecord, Class1, class1_ledger};
use capstan::wire::digest::Digest;
use capstan::wire::jcs::{Suite, canonical, normalise};
use capstan::wire::json::Json;

use crate::published::published;

/// The directory of Capsule vectors, if present.
fn vectors(part: &str) -> Option<PathBuf> {
    published(&format!("capsule/{part}"))
}

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn json(path: &Path) -> Json {
    Json::read(&bytes(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The entries of a directory, sorted by name.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    found.sort();
    found
}

fn text<'a>(json: &'a Json, pointer: &str) -> &'a str {
    json.pointer(pointer).and_then(Json::text).unwrap_or_else(|| panic!("no text at {pointer}"))
}

fn class1_of(capsule: &Json) -> Class1 {
    CapsuleRecord::of(capsule.clone()).0.class1().clone()
}

/// Check number, code and severity of each finding.
type FindingRows = Vec<(Option<i64>, String, String)>;

fn finding_rows(found: &Class1) -> FindingRows {
    let findings = found.findings.iter();
    findings
        .map(|f| (f.check.map(i64::from), f.code.to_owned(), f.severity.name().to_owned()))
        .collect()
}

fn expected_findings(expected: &Json) -> FindingRows {
    let findings = expected.get("findings").and_then(Json::array).unwrap();
    let one = |f: &Json| {
        let check = f.get("check").and_then(Json::int);
        (check, text(f, "/code").to_owned(), text(f, "/severity").to_owned())
    };
    findings.iter().map(one).collect()
}

/// Draft -03 added these; this profile has neither `cross_party` nor the
/// approver `counterparty`.
fn is_of_later_draft(name: &str, found: &Class1) -> bool {
    match name {
        "pos-cross-party-acknowledged-receipt"
        | "pos-cross-party-full-bilateral"
        | "pos-cross-party-unilateral-fallback"
        | "neg-cross-party-overclaim" => {
            assert_eq!((found.ok, finding_rows(found)), (Some(true), Vec::new()), "{name}");
            true
        }
        "pos-disposition-approver-counterparty" => {
            let error = (Some(1), "approver_invalid".to_owned(), "error".to_owned());
            assert_eq!((found.ok, finding_rows(found)), (Some(false), vec![error]), "{name}");
            true
        }
        _ => false,
    }
}

fn compare(name: &str, found: &Class1, expected: &Json) {
    let id = expected.get("capsule_id_recomputed").and_then(Json::text);
    assert_eq!(found.capsule_id.map(|id| id.hex()).as_deref(), id, "{name}");
    let derived = found.derived.unwrap();
    let modes = [derived.attestation.name(), derived.effect.name(), derived.ledger.name()];
    let stated = ["attestation_mode", "effect_mode", "ledger_mode"]
        .map(|m| text(expected, &format!("/derived/{m}")));
    assert_eq!(modes, stated, "{name}");
    if is_of_later_draft(name, found) {
        return;
    }
    assert_eq!(found.ok, expected.get("ok").and_then(Json::bool), "{name}");
    assert_eq!(finding_rows(found), expected_findings(expected), "{name}");
}

#[test]
fn class_1() {
    let Some(folder) = vectors("class1-test-vectors") else { return };
    let mut seen = 0;
    for case in entries(&folder).into_iter().filter(|path| path.is_dir()) {
        let name = case.file_name().unwrap().to_str().unwrap();
        let (input, expected) = (json(&case.join("input.json")), json(&case.join("expected.json")));
        seen += 1;
        match input.get("ledger").and_then(Json::array) {
            None => compare(name, &class1_of(&input), &expected),
            Some(ledger) => {
                let records: Vec<CapsuleRecord> =
                    ledger.iter().map(|c| CapsuleRecord::of(c.clone()).0).collect();
                let mut found = class1_ledger(&records);
                // Our findings are in addition to the reference's.
                found.iter_mut().for_each(|result| {
                    result.findings.retain(|f| f.code != "chain_parent_not_earlier");
                });
                let expected = expected.get("results").and_then(Json::array).unwrap();
                assert_eq!(found.len(), expected.len());
                found.iter().zip(expected).for_each(|(f, e)| compare(name, f, e));
            }
        }
    }
    assert_eq!(seen, 37);
}

/// The digest of the input of a vector, and its canonical text.
fn derive(vector: &Json) -> Option<(String, String)> {
    let excluded = vector.get("exclusion_set").and_then(Json::array).unwrap_or_default();
    let excluded: Vec<&str> = excluded.iter().filter_map(Json::text).collect();
    let input = vector.get("input")?;
    let value = match input.members() {
        Some(members) => Json::object(
            members.iter().filter(|(name, _)| !excluded.contains(&name.as_str())).cloned(),
        ),
        None => input.clone(),
    };
    let digest = Suite::JcsN.digest_without(input, &excluded).ok()?.hex();
    Some((digest, canonical(&normalise(value)).ok()?))
}

#[test]
fn jcs_n_known_answers() {
    let Some(folder) = vectors("cpb/jcs-n/kats") else { return };
    let (mut positive, mut refused) = (0, 0);
    for path in entries(&folder) {
        let name = path.display();
        let vector = match Json::read(&bytes(&path)) {
            Ok(vector) => vector,
            Err(e) => {
                assert_eq!((e.code(), e.pointer.as_str()), ("json-duplicate-key", "/input/a"));
                refused += 1;
                continue;
            }
        };
        let derived = derive(&vector);
        if let Some(digest) = vector.get("digest").and_then(Json::text) {
            let (found, pre_image) = derived.unwrap();
            assert_eq!(
                (found.as_str(), pre_image.as_str()),
                (digest, text(&vector, "/pre_image")),
                "{name}"
            );
            positive += 1;
            continue;
        }
        assert_eq!(vector.get("must_fail").and_then(Json::bool), Some(true), "{name}");
        refused += 1;
        if let Some(correct) = vector.get("jcs_n_correct_digest").and_then(Json::text) {
            let (found, _) = derived.unwrap();
            assert_eq!(found, correct, "{name}");
            let members = vector.members().unwrap().iter();
            let wrong = members.filter(|(n, _)| n.ends_with("_contrast_digest")).count();
            assert_eq!(wrong, 1, "{name}");
            assert!(vector.members().unwrap().iter().all(|(n, v)| {
                !n.ends_with("_contrast_digest") || v.text() != Some(found.as_str())
            }));
        } else if let Some(cited) = vector.get("cited_artifact") {
            let id = Suite::JcsN.digest(cited.get("payload").unwrap()).unwrap().hex();
            assert_eq!(id, text(cited, "/correct_derived_id_bare_hex"), "{name}");
            let wrong = text(&vector, "/typed_reference_with_wrong_representation/digest");
            assert_eq!((Digest::from_hex(wrong), wrong.trim()), (None, id.as_str()), "{name}");
        } else {
            assert_eq!(derived, None, "{name}");
        }
    }
    assert_eq!((positive, refused), (25, 13));
}

#[test]
fn derived_ids_and_normal_forms() {
    let Some(folder) = vectors("cpb") else { return };
    let vector = json(&folder.join("jcs-n/derived-id/01-basic-derived-id.json"));
    let id = |payload: &Json| Suite::JcsN.digest_without(payload, &["record_id"]).unwrap().hex();
    for payload in ["full_payload", "full_payload_with_carried_id"] {
        assert_eq!(id(vector.get(payload).unwrap()), text(&vector, "/derived_id"));
    }
    let vector = json(&folder.join("jcs-n/derived-id/02-carried-id-mismatch.json"));
    let found = id(vector.get("full_payload").unwrap());
    assert_eq!(found, text(&vector, "/correct_derived_id"));
    assert_ne!(found, text(&vector, "/carried_id"));
    let is_normal = |vector: &Json| {
        let raw = vector.get("record_raw").and_then(Json::text).map(str::as_bytes);
        let record = raw.map_or_else(|| Ok(vector.get("record").unwrap().clone()), Json::read);
        record.is_ok_and(|r| normalise(r.clone()) == r && Suite::JcsN.digest(&r).is_ok())
    };
    for path in entries(&folder.join("cpb-check/conforming")) {
        assert!(is_normal(&json(&path)), "{}", path.display());
    }
    for path in entries(&folder.join("cpb-check/non-conforming")) {
        assert!(!is_normal(&json(&path)), "{}", path.display());
    }
}

fn lines(path: &Path) -> Vec<Json> {
    let text = String::from_utf8(bytes(path)).unwrap();
    text.lines().map(|line| Json::read(line.as_bytes()).unwrap()).collect()
}

#[test]
fn sample_ledger_ids() {
    let Some(folder) = vectors("sample-ledgers") else { return };
    let mut seen = 0;
    for path in entries(&folder).iter().filter(|p| p.extension().is_some_and(|e| e == "jsonl")) {
        for capsule in lines(path) {
            let found = class1_of(&capsule);
            let id = found.capsule_id.map(|id| id.hex());
            assert_eq!(id.as_deref(), Some(text(&capsule, "/capsule_id")), "{}", path.display());
            assert_eq!(found.ok, Some(true), "{}: {:?}", path.display(), found.findings);
            seen += 1;
        }
    }
    assert_eq!(seen, 59);
    let codes = |name: &str| {
        let found = class1_of(&json(&folder.join(name)));
        found.findings.iter().filter(|f| f.gating).map(|f| f.code).collect::<Vec<_>>()
    };
    assert_eq!(codes("agentgateway/capsule.json"), [""; 0]);
    assert_eq!(codes("goose/capsule.json"), ["capsule_id_mismatch"]);
}

#[test]
fn live_capsules_and_flipped_decision() {
    let Some(folder) = vectors("scitt-cose/capsule-id") else { return };
    let expected = json(&folder.join("expected.json"));
    for (name, expected) in expected.members().unwrap() {
        let found = class1_of(&json(&folder.join(format!("{name}.json"))));
        let id = found.capsule_id.map(|id| id.hex());
        assert_eq!(id.as_deref(), Some(text(expected, "/recomputed")), "{name}");
        assert_eq!(found.ok, expected.get("ok").and_then(Json::bool), "{name}");
    }
}

/// The bundles hold excerpts of Capsules, so their ids cannot be recomputed; the
/// chain and the disclosed parts can be checked.
#[test]
fn tamper_states() {
    let Some(folder) = vectors("scitt-cose/tamper-states") else { return };
    for state in entries(&folder) {
        let (bundle, expected) =
            (json(&state.join("bundle.json")), json(&state.join("expected.json")));
        let capsules = bundle.get("bundle").and_then(Json::array).unwrap();
        let records: Vec<CapsuleRecord> =
            capsules.iter().map(|c| CapsuleRecord::of(c.clone()).0).collect();
        let gaps: Vec<i64> = class1_ledger(&records)
            .iter()
            .zip(0..)
            .filter(|(c, _)| c.findings.iter().any(|f| f.code == "chain_parent_missing"))
            .map(|(_, i)| i)
            .collect();
        let stated = expected.get("gaps").and_then(Json::array).unwrap().iter();
        let stated: Vec<i64> = stated.filter_map(|g| g.get("after_index")?.int()).collect();
        assert_eq!(gaps, stated, "{}", state.display());
        let altered = |capsule: &Json| {
            let given = bundle.get("disclosures")?.get(text(capsule, "/capsule_id"))?;
            let digest = Suite::JcsN.digest(given.get("agent_input")?).ok()?.hex();
            let committed = "/model_attestation/compute_attestation/agent_input_digest";
            Some(digest != text(capsule, committed))
        };
        let records = expected.get("records").and_then(Json::array).unwrap();
        for (capsule, record) in capsules.iter().zip(records) {
            let stated = record.get("is_altered").and_then(Json::bool);
            assert_eq!(Some(altered(capsule).unwrap_or(false)), stated, "{}", state.display());
        }
    }
}

#[test]
fn derived_edge_cases() {
    let Some(folder) = vectors("class1-test-vectors") else { return };
    let cases = json(&folder.join("../derived-edge-cases.json"));
    let list = |at: &str| cases.pointer(at).and_then(Json::array).unwrap().to_vec();
    for capsule in list("/cases/0/capsules") {
        assert_eq!(class1_of(&capsule).ok, Some(true), "absent, null and empty are one");
    }
    let (_, stricter) = CapsuleRecord::of(cases.pointer("/cases/1/capsule").unwrap().clone());
    assert_eq!(stricter.iter().map(|f| f.code).collect::<Vec<_>>(), ["chain_self_reference"]);
    let codes = |at: &str| {
        let records: Vec<CapsuleRecord> =
            list(at).iter().map(|c| CapsuleRecord::of(c.clone()).0).collect();
        let results = class1_ledger(&records);
        results.iter().flat_map(|r| r.findings.iter().map(|f| f.code)).collect::<Vec<_>>()
    };
    assert!(codes("/cases/2/capsules").contains(&"chain_parent_not_earlier"));
    assert!(codes("/cases/3/capsules").contains(&"capsule_id_equivocation"));
}

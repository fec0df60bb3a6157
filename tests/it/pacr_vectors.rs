//! Published causal records. The vectors are not part of this repository; without
//! them these tests are skipped.

use std::path::Path;
use std::process::Command;

use capstan::envelope::SignedStatement;
use capstan::profile::pacr::{Encoding, Kind, PacrRecord, Tag, Verdict, prov};
use capstan::profile::{Finding, Severity};
use serde_json::{Value, json};

use crate::published::published;

fn read(bytes: &[u8]) -> (PacrRecord, Vec<Finding>) {
    PacrRecord::read(Encoding::Json, bytes)
}

fn rules(findings: &[Finding], severity: Severity) -> Vec<u64> {
    let those = findings.iter().filter(|f| f.severity == severity);
    those.filter_map(|f| f.check).map(u64::from).collect()
}

fn codes(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|f| f.code).collect()
}

/// Our choice where the draft is silent or contradicts itself, as listed in
/// docs/profiles/pacr.md.
fn our_decision(name: &str) -> Option<(Verdict, &'static str)> {
    Some(match name {
        "negative-lower-bound-only" => (Verdict::Valid, "pacr-lower-negative"),
        "id-ulid-26" => (Verdict::Refused, "pacr-id-malformed"),
        "id-zero-with-predecessors" | "id-zero-genesis" => (Verdict::Refused, "pacr-id-zero"),
        "sentinel-inside-predecessors" => (Verdict::Valid, "pacr-sentinel-predecessor"),
        "duplicate-predecessors" => (Verdict::Valid, "pacr-predecessor-duplicate"),
        _ => return None,
    })
}

#[test]
fn validation_cases() {
    let Some(folder) = published("pacr") else { return };
    let text = std::fs::read(folder.join("validation-cases.json")).unwrap();
    let all: Value = serde_json::from_slice(&text).unwrap();
    let cases = all["cases"].as_array().unwrap();
    assert!(cases.len() >= 32, "{} cases", cases.len());
    let mut undecided = 0;
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let (record, findings) = read(case["record"].to_string().as_bytes());
        let expected = &case["expected_by_draft"];
        let of_rules: Vec<u64> = expected["rules"]
            .as_array()
            .map(|rules| rules.iter().filter_map(Value::as_u64).collect())
            .unwrap_or_default();
        match (our_decision(name), expected["result"].as_str().unwrap()) {
            (Some((verdict, code)), _) => {
                undecided += 1;
                assert_eq!((record.verdict(), codes(&findings)), (verdict, vec![code]), "{name}");
            }
            (None, "valid") => {
                assert_eq!(
                    (record.verdict(), codes(&findings)),
                    (Verdict::Valid, vec![]),
                    "{name}"
                );
            }
            (None, "flag") => {
                assert_eq!(record.verdict(), Verdict::Flagged, "{name}");
                assert_eq!(rules(&findings, Severity::Warning), of_rules, "{name}");
                assert_eq!(rules(&findings, Severity::Error), [0; 0], "{name}");
            }
            (None, "reject") => {
                assert_eq!(record.verdict(), Verdict::Refused, "{name}");
                assert_eq!(rules(&findings, Severity::Error), of_rules, "{name}");
            }
            (None, other) => panic!("{name}: {other} needs a decision"),
        }
        check_values(&record, expected, name);
    }
    assert_eq!(undecided, 6);
}

/// Compares the values that a case states.
fn check_values(record: &PacrRecord, expected: &Value, name: &str) {
    if let Some(kind) = expected["kind"].as_str() {
        let tag = Tag::read(&record.tuple().unwrap().payload).unwrap();
        assert_eq!(tag.kind.registered_name(), kind, "{name}");
        assert_eq!(record.intervention(), tag.kind.name(), "{name}");
    }
    if let Some(score) = expected["sim_real_corr"].as_f64() {
        assert_eq!(record.sim_real_corr(), Some(score), "{name}");
    }
    if let Some(point) = expected.pointer("/info_gain/point").and_then(Value::as_f64) {
        let info_gain = record.tuple().unwrap().cognitive_split.info_gain;
        assert_eq!([info_gain.point, info_gain.lower, info_gain.upper], [point; 3], "{name}");
    }
}

#[test]
fn example_in_three_forms() {
    let Some(folder) = published("pacr") else { return };
    let file = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let (canonical, findings) = read(&file("draft-example-hex-ids.json"));
    assert_eq!((canonical.verdict(), findings), (Verdict::Valid, vec![]));
    let tuple = canonical.tuple().unwrap();
    let tag = Tag::read(&tuple.payload).unwrap();
    assert_eq!((tag.kind, tag.inner), (Kind::DoDigital, [0].as_slice()));
    for name in ["draft-example-as-printed.json", "reference-impl-serde-form.json"] {
        let (strict, findings) = read(&file(name));
        assert_eq!(strict.verdict(), Verdict::Refused, "{name}");
        let ids = findings.iter().filter(|f| f.code == "pacr-id-malformed");
        assert_eq!(ids.count(), 3, "{name}");
        let (imported, notes) = PacrRecord::import(&file(name));
        assert_eq!((imported.verdict(), imported.tuple()), (Verdict::Valid, Some(tuple)), "{name}");
        assert!(notes.len() >= 3 && notes.iter().all(|f| f.severity == Severity::Info), "{name}");
    }
    let (from_cbor, _) = PacrRecord::read(Encoding::Cbor, &canonical.to_cbor().unwrap());
    assert_eq!(from_cbor.tuple(), Some(tuple));
    let document = prov(&[tuple]);
    assert_eq!(document["activity"].as_object().unwrap().len(), 1);
    assert_eq!(document["wasInformedBy"].as_object().unwrap().len(), 2);
}

/// Runs the command in a directory; exit code and standard output.
fn capstan(folder: &Path, line: &str) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
    command.args(line.split_whitespace()).current_dir(folder).env("HOME", folder);
    let output = command.output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn seal_check_and_export_commands() {
    let sandbox = tempfile::tempdir().unwrap();
    let folder = sandbox.path();
    let yes = |line: &str| {
        let (code, out) = capstan(folder, line);
        assert_eq!(code, 0, "capstan {line}\n{out}");
        out
    };
    let described = json!({
        "landauer_cost": 3e-21,
        "resources": { "energy": 5e-19, "time": 0.002, "space": 512 },
        "cognitive_split": { "statistical_complexity": 2.5, "entropy_rate": 0.5 },
        "intervention": "counterfactual", "sim_real_corr": 0.75, "inner": "what if",
    });
    std::fs::write(folder.join("event.json"), described.to_string()).unwrap();
    yes("keygen --output agent.key");
    let how = "--profile pacr --key agent.key --iss https://a.example";
    let mut ids = Vec::new();
    for encoding in ["json", "cbor"] {
        yes(&format!("seal event.json {how} --encoding {encoding} --output {encoding}.cose"));
        let shown = yes(&format!("inspect {encoding}.cose --json"));
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["content_type"], format!("application/pacr+{encoding}"));
        assert_eq!(shown["record"]["intervention"], "counterfactual");
        assert_eq!(shown["record"]["sim_real_corr"], 0.75);
        assert_eq!(shown["subject"], shown["record"]["record_id"]);
        ids.push(shown["subject"].clone());
        let checked = yes(&format!("pacr check {encoding}.cose"));
        assert!(checked.starts_with("valid: ") && checked.contains("COUNTERFACTUAL"), "{checked}");
        let exported: Value =
            serde_json::from_str(&yes(&format!("pacr prov {encoding}.cose"))).unwrap();
        let activity = exported["activity"].as_object().unwrap().values().next().unwrap();
        assert_eq!(activity["pacr:counterfactual"], true);
    }
    assert_eq!(ids[0], ids[1], "one event, one name, in either encoding");
    std::fs::write(folder.join("wrong.json"), "{\"id\":null,\"payload\":\"UEFDUg==\"}").unwrap();
    let (code, out) = capstan(folder, "pacr check wrong.json --json");
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &out["verdict"]), (1, &json!("refused")));
    assert_eq!(out["findings"].as_array().unwrap().len(), 6);
    check_compare(folder);
    check_hashed_payload(folder);
    assert_eq!(capstan(folder, "pacr prov wrong.json").0, 1);
    assert_eq!(capstan(folder, &format!("seal wrong.json {how} --output x.cose")).0, 1);
    yes("seal event.json --key agent.key --content-type text/plain --iss a --sub b -o text.cose");
    assert_eq!(capstan(folder, "pacr check text.cose").0, 2);
}

/// Only a digest is published, and the kept file matches it.
fn check_hashed_payload(folder: &Path) {
    let how = "--profile pacr --key agent.key --iss https://a.example";
    let record = |file: &str| {
        let (code, out) = capstan(folder, &format!("pacr check {file} --json"));
        assert_eq!(code, 0, "{out}");
        serde_json::from_str::<Value>(&out).unwrap()
    };
    let seal = |kept: &str, encoding: &str, output: &str| {
        let line = format!(
            "seal event.json {how} --hash-payload {kept} --encoding {encoding} --output {output}"
        );
        capstan(folder, &line).0
    };
    assert_eq!(seal("kept", "json", "one.cose"), 0);
    assert_eq!(seal("kept", "cbor", "two.cose"), 0, "the same words are kept already");
    assert_eq!(seal("other", "json", "three.cose"), 0);
    assert_eq!(record("json.cose")["payload"], "clear");
    let [one, two, three] = ["one.cose", "two.cose", "three.cose"].map(|file| {
        let checked = record(file);
        assert_eq!(checked["payload"], "hashed", "{checked}");
        assert_eq!(checked["intervention"], "counterfactual", "the tag stays: {checked}");
        let statement = std::fs::read(folder.join(file)).unwrap();
        let statement = SignedStatement::parse(statement).unwrap();
        let payload = statement.payload().unwrap();
        let encoding = if payload[0] == b'{' { Encoding::Json } else { Encoding::Cbor };
        let (read, _) = PacrRecord::read(encoding, payload);
        let public = &read.tuple().unwrap().payload;
        assert!(!public.windows(7).any(|seen| seen == b"what if"), "{file}");
        checked["record_id"].clone()
    });
    assert_eq!(one, two, "one event, one name");
    assert_ne!(one, three, "a guess at the words does not give the name");
    let kept = std::fs::read(folder.join("kept")).unwrap();
    assert_eq!(&kept[32..], b"what if", "32 random bytes, then the words");
    let mode = std::fs::metadata(folder.join("kept")).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
    std::fs::write(folder.join("guess"), [&kept[..32], b"what of"].concat()).unwrap();
    std::fs::write(folder.join("short"), b"what if").unwrap();
    for (file, disclosure, exit) in [
        ("one.cose", "kept", 0),
        ("two.cose", "kept", 0),
        ("three.cose", "other", 0),
        ("three.cose", "kept", 1),
        ("one.cose", "guess", 1),
        ("one.cose", "short", 1),
    ] {
        let line = format!("pacr check {file} --payload {disclosure} --json");
        let (code, out) = capstan(folder, &line);
        let answer: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &answer["ok"]), (exit, &json!(exit == 0)), "{line}: {answer}");
        assert_eq!(answer["disclosed"], exit == 0, "{line}: {answer}");
    }
    let (code, out) = capstan(folder, "pacr check json.cose --payload kept --json");
    assert!(code == 2 && out.contains("pacr-payload-not-hashed"), "{out}");
    // A kept file is never overwritten.
    for kept in ["guess", "short"] {
        let before = std::fs::read(folder.join(kept)).unwrap();
        let line = format!("seal event.json {how} --hash-payload {kept} --output x.cose --json");
        let (code, out) = capstan(folder, &line);
        assert!(code == 2 && out.contains("disclosure-differs"), "{kept}: {out}");
        assert_eq!(std::fs::read(folder.join(kept)).unwrap(), before);
    }
    assert!(!folder.join("x.cose").exists());
}

/// Estimates are compared by overlap; a record that is only flagged is ok.
fn check_compare(folder: &Path) {
    let record = |time: &str, energy: &str| {
        format!(
            r#"{{"id":"0190A1B2C3D4E5F60718293A4B5C6D7E","predecessors":[],
            "landauer_cost":{{"point":3e-21,"lower":2.9e-21,"upper":3.1e-21}},
            "resources":{{"energy":{energy},"time":{time},
            "space":{{"point":512,"lower":512,"upper":512}}}},
            "cognitive_split":{{"statistical_complexity":{{"point":2.5,"lower":2,"upper":3}},
            "entropy_rate":{{"point":0.5,"lower":0.25,"upper":0.75}}}},"payload":"UEFDUgJvbg=="}}"#
        )
    };
    let energy = r#"{"point":5e-19,"lower":4e-19,"upper":6e-19}"#;
    let (short, long) =
        (r#"{"point":2,"lower":1,"upper":3}"#, r#"{"point":4,"lower":3,"upper":5}"#);
    std::fs::write(folder.join("a.json"), record(short, energy)).unwrap();
    std::fs::write(folder.join("b.json"), record(long, energy)).unwrap();
    let longest = long.replace(":3", ":3.5");
    std::fs::write(folder.join("c.json"), record(&longest, energy)).unwrap();
    let weak = energy.replace("e-19", "e-23");
    std::fs::write(folder.join("flagged.json"), record(short, &weak)).unwrap();
    let table = [("a.json b.json", 0, "overlaps"), ("a.json c.json", 1, "below")];
    for (files, exit, time) in table.into_iter().chain([("c.json a.json", 1, "above")]) {
        let (code, out) = capstan(folder, &format!("pacr compare {files} --json"));
        let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &answer["estimates"]["time"]), (exit, &time.into()), "{answer}");
        assert_eq!(answer["ok"], exit == 0, "{answer}");
        assert_eq!(answer["estimates"]["energy"], "overlaps", "{answer}");
    }
    let (code, out) = capstan(folder, "pacr check flagged.json --json");
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &answer["ok"]), (0, &true.into()), "{answer}");
    assert_eq!(answer["verdict"], "flagged", "{answer}");
}

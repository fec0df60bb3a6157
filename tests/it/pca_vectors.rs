//! Published PCA vectors, and `capstan pca`. Without the vectors their tests are
//! skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use capstan::profile::pca::{
    Decision, Label, MerkleRule, PcaCertificateRecord, ReasonCode, StepInputs, plan_digest,
    step_digest,
};
use capstan::wire::digest::Digest;
use capstan::wire::jcs::Suite;
use capstan::wire::json::Json;

use crate::published::published;

/// A file or directory of the PCA vectors, if present.
fn vectors(part: &str) -> Option<PathBuf> {
    published(&format!("pca/{part}"))
}

fn json(path: &Path) -> Json {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Json::read(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn text<'a>(json: &'a Json, pointer: &str) -> &'a str {
    json.pointer(pointer).and_then(Json::text).unwrap_or_else(|| panic!("no text at {pointer}"))
}

fn tests(folder: &Path) -> Vec<Json> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| json(&entry.unwrap().path())).collect()
}

const RELEASED: &str = "released-v1.0.0/vectors-v1";

#[test]
fn released_vectors_agree_under_both_suites() {
    let Some(folder) = vectors(RELEASED) else { return };
    for vector in tests(&folder) {
        let record = PcaCertificateRecord::of(vector.get("pc").unwrap().clone());
        let [own, second] = [record.pc_digest().unwrap(), record.second_digest().unwrap()];
        assert_eq!((own.hex(), own.suite()), (second.hex(), Suite::PcaV1));
        assert_ne!(own, second, "the suite is part of a digest");
        assert!(record.ok(), "{:?}", record.findings());
        // All thirteen state the plan digest of their Merkle root.
        if let Some(root) = record.payload().get("merkle_root").and_then(Json::text) {
            let plan = plan_digest(Suite::PcaV1, &[Digest::from_hex(root).unwrap()]).unwrap();
            assert_eq!(plan.hex(), text(record.payload(), "/plan_digest"));
        }
    }
}

/// The digest of a step in the unmerged vectors; T7 has its action inline.
fn unmerged_step(step: &Json) -> Digest {
    let in_place = ["action_type", "parameters", "required_capabilities"];
    let in_place = in_place.map(|name| (name, step.get(name).cloned().unwrap_or(Json::Null)));
    let action = step.get("AIR").cloned().unwrap_or_else(|| Json::object(in_place));
    let parts = [
        ("initial_state_digest", Label::State, "S0"),
        ("goal_digest", Label::Goal, "G"),
        ("constraints_digest", Label::Constraints, "C"),
        ("policy_digest", Label::Policy, "P"),
        ("planner_config_digest", Label::Config, "CFG"),
        ("action_ir_digest", Label::Action, "AIR"),
    ];
    let digests = parts.map(|(name, label, member)| {
        let part = if member == "AIR" { &action } else { step.get(member).unwrap() };
        (name, Json::from(label.digest(Suite::PcaV1, part).unwrap().hex()))
    });
    let step = Label::Step.digest(Suite::PcaV1, &Json::object(digests)).unwrap();
    Digest::from_hex(&step.hex()).unwrap()
}

/// The unmerged vectors have another certificate, which the schema rejects, and
/// other names in a step. The digests are equal: canonical form, labels, plan and
/// Merkle rule are the same.
#[test]
fn unmerged_certificates_are_invalid_with_equal_digests() {
    let Some(folder) = vectors("unmerged-50hjx7/vectors-v1") else { return };
    for vector in tests(&folder) {
        let record = PcaCertificateRecord::of(vector.get("pc").unwrap().clone());
        assert!(!record.ok());
        assert_eq!(record.pc_digest().unwrap().hex(), text(&vector, "/expected_pc_digest"));
        let inputs = vector.pointer("/inputs/steps").and_then(Json::array).unwrap();
        let steps: Vec<Digest> = inputs.iter().map(unmerged_step).collect();
        let plan = plan_digest(Suite::PcaV1, &steps).unwrap();
        assert_eq!(plan.hex(), text(&vector, "/expected_plan_digest"));
        assert_eq!(MerkleRule::Pairs.root(&steps).to_string(), text(&vector, "/pc/merkle_root"));
    }
}

#[test]
fn divergent_canonical_forms_are_classified() {
    let Some(path) = vectors("canonical-divergence.json") else { return };
    let classes =
        ["diverges", "diverges", "refused", "diverges", "agrees", "agrees", "diverges", "refused"];
    let file = json(&path);
    let cases = file.get("cases").and_then(Json::array).unwrap();
    assert_eq!(cases.len(), classes.len());
    for (case, class) in cases.iter().zip(classes) {
        let input = match text(case, "/input") {
            "keys U+FB33 and U+1F600" => "{\"\\ufb33\":1,\"\\ud83d\\ude00\":2}",
            input => input,
        };
        let value = Json::read(input.as_bytes()).unwrap();
        let (ours, python) = (Suite::PcaV1.canonical(&value), Suite::PcaPython.canonical(&value));
        let python = python.unwrap();
        let found = match &ours {
            Err(_) => "refused",
            Ok(ours) if *ours == python => "agrees",
            Ok(_) => "diverges",
        };
        assert_eq!(found, class, "{input}");
        // Where the file has the canonical form, ours is equal.
        for (told, form) in
            [(text(case, "/python"), Some(&python)), (text(case, "/jcs"), ours.as_ref().ok())]
        {
            let told = told.split(" (").next().unwrap();
            if let Some(form) = form.filter(|_| told.starts_with('{')) {
                assert_eq!(form, told, "{input}");
            }
        }
    }
}

#[test]
fn reason_codes_of_both_dictionaries() {
    let Some(path) = vectors("reason-codes.json") else { return };
    let file = json(&path);
    let words = |pointer: &str| -> Vec<String> {
        let list = file.pointer(pointer).and_then(Json::array).unwrap();
        let words = list.iter().map(|word| word.text().unwrap().split(" (").next().unwrap());
        words.map(str::to_owned).collect()
    };
    let dictionary = words("/released_v1_0_0/codes");
    assert!(ReasonCode::ALL.iter().map(|code| code.name()).eq(dictionary));
    let reserved = words("/released_v1_0_0/reserved_deprecated");
    let also = words("/released_v1_0_0/also_named_by_PCA_TEST_v1_but_absent_from_dictionary");
    for word in reserved.iter().chain(&also) {
        let read = ReasonCode::import(word).unwrap();
        assert_eq!((read.value, read.is_released), (ReasonCode::IntegrityMismatch, false));
    }
    let groups = file.pointer("/unmerged_closed_dictionary/groups").unwrap();
    for (group, _) in groups.members().unwrap() {
        for word in words(&format!("/unmerged_closed_dictionary/groups/{group}")) {
            let read = ReasonCode::import(&word).unwrap_or_else(|| panic!("{word}"));
            assert_eq!(read.is_released, word == "INTEGRITY_MISMATCH", "{word}");
        }
    }
    let by_test = file.get("mapping_by_test").unwrap();
    for (test, _) in by_test.members().unwrap() {
        let pair = words(&format!("/mapping_by_test/{test}"));
        let [ours, theirs] = [&pair[0], &pair[1]].map(|w| ReasonCode::import(w).unwrap().value);
        // T2 is a positive test there and a negative one here.
        assert!(ours == theirs || test == "T2", "{test}");
    }
    assert_eq!(Decision::import("ALLOW").map(|d| d.is_released), Some(false));
}

/// The command line in a temporary directory.
struct Sandbox(tempfile::TempDir);

impl Sandbox {
    fn new() -> Self {
        let sandbox = Self(tempfile::tempdir().unwrap());
        let step = r#"{"action_type":"pay","parameters":{"amount":5},"required_capabilities":[]}"#;
        let window = r#"{"not_before":"2026-04-01T00:00:00Z","not_after":"2026-04-30T23:59:59Z"}"#;
        let limits = Json::read(br#"{"most":250}"#).unwrap();
        let digest = Label::Constraints.digest(Suite::PcaV1, &limits).unwrap().hex();
        let (zeros, one) = ("0".repeat(64), Digest::of(b"state"));
        let inputs = StepInputs { state: one, goal: one, policy: one, config: one };
        let action = Json::read(step.as_bytes()).unwrap();
        let own = step_digest(Suite::PcaV1, &inputs, &digest, &action).unwrap().hex();
        let plan = plan_digest(Suite::PcaV1, &[Digest::from_hex(&own).unwrap()]).unwrap().hex();
        let certificate = format!(
            r#"{{"pc_version":"1.0","pc_id":"p","issued_at":"2026-04-02T08:00:00Z","planner_id":"a",
            "constraints_version_id":"c1","constraints_digest":"{digest}","effective_time":{window},
            "plan_digest":"{plan}","steps":[{step}],"nonce":"n\n1"}}"#
        );
        sandbox.write("plan.json", &certificate);
        let unplanned = certificate.replace(&plan, &zeros);
        sandbox.write("unplanned.json", &unplanned);
        sandbox.write(
            "limits.json",
            &format!(
                r#"{{"version_id":"c1","effective_time":{window},"payload":{{"most":250}},"digest":"{digest}"}}"#
            ),
        );
        let bare = |certificate: &str| {
            let own = PcaCertificateRecord::read(certificate.as_bytes()).pc_digest().unwrap().hex();
            format!(r#"{{"expected_pc_digest":"{own}","now":"2026-04-10T12:00:00Z"}}"#)
        };
        sandbox.write("bare.json", &bare(&certificate));
        sandbox.write("bare-unplanned.json", &bare(&unplanned));
        let bronze = format!(
            r#","step_inputs":[{{"state_digest":"{one}","goal_digest":"{one}",
            "policy_digest":"{one}","config_digest":"{one}"}}],"observed_state_digest":"{one}",
            "conflict":false}}"#
        );
        let observed = bare(&certificate).replace('}', &bronze);
        sandbox.write("now.json", &observed);
        sandbox.write("late.json", &observed.replace("2026-04-10", "2026-05-10"));
        sandbox.write("now-unplanned.json", &bare(&unplanned).replace('}', &bronze));
        sandbox
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
        command.args(line.split_whitespace()).current_dir(self.0.path());
        command
    }

    fn run(&self, exit: i32, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(exit), "capstan {line}\n{stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, exit: i32, line: &str) -> serde_json::Value {
        serde_json::from_str(&self.run(exit, &format!("{line} --json"))).unwrap()
    }
}

/// With all inputs that Bronze requires.
const CHECK: &str =
    "pca check plan.json --constraints limits.json --observations now.json --memory used";

#[test]
fn check_reports_decision_and_reason() {
    let sandbox = Sandbox::new();
    let answer = sandbox.json(0, CHECK);
    assert_eq!((&answer["decision"], &answer["reason_code"]), (&"EXECUTE".into(), &"RC_OK".into()));
    assert_eq!((&answer["suite"], &answer["plan_verified"]), (&"pca-v1".into(), &true.into()));
    assert_eq!(answer["judged_as"], "bronze", "the least that can be asked for");
    assert_eq!(answer["profiles"]["silver"]["reason_code"], "RC_MERKLE_PROOF");
    assert_eq!(answer["checks"].as_array().unwrap().len(), 13);
    let late = sandbox.run(1, &CHECK.replace("now.json", "late.json").replace("used", "other"));
    assert!(
        late.starts_with("FALLBACK RC_EFFECTIVE_TIME (bronze): effective_time failed"),
        "{late}"
    );
    sandbox.write("bad.json", "{");
    let bad = sandbox.json(1, &CHECK.replace("plan.json", "bad.json"));
    assert_eq!(bad["reason_code"], "RC_UNKNOWN");
    sandbox.run(2, &CHECK.replace("plan.json", "absent.json"));
}

/// A missing required input is a FALLBACK with the reason of that check, except
/// with `--as-vectors`.
#[test]
fn missing_input_falls_back_under_every_profile() {
    let cases = [
        ("plan.json --observations bare.json", 1, "RC_PC_REPLAY", "bronze"),
        ("plan.json --observations now.json", 1, "RC_PC_REPLAY", "bronze"),
        ("plan.json --observations bare.json --memory used", 1, "INTEGRITY_MISMATCH", "bronze"),
        (
            "unplanned.json --observations bare-unplanned.json --memory used",
            1,
            "INTEGRITY_MISMATCH",
            "bronze",
        ),
        (
            "unplanned.json --observations now-unplanned.json --as-vectors",
            1,
            "INTEGRITY_MISMATCH",
            "released-vectors",
        ),
        (
            "plan.json --observations now.json --memory used --profile silver",
            1,
            "RC_MERKLE_PROOF",
            "silver",
        ),
        ("plan.json --observations bare.json --as-vectors", 0, "RC_OK", "released-vectors"),
    ];
    let sandbox = Sandbox::new();
    for (rest, exit, reason, judged_as) in cases {
        let line = format!("pca check {rest} --constraints limits.json");
        let answer = sandbox.json(exit, &line);
        assert_eq!(answer["reason_code"], reason, "{line}");
        assert_eq!(answer["judged_as"], judged_as, "{line}");
        assert_eq!(answer["nonce_burned"], false, "{line}");
    }
    let line = "pca check plan.json --observations bare.json --constraints limits.json";
    let first = sandbox.run(0, &format!("{line} --as-vectors"));
    let expected = "EXECUTE RC_OK (released-vectors): 8 checks are unknown and were not counted\n";
    assert!(first.starts_with(expected), "{first}");
    sandbox.run(2, &format!("{line} --as-vectors --profile gold"));
    let first = sandbox.run(1, line);
    let expected = "FALLBACK RC_PC_REPLAY (bronze): replay unknown, no memory of nonces\n";
    assert!(first.starts_with(expected), "{first}");
}

#[test]
fn certificate_in_statement_equals_bare_certificate() {
    let sandbox = Sandbox::new();
    sandbox.run(0, "keygen --output a.key");
    let flags = "--content-type application/pca-certificate+json --iss a --sub p --key a.key";
    sandbox.run(0, &format!("seal plan.json {flags} --output plan.cose"));
    let answer = sandbox.json(0, &CHECK.replace("plan.json", "plan.cose"));
    assert_eq!(answer["reason_code"], "RC_OK");
}

#[test]
fn nonce_file_allows_one_use() {
    let sandbox = Sandbox::new();
    let check = CHECK.to_owned();
    let failing = check.replace("now.json", "late.json");
    assert_eq!(sandbox.json(1, &failing)["nonce_burned"], false);
    assert!(!sandbox.0.path().join("used").exists(), "a failure burns nothing");
    let line = format!("{check} --json");
    let children: Vec<_> = (0..4)
        .map(|_| sandbox.command(&line).stdout(std::process::Stdio::piped()).spawn().unwrap())
        .collect();
    let codes: Vec<String> = children
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            answer["reason_code"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(codes.iter().filter(|code| *code == "RC_OK").count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| *code == "RC_PC_REPLAY").count(), 3, "{codes:?}");
    let kept = std::fs::read_to_string(sandbox.0.path().join("used")).unwrap();
    assert_eq!(kept, "\"n\\n1\"\n");
    assert_eq!(sandbox.json(1, &failing)["reason_code"], "RC_PC_REPLAY");
    sandbox.write("used", "not json\n");
    assert_eq!(sandbox.json(2, &check)["code"], "memory-damaged");
}

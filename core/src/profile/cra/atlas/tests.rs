use super::*;
use crate::profile::finding::Severity;

const MANIFEST: &str = r#"{
    "atlas_version":"1.0","atlas_id":"com.example.sandbox","version":"1.2.3-rc.1+b","name":"n","description":"d",
    "authors":["a"],"license":"MIT","domains":["x"],
    "capabilities":[{"capability_id":"read","name":"n","description":"d","actions":["t.look"],"context_packs":["p"]}],
    "context_packs":[{"pack_id":"p","name":"n","files":["context/a.md"],"priority":1,"conditions":{}}],
    "policies":[{"policy_id":"a","type":"allow","conditions":{},"actions":["t.look","*","t.*","*.drop"]}],
    "actions":[{"action_id":"t.look","name":"n","description":"d","parameters_schema":{},"returns_schema":{},"risk_tier":"low","idempotent":true,"executor":"e"},
               {"action_id":"t.drop","name":"n","description":"d"}],
    "dependencies":{"com.example.base":"^1.0.0"}
}"#;

fn listed(text: &str) -> Vec<(&'static str, String)> {
    let (record, findings) = AtlasRecord::read(text.as_bytes());
    let broken = findings.iter().any(|finding| finding.severity == Severity::Error);
    assert_eq!(record.summary().ok, Some(!broken));
    findings.into_iter().map(|finding| (finding.code, finding.at)).collect()
}

#[test]
fn a_sound_manifest_is_named_by_id_and_version() {
    assert_eq!(listed(MANIFEST), []);
    let summary = AtlasRecord::read(MANIFEST.as_bytes()).0.summary();
    assert_eq!(summary.record_id.as_deref(), Some("com.example.sandbox@1.2.3-rc.1+b"));
    assert_eq!(summary.content.unwrap().len(), 64);
}

#[test]
fn what_is_wrong_is_named_by_its_pointer() {
    let schema = "atlas-schema-violation";
    let cases = [
        (r#""atlas_version":"1.0""#, r#""atlas_version":1.0"#, schema, "/atlas_version"),
        ("com.example.sandbox", "InvalidID", schema, "/atlas_id"),
        ("1.2.3-rc.1+b", "1.0", schema, "/version"),
        (r#""name":"n","description":"d","#, r#""name":"n","#, schema, "/description"),
        ("^1.0.0", "newest", schema, "/dependencies/com.example.base"),
        ("com.example.base", "Base", schema, "/dependencies"),
        (r#""type":"allow""#, r#""type":"scope""#, schema, "/policies/0/type"),
        (r#""risk_tier":"low""#, r#""risk_tier":"tiny""#, schema, "/actions/0/risk_tier"),
        (r#""idempotent":true"#, r#""idempotent":1"#, schema, "/actions/0/idempotent"),
        (r#""files":["context/a.md"]"#, r#""files":[7]"#, schema, "/context_packs/0/files/0"),
        (
            r#""files":["context/a.md"]"#,
            r#""files":["../a"]"#,
            "atlas-path-outside",
            "/context_packs/0/files/0",
        ),
        (
            r#""files":["context/a.md"]"#,
            r#""files":["/a"]"#,
            "atlas-path-outside",
            "/context_packs/0/files/0",
        ),
        (
            r#""actions":["t.look"]"#,
            r#""actions":["t.find"]"#,
            "atlas-action-unknown",
            "/capabilities/0/actions/0",
        ),
        (
            r#""context_packs":["p"]"#,
            r#""context_packs":["q"]"#,
            "atlas-pack-unknown",
            "/capabilities/0/context_packs/0",
        ),
        (r#"["t.look","*""#, r#"["t.find","*""#, "atlas-action-unknown", "/policies/0/actions/0"),
        (r#""*.drop""#, r#""*.undo""#, "atlas-glob-empty", "/policies/0/actions/3"),
        (r#""t.*""#, r#""u.*""#, "atlas-glob-empty", "/policies/0/actions/2"),
        (r#""t.*""#, r#""t*k""#, "atlas-glob-empty", "/policies/0/actions/2"),
        (
            r#""action_id":"t.drop""#,
            r#""action_id":"t.look""#,
            "atlas-id-repeated",
            "/actions/1/action_id",
        ),
        (
            "com.example.base",
            "com.example.sandbox",
            "atlas-dependency-self",
            "/dependencies/com.example.sandbox",
        ),
        (r#""type":"allow""#, r#""type":"deny""#, "atlas-nothing-allowed", "/policies"),
    ];
    for (good, bad, code, at) in cases {
        assert!(MANIFEST.contains(good), "{good}");
        let found = listed(&MANIFEST.replacen(good, bad, 1));
        assert!(found.contains(&(code, at.to_owned())), "{bad}: {found:?}");
    }
    let object = MANIFEST.replace(r#"["t.look","*","t.*","*.drop"]"#, "{}");
    assert_eq!(
        listed(&object),
        [("atlas-policy-actions-opaque", "/policies/0/actions".to_owned())]
    );
    assert_eq!(listed("{")[0].0, "json-truncated");
    assert_eq!(listed("[]"), [(schema, String::new())]);
}

#[test]
fn a_manifest_that_is_not_sound_has_no_name() {
    let (record, _) = AtlasRecord::read(MANIFEST.replace("1.2.3-rc.1+b", "1").as_bytes());
    assert_eq!(record.summary().record_id, None);
}

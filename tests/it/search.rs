//! `log`, `find`, `story`, `open-items`, `reindex` and `bundle` on a data
//! directory with some actions in it, for people and for machines.

use std::path::Path;
use std::process::{Command, Stdio};

use capstan::profile::capsule::{Action, EffectState};
use serde_json::Value as Json;

use crate::api_v1::{Log, action};

/// Runs in the directory around the log: standard output and standard error.
fn run(data: &Path, exit: i32, line: &str) -> (String, String) {
    let at = data.parent().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
    command.args(line.split_whitespace()).current_dir(at).stdin(Stdio::null());
    command.env("HOME", at).env_remove("XDG_CONFIG_HOME").env_remove("CAPSTAN_TRUST");
    let output = command.env_remove("CAPSTAN_VECTORS").output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(exit), "capstan {line}\n{errors}");
    (String::from_utf8(output.stdout).unwrap(), errors)
}

fn object(data: &Path, exit: i32, line: &str) -> Json {
    serde_json::from_str(&run(data, exit, &format!("{line} --json")).0).unwrap()
}

/// The leaf indices in front of every line.
fn places(text: &str) -> Vec<u64> {
    let index = |line: &str| line.split('#').nth(1)?.split_whitespace().next()?.parse().ok();
    text.lines().filter_map(index).collect()
}

fn indices(list: &Json) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|entry| entry["index"].as_u64().unwrap()).collect()
}

/// Three stories: one closed by its human, one that waits, one executed; and
/// the id of the record that was closed.
async fn filled() -> (Log, String) {
    let log = Log::new();
    let asked = log.act(&action("pay-1", "hitl_dispatched", None)).await;
    log.act(&action("pay-2", "deferred", None)).await;
    log.act(&action("pay-3", "executed", Some(EffectState::Planned))).await;
    let resolved = action("pay-1", "resolved", None);
    log.act(&Action { supersedes: Some(asked.clone()), ..resolved }).await;
    (log, asked)
}

#[tokio::test]
async fn search_commands_find_logged_statements() {
    let (log, asked) = filled().await;
    let (_dir, data) = log.close();
    let searches = [
        ("log", "statements", vec![5, 4, 3, 2, 1, 0]),
        ("log --verdict executed", "statements", vec![4]),
        ("log --operator acme --limit 2", "statements", vec![5, 4]),
        ("log --operator acme --limit 2 --cursor 4", "statements", vec![3, 2]),
        ("log --issuer https://search.invalid", "statements", vec![1, 0]),
        ("log --since 2999-01-01T00:00:00Z", "statements", vec![]),
        ("log --open", "statements", vec![3]),
        ("find acme pay-1", "statements", vec![5, 2]),
        ("find nothing", "statements", vec![]),
        ("open-items", "statements", vec![3]),
        ("open-items --operator nobody", "statements", vec![]),
    ];
    let check = || {
        for (line, list, expected) in &searches {
            let line = format!("{line} --data data");
            let (text, notes) = run(&data, 0, &line);
            assert_eq!(places(&text), *expected, "capstan {line}\n{text}");
            assert!(notes.contains("not proof of absence"), "{notes}");
            let page = object(&data, 0, &line);
            assert_eq!(indices(&page[list]), *expected, "capstan {line} --json");
            assert_eq!((&page["tree_size"], &page["is_cut"]), (&6.into(), &false.into()));
        }
    };
    check();
    let (text, notes) = run(&data, 0, "log --limit 2 --data data");
    assert!(text.starts_with("#5 ") && text.contains("resolved"), "{text}");
    assert!(notes.contains("--cursor 4"), "{notes}");
    let (text, _) = run(&data, 0, "open-items --data data");
    assert!(text.contains("expires 2026-05-28T20:27:40Z by its own clock"), "{text}");
    run(&data, 2, "log --limit 201 --data data");
    run(&data, 2, "log");

    tell(&data, &asked);
    assert_eq!(run(&data, 0, "reindex --data data").0, "indexed 6 statements\n");
    let done = object(&data, 0, "reindex --data data");
    assert_eq!(done, serde_json::json!({ "ok": true, "code": "ok", "statements": 6 }));
    check();
    bundle(&data);
}

fn tell(data: &Path, asked: &str) {
    for name in ["pay-1", asked] {
        let (text, _) = run(data, 0, &format!("story {name} --data data"));
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(format!("closed  {name}").as_str()));
        assert!(lines.next().is_some_and(|l| l.contains("closed    by #5 #2 ")), "{text}");
        assert_eq!(places(&text).len(), 2, "{text}");
        let story = object(data, 0, &format!("story {name} --data data"));
        assert_eq!(
            (&story["state"], &story["chain"][0]["closed_by"]),
            (&"closed".into(), &5.into())
        );
        assert_eq!(indices(&story["chain"]), [2, 5]);
    }
    assert_eq!(object(data, 1, "story nobody --data data")["code"], "not-found");
}

fn bundle(data: &Path) {
    let (text, notes) = run(data, 0, "bundle 1.5 --data data -o action.bundle");
    assert!(text.is_empty() && notes.contains("wrote action.bundle"), "{text}{notes}");
    let report = object(data, 3, "verify action.bundle");
    assert_eq!((&report["artefact"], &report["ok"]), (&"bundle".into(), &Json::Null), "{report}");
    let checks = report["checks"].as_array().unwrap();
    let admitted = checks.iter().find(|check| check["check"] == "admitted").unwrap();
    assert_eq!(admitted["code"], "ok", "the decision is made again without the log: {report}");
    assert_eq!(object(data, 1, "bundle 1.77 --data data -o none")["code"], "not-found");
    assert!(!data.parent().unwrap().join("none").exists());
}

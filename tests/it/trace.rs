//! `capstan trace` on files.

use std::path::Path;
use std::process::Command;

use capstan::profile::cra::trace::{Event, GENESIS};
use capstan::wire::json::Json;
use serde_json::Value;

fn id(number: u64) -> String {
    format!("01939c6e-0000-7000-8000-{number:012x}")
}

/// Lines of a session whose third event has this result.
fn lines(session: u64, count: u64, third: &str) -> Vec<String> {
    let mut head = GENESIS.to_owned();
    let sealed = (0..count).map(|sequence| {
        let result = if sequence == 2 { third } else { "allow" };
        let payload = format!(r#"{{"policy_id":"\u001b[31mp","result":"{result}"}}"#);
        let mut event = Event {
            line: 0,
            at: String::new(),
            event_id: id(session * 100 + sequence),
            trace_id: id(session),
            span_id: id(session),
            parent_span_id: None,
            session_id: id(session),
            sequence,
            timestamp: "2024-12-28T12:00:00.000000Z".to_owned(),
            event_type: "policy.evaluated".to_owned(),
            payload: Json::read(payload.as_bytes()).unwrap(),
            hash: String::new(),
            previous: head.clone(),
        };
        let line = event.seal().unwrap() + "\n";
        head = event.hash;
        line
    });
    sealed.collect()
}

fn run(folder: &Path, exit: i32, line: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
    let output = command.args(line.split_whitespace()).current_dir(folder).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "capstan {line}\n{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(folder: &Path, exit: i32, line: &str) -> Value {
    serde_json::from_str(&run(folder, exit, &format!("{line} --json"))).unwrap()
}

#[test]
fn verify_diff_and_show_files() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, lines: &[String]| {
        std::fs::write(folder.path().join(name), lines.concat()).unwrap();
    };
    let folder = folder.path();
    let whole = lines(1, 5, "allow");
    write("whole", &whole);
    write("two", &[whole.clone(), lines(2, 3, "allow")].concat());
    write("fork", &lines(1, 5, "deny"));
    write("short", &whole[..3]);
    write("gap", &[&whole[..2], &whole[3..]].concat());
    write("part", &whole[3..]);
    write("bad", &[&whole[..2], &["{\n".to_owned()], &whole[2..]].concat());
    write("empty", &[]);

    let sound = json(folder, 0, "trace verify whole");
    assert_eq!((&sound["ok"], &sound["events"]), (&true.into(), &5.into()));
    assert_eq!(sound["sessions"][0]["state"], "sound");
    assert_eq!(json(folder, 0, "trace verify two")["sessions"][1]["session"], id(2));

    let gap = run(folder, 1, "trace verify gap");
    assert!(gap.contains("first bad event: 3 on line 3: chain-broken"), "{gap}");
    let gap = json(folder, 1, "trace verify gap");
    assert_eq!(gap["sessions"][0]["first_bad"]["sequence"], 3);
    let bad = run(folder, 1, "trace verify bad");
    assert!(bad.contains("error json-truncated at /2"), "{bad}");
    assert!(run(folder, 1, "trace verify empty").contains("trace-empty"));

    for (exit, file, verdict) in [
        (0, "two", "yes  8 events in 2 sessions, complete"),
        (1, "gap", "no  4 events in 1 sessions, broken"),
        (1, "empty", "no  0 events in 0 sessions, broken"),
        (3, "part", "cannot tell  intact, but the beginning of a session is missing"),
    ] {
        let text = run(folder, exit, &format!("trace verify {file}"));
        assert!(text.lines().last().unwrap().starts_with(verdict), "{text}");
    }

    let part = json(folder, 3, "trace verify part");
    assert_eq!((&part["ok"], &part["sessions"][0]["state"]), (&Value::Null, &"part".into()));
    let previous = part["sessions"][0]["previous"].as_str().unwrap();
    run(folder, 0, &format!("trace verify part --after {previous}"));
    let other = run(folder, 1, &format!("trace verify part --after {}", "a".repeat(64)));
    assert!(other.contains(&format!("it follows {previous}")), "{other}");

    assert_eq!(run(folder, 0, "trace diff whole whole"), "the same events\n");
    let fork = json(folder, 1, "trace diff whole fork");
    let parting = &fork["differences"][0];
    assert_eq!((&parting["kind"], &parting["sequence"]), (&"fork".into(), &2.into()));
    assert_eq!(parting["at"], serde_json::json!(["/event_hash", "/payload/result"]));
    assert!(
        run(folder, 1, "trace diff whole fork")
            .contains("they differ from event 2 on (line 3 of A")
    );
    assert!(run(folder, 1, "trace diff whole short").contains("B ends before event 3"));
    assert_eq!(json(folder, 1, "trace diff short whole")["differences"][0]["kind"], "a-ends");
    assert!(run(folder, 3, "trace diff whole bad").contains("some events cannot"));

    let table = run(folder, 0, "trace show two");
    assert!(table.lines().count() == 10 && !table.contains('\u{1b}'), "{table}");
    assert!(run(folder, 0, "trace show bad").contains("some events cannot be read"));
    assert_eq!(json(folder, 0, "trace show whole")["events"][4]["form"], "cra-trace-v1");
    run(folder, 2, "trace show empty");
}

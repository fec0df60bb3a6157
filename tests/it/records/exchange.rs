//! CARP exchanges of request, resolution and response. Conflicts are named in the
//! story, refused by a policy that asks for it, and the same from index and scan.
//! Documents of another issuer change none of it.

use std::process::Command;

use capstan::profile::cra::carp;
use capstan::profile::exchange::{Conflict, Conflicts};
use capstan::service::{self, ReplayOptions};
use serde_json::Value;

use super::facts::compare;
use super::samples::Carp;
use super::{AGENT, KEEP, OTHER, World, codes, id_of};

/// Admits only documents without conflicts.
const SOUND: &str = r#"
name = "sound"
[[allow]]
binding = ["pinned"]
ok = true
without_conflicts = [
    "denied", "duplicate-request", "expired", "no-request", "no-resolution", "unallowed",
]
"#;

fn seal(world: &World, issuer: &str, document: &Carp) -> Vec<u8> {
    world.seal(issuer, (carp::CONTENT_TYPE, &document.payload()))
}

const fn resolution(resolution: u32, decision: &'static str, ttl: u32) -> Carp {
    Carp::Resolution { resolution, request: 1, decision, ttl }
}

const fn execute(request: u32, resolution: u32, action: &'static str, at: u32) -> Carp {
    Carp::Execute { request, session: 0x5e, resolution, action, at }
}

const fn response(execution: u32, request: u32, resolution: u32, status: &'static str) -> Carp {
    Carp::Response { execution, request, resolution, status }
}

/// Issuer, document and its conflicts.
const LOGGED: &[(&str, Carp, &[&str])] = &[
    (AGENT, Carp::Resolve { request: 1, session: 0x5e }, &[]),
    (AGENT, resolution(0xa, "deny", 1), &[]),
    (AGENT, execute(2, 0xa, "t.look", 5), &["denied", "expired"]),
    (AGENT, response(0xe1, 2, 0xa, "success"), &["denied", "expired"]),
    (AGENT, response(0xe2, 2, 0xa, "denied"), &[]),
    // Allowed and in time.
    (AGENT, resolution(0xb, "partial", 300), &[]),
    (AGENT, execute(3, 0xb, "t.look", 5), &[]),
    (AGENT, response(0xe3, 3, 0xb, "success"), &[]),
    (AGENT, execute(4, 0xb, "t.drop", 5), &["denied"]),
    (AGENT, execute(5, 0xb, "t.fly", 5), &["unallowed"]),
    (AGENT, execute(3, 0xb, "t.look", 6), &["duplicate-request"]),
    (AGENT, Carp::Resolve { request: 3, session: 0x5f }, &[]),
    (AGENT, execute(6, 0xc, "t.look", 5), &["no-resolution"]),
    (AGENT, response(0xe4, 77, 0xb, "success"), &["no-request"]),
    // Another issuer denies what was allowed, reuses an id, and responds.
    (OTHER, resolution(0xb, "deny", 1), &[]),
    (
        OTHER,
        Carp::Execute { request: 7, session: 0x5e, resolution: 0xb, action: "t.look", at: 1 },
        &["denied"],
    ),
    (OTHER, resolution(0xd, "deny", 300), &[]),
    (AGENT, execute(7, 0xb, "t.look", 7), &[]),
    (OTHER, response(0xe5, 3, 0xb, "success"), &["no-request"]),
    (AGENT, execute(8, 0xd, "t.look", 7), &["other-issuer"]),
];

/// The code of the `admitted` check of a bundle.
fn admitted_by_bundle(world: &World) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
    command.args(["verify", "it.bundle", "--trust", "trust.toml", "--log-key", "log.pem"]);
    let output = command.arg("--json").current_dir(world.dir.path()).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["check"] == "admitted");
    check.and_then(|check| check["code"].as_str()).unwrap_or("missing").to_owned()
}

#[test]
fn conflicts_agree_between_index_and_scan() {
    let world = World::new(KEEP);
    for (issuer, document, _) in LOGGED {
        world.admit(&seal(&world, issuer, document));
    }
    let new = [
        seal(&world, AGENT, &execute(9, 0xa, "t.look", 1)),
        seal(&world, AGENT, &response(0xe6, 7, 0xb, "success")),
    ];
    let data = world.stop();
    let (walked, asked) = compare(&data, &new);
    let names = |conflicts: Conflicts| conflicts.iter().map(Conflict::name).collect();
    let found: Vec<Vec<&str>> = walked.iter().skip(3).map(|f| names(f.conflicts)).collect();
    for ((_, _, expected), (n, found)) in LOGGED.iter().zip(found.iter().enumerate()) {
        assert_eq!(found, expected, "document {n}");
    }
    assert_eq!(found.len(), LOGGED.len());
    assert_eq!(names(asked[0].conflicts), ["denied"], "a second in time");
    assert!(asked[1].conflicts.is_empty());
    world.run(0, "reindex --data data");
    assert_eq!(compare(&data, &new), (walked, asked), "the index made again says the same");
}

/// Each decision can be repeated from the log and from a bundle.
#[test]
fn policy_refuses_each_conflict() {
    let world = World::new(SOUND);
    let mut admitted = Vec::new();
    for (issuer, document, conflicts) in LOGGED {
        if matches!(document, Carp::Response { status: "denied", .. }) {
            continue; // Its request is refused here.
        }
        let statement = seal(&world, issuer, document);
        let is_sound = conflicts.iter().all(|conflict| *conflict == "other-issuer");
        if is_sound {
            world.admit(&statement);
            admitted.push(id_of(&statement));
            continue;
        }
        // A refused document does not exist for later ones.
        let (status, body) = world.post(&statement);
        let text = String::from_utf8_lossy(&body);
        let is_named = conflicts.iter().any(|conflict| text.contains(conflict));
        let is_later = text.contains("no-request");
        assert!(status == 400 && (is_named || is_later), "{conflicts:?}: {status} {text}");
    }
    for id in &admitted {
        world.run_with_url(&format!("bundle {id} --output it.bundle"));
        assert_eq!(admitted_by_bundle(&world), "ok");
    }
    let data = world.stop();
    let replayed = service::replay(&data, ReplayOptions::default(), &mut |_, _| {}).unwrap();
    let size = 3 + u64::try_from(admitted.len()).unwrap();
    assert_eq!((replayed.decided, replayed.changed), (size, Vec::new()));
}

/// An expired denial, an execution against it and a successful response.
#[test]
fn story_names_each_conflict() {
    let world = World::new(KEEP);
    for (issuer, document, _) in LOGGED.iter().take(4) {
        world.admit(&seal(&world, issuer, document));
    }
    for name in [0xa, 1, 2, 0xe1] {
        let story = world.get(&format!("/api/v1/stories/{}", Carp::id(name)));
        let mut found = codes(&story["findings"]);
        found.retain(|code| *code != "carp_clock_skew");
        assert_eq!(found, ["carp_denied", "carp_expired", "carp_executed_against"], "{story}");
    }
    let text = world.run_with_url(&format!("story {}", Carp::id(2)));
    assert!(text.starts_with("closed, 3 errors below  "), "{text}");
    assert!(
        text.contains("error     #5: resolution #4, denies \"t.look\" (carp_denied)"),
        "{text}"
    );
    assert!(text.contains("resolution #4, had ended at 2024-12-28T12:00:01Z"), "{text}");
    assert!(text.contains("warning   #5: its clock is "), "{text}");
}

/// Clock skew is checked at registration and nowhere else.
#[test]
fn clock_skew_is_refused_at_registration_only() {
    let policy = |seconds: u64| format!("{SOUND}\n[clock]\nskew_seconds = {seconds}\n");
    let world = World::new(&policy(300));
    let request = seal(&world, AGENT, &Carp::Resolve { request: 1, session: 2 });
    let why = world.refused(&request);
    assert!(why.contains("refuses this statement by rule \"clock\""), "{why}");
    assert!(why.contains("s off, more than 300 (3.6)"), "{why}");
    world.admit(&seal(&world, AGENT, &resolution(0xa, "deny", 1)));
    let world = World::new(&policy(10_000_000_000));
    let request = seal(&world, AGENT, &Carp::Resolve { request: 1, session: 2 });
    world.admit(&request);
}

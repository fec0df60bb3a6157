//! The JSON of every read route and the text of every read verb, byte for
//! byte, for a log with records of every profile. Ids and times differ between
//! runs and are replaced; sentences for people are left out of the JSON.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use capstan::profile::capsule::{Action, Attested, EffectState, OUTCOME_CONTENT_TYPE};
use capstan::wire::jcs::Suite;
use capstan::wire::json::Json as Text;
use capstan::wire::time::UnixSeconds;
use serde_json::json;

use super::*;
use crate::api_v1::action;

/// Members whose values are sentences, or differ between runs.
const LEFT_OUT: &[&str] = &["detail", "note", "text", "digest", "root", "software", "request_id"];

/// Replaces what differs between runs.
struct Normalizer {
    started: UnixSeconds,
    ids: HashMap<String, usize>,
}

impl Normalizer {
    fn token(&mut self, token: &str) -> String {
        let is_hex = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let is_short = |(head, tail): (&str, &str)| {
            (head.len(), tail.len()) == (8, 4) && is_hex(head) && is_hex(tail)
        };
        if token.len() == 64 && is_hex(token) {
            let next = self.ids.len();
            return format!("<id {}>", self.ids.entry(token.to_owned()).or_insert(next));
        }
        if token.split_once('…').is_some_and(is_short) {
            return "<short id>".to_owned();
        }
        match UnixSeconds::from_rfc3339(token) {
            Some(time) if time >= self.started => "<now>".to_owned(),
            _ => token.to_owned(),
        }
    }

    fn text(&mut self, text: &str) -> String {
        let (mut out, mut token) = (String::new(), String::new());
        for c in text.chars().chain(['\n']) {
            if c.is_alphanumeric() || ".:-…".contains(c) {
                token.push(c);
            } else {
                out.push_str(&self.token(&token));
                token.clear();
                out.push(c);
            }
        }
        out
    }

    fn json(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for name in LEFT_OUT {
            let start = format!("\"{name}\":\"");
            let parts: Vec<&str> = text.split(&start).collect();
            let value_end = |part: &str| {
                let mut escaped = false;
                part.find(|c| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                })
            };
            let rest = parts[1..].iter().map(|part| &part[value_end(part).unwrap()..]);
            text = [parts[0]].into_iter().chain(rest).collect::<Vec<_>>().join(&start);
        }
        self.text(&text)
    }
}

/// The same for the lines that print findings.
fn without_sentences(text: &str) -> String {
    let line = |line: &str| match line.split_once(": ") {
        Some((head, detail)) if head.starts_with("  warning") => {
            format!("{head}: {}\n", detail.rsplit(' ').next().unwrap())
        }
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// The body of an answer, for a client that takes anything.
fn get(world: &World, path: &str) -> String {
    let mut stream = TcpStream::connect(&world.server.address).unwrap();
    let head =
        format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\naccept: */*\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// A log with one record of each kind, a chain of actions that ends in a
/// reversal, an action that waits, and one that an outsider tries to close.
fn filled() -> World {
    let world = World::new(KEEP);
    for (_, content_type, payload) in one_of_each() {
        world.admit(&world.seal(AGENT, (content_type, &payload)));
    }
    let with = json!({ "intervention": "counterfactual", "sim_real_corr": 0.5 });
    let imagined = causal(&name(0xC), &[&name(0xA), &name(0xD)], with);
    world.admit(&world.seal(AGENT, (pacr::JSON_CONTENT_TYPE, &imagined)));
    world.admit(&world.causal(&name(0xE), &[&name(0xA)]));
    let by = Attested::GateExecuted;
    let response = Suite::JcsN.digest(&Text::read(b"{\"ok\":true}").unwrap()).unwrap();
    let confirmed = EffectState::Confirmed { request: None, response, by };
    let pay = |state| {
        let mut action = action("pay-1", "executed", Some(state));
        action.effect.as_mut().unwrap().external_ref = Some("po-7".to_owned());
        action
    };
    world.register_action(&pay(confirmed));
    world.register_action(&action("pay-2", "deferred", None));
    let asked = world.register_action(&action("pay-3", "hitl_dispatched", None));
    let closing = |operator: &str| Action {
        operator: operator.to_owned(),
        supersedes: Some(asked.clone()),
        ..action("pay-3", "resolved", None)
    };
    world.register_action(&closing("evil"));
    world.register_action(&closing("acme"));
    let reverted = EffectState::Reverted { request: None, response: Some(response), by };
    world.register_action(&Action { action_id: "undo-1".to_owned(), ..pay(reverted) });
    let claims = [
        ("capsule_statement_type", "outcome".to_owned()),
        ("capsule_decision_id", "pay-1".to_owned()),
    ];
    let draft = Draft {
        content_type: OUTCOME_CONTENT_TYPE,
        issuer: AGENT,
        subject: "urn:agent-action-capsule:acme:pay-1",
        issued_at: None,
        payload: b"{\"action_id\":\"pay-1\"}",
    };
    world.admit(&seal_with_claims(&draft, &claims, &world.keys[0]).unwrap());
    world
}

#[test]
fn json_and_text_of_every_read_are_as_recorded() {
    let started = service::now();
    let world = filled();
    let size = world.get("/")["tree_size"].as_u64().unwrap();
    let mut normalizer = Normalizer { started, ids: HashMap::new() };
    let mut actual = String::new();
    let statements = (0..size).map(|index| format!("/api/v1/statements/1.{index}"));
    let [a, b, c, e] = [0xA, 0xB, 0xC, 0xE].map(name);
    let others = [
        "/".to_owned(),
        "/policy".to_owned(),
        "/health/live".to_owned(),
        "/health/ready".to_owned(),
        "/api/v1/statements".to_owned(),
        "/api/v1/statements?operator=acme&limit=2".to_owned(),
        "/api/v1/statements?operator=nobody".to_owned(),
        "/api/v1/open-items".to_owned(),
        "/api/v1/names/pay-1".to_owned(),
        "/api/v1/names/nothing".to_owned(),
        "/api/v1/stories/pay-1".to_owned(),
        "/api/v1/stories/pay-2".to_owned(),
        "/api/v1/stories/pay-3".to_owned(),
        format!("/api/v1/stories/{SESSION}"),
        format!("/api/v1/lineages/{c}"),
        format!("/api/v1/lineages/{a}/to/{b}"),
        format!("/api/v1/lineages/{b}/to/{e}"),
        format!("/api/v1/lineages/{c}/to/{e}"),
        format!("/api/v1/lineages/{b}/prov"),
        "/api/v1/stories/nothing".to_owned(),
        "/api/v1/statements?verdikt=x".to_owned(),
        "/nothing".to_owned(),
    ];
    for path in statements.chain(others) {
        let body = normalizer.json(&get(&world, &path));
        actual += &format!("GET {path}\n{body}\n");
    }
    let lines = [
        "log".to_owned(),
        "log --limit 2".to_owned(),
        "find acme pay-1".to_owned(),
        "open-items".to_owned(),
        "story pay-1".to_owned(),
        "story pay-3".to_owned(),
        format!("story {SESSION}"),
        format!("lineage {b}"),
        format!("lineage {a} --to {b}"),
        format!("lineage {b} --to {e}"),
    ];
    for line in lines {
        for flag in ["", " --json"] {
            let text = world.run_with_url(&format!("{line}{flag}"));
            let text = match flag {
                "" => normalizer.text(&without_sentences(&text)),
                _ => normalizer.json(&text),
            };
            actual += &format!("capstan {line}{flag}\n{text}\n");
        }
    }
    let incomplete = world.run(3, &format!("lineage {c} --url http://{}", world.server.address));
    actual += &normalizer.text(&incomplete);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/records/golden.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, &actual).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap() == actual, "run with UPDATE_EXPECT=1");
}

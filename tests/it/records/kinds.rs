//! Each kind of record: registered, fetched and verified.

use capstan::envelope::SignedStatement;
use capstan::key::{Algorithm, SigningKey};
use capstan::trust::{TrustAnchors, TrustedLog};
use capstan::verify::{Bundle, Demand, Evidence, Outcome, Report, verify};
use capstan::wire::cbor::Value;
use capstan::wire::time::UnixSeconds;

use super::{AGENT, SESSION, STRICT, World, batches, id_of, indices, name, one_of_each};
use crate::live::request;

pub(super) fn report_on(bytes: &[u8], trust: &TrustAnchors) -> Report {
    let report = report_allowing_dev(bytes, trust);
    assert_ne!(report.verdict(), Outcome::No, "{report:?}");
    report
}

fn report_allowing_dev(bytes: &[u8], trust: &TrustAnchors) -> Report {
    let demand = Demand { allow_development: true, ..Demand::default() };
    let evidence = Evidence::new(trust, UnixSeconds::new(1_790_000_000));
    verify(bytes, &Evidence { demand: &demand, ..evidence })
}

/// Whether the record in `bytes` is anchored under `trust`.
fn is_anchored(bytes: &[u8], trust: &TrustAnchors) -> bool {
    report_on(bytes, trust).record.expect("a record").is_anchored
}

#[test]
fn every_kind_is_registered_fetched_and_verified_offline() {
    let world = World::new(STRICT);
    let stranger = SigningKey::generate(Algorithm::Es256).unwrap();
    let other_log = TrustAnchors::default()
        .with_issuer(AGENT, &[world.keys[0].public().clone()])
        .with_log(TrustedLog {
            name: "https://other.invalid".to_owned(),
            keys: vec![stranger.public().clone()],
            checkpoint: None,
        });
    for (profile, content_type, payload) in one_of_each() {
        let statement = world.seal(AGENT, (content_type, &payload));
        let transparent = world.admit(&statement);
        let report = report_on(&transparent, &world.trust);
        assert_eq!(report.verdict(), Outcome::Yes, "{report:?}");
        let record = report.record.expect("a record");
        assert_eq!((record.profile, record.summary.ok), (profile, Some(true)), "{record:?}");
        assert!(record.is_anchored, "{content_type}");
        let bare =
            SignedStatement::parse_any_size(transparent.clone()).unwrap().canonical().into_owned();
        assert!(!is_anchored(&bare, &world.trust), "{content_type} without its receipt");
        assert!(!is_anchored(&transparent, &other_log), "{content_type} of a log nobody trusts");

        let shown = world.get(&format!("/api/v1/statements/{}", id_of(&statement)));
        assert_eq!((&shown["profile"], &shown["record"]["ok"]), (&profile.into(), &true.into()));
        let page = world.get(&format!("/api/v1/statements?profile={profile}"));
        let index = shown["index"].as_u64().unwrap();
        assert_eq!(indices(&page["statements"])[0], index, "{content_type} is the newest");
        check_command_line(&world, (profile, &transparent, &bare));
    }
}

fn check_command_line(world: &World, (profile, transparent, bare): (&str, &[u8], &[u8])) {
    std::fs::write(world.dir.path().join("x.cose"), transparent).unwrap();
    std::fs::write(world.dir.path().join("bare.cose"), bare).unwrap();
    let line = "verify x.cose --trust trust.toml --log-key log.pem";
    assert!(world.run(3, line).contains("log-development"));
    let text = world.run(0, &format!("{line} --allow-dev"));
    let line = text.lines().find(|line| line.trim_start().starts_with("record ")).unwrap();
    assert!(line.contains(profile) && line.ends_with("; anchored"), "{line}");
    let text = world.run(0, "verify bare.cose --trust trust.toml --signed-only");
    assert!(text.contains("; self-attested"), "{text}");
    let report = world.run(3, "verify x.cose --trust trust.toml --json");
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["record"]["attestation_mode"], "self_attested", "{report}");
    let text = world.run(0, "inspect x.cose");
    assert!(text.lines().any(|line| line.trim() == profile), "{text}");
}

/// An invalid record that a lenient policy admitted is anchored, but still a no.
#[test]
fn invalid_record_on_the_log_is_still_a_no() {
    let world = World::new(super::KEEP);
    for (profile, content_type, payload) in one_of_each() {
        let cut = &payload[..payload.len() / 2];
        let transparent = world.admit(&world.seal(AGENT, (content_type, cut)));
        let report = report_allowing_dev(&transparent, &world.trust);
        assert_eq!(report.verdict(), Outcome::No, "{profile}: {report:?}");
        let check = report.checks.iter().find(|check| check.name == "record").unwrap();
        assert_eq!(check.outcome, Outcome::No);
        assert!(report.record.unwrap().is_anchored);
    }
}

/// A bundle has the entries the policy asked about: causes, previous batch.
#[test]
fn bundle_proves_admission_of_records() {
    let world = World::new(STRICT);
    let [first, second] = [1, 2].map(name);
    let mut sent = vec![world.causal(&first, &[]), world.causal(&second, &[&first])];
    sent.push(world.causal(&name(3), &[&first, &second]));
    sent.extend(batches(SESSION, 3).iter().map(|lines| world.batch(lines)));
    let bundle = |statement: &Vec<u8>| {
        let path = format!("GET /api/v1/bundles/{}", id_of(statement));
        let (status, bundle) = request(&world.server.address, &path, b"").unwrap();
        assert_eq!(status, 200);
        bundle
    };
    let admitted = |bytes: &[u8]| {
        let report = report_on(bytes, &world.trust);
        assert!(report.record.as_ref().expect("a record").is_anchored);
        let check = report.checks.into_iter().find(|check| check.name == "admitted");
        check.map(|check| (check.outcome, check.code)).unwrap()
    };
    sent.iter().for_each(|statement| drop(world.admit(statement)));
    for statement in &sent {
        assert_eq!(admitted(&bundle(statement)), (Outcome::Yes, "ok"));
    }
    let whole = bundle(&sent[2]);
    let value = Value::read(&whole).unwrap();
    let part = |label: i64| value.get(label).unwrap().bytes().unwrap().to_vec();
    assert_eq!(value.get(4).unwrap().array().map(<[_]>::len), Some(2), "both causes");
    let poorer = Bundle {
        statement: part(1),
        policy: part(2),
        trust: part(3),
        chain: Vec::new(),
        checkpoint: value.get(5).unwrap().text().unwrap().to_owned(),
        collateral: part(6),
        time: UnixSeconds::new(value.get(7).unwrap().int().unwrap()),
    };
    assert_eq!(admitted(&poorer.encode()), (Outcome::CannotTell, "predecessors-not-shown"));
}

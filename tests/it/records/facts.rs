//! The facts about each statement are the same from the index, from a scan and
//! from a rebuilt index, so every decision can be replayed.

use std::path::Path;

use capstan::envelope::{RulesVersion, SignedStatement, StatementId};
use capstan::log::LeafIndex;
use capstan::policy::{Facts, Memory};
use capstan::profile::session::Continuity;
use capstan::profile::{Read, pacr, pca, read_payload};
use capstan::service::look_up_facts;
use capstan::service::{self, ReplayOptions};
use capstan::store::{Backend, Store};
use serde_json::json;

use super::{
    AGENT, GENESIS, KEEP, OTHER, SESSION, STRICT, World, batches, causal, certificate, events,
    name, one_of_each, trace,
};
use crate::api_v1::action;

fn read(bytes: &[u8]) -> (String, Read, StatementId) {
    let statement = SignedStatement::parse_any_size(bytes.to_vec()).unwrap();
    let read = read_payload(statement.header(), statement.payload().unwrap());
    (statement.header().claims.issuer.clone().unwrap(), read, StatementId::of(&statement))
}

/// Statements of every kind, including irregular ones.
fn history(world: &World) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> =
        one_of_each().iter().map(|(_, kind, payload)| world.seal(AGENT, (kind, payload))).collect();
    let other_session = "01939c6e-0000-7000-8000-0000000000ff";
    let lines = batches(other_session, 4);
    all.extend([0, 2, 3, 1].map(|n| world.batch(&lines[n])));
    all.push(world.batch(&events(other_session, (6, 2), &"1".repeat(64), "another").0));
    all.push(world.batch(&batches("01939c6e-0000-7000-8000-0000000000fe", 2)[1]));
    for n in [0, 1] {
        let of_another = (trace::BATCH_CONTENT_TYPE, lines[n].as_bytes());
        all.push(world.seal(OTHER, of_another));
    }
    all.push(world.causal(&name(0xB), &[]));
    all.push(world.causal(&name(2), &[&name(1)]));
    all.push(world.causal(&name(1), &[&name(2)]));
    for (issuer, nonce) in [(AGENT, "n-1"), (OTHER, "n-1"), (AGENT, "n-9")] {
        let mut plan = certificate(issuer, nonce);
        plan["pc_id"] = json!("another");
        let plan = plan.to_string();
        all.push(world.seal(issuer, (pca::CERTIFICATE_CONTENT_TYPE, plan.as_bytes())));
    }
    all
}

/// Statements that are not logged but refer to logged ones.
fn unlogged_statements(world: &World) -> Vec<Vec<u8>> {
    let (_, head) = events(SESSION, (0, 1), GENESIS, "p");
    let (_, head) = events(SESSION, (1, 3), &head, "p");
    let other_session = "01939c6e-0000-7000-8000-0000000000ff";
    let plan = certificate(OTHER, "n-9").to_string();
    let next = |n: usize| batches(other_session, 6)[n].clone();
    let again = causal(&name(0xA), &[&name(1)], json!({"inner": "x"}));
    vec![
        world.batch(&events(SESSION, (4, 1), &head, "p").0),
        world.batch(&events(SESSION, (4, 1), &"1".repeat(64), "p").0),
        world.batch(&next(4)),
        world.batch(&next(5)),
        world.batch(&batches("01939c6e-0000-7000-8000-0000000000fe", 3)[2]),
        world.batch(&batches("01939c6e-0000-7000-8000-0000000000aa", 1)[0]),
        world.causal(&name(5), &[&name(1), &name(2), &name(0xA)]),
        world.seal(OTHER, (pca::CERTIFICATE_CONTENT_TYPE, plan.as_bytes())),
        world.seal(OTHER, (pacr::JSON_CONTENT_TYPE, &again)),
    ]
}

/// Compares index and scan for the whole log and for `new` statements, under
/// every version of the rules; the facts of the scan under the last.
pub(super) fn compare(data: &Path, new: &[Vec<u8>]) -> (Vec<Facts>, Vec<Facts>) {
    compare_by(data, new, RulesVersion::V1);
    compare_by(data, new, RulesVersion::V2)
}

fn compare_by(data: &Path, new: &[Vec<u8>], rules: RulesVersion) -> (Vec<Facts>, Vec<Facts>) {
    let (store, head) = Store::open_unchecked(Backend::open(data).unwrap()).unwrap();
    let mut memory = Memory::default();
    let mut walked = Vec::new();
    for index in 0..head.size().get() {
        let stored = store.statement(LeafIndex::new(index)).unwrap().unwrap();
        let (issuer, read, id) = read(&stored.canonical);
        let Ok(facts) = Facts::look_up(&issuer, &read.summary, &memory, rules);
        let found = look_up_facts(&store, &issuer, &read.summary, &id, rules).unwrap();
        assert_eq!(found, facts, "#{index}");
        memory.add(&issuer, &read.summary);
        walked.push(facts);
    }
    let ask = |bytes: &Vec<u8>| {
        let (issuer, read, id) = read(bytes);
        let Ok(facts) = Facts::look_up(&issuer, &read.summary, &memory, rules);
        let found = look_up_facts(&store, &issuer, &read.summary, &id, rules).unwrap();
        assert_eq!(found, facts, "{read:?}");
        facts
    };
    let asked = new.iter().map(ask).collect();
    (walked, asked)
}

fn check_replay(data: &Path, size: u64) {
    let replayed = service::replay(data, ReplayOptions::default(), &mut |_, _| {}).unwrap();
    assert_eq!((replayed.decided, replayed.changed), (size, Vec::new()));
    let checked = service::fsck(data, None, &mut |_, _| {}).unwrap();
    assert_eq!(checked.findings, []);
}

#[test]
fn facts_agree_between_index_and_scan() {
    let world = World::new(KEEP);
    let logged = history(&world);
    logged.iter().for_each(|statement| drop(world.admit(statement)));
    let asked = world.register_action(&action("pay-1", "hitl_dispatched", None));
    let closing = action("pay-1", "resolved", None);
    world
        .register_action(&capstan::profile::capsule::Action { supersedes: Some(asked), ..closing });
    let size = 3 + u64::try_from(logged.len()).unwrap() + 2;
    let new = unlogged_statements(&world);
    let data = world.stop();

    let (walked, asked) = compare(&data, &new);
    assert_eq!(walked.len(), usize::try_from(size).unwrap());
    let sessions: Vec<_> = walked.iter().filter_map(|facts| facts.session).collect();
    use Continuity::{Extends, Fork, Gap, New, NotGenesis, Overlaps};
    assert_eq!(
        sessions,
        [New, Extends, New, Gap, Extends, Overlaps, Fork, NotGenesis, New, Extends]
    );
    let nonces: Vec<_> = walked.iter().filter_map(|facts| facts.nonce_used).collect();
    assert_eq!(nonces, [false, true, false, false]);
    assert_eq!(walked.iter().filter(|facts| facts.record_id_other_content).count(), 1);
    let predecessors: Vec<_> = walked.iter().filter_map(|facts| facts.predecessors_known).collect();
    assert_eq!(predecessors, [true, false, true]);
    let sessions: Vec<_> = asked.iter().filter_map(|facts| facts.session).collect();
    assert_eq!(sessions, [Extends, Fork, Extends, Gap, Extends, New]);
    assert_eq!(asked[6].predecessors_known, Some(true));
    assert_eq!(asked[7].nonce_used, Some(false), "a nonce of somebody else");
    assert!(asked[8].record_id_other_content);

    let indexed = world.run(0, "reindex --data data");
    assert_eq!(indexed, format!("indexed {size} statements\n"));
    assert_eq!(compare(&data, &new), (walked, asked), "the index made again says the same");
    check_replay(&data, size);
}

/// The same under a policy whose decisions depend on earlier entries.
#[test]
fn strict_decisions_replay() {
    let world = World::new(STRICT);
    let logged = history(&world);
    let admitted = logged.iter().filter(|statement| world.post(statement).0 == 201).count();
    assert!(admitted > 9 && admitted < logged.len(), "{admitted} of {}", logged.len());
    let data = world.stop();
    check_replay(&data, 3 + u64::try_from(admitted).unwrap());
    world.run(0, "replay --data data");
}

/// Of two conflicting statements sent at once, exactly one is logged.
#[test]
fn concurrent_conflicts_admit_one() {
    let world = World::new(STRICT);
    let pair = |n: u32| -> Vec<[Vec<u8>; 2]> {
        let session = format!("01939c6e-0000-7000-8000-0000000002{n:02x}");
        let history = |story: &str| world.batch(&events(&session, (0, 2), GENESIS, story).0);
        let plan = |id: &str| {
            let mut plan = certificate(AGENT, &format!("n-{n}"));
            plan["pc_id"] = json!(id);
            world.seal(AGENT, (pca::CERTIFICATE_CONTENT_TYPE, plan.to_string().as_bytes()))
        };
        let told = |inner: &str| {
            let record = causal(&name(n), &[], json!({ "inner": inner }));
            world.seal(AGENT, (pacr::JSON_CONTENT_TYPE, &record))
        };
        vec![["p", "q"].map(history), ["p", "q"].map(plan), ["p", "q"].map(told)]
    };
    let pairs: Vec<[Vec<u8>; 2]> = (1..=12).flat_map(pair).collect();
    let admitted: Vec<[u16; 2]> = std::thread::scope(|scope| {
        let world = &world;
        let post = |statement| scope.spawn(move || world.post(statement).0);
        let sent = pairs.iter().map(|[one, other]| [post(one), post(other)]);
        let sent: Vec<_> = sent.collect();
        sent.into_iter().map(|pair| pair.map(|one| one.join().unwrap())).collect()
    });
    for statuses in &admitted {
        assert!(matches!(statuses, [201, 400] | [400, 201]), "{admitted:?}");
    }
    let data = world.stop();
    check_replay(&data, 3 + u64::try_from(pairs.len()).unwrap());
}

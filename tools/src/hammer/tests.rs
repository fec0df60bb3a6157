//! What the hammer sends, and what it makes of what it sees.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use capstan::envelope::{AuthContext, Resolved, SignedStatement, StatementId};
use capstan::log::leaf_hash;
use capstan::profile::{self, Severity};
use capstan::service::now;
use capstan::trust::TrustAnchors;
use capstan::wire::digest::Digest;
use capstan::wire::time::UnixSeconds;
use clap::Parser as _;
use fastrand::Rng;

use super::acknowledged::{Acknowledged, Acknowledgements};
use super::broken::{Broken, Promise, RunFacts};
use super::heads::{Heads, SeenHead};
use super::mix::{Kind, Mix};
use super::plan::Args;
use super::records::Name;
use super::signers::{KeyKind, signers, trust};
use super::statements::{Generator, Item};
use super::tree::Tree;

const ALL: [KeyKind; 3] = [KeyKind::Es256, KeyKind::Ed25519, KeyKind::X5chain];

fn generator(mix: &str) -> (Generator, TrustAnchors) {
    let signers = signers(&ALL, None).unwrap();
    let trust = TrustAnchors::parse(&trust(&signers)).unwrap();
    let name = Name { salt: 0x1234_5678_9abc_def0, worker: 3, number: 0 };
    (Generator::new(Arc::new(signers), mix.parse().unwrap(), 7, name), trust)
}

#[test]
fn generated_statements_are_valid_and_unique() {
    let (mut generator, trust) = generator("capsules=4,pacr=2,pca=1,trace=2,opaque=1");
    let (mut ids, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..200 {
        let item = generator.next().unwrap();
        let statement = SignedStatement::parse(item.bytes.to_vec()).unwrap();
        assert_eq!(StatementId::of(&statement), item.id);
        let authentic =
            statement.authenticate(&AuthContext::new(&trust, &Resolved::default(), now())).unwrap();
        let binding = authentic.issuer().binding.name();
        assert_eq!(binding == "x5chain", item.key == KeyKind::X5chain, "{binding}");
        let read = profile::read(&authentic);
        let worst = read.findings.iter().map(|f| f.severity).max();
        assert!(worst <= Some(Severity::Info), "{:?}: {:?}", item.kind, read.findings);
        assert!(ids.insert(item.id.to_string()), "{:?} again", item.kind);
        kinds.insert((item.kind, item.key.name()));
    }
    assert_eq!(kinds.len(), 15, "every kind with every key: {kinds:?}");
}

#[test]
fn damaged_statements_are_not_authentic() {
    let (mut generator, trust) = generator("capsules");
    let mut damages = BTreeSet::new();
    for _ in 0..40 {
        let item = generator.damaged(false).unwrap();
        let authentic = SignedStatement::parse(item.bytes.to_vec())
            .and_then(|s| s.authenticate(&AuthContext::new(&trust, &Resolved::default(), now())));
        assert!(authentic.is_err(), "{:?}", item.damage);
        damages.insert(item.damage.unwrap());
        let item = generator.damaged(true).unwrap();
        assert!(SignedStatement::parse(item.bytes.to_vec()).is_ok(), "still CBOR");
    }
    assert_eq!(damages.len(), 3);
}

#[test]
fn mix_parses_weights_and_reports_mistakes() {
    let mut random = Rng::with_seed(1);
    let mix: Mix = "capsules=3,opaque,pca=0".parse().unwrap();
    let picked: Vec<Kind> = (0..1000).map(|_| mix.pick(&mut random)).collect();
    let capsules = picked.iter().filter(|kind| **kind == Kind::Capsules).count();
    assert!((650..850).contains(&capsules), "{capsules}");
    assert!(!picked.contains(&Kind::Pca) && mix.has(Kind::Opaque) && !mix.has(Kind::Pca));
    for (text, needle) in [
        ("capsule=1", "capsules is meant"),
        ("pca=0", "nothing is left"),
        ("pca=x", "a weight is"),
        ("pca,pca", "twice"),
        ("", "there are"),
    ] {
        let error = text.parse::<Mix>().unwrap_err();
        assert!(error.contains(needle), "{text}: {error}");
    }
}

fn head(size: u64, root: &str) -> SeenHead {
    SeenHead::new(size, Digest::of(root.as_bytes()), "checkpoint.txt", root.as_bytes())
}

#[test]
fn forks_and_shrinking_checkpoints_are_detected() {
    let mut heads = Heads::default();
    for size in [5, 3, 9] {
        heads.saw_checkpoint(head(size, &size.to_string()), 0).unwrap();
    }
    heads.saw(head(5, "5")).unwrap();
    let forked = heads.saw(head(5, "another")).unwrap_err();
    assert_eq!(forked.promise, Promise::OneRoot);
    let shrunk = heads.saw_checkpoint(head(5, "5"), 9).unwrap_err();
    assert_eq!(shrunk.promise, Promise::OnlyGrows);
    heads.saw_checkpoint(head(5, "5"), 3).unwrap();
    let mut random = Rng::with_seed(3);
    let pairs = (0..100).filter_map(|_| heads.pair(&mut random));
    let pairs: BTreeSet<(u64, u64)> = pairs.map(|(a, b)| (a.size, b.size)).collect();
    assert_eq!(pairs, [(3, 5), (3, 9), (5, 9)].into());
}

#[test]
fn head_times_must_not_decrease() {
    let at = |size, time| head(size, &size.to_string()).signed_at(UnixSeconds::new(time));
    let mut heads = Heads::default();
    heads.saw(at(5, 100)).unwrap();
    heads.saw(head(6, "6")).unwrap();
    heads.saw(at(9, 100)).unwrap();
    for (size, time) in [(3, 101), (7, 99), (10, 99)] {
        let broken = heads.saw(at(size, time)).unwrap_err();
        assert_eq!(broken.promise, Promise::TimeGoesOn, "{size} at {time}");
    }
    heads.saw(at(7, 100)).unwrap();
}

#[test]
fn thinned_heads_are_still_compared() {
    let mut heads = Heads::default();
    (1..20_000).for_each(|size| heads.saw(head(size, &size.to_string())).unwrap());
    assert_eq!(heads.count, 19_999);
    let kept = heads.all();
    assert!(kept.len() <= 8192 && kept.len() > 4000, "{}", kept.len());
    let last = kept.last().unwrap().size;
    assert_eq!(heads.saw(head(last, "x")).unwrap_err().promise, Promise::OneRoot);
}

#[test]
fn uncompared_heads_are_not_dropped() {
    let mut heads = Heads::default();
    for size in 1..20_000 {
        heads.saw(head(size, &size.to_string())).unwrap();
        if size % 1000 == 0 {
            let due = heads.to_compare(size);
            due.iter().for_each(|head| heads.has_compared(head));
            assert_eq!(heads.compared, size, "each of them, and once");
        }
    }
    assert!(heads.all().len() <= 8192);
    assert_eq!(heads.to_compare(u64::MAX).len(), 999);
}

#[test]
fn acknowledged_statement_is_exactly_one_leaf() {
    let (mut generator, _) = generator("opaque");
    let mut acknowledged = Acknowledgements::new(1);
    let item = generator.next().unwrap();
    let (own, other) = (leaf_hash(item.id.entry()), Digest::of(b"other"));
    let receipt = b"receipt".as_slice().into();
    acknowledged
        .acknowledge(Acknowledged { item, index: Some(1), location: None, receipt })
        .unwrap();
    let tree = |leaves: &[Digest]| Tree::of(leaves.iter().copied());
    assert_eq!(tree(&[other, own]).holds(&acknowledged).unwrap(), 1);
    assert_eq!(tree(&[other]).holds(&acknowledged).unwrap(), 0, "not there yet");
    for leaves in [[other, other, other], [other, own, own], [own, other, other]] {
        let broken = tree(&leaves).holds(&acknowledged).unwrap_err();
        assert_eq!(broken.promise, Promise::Keeps);
        let names = saved(&broken, &tempfile::tempdir().unwrap().path().join("evidence"));
        assert_eq!(names, ["leaves.bin", "statement.cose", "receipt.cose", "broken.json"]);
    }
}

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

#[test]
fn pre_signing_writers_share_all_requests() {
    let rows = [
        ("--count 200 --batch 20", [2, 2, 1, 1, 1, 1, 1, 1]),
        ("--count 10", [2, 2, 1, 1, 1, 1, 1, 1]),
        ("--count 5 --batch 3", [1, 1, 0, 0, 0, 0, 0, 0]),
    ];
    for (line, requests) in rows {
        let line = format!("hammer --url http://127.0.0.1 --dev --pre-signed {line}");
        let plan = Line::parse_from(line.split(' ')).args.plan();
        let found: Vec<u64> = (0..8).filter_map(|worker| plan.requests_of(worker)).collect();
        assert_eq!(found, requests, "{line}");
    }
    let signing = Line::parse_from(["hammer", "--url", "http://127.0.0.1", "--count", "5"]);
    assert_eq!(signing.args.plan().requests_of(0), None);
}

#[test]
fn leaf_and_statement_are_one_to_one() {
    let (mut generator, _) = generator("opaque");
    let mut acknowledged = Acknowledgements::new(1);
    let taken = |item: Item, index| Acknowledged {
        item,
        index: Some(index),
        location: None,
        receipt: b"receipt".as_slice().into(),
    };
    let first = taken(generator.next().unwrap(), 4);
    acknowledged.acknowledge(first.clone()).unwrap();
    first.same_place(Some(4), b"").unwrap();
    assert_eq!(first.same_place(Some(5), b"").unwrap_err().promise, Promise::OnePlace);
    let other = taken(generator.next().unwrap(), 4);
    let broken = acknowledged.acknowledge(other).unwrap_err();
    assert_eq!(broken.promise, Promise::OnePlace);
    let dir = tempfile::tempdir().unwrap();
    for name in ["evidence", "evidence-2"] {
        let names = saved(&broken, &dir.path().join("evidence"));
        assert_eq!(names, ["statement.cose", "receipt.cose", "first-receipt.cose", "broken.json"]);
        assert!(dir.path().join(name).join("broken.json").exists(), "{name}");
    }
}

/// Saves the evidence; the names of its files.
fn saved(broken: &Broken, directory: &Path) -> Vec<String> {
    let paths = broken.save(directory, &RunFacts::default()).unwrap();
    paths.iter().filter_map(|p| Some(p.file_name()?.to_str()?.to_owned())).collect()
}

#[test]
fn key_dir_reuses_keys() {
    let dir = tempfile::tempdir().unwrap();
    let first = trust(&signers(&ALL, Some(dir.path())).unwrap());
    let second = trust(&signers(&ALL, Some(dir.path())).unwrap());
    assert_eq!(first, second);
    TrustAnchors::parse(&first).unwrap();
}

//! Every reason why a proof does not verify.

use super::*;
use crate::receipt::Receipt;

/// `[protected, unprotected, payload, signature]`, open to change.
type Parts = Vec<Other>;

fn change(receipt: &[u8], change: impl FnOnce(&mut Parts)) -> Receipt {
    let Other::Tag(18, mut inner) = decode(receipt) else { panic!("tagged") };
    change(inner.as_array_mut().unwrap());
    Receipt::parse(encode(&Other::Tag(18, inner))).unwrap()
}

/// The list of proofs, decoded.
fn proofs(parts: &Parts) -> Vec<Other> {
    let kinds = parts[1].as_map().unwrap()[0].1.as_map().unwrap();
    let list = kinds[0].1.as_array().unwrap();
    list.iter().map(|proof| decode(proof.as_bytes().unwrap())).collect()
}

fn put(parts: &mut Parts, kind: i64, proofs: &[Other]) {
    let list = proofs.iter().map(|proof| Other::Bytes(encode(proof))).collect();
    let kinds = Other::Map(vec![(kind.into(), Other::Array(list))]);
    parts[1] = Other::Map(vec![(396.into(), kinds)]);
}

fn code<T>(result: Result<T, Error>) -> &'static str {
    result.map_or_else(|e| e.code(), |_| "ok")
}

fn check(scene: &Scene, receipt: &Receipt) -> &'static str {
    let keys = [scene.log.key.public().clone()];
    code(inclusion(receipt, &scene.statement, &keys, &mut Memo::default()))
}

#[test]
fn inclusion_proofs_by_code() {
    let scene = Scene::new();
    let good = scene.log.receipt(2);
    let with = |edit: &dyn Fn(&mut Vec<Other>)| {
        change(&good, |parts| {
            let mut list = proofs(parts);
            edit(&mut list);
            put(parts, -1, &list);
        })
    };
    let field = |proof: usize, at: usize, value: Other| {
        with(&move |list: &mut Vec<Other>| list[proof].as_array_mut().unwrap()[at] = value.clone())
    };
    let longer = with(&|list: &mut Vec<Other>| {
        list[0].as_array_mut().unwrap()[2].as_array_mut().unwrap().push(bytes(&[0; 32]));
    });
    let shorter = with(&|list: &mut Vec<Other>| {
        list[0].as_array_mut().unwrap()[2].as_array_mut().unwrap().pop();
    });
    let twice = with(&|list: &mut Vec<Other>| list.push(list[0].clone()));
    let two_roots = with(&|list: &mut Vec<Other>| {
        let mut other = list[0].clone();
        other.as_array_mut().unwrap()[1] = 3.into();
        list.push(other);
    });
    assert_eq!(check(&scene, &with(&|_| ())), "ok");
    assert_eq!(check(&scene, &field(0, 1, 8.into())), "log-index-outside-tree");
    assert_eq!(check(&scene, &field(0, 1, 3.into())), "head-signature");
    assert_eq!(check(&scene, &longer), "log-path-too-long");
    assert_eq!(check(&scene, &shorter), "log-path-too-short");
    assert_eq!(check(&scene, &twice), "ok");
    assert_eq!(check(&scene, &two_roots), "roots-differ");
    let attached = change(&good, |parts| parts[2] = bytes(scene.log.root(8).as_bytes()));
    assert_eq!(check(&scene, &attached), "ok", "the root itself may be attached");
    let attached = change(&good, |parts| parts[2] = bytes(&[0; 32]));
    assert_eq!(check(&scene, &attached), "attached-root");
    let header = Other::Map(vec![(1.into(), 0.into()), (395.into(), 1.into())]);
    let odd = change(&good, |parts| parts[0] = Other::Bytes(encode(&header)));
    assert_eq!(check(&scene, &odd), "algorithm-unsupported");
    let growth = Receipt::parse(scene.log.consistency(3)).unwrap();
    assert_eq!(check(&scene, &growth), "not-inclusion");
    let nobody = inclusion(&with(&|_| ()), &scene.statement, &[], &mut Memo::default());
    assert_eq!(code(nobody), "log-unknown");
}

#[test]
fn leaf_over_the_raw_statement() {
    let issuer = ed25519();
    let statement = Sketch::new(&issuer).sign(&issuer);
    let (left, leaf) = (Digest::of(b"left"), crate::log::leaf_hash_of_bytes(&statement));
    let root = crate::log::node_hash(&left, &leaf);
    let head = crate::receipt::Head { size: TreeSize::new(2), root, time: NOW };
    let key = es256();
    let signed = crate::receipt::SignedHead::sign(head, LOG, &key).unwrap();
    let receipt = Receipt::parse(signed.receipt(crate::log::LeafIndex::new(1), &[left])).unwrap();
    let keys = [key.public().clone()];
    let found = inclusion(&receipt, &statement, &keys, &mut Memo::default()).unwrap();
    assert_eq!(found.rule, EntryRule::Bytes);
    assert_eq!(found.rule.name(), "RFC 9162, leaf of the bytes");
}

#[test]
fn memo_respects_given_keys() {
    let scene = Scene::new();
    let receipt = Receipt::parse(scene.log.receipt(2)).unwrap();
    let (key, other) = (scene.log.key.public().clone(), es256().public().clone());
    let mut memo = Memo::default();
    for _ in 0..2 {
        let keys = [other.clone(), key.clone()];
        assert_eq!(code(inclusion(&receipt, &scene.statement, &keys, &mut memo)), "ok");
    }
    let with_other = inclusion(&receipt, &scene.statement, &[other], &mut memo);
    assert_eq!(code(with_other), "head-signature");
    assert_eq!(code(inclusion(&receipt, &scene.statement, &[], &mut memo)), "log-unknown");
    assert_eq!(code(inclusion(&receipt, b"other", &[key], &mut memo)), "head-signature");
}

/// Receipts of one head, with every byte changed in turn: the memo of another
/// receipt makes no difference.
#[test]
fn memo_does_not_change_verdicts() {
    let statements: Vec<Vec<u8>> = (0..7_u8).map(|n| vec![n; 40]).collect();
    let all: Vec<&[u8]> = statements.iter().map(Vec::as_slice).collect();
    let log = SmallLog::of(ed25519(), &all);
    let keys = [log.key.public().clone()];
    let mut memo = Memo::default();
    inclusion(&Receipt::parse(log.receipt(6)).unwrap(), all[6], &keys, &mut memo).unwrap();
    for (index, statement) in (0..).zip(&all) {
        let good = log.receipt(index);
        for at in 0..good.len() {
            for bit in [0, 1, 7] {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << bit;
                let Ok(receipt) = Receipt::parse(bytes) else { continue };
                let with = inclusion(&receipt, statement, &keys, &mut memo.clone());
                let without = inclusion(&receipt, statement, &keys, &mut Memo::default());
                assert_eq!(with, without, "leaf {index}, byte {at}, bit {bit}");
            }
        }
        let good = Receipt::parse(good).unwrap();
        assert!(inclusion(&good, statement, &keys, &mut memo.clone()).is_ok());
        assert!(inclusion(&good, b"other", &keys, &mut memo.clone()).is_err());
    }
}

#[test]
fn consistency_proofs_by_code() {
    let scene = Scene::new();
    let keys = [scene.log.key.public().clone()];
    let grow = |receipt: &Receipt, older: Digest| {
        code(consistency(receipt, &older, &keys, &mut Memo::default()))
    };
    let good = scene.log.consistency(3);
    let with = |from: i64, to: i64| {
        change(&good, |parts| {
            let mut list = proofs(parts);
            let proof = list[0].as_array_mut().unwrap();
            (proof[0], proof[1]) = (from.into(), to.into());
            put(parts, -2, &list);
        })
    };
    let older = scene.log.root(3);
    assert_eq!(grow(&with(3, 8), older), "ok");
    assert_eq!(grow(&with(3, 8), scene.log.root(4)), "log-older-root-mismatch");
    assert_eq!(grow(&with(8, 8), older), "log-sizes-not-increasing");
    assert_eq!(grow(&with(0, 8), older), "log-sizes-not-increasing");
    assert_eq!(grow(&with(9, 8), older), "log-sizes-not-increasing");
    let inclusion = Receipt::parse(scene.log.receipt(2)).unwrap();
    assert_eq!(grow(&inclusion, older), "not-consistency");
    let other = change(&good, |parts| parts[3] = bytes(&[1; 64]));
    assert_eq!(grow(&other, older), "head-signature");
}

/// A CCF receipt over `root`, signed.
fn ccf(key: &SigningKey, kind: i64, proof: Vec<(i64, Other)>, root: &Digest) -> Receipt {
    let header = Other::Map(vec![(1.into(), (-7).into()), (395.into(), 2.into())]);
    let header = encode(&header);
    let message = crate::envelope::sig_structure(&header, root.as_bytes());
    let signature = bytes(&key.sign(&message).unwrap());
    let mut parts = vec![Other::Bytes(header), Other::Null, Other::Null, signature];
    let proof = proof.into_iter().map(|(k, v)| (k.into(), v)).collect();
    put(&mut parts, kind, &[Other::Map(proof)]);
    Receipt::parse(encode(&Other::Tag(18, Box::new(Other::Array(parts))))).unwrap()
}

fn step(left: bool, hash: &Digest) -> Other {
    Other::Array(vec![left.into(), bytes(hash.as_bytes())])
}

fn pair(left: &Digest, right: &Digest) -> Digest {
    Digest::of_parts(&[left.as_bytes(), right.as_bytes()])
}

#[test]
fn ccf_ledgers() {
    let (key, issuer) = (es256(), ed25519());
    let keys = [key.public().clone()];
    let statement = Sketch::new(&issuer).sign(&issuer);
    let (transaction, sibling) = (Digest::of(b"transaction"), Digest::of(b"sibling"));
    let data = Digest::of(&statement);
    let evidence = Digest::of(b"ce:1.2");
    let leaf = Digest::of_parts(&[transaction.as_bytes(), evidence.as_bytes(), data.as_bytes()]);
    let root = pair(&sibling, &leaf);
    let proof = || {
        let leaf = vec![bytes(transaction.as_bytes()), "ce:1.2".into(), bytes(data.as_bytes())];
        vec![(1, Other::Array(leaf)), (2, Other::Array(vec![step(true, &sibling)]))]
    };
    let receipt = ccf(&key, -1, proof(), &root);
    let found = inclusion(&receipt, &statement, &keys, &mut Memo::default()).unwrap();
    assert_eq!((found.rule, found.place, found.root), (EntryRule::Ccf, None, root));
    let other = inclusion(&receipt, b"other", &keys, &mut Memo::default());
    assert_eq!(code(other), "data-hash");
    let wrong_root = ccf(&key, -1, proof(), &pair(&leaf, &sibling));
    let found = inclusion(&wrong_root, &statement, &keys, &mut Memo::default());
    assert_eq!(code(found), "head-signature");

    // Growth from [a, b, c] to [a, b, c, d]: the anchor is c.
    let [a, b, c, d] = [b"a", b"b", b"c", b"d"].map(|leaf| Digest::of(leaf));
    let (older, newer) = (pair(&pair(&a, &b), &c), pair(&pair(&a, &b), &pair(&c, &d)));
    let grow = |path: Vec<Other>, older: &Digest| {
        let proof = vec![(1, bytes(c.as_bytes())), (2, Other::Array(path))];
        code(consistency(&ccf(&key, -2, proof, &newer), older, &keys, &mut Memo::default()))
    };
    let good = || vec![step(false, &d), step(true, &pair(&a, &b))];
    assert_eq!(grow(good(), &older), "ok");
    assert_eq!(grow(good(), &newer), "older-root");
    assert_eq!(grow(vec![step(true, &pair(&a, &b))], &older), "ccf-path-start");
    assert_eq!(grow(vec![step(false, &d)], &c), "head-signature");
}

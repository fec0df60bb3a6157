//! The exact bytes of a receipt, its way into a statement and out again, and
//! every form that is none.

use ciborium::Value as Other;

use super::fixture::{LOG, SmallLog, TIME};
use super::*;
use crate::envelope::SignedStatement;
use crate::envelope::fixture::{Sketch, bytes, decode, ed25519, encode, es256};
use crate::wire::limits::{PATH_NODES_MAX, RECEIPTS_MAX};

/// `[protected, unprotected, payload, signature]` of tagged bytes.
fn parts(receipt: &[u8]) -> [Other; 4] {
    let Other::Tag(18, inner) = decode(receipt) else { panic!("no tag 18") };
    inner.into_array().unwrap().try_into().unwrap()
}

fn assemble(parts: [Other; 4]) -> Vec<u8> {
    encode(&Other::Tag(18, Box::new(Other::Array(parts.into()))))
}

fn map(entries: Vec<(i64, Other)>) -> Other {
    Other::Map(entries.into_iter().map(|(k, v)| (k.into(), v)).collect())
}

#[test]
fn receipt_labels() {
    for key in [es256(), ed25519()] {
        let alg = key.algorithm().cose();
        let kid = key.public().id().as_bytes().to_vec();
        let log = SmallLog::around(key, b"statement", 1, 3);
        let [protected, unprotected, payload, signature] = parts(&log.receipt(1));
        let claims = map(vec![(1, LOG.into()), (2, SUBJECT.into()), (6, TIME.seconds().into())]);
        let expected = map(vec![(1, alg.into()), (4, kid.into()), (15, claims), (395, 1.into())]);
        assert_eq!(decode(protected.as_bytes().unwrap()), expected);
        assert_eq!(protected.as_bytes().unwrap(), &encode(&expected), "deterministic");
        let Other::Map(outer) = unprotected else { panic!("a map") };
        let [(label, Other::Map(kinds))] = outer.as_slice() else { panic!("only 396") };
        let [(kind, Other::Array(proofs))] = kinds.as_slice() else { panic!("only -1") };
        assert_eq!((label, kind, proofs.len()), (&396.into(), &(-1).into(), 1));
        let proof = decode(proofs[0].as_bytes().unwrap()).into_array().unwrap();
        assert_eq!(proof[..2], [Other::from(3), Other::from(1)]);
        assert_eq!(proof[2].as_array().unwrap().len(), 2);
        assert_eq!(payload, Other::Null);
        assert_eq!(signature.as_bytes().unwrap().len(), 64);
    }
}

/// ECDSA is randomised, so equal signatures are one signature.
#[test]
fn receipts_of_one_head_share_signature() {
    let log = SmallLog::around(es256(), b"statement", 0, 5);
    let head = log.head();
    let receipts: Vec<_> = (0..5).map(|i| parts(&head.receipt(LeafIndex::new(i), &[]))).collect();
    for receipt in &receipts {
        assert_eq!((&receipt[0], &receipt[3]), (&receipts[0][0], &receipts[0][3]));
    }
    let other = head.consistency(TreeSize::new(2), &[]);
    assert_eq!(parts(&other)[3], receipts[0][3], "growth under the same signature");
}

#[test]
fn receipts_round_trip() {
    let log = SmallLog::around(es256(), b"statement", 4, 7);
    let receipt = Receipt::parse(log.receipt(4)).unwrap();
    let Proofs::Inclusion(proofs) = receipt.proofs() else { panic!("inclusion") };
    assert_eq!((proofs[0].size, proofs[0].index, proofs[0].path.len()), (7, 4, 3));
    assert_eq!(receipt.envelope().header().claims.issuer.as_deref(), Some(LOG));
    let receipt = Receipt::parse(log.consistency(3)).unwrap();
    let Proofs::Consistency(proofs) = receipt.proofs() else { panic!("consistency") };
    assert_eq!((proofs[0].from, proofs[0].to), (3, 7));
}

#[test]
fn attaching_changes_only_unprotected_header() {
    let key = es256();
    let receipt = SmallLog::around(es256(), b"x", 0, 2).receipt(0);
    let sketch = Sketch::new(&key).unprotected("note", "kept").unprotected(-70_000, 1.5);
    let statement = SignedStatement::parse(sketch.sign(&key)).unwrap();
    assert_eq!(attached(&statement), Ok(Vec::new()));
    let once = attach(&statement, &receipt).unwrap();
    let once = SignedStatement::parse_any_size(once).unwrap();
    assert_eq!(attached(&once), Ok(vec![receipt.clone()]));
    assert_eq!(once.protected(), statement.protected());
    assert_eq!(once.payload(), statement.payload());
    assert_eq!(once.signature(), statement.signature());
    assert_eq!(once.canonical(), statement.canonical());
    let unprotected = decode(once.unprotected());
    assert_eq!(unprotected.as_map().unwrap()[..2], sketch.unprotected[..], "others stay");
    // A second receipt stands in front; the same one is not repeated.
    let second = SmallLog::around(ed25519(), b"x", 0, 2).receipt(0);
    let twice = SignedStatement::parse_any_size(attach(&once, &second).unwrap()).unwrap();
    assert_eq!(attached(&twice), Ok(vec![second.clone(), receipt.clone()]));
    let again = SignedStatement::parse_any_size(attach(&twice, &receipt).unwrap()).unwrap();
    assert_eq!(attached(&again), Ok(vec![receipt, second]));
}

#[test]
fn detached_statement_stays_detached() {
    let key = es256();
    let mut sketch = Sketch::new(&key);
    sketch.payload = Other::Null;
    let statement = SignedStatement::parse(sketch.sign(&key)).unwrap();
    let with = SignedStatement::parse_any_size(attach(&statement, b"r").unwrap()).unwrap();
    assert_eq!(with.payload(), None);
    assert_eq!(with.canonical(), statement.canonical());
}

#[test]
fn invalid_receipt_lists() {
    let key = es256();
    let many = |count| Other::Array(vec![bytes(b"r"); count]);
    let cases = [
        (many(1), "ok"),
        (many(RECEIPTS_MAX), "ok"),
        (many(RECEIPTS_MAX + 1), "receipt-list"),
        (many(0), "receipt-list"),
        (bytes(b"r"), "receipt-list"),
        (Other::Array(vec![1.into()]), "receipt-list"),
    ];
    for (list, expected) in cases {
        let signed = Sketch::new(&key).unprotected(394, list).sign(&key);
        let statement = SignedStatement::parse(signed).unwrap();
        let found = attached(&statement).map_or_else(|e| e.code(), |_| "ok");
        assert_eq!(found, expected);
        assert_eq!(attach(&statement, b"new").map_or_else(|e| e.code(), |_| "ok"), expected);
    }
}

/// A receipt with this kind of tree and this unprotected map.
fn shaped(vds: Option<i64>, unprotected: Other) -> Vec<u8> {
    let mut protected = vec![(1, Other::from(-7))];
    protected.extend(vds.map(|vds| (395, vds.into())));
    let protected = Other::Bytes(encode(&map(protected)));
    assemble([protected, unprotected, Other::Null, bytes(&[0; 64])])
}

fn proofs(kind: i64, list: Vec<Other>) -> Other {
    map(vec![(396, map(vec![(kind, Other::Array(list))]))])
}

fn proof(items: Vec<Other>) -> Other {
    Other::Bytes(encode(&Other::Array(items)))
}

fn nodes(count: usize) -> Other {
    Other::Array(vec![bytes(&[7; 32]); count])
}

fn steps(count: usize) -> Other {
    Other::Array(vec![Other::Array(vec![true.into(), bytes(&[7; 32])]); count])
}

fn ccf(entries: Vec<(i64, Other)>) -> Vec<Other> {
    vec![Other::Bytes(encode(&map(entries)))]
}

fn ccf_leaf(evidence: &str) -> Other {
    Other::Array(vec![bytes(&[1; 32]), evidence.into(), bytes(&[2; 32])])
}

#[test]
fn invalid_receipts() {
    let one = |items| proofs(-1, vec![proof(items)]);
    let growth = |items| proofs(-2, vec![proof(items)]);
    let good = || one(vec![2.into(), 0.into(), nodes(1)]);
    let two_kinds = map(vec![(-1, Other::Array(vec![])), (-2, Other::Array(vec![]))]);
    let long = Other::Bytes(vec![0x18, 0x01]);
    let short_node = Other::Array(vec![bytes(&[7; 31])]);
    let cases = [
        ("good", Some(1), good(), "ok"),
        ("no tree", None, good(), "vds-missing"),
        ("tree 3", Some(3), good(), "vds-unsupported"),
        ("tree 2, proof of tree 1", Some(2), good(), "proof-shape"),
        ("no proofs", Some(1), map(vec![]), "proofs-missing"),
        ("proofs a list", Some(1), map(vec![(396, nodes(1))]), "proof-shape"),
        ("two kinds", Some(1), map(vec![(396, two_kinds)]), "proof-kinds"),
        ("no kind", Some(1), map(vec![(396, map(vec![]))]), "proof-kinds"),
        ("kind -3", Some(1), proofs(-3, vec![bytes(b"")]), "proof-shape"),
        ("no proof", Some(1), proofs(-1, vec![]), "proof-shape"),
        ("a proof not in bytes", Some(1), proofs(-1, vec![nodes(1)]), "proof-shape"),
        ("long head in a proof", Some(1), proofs(-1, vec![long]), "cbor-long-head"),
        ("pair", Some(1), one(vec![2.into(), 0.into()]), "proof-shape"),
        ("negative", Some(1), one(vec![2.into(), (-1).into(), nodes(1)]), "proof-shape"),
        ("path a number", Some(1), one(vec![2.into(), 0.into(), 1.into()]), "proof-shape"),
        ("short node", Some(1), one(vec![2.into(), 0.into(), short_node]), "proof-shape"),
        ("empty path", Some(1), one(vec![2.into(), 0.into(), nodes(0)]), "proof-shape"),
        ("one leaf", Some(1), one(vec![1.into(), 0.into(), nodes(0)]), "ok"),
        ("64 nodes", Some(1), one(vec![2.into(), 0.into(), nodes(PATH_NODES_MAX)]), "ok"),
        ("65 nodes", Some(1), one(vec![2.into(), 0.into(), nodes(65)]), "proof-shape"),
        ("growth", Some(1), growth(vec![1.into(), 2.into(), nodes(1)]), "ok"),
        ("growth, empty", Some(1), growth(vec![1.into(), 2.into(), nodes(0)]), "proof-shape"),
    ];
    check_forms(cases.into());
    assert_eq!(Receipt::parse(vec![0xf6]).unwrap_err().code(), "not-sign1");
    let truncated = SmallLog::around(es256(), b"x", 0, 2).receipt(0);
    for end in 0..truncated.len() {
        assert!(Receipt::parse(truncated[..end].to_vec()).is_err());
    }
}

#[test]
fn invalid_ccf_receipts() {
    let cases = [
        ("CCF", Some(2), proofs(-1, ccf(vec![(1, ccf_leaf("e")), (2, steps(1))])), "ok"),
        (
            "CCF, no evidence",
            Some(2),
            proofs(-1, ccf(vec![(1, ccf_leaf("")), (2, steps(1))])),
            "proof-shape",
        ),
        ("CCF, no path", Some(2), proofs(-1, ccf(vec![(1, ccf_leaf("e"))])), "proof-shape"),
        (
            "CCF, empty path",
            Some(2),
            proofs(-1, ccf(vec![(1, ccf_leaf("e")), (2, steps(0))])),
            "proof-shape",
        ),
        (
            "CCF, nodes",
            Some(2),
            proofs(-1, ccf(vec![(1, ccf_leaf("e")), (2, nodes(1))])),
            "proof-shape",
        ),
        ("CCF, no leaf", Some(2), proofs(-1, ccf(vec![(2, steps(1))])), "proof-shape"),
        ("CCF growth", Some(2), proofs(-2, ccf(vec![(1, bytes(&[1; 32])), (2, steps(1))])), "ok"),
        (
            "CCF growth, no anchor",
            Some(2),
            proofs(-2, ccf(vec![(1, 1.into()), (2, steps(1))])),
            "proof-shape",
        ),
        (
            "CCF growth, more",
            Some(2),
            proofs(-2, ccf(vec![(1, bytes(&[1; 32])), (2, steps(1)), (3, 1.into())])),
            "proof-shape",
        ),
        ("CCF, kind -3", Some(2), proofs(-3, vec![bytes(b"")]), "proof-shape"),
    ];
    check_forms(cases.into());
}

/// Each form: what, kind of tree, unprotected map, code.
fn check_forms(forms: Vec<(&str, Option<i64>, Other, &str)>) {
    for (what, vds, unprotected, expected) in forms {
        let found = Receipt::parse(shaped(vds, unprotected));
        assert_eq!(found.map_or_else(|e| e.code(), |_| "ok"), expected, "{what}");
    }
}

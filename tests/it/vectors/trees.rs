//! Published trees, proofs and CBOR inputs.

use capstan::envelope::sig_structure;
use capstan::key::{Algorithm, SigningKey};
use capstan::log::{
    LeafIndex, MemoryNodes, TreeSize, consistency_path, consistency_roots, empty_root,
    inclusion_path, inclusion_root, leaf_hash_of_bytes, root_at,
};
use capstan::receipt::{Proofs, Receipt};
use capstan::verify::{Memo, consistency};
use capstan::wire::cbor::{self, Value};
use capstan::wire::digest::Digest;

use super::*;

fn digest(value: &Json) -> Digest {
    Digest::from_hex(value.as_str().unwrap()).unwrap()
}

fn digests(value: &Json) -> Vec<Digest> {
    value.as_array().unwrap().iter().map(digest).collect()
}

fn number(value: &Json) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn working_group_receipts() {
    let Some(scitt) = published("scitt") else { return };
    let folder = scitt.join("cose-wg-merkle-tree-proofs");
    let expected = json(&folder.join("DERIVED-expected.json"));
    let included = &expected["inclusion"];
    let receipt = Receipt::parse(read(&folder.join("inclusion-receipt.cbor"))).unwrap();
    let Proofs::Inclusion(proofs) = receipt.proofs() else { panic!("{receipt:?}") };
    let [proof] = proofs.as_slice() else { panic!("{proofs:?}") };
    assert_eq!((proof.size, proof.index), (number(&included["tree_size"]), 3));
    let leaf = digest(&included["leaf_hash"]);
    let root = inclusion_root(leaf, proof.index, proof.size, &proof.path);
    assert_eq!(root, Ok(digest(&included["root"])));
    let grown = &expected["consistency"];
    let receipt = Receipt::parse(read(&folder.join("consistency-receipt.cbor"))).unwrap();
    let Proofs::Consistency(proofs) = receipt.proofs() else { panic!("{receipt:?}") };
    let [proof] = proofs.as_slice() else { panic!("{proofs:?}") };
    let older = digest(&grown["root_1"]);
    let roots = consistency_roots(proof.from, proof.to, older, &proof.path);
    assert_eq!(roots, Ok((older, digest(&grown["root_2"]))));
}

/// The eight leaves that implementations of RFC 9162 are tested with.
#[test]
fn classic_tree_of_eight_leaves() {
    let Some(scitt) = published("scitt") else { return };
    let kat = json(&scitt.join("rfc9162-kat/kat.json"));
    let leaves: Vec<Digest> = kat["leaves_hex"]
        .as_array()
        .unwrap()
        .iter()
        .map(|leaf| leaf_hash_of_bytes(&text::from_hex(leaf.as_str().unwrap()).unwrap()))
        .collect();
    let nodes: MemoryNodes = leaves.iter().copied().collect();
    let roots = digests(&kat["roots_by_size"]);
    assert_eq!(empty_root(), digest(&kat["empty_root"]));
    let root = |size: u64| roots[usize::try_from(size - 1).unwrap()];
    for size in 1..=8 {
        assert_eq!(root_at(&nodes, TreeSize::new(size)), Ok(root(size)));
    }
    for proof in kat["inclusion"].as_array().unwrap() {
        let (size, index) = (number(&proof["tree_size"]), number(&proof["leaf_index"]));
        let path = digests(&proof["path"]);
        let ours = inclusion_path(&nodes, LeafIndex::new(index), TreeSize::new(size));
        assert_eq!(ours, Ok(path.clone()));
        let leaf = leaves[usize::try_from(index).unwrap()];
        assert_eq!(inclusion_root(leaf, index, size, &path), Ok(root(size)));
    }
    for proof in kat["consistency"].as_array().unwrap() {
        let (from, to) = (number(&proof["tree_size_1"]), number(&proof["tree_size_2"]));
        let path = digests(&proof["path"]);
        let ours = consistency_path(&nodes, TreeSize::new(from), TreeSize::new(to));
        assert_eq!(ours, Ok(path.clone()));
        let found = consistency_roots(from, to, root(from), &path);
        assert_eq!(found, Ok((root(from), root(to))));
    }
}

/// A CCF consistency receipt around a published proof, signed by `key`.
fn ccf_receipt(key: &SigningKey, proof: &[u8], newer: &Digest) -> Receipt {
    let mut protected = Vec::new();
    cbor::map(&mut protected, 2);
    for number in [1, key.algorithm().cose(), 395, 2] {
        cbor::int(&mut protected, number);
    }
    let mut out = Vec::new();
    cbor::tag(&mut out, 18);
    cbor::array(&mut out, 4);
    cbor::bytes(&mut out, &protected);
    cbor::map(&mut out, 1);
    cbor::int(&mut out, 396);
    cbor::map(&mut out, 1);
    cbor::int(&mut out, -2);
    cbor::array(&mut out, 1);
    cbor::bytes(&mut out, proof);
    out.push(0xf6);
    let message = sig_structure(&protected, newer.as_bytes());
    cbor::bytes(&mut out, &key.sign(&message).unwrap());
    Receipt::parse(out).unwrap()
}

#[test]
fn ccf_consistency_proofs() {
    let Some(scitt) = published("scitt") else { return };
    let folder = scitt.join("ccf-consistency-regenerated");
    let manifest = json(&folder.join("manifest.json"));
    let key = SigningKey::generate(Algorithm::Es256).unwrap();
    let keys = [key.public().clone()];
    let vectors = manifest["valid"].as_array().unwrap();
    assert_eq!(vectors.len(), 16);
    for vector in vectors {
        let file = read(&folder.join(vector["file"].as_str().unwrap()));
        let proof = Value::read(&file).unwrap().bytes().unwrap().to_vec();
        let (older, newer) = (digest(&vector["root_m"]), digest(&vector["root_n"]));
        let receipt = ccf_receipt(&key, &proof, &newer);
        let found = consistency(&receipt, &older, &keys, &mut Memo::default()).unwrap();
        assert_eq!(found.root, newer);
        let wrong = consistency(&receipt, &newer, &keys, &mut Memo::default());
        assert_eq!(wrong.unwrap_err().code(), "older-root");
    }
}

/// Seeds of a fuzzer: all definite and shortest, so we accept exactly those that
/// another decoder accepts.
#[test]
fn cbor_fuzzer_seeds() {
    let Some(scitt) = published("scitt") else { return };
    let mut seen = 0;
    for entry in std::fs::read_dir(scitt.join("ccf-cbor-fuzz-corpus")).unwrap() {
        let entry = entry.unwrap();
        let bytes = read(&entry.path());
        let name = entry.file_name().into_string().unwrap();
        let ours = Value::read(&bytes);
        let theirs: Result<ciborium::Value, _> = ciborium::from_reader(bytes.as_slice());
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{name}: {ours:?} {theirs:?}");
        if let Ok(ours) = ours {
            assert_eq!(ours.encode(), bytes, "{name}");
        }
        // None may cause a panic as a statement or receipt.
        let _either = (SignedStatement::parse(bytes.clone()), Receipt::parse(bytes.clone()));
        let _report = report(&bytes, &TrustAnchors::default(), None);
        seen += 1;
    }
    assert!(seen >= 40, "{seen}");
}

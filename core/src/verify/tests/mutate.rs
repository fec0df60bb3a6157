//! Artefacts cut, spliced and written over at random: a yes after that means
//! that nothing signed was touched.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::checkpoint::VerifierKey;
use crate::receipt::Receipt;

/// One change: what kind, where from, where to, with which byte.
type Step = (u8, Index, Index, u8);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0..7_u8, any::<Index>(), any::<Index>(), any::<u8>()), 1..4)
}

fn mutated(original: &[u8], steps: &[Step]) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for (kind, from, to, byte) in steps {
        if bytes.is_empty() {
            break;
        }
        let (a, b) = (from.index(bytes.len()), to.index(bytes.len()));
        let (a, b) = (a.min(b), a.max(b));
        match kind {
            0 => bytes[a] = *byte,
            1 => bytes[a] ^= 1 << (byte % 8),
            2 => bytes.insert(a, *byte),
            3 => drop(bytes.drain(a..b.min(a + 40))),
            4 => bytes.swap(a, b),
            5 => bytes[a] = bytes[a].wrapping_add(1),
            // A piece of the original elsewhere, lengths kept.
            _ => {
                let start = to.index(original.len());
                let piece = &original[start..];
                let count = piece.len().min(bytes.len() - a).min(usize::from(*byte));
                bytes[a..a + count].copy_from_slice(&piece[..count]);
            }
        }
    }
    bytes
}

/// Header and signature of a receipt; the payload is the root it proves.
fn signed(bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let receipt = Receipt::parse(bytes.to_vec()).unwrap();
    let envelope = receipt.envelope();
    (envelope.protected().to_vec(), envelope.signature().to_vec())
}

/// Some thousand mutations; of each that gets a yes, `unchanged` must hold.
fn every_yes(artefact: &[u8], given: &Evidence<'_>, unchanged: impl Fn(&[u8]) -> bool) {
    assert_eq!(verify(artefact, given).verdict(), Outcome::Yes);
    assert!(unchanged(artefact));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(4_000));
    let tried = runner.run(&steps(), |steps| {
        let changed = mutated(artefact, &steps);
        let is_yes = verify(&changed, given).verdict() == Outcome::Yes;
        prop_assert!(!is_yes || unchanged(&changed), "{steps:?}");
        Ok(())
    });
    tried.unwrap();
}

/// The unprotected map is open to everyone, and outside what is logged.
#[test]
fn mutated_statements_fail() {
    let scene = Scene::new();
    let trust = scene.trust();
    let signed_only = Evidence { demand: SIGNED_ONLY, ..evidence(&trust) };
    let cases = [
        (scene.statement.clone(), signed_only),
        (scene.transparent(), signed_only),
        (scene.transparent(), evidence(&trust)),
    ];
    for (artefact, given) in cases {
        every_yes(&artefact, &given, |bytes| {
            let statement = SignedStatement::parse_any_size(bytes.to_vec()).unwrap();
            statement.canonical() == scene.statement
        });
    }
}

/// The size is shown, not signed; header, root and signature are.
#[test]
fn mutated_receipts_fail() {
    let scene = Scene::new();
    let trust = scene.trust();
    let (inclusion_receipt, growth) = (scene.log.receipt(2), scene.log.consistency(5));
    let given = Evidence { statement: Some(&scene.statement), ..evidence(&trust) };
    let root = |bytes: &[u8]| {
        let receipt = Receipt::parse(bytes.to_vec()).unwrap();
        let keys = [scene.log.key.public().clone()];
        inclusion(&receipt, &scene.statement, &keys, &mut Memo::default()).unwrap().root
    };
    every_yes(&inclusion_receipt, &given, |bytes| {
        signed(bytes) == signed(&inclusion_receipt) && root(bytes) == scene.log.root(8)
    });
    let given = Evidence { older: Some(scene.log.root(5)), ..evidence(&trust) };
    every_yes(&growth, &given, |bytes| signed(bytes) == signed(&growth));
}

/// Others may add their signatures below; the text above is one.
#[test]
fn mutated_checkpoints_fail() {
    let key = ed25519();
    let (size, root) = (TreeSize::new(1280), Digest::of(b"root"));
    let checkpoint = Checkpoint { origin: "log.example".to_owned(), size, root };
    let note = checkpoint.sign("log.example", &key).unwrap();
    let vkey = VerifierKey::new("log.example", key.public()).unwrap().to_string();
    let log = TrustedLog { checkpoint: Some(vkey), ..trusted(LOG, &es256()) };
    let trust = TrustAnchors::default().with_log(log);
    let text = format!("{}\n", checkpoint.text());
    every_yes(note.as_bytes(), &evidence(&trust), |bytes| bytes.starts_with(text.as_bytes()));
}

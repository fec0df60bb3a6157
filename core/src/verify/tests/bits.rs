//! Every bit of a receipt and of a Transparent Statement.

use super::*;

fn flipped(bytes: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    (0..bytes.len() * 8).map(|bit| {
        let mut changed = bytes.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        (bit / 8, changed)
    })
}

#[test]
fn bit_flips_of_receipt_fail() {
    let scene = Scene::new();
    let trust = scene.trust();
    let given = Evidence { statement: Some(&scene.statement), ..evidence(&trust) };
    let receipt = scene.log.receipt(2);
    assert_eq!(verify(&receipt, &given).verdict(), Outcome::Yes);
    for (byte, changed) in flipped(&receipt) {
        assert_ne!(verify(&changed, &given).verdict(), Outcome::Yes, "byte {byte}");
    }
    let growth = scene.log.consistency(5);
    let given = Evidence { older: Some(scene.log.root(5)), ..evidence(&trust) };
    assert_eq!(verify(&growth, &given).verdict(), Outcome::Yes);
    for (byte, changed) in flipped(&growth) {
        assert_ne!(verify(&changed, &given).verdict(), Outcome::Yes, "byte {byte}");
    }
}

/// A flip in label 394 hides the receipts; what remains is a statement that
/// nothing shows to be logged. No flip keeps the yes.
#[test]
fn bit_flips_of_transparent_statement_fail() {
    let scene = Scene::new();
    let trust = scene.trust();
    let transparent = scene.transparent();
    assert_eq!(answer(&transparent, &trust), (Outcome::Yes, "ok"));
    let id = StatementId::of_canonical(&scene.statement);
    let mut hidden = 0;
    for (byte, changed) in flipped(&transparent) {
        let (outcome, code) = answer(&changed, &trust);
        assert_ne!(outcome, Outcome::Yes, "byte {byte}");
        if code == "receipt-missing" {
            let statement = SignedStatement::parse_any_size(changed).unwrap();
            assert_eq!(StatementId::of(&statement), id, "byte {byte}");
            hidden += 1;
        }
    }
    assert!(hidden > 0);
}

/// RFC 9942 signs the root and nothing about the size. In some trees another
/// size has a path of the same shape, so the size is what the proof shows,
/// not what the log has signed. The root is.
#[test]
fn tree_size_is_unsigned() {
    let issuer = ed25519();
    let statement = Sketch::new(&issuer).sign(&issuer);
    let log = SmallLog::around(es256(), &statement, 2, 6);
    let trust = TrustAnchors::default()
        .with_issuer(ISSUER, std::slice::from_ref(issuer.public()))
        .with_log(trusted(LOG, &log.key));
    let given = Evidence { statement: Some(&statement), ..evidence(&trust) };
    let receipt = log.receipt(2);
    let survivors: Vec<_> = flipped(&receipt)
        .filter(|(_, changed)| verify(changed, &given).verdict() == Outcome::Yes)
        .map(|(_, changed)| changed)
        .collect();
    let [only] = survivors.as_slice() else { panic!("6 to 7 and nothing else") };
    let parsed = crate::receipt::Receipt::parse(only.clone()).unwrap();
    let included =
        inclusion(&parsed, &statement, &[log.key.public().clone()], &mut Memo::default());
    let included = included.unwrap();
    assert_eq!((included.place, included.root), (Some((2, 7)), log.root(6)));
}

#[test]
fn truncated_and_extended_files_fail() {
    let scene = Scene::new();
    let trust = scene.trust();
    for artefact in [scene.transparent(), scene.log.receipt(2)] {
        for end in 0..artefact.len() {
            assert_eq!(verify(&artefact[..end], &evidence(&trust)).verdict(), Outcome::No);
        }
        let longer = [artefact.as_slice(), &[0]].concat();
        assert_eq!(verify(&longer, &evidence(&trust)).code(), "cbor-trailing-bytes");
    }
}

//! Every promise, broken by somebody who has the keys of the log.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use capstan::checkpoint::Checkpoint;
use capstan::envelope::{SignedStatement, StatementId};
use capstan::key::SigningKey;
use capstan::log::{LeafIndex, TreeSize, leaf_hash, node_hash};
use capstan::receipt::{Head, Proofs, Receipt, SignedHead};
use capstan::verify::{Memo, inclusion};
use capstan::wire::digest::Digest;
use capstan::wire::time::UnixSeconds;
use serde_json::Value as Json;

use crate::hammer::{OPEN, log, object};
use crate::proxy::{Exchange, Lie, proxy};
use crate::server::Server;

/// The keys of a log, in the wrong hands.
struct Keys {
    service: SigningKey,
    checkpoint: SigningKey,
}

impl Keys {
    fn of(data: &Path) -> Self {
        let files = std::fs::read_dir(data.join("keys")).unwrap();
        let mut keys = Vec::new();
        for path in files.map(|file| file.unwrap().path()) {
            let key = SigningKey::from_pem(&std::fs::read_to_string(&path).unwrap()).unwrap();
            keys.push((path.ends_with("checkpoint.pem"), key));
        }
        keys.sort_by_key(|(is_checkpoint, _)| *is_checkpoint);
        let [(_, service), (_, checkpoint)] = keys.try_into().map_err(|_| "two keys").unwrap();
        Self { service, checkpoint }
    }
}

struct Row {
    /// Promises any of which may be the first that is seen broken.
    promises: &'static [&'static str],
    flags: &'static str,
    /// Files that must be among the evidence.
    evidence: &'static [&'static str],
    lie: fn(Keys) -> Box<Lie>,
}

const ROWS: &[Row] = &[
    Row {
        promises: &["receipt-verifies"],
        flags: "",
        evidence: &["statement.cose", "receipt.cose"],
        lie: |_| first_again(is_receipt),
    },
    Row {
        promises: &["one-root-per-size"],
        flags: "--readers 0",
        evidence: &["first-receipt.cose", "second-receipt.cose"],
        lie: |keys| Box::new(move |it| forge(it, &keys, 1)),
    },
    Row {
        promises: &["one-place-per-statement"],
        flags: "--readers 0 --in-flight 1",
        evidence: &["statement.cose", "receipt.cose", "first-receipt.cose"],
        lie: |keys| {
            let height = AtomicU64::new(1);
            Box::new(move |it| {
                if is_receipt(it) {
                    forge(it, &keys, height.fetch_add(1, Ordering::Relaxed));
                }
            })
        },
    },
    Row {
        promises: &["time-goes-on"],
        flags: "--readers 0",
        evidence: &["first-receipt.cose", "second-receipt.cose"],
        lie: |keys| Box::new(move |it| date_back(it, &keys)),
    },
    Row {
        promises: &["only-grows"],
        flags: "",
        evidence: &["first-checkpoint.txt", "second-checkpoint.txt"],
        lie: |_| oldest_checkpoint(),
    },
    Row {
        promises: &["only-grows"],
        flags: "",
        evidence: &["consistency.cose"],
        lie: |_| first_again(|it| it.request.starts_with("GET /consistency")),
    },
    Row {
        promises: &["one-root-per-size", "tiles-match-the-root", "only-grows"],
        flags: "",
        evidence: &[],
        lie: |keys| Box::new(move |it| fork(it, &keys)),
    },
    Row {
        promises: &["checkpoint-verifies"],
        flags: "",
        evidence: &["checkpoint.txt"],
        lie: |_| flip(|it| it.request == "GET /checkpoint"),
    },
    Row {
        promises: &["tiles-match-the-root"],
        flags: "",
        evidence: &["leaves.bin"],
        lie: |_| flip(|it| it.request.starts_with("GET /tile/0/")),
    },
    Row {
        promises: &["tiles-match-the-root"],
        flags: "--readers 0 --count 5",
        evidence: &["hashes.bin", "leaves.bin"],
        lie: |_| flip(|it| it.request.starts_with("GET /tile/entries/")),
    },
    Row {
        promises: &["keeps-what-it-acknowledged"],
        flags: "",
        evidence: &["statement.cose", "receipt.cose"],
        lie: |_| status(|it| is_about_one(it, ""), 404),
    },
    Row {
        promises: &["keeps-what-it-acknowledged"],
        flags: "--readers 0 --count 5",
        evidence: &["statement.cose", "receipt.cose", "answer.bin"],
        lie: |_| status(|it| is_about_one(it, "/statement"), 404),
    },
    Row {
        promises: &["same-location-again"],
        flags: "--duplicates 50",
        evidence: &["statement.cose", "answer.bin"],
        lie: |_| {
            let number = AtomicU64::new(0);
            Box::new(move |it| {
                if is_receipt(it) {
                    it.location =
                        Some(format!("/entries/{}", number.fetch_add(1, Ordering::Relaxed)));
                }
            })
        },
    },
    Row {
        promises: &["admits-as-before"],
        // One after the other, or the lie may overtake the truth.
        flags: "--mix opaque --keys es256 --refusals 0 --in-flight 1",
        evidence: &["statement.cose", "answer.bin"],
        lie: |_| after(5, status(is_receipt, 400)),
    },
    Row {
        promises: &["answers-as-specified"],
        flags: "",
        evidence: &["statement.cose", "answer.bin"],
        lie: |_| after(5, status(is_receipt, 500)),
    },
    // Whoever sends people away tells them why and for how long.
    Row {
        promises: &["answers-as-specified"],
        flags: "",
        evidence: &["answer.bin"],
        lie: |_| after(5, status(is_receipt, 503)),
    },
    Row {
        promises: &["refuses-what-is-not-sound"],
        flags: "",
        evidence: &["statement.cose", "answer.bin"],
        lie: |_| status(|it| it.request == "POST /entries" && it.status == 400, 201),
    },
    Row {
        promises: &["refuses-what-is-not-sound"],
        flags: "--refusals 50 --readers 0 --count 20",
        evidence: &["statement.cose", "answer.bin"],
        lie: |_| status(|it| is_about_one(it, "") && it.status == 404, 200),
    },
];

/// The run ends with exit code 1 and says which promise, with files that
/// show it.
#[test]
fn every_broken_promise_is_caught() {
    let dir = tempfile::tempdir().unwrap();
    let data = log(dir.path(), OPEN);
    let server = Server::start(&data);
    for (nth, row) in ROWS.iter().enumerate() {
        let url = proxy(&server.address, (row.lie)(Keys::of(&data)));
        let (flags, save) = (row.flags, format!("found-{nth}"));
        let told =
            object(dir.path(), 1, &format!("--url {url} --dev --seconds 30 --save {save} {flags}"));
        assert_eq!((&told["ok"], &told["code"]), (&false.into(), &"broken-promise".into()));
        let promise = told["promise"].as_str().unwrap();
        assert!(row.promises.contains(&promise), "row {nth}: {told}");
        let about = std::fs::read(dir.path().join(&save).join("broken.json")).unwrap();
        let about: Json = serde_json::from_slice(&about).unwrap();
        assert_eq!(about["promise"], promise);
        assert!(about["run"]["log_keys"].as_array().is_some_and(|keys| keys.len() == 1));
        let mut found = Vec::new();
        for file in told["evidence"].as_array().unwrap() {
            let path = dir.path().join(file.as_str().unwrap());
            assert!(!std::fs::read(&path).unwrap().is_empty(), "{}", path.display());
            found.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
        assert!(found.len() > 1, "row {nth}: {found:?}");
        for name in row.evidence {
            assert!(found.iter().any(|file| file == name), "row {nth}: no {name} in {found:?}");
        }
    }
}

fn is_receipt(it: &Exchange) -> bool {
    it.request == "POST /entries" && it.status == 201
}

/// A question about a statement by its id.
fn is_about_one(it: &Exchange, tail: &str) -> bool {
    let id = it.request.strip_prefix("GET /entries/").and_then(|rest| rest.strip_suffix(tail));
    id.is_some_and(|id| id.len() == 64)
}

/// Answers those questions with another status.
fn status(which: fn(&Exchange) -> bool, status: u16) -> Box<Lie> {
    Box::new(move |it| {
        if which(it) {
            it.status = status;
        }
    })
}

/// Tells the truth so many times about statements.
fn after(times: u64, lie: Box<Lie>) -> Box<Lie> {
    let told = AtomicU64::new(0);
    Box::new(move |it| {
        if is_receipt(it) && told.fetch_add(1, Ordering::Relaxed) >= times {
            lie(it);
        }
    })
}

/// Answers those questions as it did the first time.
fn first_again(which: fn(&Exchange) -> bool) -> Box<Lie> {
    let first = Mutex::new(None);
    Box::new(move |it| {
        if which(it) {
            it.body.clone_from(first.lock().unwrap().get_or_insert_with(|| it.body.clone()));
        }
    })
}

/// Answers those questions with one bit changed, near the end: in a hash, or
/// in the signature of a checkpoint.
fn flip(which: fn(&Exchange) -> bool) -> Box<Lie> {
    Box::new(move |it| {
        if which(it) {
            let place = it.body.len() - 2;
            it.body[place] ^= 1;
        }
    })
}

/// Shows the first checkpoint again after a second one was shown.
fn oldest_checkpoint() -> Box<Lie> {
    let shown: Mutex<Vec<Vec<u8>>> = Mutex::default();
    Box::new(move |it| {
        if it.request != "GET /checkpoint" {
            return;
        }
        let mut shown = shown.lock().unwrap();
        if shown.len() > 1 {
            it.body.clone_from(&shown[0]);
        } else if shown.last() != Some(&it.body) {
            shown.push(it.body.clone());
        }
    })
}

/// A receipt for leaf 0 of a tree of 2^height leaves that nobody has.
fn forge(it: &mut Exchange, keys: &Keys, height: u64) {
    if !is_receipt(it) {
        return;
    }
    let statement = SignedStatement::parse(it.sent.clone()).unwrap();
    let path: Vec<Digest> = (0..height).map(|level| Digest::of(&level.to_be_bytes())).collect();
    let leaf = leaf_hash(StatementId::of(&statement).entry());
    let root = path.iter().fold(leaf, |node, sibling| node_hash(&node, sibling));
    let (size, time) = (TreeSize::new(1 << height), UnixSeconds::new(1));
    it.body = signed(it, keys, Head { size, root, time }).receipt(LeafIndex::new(0), &path);
}

/// The same receipt, the earlier the larger its tree.
fn date_back(it: &mut Exchange, keys: &Keys) {
    if !is_receipt(it) {
        return;
    }
    let receipt = Receipt::parse(it.body.clone()).unwrap();
    let canonical = SignedStatement::parse(it.sent.clone()).unwrap().canonical().into_owned();
    let own = [keys.service.public().clone()];
    let root = inclusion(&receipt, &canonical, &own, &mut Memo::default()).unwrap().root;
    let Proofs::Inclusion(proofs) = receipt.proofs() else { panic!("no inclusion") };
    let (size, time) = (proofs[0].size, UnixSeconds::new(4_000_000_000 - proofs[0].size));
    let head = signed(it, keys, Head { size: TreeSize::new(size), root, time });
    it.body = head.receipt(LeafIndex::new(proofs[0].index), &proofs[0].path);
}

fn signed(it: &Exchange, keys: &Keys, head: Head) -> SignedHead {
    let receipt = Receipt::parse(it.body.clone()).unwrap();
    let issuer = receipt.envelope().header().claims.issuer.clone().unwrap();
    SignedHead::sign(head, &issuer, &keys.service).unwrap()
}

/// A checkpoint of another tree of the same size.
fn fork(it: &mut Exchange, keys: &Keys) {
    if it.request != "GET /checkpoint" {
        return;
    }
    let note = String::from_utf8(it.body.clone()).unwrap();
    let mut lines = note.lines();
    let origin = lines.next().unwrap().to_owned();
    let size = TreeSize::new(lines.next().unwrap().parse().unwrap());
    let fork = Checkpoint { root: Digest::of(b"fork"), origin: origin.clone(), size };
    it.body = fork.sign(&origin, &keys.checkpoint).unwrap().into_bytes();
}

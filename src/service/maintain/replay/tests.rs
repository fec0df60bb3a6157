use super::*;
use crate::envelope::fixture::{Sketch, es256};
use crate::envelope::{AuthContext, Authentic, Resolved, RulesVersion};
use crate::key::SigningKey;
use crate::service::tests::{OPEN, code, data, log_with, options, statement};
use crate::service::write::writer::NewStatement;
use crate::service::{Service, Writer};
use crate::store::Terms;
use crate::trust::TrustAnchors;

const CLOSED: &str = "name = \"closed\"\n[[allow]]\nsubject = \"urn:nobody\"\n";

fn authentic(bytes: &[u8]) -> Authentic {
    let statement = SignedStatement::parse(bytes.to_vec()).unwrap();
    let trust = TrustAnchors::default();
    statement
        .authenticate(&AuthContext::new(&trust, &Resolved::default(), crate::service::now()))
        .unwrap()
}

/// Appends statements without asking the policy.
async fn append(service: &Service, statements: Vec<Authentic>) {
    let terms = |statement: &Authentic| {
        let read = crate::profile::read(statement);
        Terms::of(statement.statement().header(), &read)
    };
    let terms: Vec<Terms> = statements.iter().map(terms).collect();
    let work = move |writer: &mut Writer| {
        let size = writer.size();
        let new = |(statement, terms)| NewStatement { statement, terms, size };
        let all: Vec<_> = statements.iter().zip(&terms).map(new).collect();
        Ok(writer.append(&all, crate::service::now()).map(drop)?)
    };
    service.committer.with_writer(work).await.unwrap();
}

/// A log that took both signatures of one statement by the rules of today.
#[tokio::test]
async fn admitted_twin_is_reported() {
    let (outside, service) = log_with(OPEN, options());
    let first = statement(b"twice");
    service.register(first.clone()).await.unwrap();
    let signature = first[first.len() - 64..].to_vec();
    let other = crate::key::twin(crate::key::Algorithm::Es256, &signature).unwrap();
    let twin = [&first[..first.len() - 64], &other].concat();
    let trust = TrustAnchors::default();
    let resolved = Resolved::default();
    // By version 1 it has no twin, so the writer takes it.
    let context = AuthContext::new(&trust, &resolved, crate::service::now());
    let context = AuthContext { rules: RulesVersion::V1, ..context };
    let planted = SignedStatement::parse(twin).unwrap().authenticate(&context).unwrap();
    append(&service, vec![planted]).await;
    service.committer.drain();
    drop(service);
    let replayed = replay(&data(&outside), ReplayOptions::default(), &mut |_, _| {}).unwrap();
    let [one] = replayed.changed.as_slice() else { panic!("{:?}", replayed.changed) };
    assert_eq!((one.index.get(), one.code), (3, "signature-twin"));
    assert!(one.detail.contains("entry #2"), "{}", one.detail);
}

/// A statement that the writer took although the policy in force says no.
#[tokio::test]
async fn planted_decision_is_reported() {
    let (outside, service) = log_with(OPEN, options());
    for n in 0..5 {
        service.register(statement(&[n])).await.unwrap();
    }
    let policy = data(&outside).join("policy.toml");
    std::fs::write(&policy, CLOSED).unwrap();
    service.reload().await.unwrap();
    let refused = service.register(statement(b"refused")).await;
    assert_eq!(code(refused), "policy-refused");
    let refusal = crate::service::refusals(&data(&outside)).unwrap().remove(0);
    assert_eq!(refusal.code, "policy-refused");
    assert!(refusal.text.contains("subject is"), "{}", refusal.text);
    let planted = authentic(&statement(b"planted"));
    let id = planted.id();
    append(&service, vec![planted]).await;
    service.committer.drain();
    drop(service);
    let mut reported = 0;
    let all = ReplayOptions { first_only: true, ..ReplayOptions::default() };
    let replayed = replay(&data(&outside), all, &mut |done, _| reported = done).unwrap();
    assert_eq!((replayed.size, reported), (9, 9));
    let [first] = replayed.changed.as_slice() else { panic!("{:?}", replayed.changed) };
    assert_eq!((first.index.get(), first.id, first.code), (8, Some(id), "policy-refuses"));

    let tried = |policy: &str, last| {
        let policy = Some(Policy::parse(policy).unwrap());
        let options = ReplayOptions { policy, last, first_only: false };
        replay(&data(&outside), options, &mut |_, _| {}).unwrap()
    };
    assert!(tried(OPEN, None).changed.is_empty(), "the open policy admits all of it");
    assert_eq!(tried(CLOSED, None).changed.len(), 6);
    let last = tried(CLOSED, Some(1));
    assert_eq!((last.decided, last.changed.len()), (1, 1));
}

const KNOWN: &str = "name = \"known\"\n[[allow]]\nissuer = \"https://agent.example\"\n";
const STRANGER: &str = "https://stranger.example";

/// Statements of an issuer, one for each number, made on every core.
fn made(key: &SigningKey, issuer: &str, numbers: std::ops::Range<u64>) -> Vec<Authentic> {
    let one = |n: &u64| {
        let sketch = Sketch::self_certified(key).claim(1, issuer);
        authentic(&sketch.payload(&n.to_be_bytes()).sign(key))
    };
    let numbers: Vec<u64> = numbers.collect();
    let (first, second) = numbers.split_at(numbers.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| second.iter().map(one).collect::<Vec<_>>());
        let mut all: Vec<_> = first.iter().map(one).collect();
        all.extend(other.join().unwrap());
        all
    })
}

/// 100,000 entries with `LONG_TESTS=1`, or else as many as a debug build makes
/// in a moment. (`CAPSTAN_` is for settings, and one that is unknown would stop
/// the program in other tests.) The policy becomes stricter half way: a
/// stranger before that was admitted, and one after it cannot have been.
#[tokio::test]
#[allow(clippy::disallowed_macros, reason = "the test runner keeps what a test prints")]
async fn one_bad_decision_among_many_is_reported() {
    let size: u64 = if std::env::var_os("LONG_TESTS").is_some() { 100_000 } else { 3_000 };
    let (outside, service) = log_with(OPEN, options());
    let key = es256();
    let planted = size * 3 / 4;
    while service.head().size.get() < size {
        let at = service.head().size.get();
        if at == size / 2 {
            std::fs::write(data(&outside).join("policy.toml"), KNOWN).unwrap();
            service.reload().await.unwrap();
            continue;
        }
        let next = [size / 4, size / 2, planted, size].into_iter().find(|end| *end > at).unwrap();
        let is_strange = at == size / 4 || at == planted;
        let (issuer, end) = match is_strange {
            true => (STRANGER, at + 1),
            false => (crate::envelope::fixture::ISSUER, next.min(at + 1000)),
        };
        append(&service, made(&key, issuer, at..end)).await;
    }
    service.committer.drain();
    drop(service);
    let started = std::time::Instant::now();
    let replayed = replay(&data(&outside), ReplayOptions::default(), &mut |_, _| {}).unwrap();
    println!("{size} entries decided again in {:.1} s", started.elapsed().as_secs_f64());
    assert_eq!((replayed.size, replayed.decided), (size, size));
    let [only] = replayed.changed.as_slice() else { panic!("{:?}", replayed.changed) };
    assert_eq!((only.index.get(), only.code), (planted, "policy-refuses"));
}

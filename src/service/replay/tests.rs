use super::*;
use crate::envelope::{Authentic, Resolved};
use crate::service::tests::{OPEN, code, data, log_with, options, statement};
use crate::store::Terms;
use crate::trust::TrustAnchors;

const CLOSED: &str = "name = \"closed\"\n[[allow]]\nsubject = \"urn:nobody\"\n";

fn authentic(bytes: &[u8]) -> Authentic {
    let statement = SignedStatement::parse(bytes.to_vec()).unwrap();
    let trust = TrustAnchors::default();
    statement.authenticate(&trust, &Resolved::default(), crate::service::now()).unwrap()
}

/// A statement that the writer took although the policy in force says no.
#[tokio::test]
async fn a_planted_decision_is_found() {
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
    let read = crate::profile::read(&planted);
    let header = planted.statement().header();
    let terms = Terms::of(header, &read.record, &read.record.summary());
    service
        .queue
        .with_writer(move |writer| {
            let planted = [((&planted, &terms), writer.size())];
            Ok(writer.append(&planted, crate::service::now()).map(drop)?)
        })
        .await
        .unwrap();
    service.queue.drain();
    drop(service);
    let mut heard = 0;
    let all = ReplayOptions { first_only: true, ..ReplayOptions::default() };
    let replayed = replay(&data(&outside), all, &mut |done, _| heard = done).unwrap();
    assert_eq!((replayed.size, heard), (9, 9));
    let [first] = replayed.differs.as_slice() else { panic!("{:?}", replayed.differs) };
    assert_eq!((first.index.get(), first.id, first.code), (8, Some(id), "policy-refuses"));

    let tried = |policy: &str, last| {
        let policy = Some(Policy::parse(policy).unwrap());
        let options = ReplayOptions { policy, last, first_only: false };
        replay(&data(&outside), options, &mut |_, _| {}).unwrap()
    };
    assert!(tried(OPEN, None).differs.is_empty(), "the open policy admits all of it");
    assert_eq!(tried(CLOSED, None).differs.len(), 6);
    let last = tried(CLOSED, Some(1));
    assert_eq!((last.decided, last.differs.len()), (1, 1));
}

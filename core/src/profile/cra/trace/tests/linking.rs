//! Chains, sessions, continuity, and two histories side by side.

use super::*;
use crate::profile::session::{Continuity, Head, continuity};

fn batch(text: &str) -> (TraceRecord, Vec<(&'static str, String)>) {
    let (record, findings) = TraceRecord::read_batch(text.as_bytes());
    (record, findings.into_iter().map(|finding| (finding.code, finding.at)).collect())
}

/// The lines of a batch, changed and put together again.
fn changed(text: &str, change: impl Fn(&mut Vec<String>)) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    lines.join("\n")
}

#[test]
fn a_batch_is_sound_or_the_place_is_named() {
    let (text, head) = lines(SESSION, 0, 4, GENESIS);
    let (record, listed) = batch(&text);
    assert_eq!(listed, []);
    let span = record.span().unwrap();
    assert_eq!((span.first, span.last, &span.head), (0, 3, &head));
    assert_eq!(batch(text.trim_end()).1, [], "the last line may lack its end");

    type Change = fn(&mut Vec<String>);
    type Told<'a> = &'a [(&'a str, &'a str)];
    let cases: [(&str, Change, Told); 7] = [
        (
            "event 0 changed",
            |l| l[0] = l[0].replace("allow", "deny"),
            &[("hash-mismatch", "/0/event_hash")],
        ),
        (
            "event 2 changed",
            |l| l[2] = l[2].replace("allow", "deny"),
            &[("hash-mismatch", "/2/event_hash")],
        ),
        (
            "dropped",
            |l| drop(l.remove(2)),
            &[("chain-broken", "/2/previous_event_hash"), ("sequence-gap", "/2/sequence")],
        ),
        (
            "reordered",
            |l| l.swap(2, 3),
            &[
                ("chain-broken", "/2/previous_event_hash"),
                ("sequence-gap", "/2/sequence"),
                ("chain-broken", "/3/previous_event_hash"),
                ("sequence-gap", "/3/sequence"),
                ("trace-time-regression", "/3/timestamp"),
            ],
        ),
        (
            "repeated",
            |l| l.push(l[3].clone()),
            &[
                ("chain-broken", "/4/previous_event_hash"),
                ("sequence-gap", "/4/sequence"),
                ("trace-event-id-repeated", "/4/event_id"),
            ],
        ),
        ("unreadable", |l| l[1].truncate(20), &[("json-truncated", "/1/event_hash")]),
        ("blank", |l| l[1].clear(), &[("json-truncated", "/1")]),
    ];
    for (name, change, expected) in cases {
        let (record, listed) = batch(&changed(&text, change));
        let listed: Vec<(&str, &str)> =
            listed.iter().map(|(code, at)| (*code, at.as_str())).collect();
        assert_eq!(listed, expected, "{name}");
        assert_eq!((record.span(), record.summary().ok), (None, Some(false)), "{name}");
    }
}

#[test]
fn nothing_is_not_a_valid_chain() {
    for text in ["", "\n"] {
        let (record, listed) = batch(text);
        assert_eq!(listed, [("trace-empty", String::new())]);
        assert_eq!(record.summary().ok, Some(false));
    }
    assert_eq!(batch(&"x\n".repeat(EVENTS_MAX)).1[0].0, "json-unexpected");
    let (_, listed) = batch(&"x\n".repeat(EVENTS_MAX + 1));
    assert_eq!(listed, [("trace-too-many-events", String::new())]);
}

#[test]
fn only_the_first_event_follows_zeros() {
    let (later, _) = lines(SESSION, 7, 2, &"a".repeat(64));
    assert_eq!(batch(&later).1, [], "a batch may go on where another stopped");
    for (sequence, previous) in [(7, GENESIS.to_owned()), (0, "a".repeat(64))] {
        let mut event = event(SESSION, sequence, &previous);
        let listed = event.seal().unwrap_err();
        assert_eq!(codes(&listed), [("invalid-genesis", "/previous_event_hash")]);
    }
}

#[test]
fn sessions_are_split_in_files_and_refused_in_statements() {
    let other = SESSION.replace("02", "03");
    let ((a, _), (b, _)) = (lines(SESSION, 0, 2, GENESIS), lines(&other, 0, 2, GENESIS));
    let b = b.replace("-000100", "-000400");
    let mixed: String = a.lines().zip(b.lines()).flat_map(|(a, b)| [a, "\n", b, "\n"]).collect();
    let history = History::read(mixed.as_bytes());
    let counts: Vec<usize> = history.chains.iter().map(|chain| chain.count).collect();
    assert_eq!(counts, [2, 2]);
    assert_eq!(history.chains[0].breaks, []);
    let (record, listed) = batch(&mixed);
    assert!(listed.contains(&("trace-sessions-mixed", "/1/session_id".to_owned())), "{listed:?}");
    assert_eq!(record.span(), None);
}

#[test]
fn a_file_is_lines_or_an_array_or_one_event() {
    let (text, head) = lines(SESSION, 0, 3, GENESIS);
    let array = format!("[{}]", text.trim_end().replace('\n', ",\n"));
    for text in [&text, &array] {
        let history = History::read(text.as_bytes());
        assert_eq!(
            (history.chains[0].span.head.as_str(), history.findings.len()),
            (head.as_str(), 0)
        );
    }
    assert_eq!(History::read(sealed().as_bytes()).events.len(), 1);
    assert_eq!(History::read(b"[]").findings[0].code, "trace-empty");
}

#[test]
fn a_hash_of_cra_core_is_named_and_is_not_the_norm() {
    let mut event = event(SESSION, 0, GENESIS);
    event.hash = Form::CraCore.digest(&event).unwrap().to_string();
    assert_eq!(event.form(), Some(Form::CraCore));
    let expected =
        [("hash-mismatch", "/event_hash".to_owned()), ("hash-cra-core", "/event_hash".to_owned())];
    assert_eq!(listed(&written(&event)), expected);
    event.timestamp = "1969-12-31T23:59:59.500000Z".to_owned();
    assert_eq!(Form::CraCore.digest(&event), None);
}

#[test]
fn findings_are_bounded() {
    let (_, findings) = TraceRecord::read_batch("{}\n".repeat(500).as_bytes());
    assert_eq!(findings.len(), 101);
    assert_eq!(findings[100].code, "cra-findings-left-out");
}

#[test]
fn a_batch_extends_its_session_or_is_named() {
    use Continuity::{Extends, Fork, Gap, New, NotGenesis, Overlaps, Repeats};
    let (a, b) = ("a".repeat(64), "b".repeat(64));
    let head = |last, hash: &str| Some(Head { last, hash: hash.to_owned() });
    let cases = [
        (None, (0, 0, GENESIS, &a), New),
        (None, (0, 9, GENESIS, &a), New),
        (None, (0, 9, &*b, &a), NotGenesis),
        (None, (1, 9, &*b, &a), NotGenesis),
        (None, (1, 1, GENESIS, &a), NotGenesis),
        (head(4, &a), (5, 5, &*a, &b), Extends),
        (head(4, &a), (5, 9, &*a, &b), Extends),
        (head(4, &a), (5, 9, &*b, &a), Fork),
        (head(4, &a), (6, 9, &*a, &b), Gap),
        (head(4, &a), (6, 9, &*b, &a), Gap),
        (head(4, &a), (4, 4, &*b, &a), Repeats),
        (head(4, &a), (0, 4, GENESIS, &a), Repeats),
        (head(4, &a), (0, 4, GENESIS, &b), Fork),
        (head(4, &a), (3, 4, &*a, &b), Fork),
        (head(4, &a), (0, 0, GENESIS, &b), Overlaps),
        (head(4, &a), (0, 9, GENESIS, &b), Overlaps),
        (head(4, &a), (3, 5, &*b, &b), Overlaps),
        (head(4, &a), (1, 3, &*b, &a), Overlaps),
        (head(0, &a), (0, 0, GENESIS, &a), Repeats),
        (head(0, &a), (0, 0, GENESIS, &b), Fork),
        (head(0, &a), (1, 1, &*a, &b), Extends),
        (head(u64::MAX, &a), (u64::MAX, u64::MAX, &*b, &a), Repeats),
        (head(u64::MAX - 1, &a), (u64::MAX, u64::MAX, &*a, &b), Extends),
    ];
    for (head, (first, last, previous, end), expected) in cases {
        let (previous, end) = (previous.to_owned(), end.clone());
        let span = Span { session: SESSION.to_owned(), first, last, previous, head: end };
        assert_eq!(continuity(head.as_ref(), &span), expected, "{head:?} {span:?}");
        assert!(!expected.name().is_empty());
    }
}

#[test]
fn two_histories_part_at_an_event() {
    let (text, _) = lines(SESSION, 0, 4, GENESIS);
    let read = |text: &str| History::read(text.as_bytes());
    let parting = |a: &str, b: &str| {
        let found = compare(&read(a), &read(b));
        found.into_iter().map(|difference| difference.parting).collect::<Vec<_>>()
    };
    assert_eq!(parting(&text, &text), []);
    let shorter = changed(&text, |lines| lines.truncate(2));
    assert_eq!(parting(&shorter, &text), [Parting::FirstEnds { sequence: 2 }]);
    assert_eq!(parting(&text, &shorter), [Parting::SecondEnds { sequence: 2 }]);
    let other = changed(&text, |lines| {
        lines[2] = lines[2].replace("allow", "deny").replace(r#""policy_id":"p","#, "");
    });
    let at = vec!["/payload/policy_id".to_owned(), "/payload/result".to_owned()];
    let expected = Parting::Forks { sequence: 2, first_line: 2, second_line: 2, at };
    assert_eq!(parting(&text, &other), [expected]);
    assert_eq!(parting(&text, "").len(), 1, "a session that only one has");
}

#[test]
fn a_summary_says_only_what_the_last_event_says() {
    let summary = |kind: &str, payload: &str| {
        let mut event = event(SESSION, 0, GENESIS);
        (event.event_type, event.payload) = (kind.to_owned(), json(payload));
        event.seal().unwrap();
        TraceRecord::read(written(&event).as_bytes()).0.summary()
    };
    let done =
        summary("action.executed", r#"{"action_id":"t.look","execution_id":"x","duration_ms":1}"#);
    assert_eq!(done.verdict.as_deref(), Some("executed"));
    assert_eq!(
        (done.action_id.as_deref(), done.effect_type.as_deref()),
        (Some("x"), Some("t.look"))
    );
    assert_eq!((done.effect_status, done.effect_mode), (None, None), "nothing is confirmed");
    let denied = summary("action.denied", r#"{"action_id":"a.b","reason":"r","policy_id":"p"}"#);
    assert_eq!((denied.decision.as_deref(), denied.verdict), (Some("reject"), None));
    let approved = summary("action.approved", r#"{"action_id":"a.b","resolution_id":"r"}"#);
    assert_eq!(
        (approved.decision.as_deref(), approved.decision_id.as_deref()),
        (Some("accept"), Some("r"))
    );
    assert_eq!(approved.verdict, None, "permission is not a deed");
    let partial =
        r#"{"resolution_id":"r","decision_type":"partial","allowed_count":1,"denied_count":1}"#;
    assert_eq!(summary("carp.resolution.completed", partial).decision, None);
    let asks = partial.replace("partial", "requires_approval");
    let asks = summary("carp.resolution.completed", &asks);
    assert_eq!(asks.decision.as_deref(), Some("needs_input"));
    let started = summary("session.started", r#"{"agent_id":"bot","goal":"g"}"#);
    assert_eq!(started.developer.as_deref(), Some("bot"));
}

//! Records in, states and inconsistencies out.

use super::*;
use crate::profile::Parent;
use crate::profile::capsule::OPEN;

const AGENT: &str = "https://agent.example";

fn entry(index: u64, record_id: &str, verdict: &str) -> Entry {
    Entry {
        index,
        id: StatementId::of_canonical(&index.to_be_bytes()),
        issuer: AGENT.to_owned(),
        subject: "urn:agent-action-capsule:acme:1".to_owned(),
        time: UnixSeconds::new(index),
        profile: "capsule",
        summary: Summary {
            record_id: Some(record_id.to_owned()),
            action_id: Some("1".to_owned()),
            operator: Some("acme".to_owned()),
            developer: Some(AGENT.to_owned()),
            verdict: Some(verdict.to_owned()),
            is_open: OPEN.contains(&verdict),
            ok: Some(true),
            ..Summary::default()
        },
        is_bound: true,
        binding: None,
    }
}

fn over(parent: &str, mut entry: Entry) -> Entry {
    let relation = "supersedes".to_owned();
    entry.summary.parent = Some(Parent { record_id: parent.to_owned(), relation });
    entry
}

fn with(mut entry: Entry, change: impl FnOnce(&mut Entry)) -> Entry {
    change(&mut entry);
    entry
}

fn codes(story: &Story) -> Vec<(u64, &'static str)> {
    story.anomalies.iter().map(|odd| (odd.index, odd.code)).collect()
}

#[test]
fn only_a_valid_supersedes_closes() {
    let open = || entry(0, "a", "hitl_dispatched");
    let close = || over("a", entry(1, "b", "resolved"));
    let late = || over("a", entry(2, "c", "resolved"));
    let refused = vec![(1, "supersedes_not_authorised")];
    let table = [
        (vec![open()], State::Open, vec![]),
        (vec![open(), close()], State::Closed { by: 1 }, vec![]),
        (
            vec![open(), close(), late()],
            State::Closed { by: 1 },
            vec![(2, "concurrent_supersedes")],
        ),
        (vec![open(), with(close(), |e| e.summary.ok = Some(false))], State::Open, refused.clone()),
        (
            vec![open(), with(close(), |e| e.summary.operator = Some("evil".to_owned()))],
            State::Open,
            refused.clone(),
        ),
        (
            vec![open(), with(close(), |e| e.issuer = "evil".to_owned())],
            State::Open,
            refused.clone(),
        ),
        (
            vec![open(), with(close(), |e| e.issuer = "evil".to_owned()), late()],
            State::Closed { by: 2 },
            refused,
        ),
        (vec![with(open(), |e| e.summary.is_concealed = true)], State::Concealed, vec![]),
        (vec![entry(0, "a", "executed")], State::Final, vec![]),
    ];
    for (n, (entries, state, odd)) in table.into_iter().enumerate() {
        let story = Story::new(entries);
        assert_eq!((&story.records[0].1, codes(&story)), (&state, odd), "row {n}");
        assert_eq!(story.is_open(), state == State::Open, "row {n}");
    }
}

#[test]
fn broken_chains_are_reported() {
    let table = [
        (vec![over("a", entry(0, "a", "executed"))], vec![(0, "chain_self_parent")]),
        (vec![over("z", entry(0, "a", "executed"))], vec![(0, "chain_parent_missing")]),
        (
            vec![over("b", entry(0, "a", "executed")), entry(1, "b", "executed")],
            vec![(0, "chain_parent_not_earlier")],
        ),
        (
            vec![over("b", entry(0, "a", "executed")), over("a", entry(1, "b", "executed"))],
            vec![(0, "chain_parent_not_earlier"), (0, "chain_cycle")],
        ),
        (
            vec![
                entry(0, "p", "executed"),
                entry(1, "a", "executed"),
                over("p", entry(2, "a", "executed")),
            ],
            vec![(2, "capsule_id_equivocation")],
        ),
        (
            vec![with(entry(0, "a", "executed"), |e| {
                e.summary.effect_status = Some("reverted".to_owned());
            })],
            vec![(0, "reverted_without_confirmed")],
        ),
        (
            vec![
                with(entry(0, "a", "executed"), |e| {
                    e.summary.effect_status = Some("confirmed".to_owned());
                }),
                over(
                    "a",
                    with(entry(1, "b", "executed"), |e| {
                        e.summary.effect_status = Some("reverted".to_owned());
                    }),
                ),
            ],
            vec![],
        ),
    ];
    for (n, (entries, odd)) in table.into_iter().enumerate() {
        assert_eq!(codes(&Story::new(entries)), odd, "row {n}");
    }
}

#[test]
fn reversals_are_found_or_ambiguous() {
    let effect = |entry: Entry, action: &str, status: &str, reference: Option<&str>| {
        with(entry, |e| {
            e.subject = format!("urn:agent-action-capsule:acme:{action}");
            e.summary.action_id = Some(action.to_owned());
            e.summary.effect_status = Some(status.to_owned());
            e.summary.external_ref = reference.map(str::to_owned);
        })
    };
    let done = || effect(entry(0, "a", "executed"), "1", "confirmed", Some("po-9"));
    let other = || effect(entry(1, "b", "executed"), "2", "confirmed", Some("po-9"));
    let undo =
        |index, id: &str| effect(entry(index, id, "executed"), "3", "reverted", Some("po-9"));
    let outcome = |index, subject: &str| {
        with(undo(index, "o"), |e| {
            e.summary.is_outcome = true;
            e.subject = subject.to_owned();
            e.summary.record_id = None;
            e.summary.operator = None;
        })
    };
    let subject = "urn:agent-action-capsule:acme:1";
    let table = [
        (vec![done(), undo(2, "c")], Correlation::About(vec![0]), vec![]),
        (
            vec![done(), other(), undo(2, "c")],
            Correlation::Ambiguous(vec![0, 1]),
            vec![(2, "reverted_ambiguous")],
        ),
        (vec![done(), other(), over("b", undo(2, "c"))], Correlation::About(vec![1]), vec![]),
        (
            vec![done(), undo(2, "c"), undo(3, "d")],
            Correlation::About(vec![0]),
            vec![(3, "reverted_again")],
        ),
        (vec![done(), undo(2, "c"), undo(3, "c")], Correlation::About(vec![0]), vec![]),
        (
            vec![done(), with(undo(2, "c"), |e| e.summary.operator = Some("evil".to_owned()))],
            Correlation::Nothing,
            vec![(2, "reverted_without_confirmed")],
        ),
        (vec![done(), other(), outcome(2, subject)], Correlation::About(vec![0]), vec![]),
        (vec![done(), outcome(2, "urn:other")], Correlation::About(vec![0]), vec![]),
        (
            vec![done(), other(), outcome(2, "urn:other")],
            Correlation::Ambiguous(vec![0, 1]),
            vec![(2, "outcome_ambiguous"), (2, "reverted_ambiguous")],
        ),
    ];
    for (n, (entries, correlation, odd)) in table.into_iter().enumerate() {
        let story = Story::new(entries);
        assert_eq!((&story.reversals[0].1, codes(&story)), (&correlation, odd), "row {n}");
        let clear = matches!(correlation, Correlation::About(_));
        let reverted = story.records.iter().any(|(e, _)| story.reverted_by(e.index) == Some(2));
        assert_eq!(reverted, clear, "row {n}");
    }
}

#[test]
fn outcome_of_two_actions_is_ambiguous() {
    let outcome = |decision: Option<&str>| {
        with(entry(2, "o", ""), |e| {
            let decision_id = decision.map(str::to_owned);
            e.summary = Summary { decision_id, is_outcome: true, ..Summary::default() };
        })
    };
    let other = with(entry(1, "b", "executed"), |e| {
        e.summary.operator = Some("acme:1".to_owned());
        e.summary.decision_id = Some("d".to_owned());
    });
    let table = [
        (vec![entry(0, "a", "executed"), outcome(None)], Correlation::About(vec![0]), vec![]),
        (vec![outcome(None)], Correlation::Nothing, vec![(2, "outcome_without_action")]),
        (
            vec![entry(0, "a", "executed"), other.clone(), outcome(None)],
            Correlation::Ambiguous(vec![0, 1]),
            vec![(2, "outcome_ambiguous")],
        ),
        (
            vec![entry(0, "a", "executed"), other, outcome(Some("d"))],
            Correlation::About(vec![1]),
            vec![],
        ),
    ];
    for (n, (entries, correlation, odd)) in table.into_iter().enumerate() {
        let story = Story::new(entries);
        assert_eq!((&story.outcomes[0].1, codes(&story)), (&correlation, odd), "row {n}");
    }
}

#[test]
fn expiry_counts_from_the_claimed_time() {
    let waiting = with(entry(0, "a", "deferred"), |e| {
        e.summary.claimed_at = Some(UnixSeconds::new(100));
        e.summary.expires_after = Some(60);
    });
    assert_eq!(waiting.expires_at(), Some(UnixSeconds::new(160)));
    assert_eq!(entry(0, "a", "deferred").expires_at(), None);
}

#[test]
fn sessions_belong_to_their_issuer() {
    use crate::profile::Span;
    let batch =
        |index: u64, issuer: &str, (first, last): (u64, u64), previous: &str, head: &str| {
            with(entry(index, &index.to_string(), "executed"), |e| {
                e.issuer = issuer.to_owned();
                e.summary.session = Some(Span {
                    session: "s".to_owned(),
                    first,
                    last,
                    previous: previous.to_owned(),
                    head: head.to_owned(),
                });
            })
        };
    let genesis = crate::profile::session::GENESIS;
    let story = Story::new(vec![
        batch(0, "stranger", (0, 1), genesis, "x"),
        batch(1, AGENT, (0, 1), genesis, "a"),
        batch(2, AGENT, (2, 3), "a", "b"),
        batch(3, "stranger", (4, 5), "b", "y"),
    ]);
    let listed = story.sessions.iter();
    let listed: Vec<_> =
        listed.map(|s| (s.issuer.as_str(), &s.statements[..], s.is_gap_free)).collect();
    assert_eq!(listed, [(AGENT, &[1, 2][..], true), ("stranger", &[0, 3][..], false)]);
    assert_eq!(codes(&story), [(3, "session_gap")]);
}

mod exchanges {
    use super::*;
    use crate::profile::exchange::{Execution, Part, Request, Resolution, Response};

    const STRANGER: &str = "https://stranger.example";

    fn part(index: u64, issuer: &str, part: Part) -> Entry {
        with(entry(index, &format!("r{index}"), ""), |entry| {
            entry.profile = "carp";
            entry.issuer = issuer.to_owned();
            entry.summary.exchange = Some(Box::new(part));
        })
    }

    fn granted(index: u64, issuer: &str, is_denial: bool) -> Entry {
        let allowed = if is_denial { Vec::new() } else { vec!["look".to_owned()] };
        let (resolution, expires) = ("res".to_owned(), Some(UnixSeconds::new(10)));
        let denied = vec!["drop".to_owned()];
        let granted = Resolution { resolution, request: None, is_denial, allowed, denied, expires };
        part(index, issuer, Part::Resolution(granted))
    }

    fn asked(index: u64, action: &str, at: u64) -> Entry {
        let execution = Execution { resolution: "res".to_owned(), action: action.to_owned() };
        let asked = Request {
            request: "req".to_owned(),
            session: "s".to_owned(),
            execution: Some(execution),
            at: Some(UnixSeconds::new(at)),
        };
        part(index, AGENT, Part::Request(asked))
    }

    fn done(index: u64, is_success: bool) -> Entry {
        part(index, AGENT, Part::Response(Response { request: "req".to_owned(), is_success }))
    }

    #[test]
    fn every_conflict_of_an_exchange_is_reported() {
        let ours = |is_denial| granted(0, AGENT, is_denial);
        let both = |one: Entry, other: Entry| vec![one, other];
        type Case = (Vec<Entry>, Vec<(u64, &'static str)>);
        let table: Vec<Case> = vec![
            (vec![ours(false), asked(1, "look", 10), done(2, true)], vec![]),
            (both(ours(false), asked(1, "drop", 1)), vec![(1, "carp_denied")]),
            (both(ours(false), asked(1, "fly", 1)), vec![(1, "carp_unallowed")]),
            (both(ours(false), asked(1, "look", 11)), vec![(1, "carp_expired")]),
            (
                vec![ours(true), asked(1, "look", 11), done(2, true)],
                vec![(1, "carp_denied"), (1, "carp_expired"), (2, "carp_executed_against")],
            ),
            (vec![ours(true), asked(1, "look", 1), done(2, false)], vec![(1, "carp_denied")]),
            (vec![asked(1, "look", 1)], vec![(1, "carp_resolution_missing")]),
            (vec![done(1, true)], vec![(1, "carp_response_unasked")]),
            (
                vec![ours(false), asked(1, "look", 1), asked(2, "look", 2)],
                vec![(2, "carp_request_repeated")],
            ),
            (both(ours(false), asked(400, "look", 1)), vec![(400, "carp_clock_skew")]),
            // A stranger's word does not stand against the issuer's own.
            (
                vec![granted(0, STRANGER, true), granted(1, AGENT, false), asked(2, "look", 1)],
                vec![],
            ),
            (both(granted(0, STRANGER, true), asked(1, "look", 1)), vec![(1, "carp_denied")]),
        ];
        for (entries, expected) in table {
            let story = Story::new(entries);
            assert_eq!(codes(&story), expected, "{:?}", story.anomalies);
        }
        let strange = Story::new(vec![granted(0, STRANGER, true), asked(1, "look", 1)]);
        let [odd] = strange.anomalies.as_slice() else { panic!("one") };
        assert_eq!(odd.severity, Severity::Warning);
        assert_eq!(odd.detail, "resolution #0, of https://stranger.example, denies \"look\"");
    }
}

/// Anybody can log `reverted`, so the issuer is reported; a statement whose
/// header calls it something else reverts nothing.
#[test]
fn reversal_names_its_issuer() {
    use crate::envelope::Binding;
    let paid = || {
        with(entry(0, "a", "executed"), |e| {
            e.summary.effect_status = Some("confirmed".to_owned());
        })
    };
    let undone = |issuer: &str, binding: Binding| {
        with(entry(1, "o", ""), |e| {
            e.summary.is_outcome = true;
            e.issuer = issuer.to_owned();
            e.binding = Some(binding);
            e.summary.record_id = None;
            e.summary.effect_status = Some("reverted".to_owned());
        })
    };
    let by_agent = Story::new(vec![paid(), undone(AGENT, Binding::Pinned)]);
    assert_eq!((by_agent.reverted_by(0), codes(&by_agent)), (Some(1), vec![]));
    assert_eq!(by_agent.entry(1).unwrap().signed_by(), format!("{AGENT} (pinned)"));
    let stranger = undone("https://stranger.example", Binding::SelfCertified);
    let by_other = Story::new(vec![paid(), stranger.clone()]);
    assert_eq!(codes(&by_other), [(1, "reverted_by_other")]);
    let listed = "https://stranger.example (self-certified) says so, who is not the agent of #0";
    assert_eq!(by_other.anomalies[0].detail, listed);
    let misdeclared = with(stranger, |e| e.is_bound = false);
    let none = Story::new(vec![paid(), misdeclared]);
    assert_eq!((none.reverted_by(0), codes(&none)), (None, vec![(1, "outcome_misdeclared")]));
    assert_eq!(none.outcomes[0].1, Correlation::Nothing);
}

//! Stories across profiles, linked only by explicit references.

use std::collections::BTreeSet;

use capstan::profile::capsule::{Action, Effect, EffectState};
use capstan::profile::pacr;
use capstan::profile::pca::{self, PcaCertificateRecord};
use serde_json::Value;

use super::{AGENT, SESSION, STRICT, World, batches, causal, certificate, indices, name};
use crate::api_v1::action;

/// A Capsule with an external reference.
fn action_referring_to(id: &str, reference: &str, supersedes: Option<String>) -> Action {
    let effect = Effect {
        kind: Some("send_payment".to_owned()),
        external_ref: Some(reference.to_owned()),
        irreversibility: Some("two_way".to_owned()),
        state: EffectState::Planned,
    };
    Action { effect: Some(effect), supersedes, ..action(id, "executed", None) }
}

/// The indices in the chain of a story, and the story.
fn story_of(world: &World, id: &str) -> (Vec<u64>, Value) {
    let story = world.get(&format!("/api/v1/stories/{id}"));
    (indices(&story["chain"]), story)
}

#[test]
fn story_spans_all_profiles() {
    let world = World::new(STRICT);
    let plan = certificate(AGENT, "n-1").to_string();
    let digest = PcaCertificateRecord::read(plan.as_bytes()).pc_digest().unwrap().hex();
    let stranger = certificate(AGENT, "n-2").to_string();
    let session = "01939c6e-0000-7000-8000-0000000000ff";

    world.admit(&world.causal(&name(1), &[])); // 3
    world.admit(&world.causal(&name(2), &[&name(1)])); // 4
    world.admit(&world.causal(&name(3), &[])); // 5, nobody's
    for lines in batches(SESSION, 2).iter().chain(&batches(session, 1)) {
        world.admit(&world.batch(lines)); // 6, 7; 8 nobody's
    }
    for plan in [&plan, &stranger] {
        world.admit(&world.seal(AGENT, (pca::CERTIFICATE_CONTENT_TYPE, plan.as_bytes()))); // 9; 10
    }
    let first = world.register_action(&action_referring_to("pay-1", &digest, None)); // 11
    let second =
        world.register_action(&action_referring_to("pay-2", &name(2), Some(first.clone()))); // 12
    world.register_action(&action_referring_to("pay-3", SESSION, Some(second))); // 13
    world.register_action(&action_referring_to("other", "po-7", None)); // 14, nobody's

    let expected = [3, 4, 6, 7, 9, 11, 12, 13];
    for id in [first.as_str(), "pay-1", SESSION, &digest, &name(1), &name(2)] {
        let (chain, story) = story_of(&world, id);
        assert_eq!(chain, expected, "{id}");
        let profiles: BTreeSet<&str> = story["chain"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|record| record["profile"].as_str())
            .collect();
        assert_eq!(profiles, BTreeSet::from(["capsule", "pacr", "pca-certificate", "trace"]));
        assert_eq!(story["findings"], serde_json::json!([]), "{id}");
        assert_eq!(story["sessions"][0]["is_gap_free"], true);
        let text = world.run_with_url(&format!("story {id}"));
        let listed = |index: &u64| text.contains(&format!("#{index:<6} "));
        assert!(expected.iter().all(listed) && ![5, 8, 10, 14].iter().any(listed), "{text}");
        for profile in ["pacr", "pca-certificate", "trace", "gap-free"] {
            assert!(text.contains(profile), "{profile} in {text}");
        }
    }
    for (id, alone) in [(name(3), 5), (session.to_owned(), 8), ("other".to_owned(), 14)] {
        assert_eq!(story_of(&world, &id).0, [alone], "{id}");
    }
    let page = world.get(&format!("/api/v1/statements?external_ref={SESSION}"));
    assert_eq!(indices(&page["statements"]), [13]);
}

/// Not links: an action of the same name, a payload that mentions a session, a
/// cause named outside `predecessors`.
#[test]
fn similar_records_are_not_linked() {
    let world = World::new(STRICT);
    let mention = serde_json::json!({ "inner": format!("{SESSION} {}", name(1)) });
    world.admit(&world.causal(&name(1), &[])); // 3
    let mentions = causal(&name(2), &[], mention);
    world.admit(&world.seal(AGENT, (pacr::JSON_CONTENT_TYPE, &mentions))); // 4
    world.admit(&world.batch(&batches(SESSION, 1)[0])); // 5
    let lower = name(1).to_lowercase();
    world.register_action(&action_referring_to("pay-1", &lower, None)); // 6
    world.register_action(&action_referring_to("pay-2", &format!(" {SESSION}"), None)); // 7
    for (id, alone) in [(&name(1), 3), (&name(2), 4), (&SESSION.to_owned(), 5)] {
        assert_eq!(story_of(&world, id).0, [alone], "{id}");
    }
    assert_eq!(story_of(&world, "pay-1").0, [6]);
}

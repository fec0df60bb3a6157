//! TRACE sessions across statements: complete, with a gap, out of order, forked.

use super::{AGENT, GENESIS, KEEP, OTHER, SESSION, STRICT, World, batches, codes, events, id_of};

fn sealed(world: &World, lines: &[String]) -> Vec<Vec<u8>> {
    lines.iter().map(|lines| world.batch(lines)).collect()
}

/// Another session for each test case.
fn session(n: u32) -> String {
    format!("01939c6e-0000-7000-8000-0000000001{n:02x}")
}

#[test]
fn fifty_batches_are_gap_free() {
    let world = World::new(STRICT);
    let all = sealed(&world, &batches(SESSION, 50));
    for statement in &all[..10] {
        world.admit(statement);
    }
    let answers = world.post_all(&all[10..]);
    assert!(answers.iter().all(|(status, _)| *status == 201), "{answers:?}");
    // Signing a logged batch again does not change the session.
    let again = batches(SESSION, 50).pop().unwrap();
    let again = world.seal_about(AGENT, "urn:example:again", &again);
    for name in [SESSION.to_owned(), id_of(&all[30]).to_string()] {
        let story = world.get(&format!("/api/v1/stories/{name}"));
        assert_eq!(story["chain"].as_array().map(Vec::len), Some(50));
        assert_eq!(codes(&story["findings"]), [""; 0]);
        let [told] = story["sessions"].as_array().unwrap().as_slice() else { panic!("{story}") };
        assert_eq!((&told["is_gap_free"], &told["last"]), (&true.into(), &99.into()));
        assert_eq!(told["statements"].as_array().map(Vec::len), Some(50));
        assert_eq!(story["is_cut"], false);
    }
    let text = world.run_with_url(&format!("story {SESSION}"));
    assert!(text.contains("50 statements, up to event 99, gap-free"), "{text}");
    world.admit(&again);
    let story = world.get(&format!("/api/v1/stories/{SESSION}"));
    assert_eq!(codes(&story["findings"]), ["session_repeated"]);
    assert_eq!(story["sessions"][0]["is_gap_free"], true);
    let page = world.get(&format!("/api/v1/statements?session={SESSION}&limit=200"));
    assert_eq!(page["statements"].as_array().map(Vec::len), Some(51));
}

#[test]
fn strict_policy_refuses_broken_sessions() {
    let world = World::new(STRICT);
    let refused = |lines: &str, how: &str| {
        let why = world.refused(&world.batch(lines));
        assert!(why.contains(&format!("session is {how}, ")), "{why}");
    };
    let dropped = batches(&session(1), 3);
    world.admit(&world.batch(&dropped[0]));
    refused(&dropped[2], "gap");

    let reordered = batches(&session(2), 3);
    refused(&reordered[1], "not-genesis");
    world.admit(&world.batch(&reordered[0]));
    refused(&reordered[2], "gap");
    world.admit(&world.batch(&reordered[1]));
    world.admit(&world.batch(&reordered[2]));

    let (first, head) = events(&session(3), (0, 2), GENESIS, "p");
    world.admit(&world.batch(&first));
    let (second, _) = events(&session(3), (2, 2), &head, "p");
    world.admit(&world.batch(&second));
    let (forked, other_head) = events(&session(3), (2, 2), &head, "another");
    refused(&forked, "fork");
    refused(&events(&session(3), (4, 1), &other_head, "another").0, "fork");
    refused(&events(&session(3), (1, 1), &head, "p").0, "overlaps");
    refused(&events(&session(3), (0, 4), GENESIS, "another").0, "fork");

    for n in 2..=3 {
        let story = world.get(&format!("/api/v1/stories/{}", session(n)));
        assert_eq!(story["sessions"][0]["is_gap_free"], true, "{story}");
        assert_eq!(codes(&story["findings"]), [""; 0]);
    }
}

/// Another issuer that uses the session id first has a separate session.
#[test]
fn sessions_are_scoped_to_their_issuer() {
    let world = World::new(STRICT);
    let lines = batches(&session(1), 3);
    let (squatted, end) = events(&session(1), (0, 2), GENESIS, "not the agent's");
    let stranger = |lines: &str| world.seal_about(OTHER, "urn:example:stranger", lines);
    world.admit(&stranger(&squatted));
    world.admit(&world.batch(&lines[0]));
    // The same for later events: they continue only their issuer's session.
    assert!(world.refused(&stranger(&lines[1])).contains("session is fork, "));
    world.admit(&world.batch(&lines[1]));
    world.admit(&stranger(&events(&session(1), (2, 2), &end, "not the agent's").0));
    let third = world.batch(&lines[2]);
    world.admit(&third);

    let story = world.get(&format!("/api/v1/stories/{}", session(1)));
    let told = story["sessions"].as_array().unwrap();
    let told: Vec<_> = told.iter().map(|s| (&s["issuer"], &s["last"], &s["is_gap_free"])).collect();
    let (agent, other) = (AGENT.into(), OTHER.into());
    let (five, three, whole) = (5.into(), 3.into(), true.into());
    assert_eq!(told, [(&agent, &five, &whole), (&other, &three, &whole)]);
    assert_eq!(codes(&story["findings"]), [""; 0]);
    // The story of a statement has only the sessions of its issuer.
    let own = world.get(&format!("/api/v1/stories/{}", id_of(&third)));
    assert_eq!(own["chain"].as_array().map(Vec::len), Some(3));
    let text = world.run_with_url(&format!("story {}", session(1)));
    assert!(text.contains(&format!("{} of {OTHER}: 2 statements", session(1))), "{text}");

    // The bundle has the previous batch and gives the same decision.
    let head = format!("GET /api/v1/bundles/{}", id_of(&third));
    let (status, bundle) = crate::live::request(&world.server.address, &head, b"").unwrap();
    assert_eq!(status, 200);
    let report = super::kinds::report_on(&bundle, &world.trust);
    let admitted = report.checks.iter().find(|check| check.name == "admitted").unwrap();
    assert_eq!(admitted.code, "ok", "{report:?}");
    let data = world.stop();
    world.run(0, "replay --data data");
    assert!(capstan::service::fsck(&data, None, &mut |_, _| {}).unwrap().findings.is_empty());
}

/// Each statement is decided after those before it, and a refused one does not
/// change the session.
#[test]
fn batch_request_is_decided_in_order() {
    let world = World::new(STRICT);
    let lines = batches(&session(1), 3);
    let (forked, _) = events(&session(1), (0, 2), GENESIS, "another");
    let sent = [&lines[0], &lines[2], &forked, &lines[1], &lines[2]];
    let statements: Vec<Vec<u8>> = sent.iter().map(|lines| world.batch(lines)).collect();
    // The same batch twice in one request: once too early, once in order.
    let again = world.seal_about(AGENT, "urn:example:again", &lines[2]);
    let statements = [&statements[..4], &[again]].concat();
    let answers = world.post_all(&statements);
    let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [201, 400, 400, 201, 201], "{answers:?}");
    assert!(answers[1].1.contains("session is gap"), "{answers:?}");
    assert!(answers[2].1.contains("session is fork"), "{answers:?}");
    let story = world.get(&format!("/api/v1/stories/{}", session(1)));
    assert_eq!(story["sessions"][0]["is_gap_free"], true, "{story}");
}

#[test]
fn story_reports_broken_sessions() {
    let world = World::new(KEEP);
    let told = |session: &str, lines: &[&String]| {
        for lines in lines {
            world.admit(&world.batch(lines));
        }
        let story = world.get(&format!("/api/v1/stories/{session}"));
        assert_eq!(story["sessions"][0]["is_gap_free"], false, "{story}");
        codes(&story["findings"]).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let dropped = batches(&session(1), 4);
    let kept = [&dropped[0], &dropped[2], &dropped[3]];
    assert_eq!(told(&session(1), &kept), ["session_gap"]);
    let text = world.run_with_url(&format!("story {}", session(1)));
    assert!(text.contains("NOT gap-free") && text.contains("(session_gap)"), "{text}");

    let reordered = batches(&session(2), 3);
    let kept = [&reordered[0], &reordered[2], &reordered[1]];
    assert_eq!(told(&session(2), &kept), ["session_gap", "session_overlap"]);

    let (first, head) = events(&session(3), (0, 2), GENESIS, "p");
    let (second, _) = events(&session(3), (2, 2), &head, "p");
    let (forked, _) = events(&session(3), (2, 2), &head, "another");
    assert_eq!(told(&session(3), &[&first, &second, &forked]), ["session_fork"]);

    let headless = batches(&session(4), 3);
    assert_eq!(told(&session(4), &[&headless[1], &headless[2]]), ["session_not_begun"]);
    let page = world.get(&format!("/api/v1/statements?profile=trace&issuer={AGENT}"));
    assert_eq!(page["statements"].as_array().map(Vec::len), Some(11), "all are kept");
}

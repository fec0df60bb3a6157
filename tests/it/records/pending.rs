//! Statements that are pending until their predecessors are logged.

use std::time::Duration;

use super::{STRICT, World, id_of, name};

fn world(seconds: u32, statements: u32) -> World {
    World::new(&format!("{STRICT}[pending]\nseconds = {seconds}\nstatements = {statements}\n"))
}

/// The status of an entry once it is no longer pending.
fn status_after_pending(world: &World, statement: &[u8]) -> u16 {
    let path = format!("/entries/{}", id_of(statement));
    for _ in 0..600 {
        match world.status(&path) {
            204 => std::thread::sleep(Duration::from_millis(50)),
            status => return status,
        }
    }
    204
}

#[test]
fn pending_effect_is_logged_after_its_cause() {
    let world = world(600, 2);
    let effect = world.causal(&name(2), &[&name(1)]);
    let last = world.causal(&name(3), &[&name(2)]);
    let third = world.causal(&name(4), &[&name(8)]);
    let path = format!("/entries/{}", id_of(&effect));
    assert_eq!(world.post(&effect).0, 202);
    assert_eq!(world.status(&path), 204);
    assert_eq!(world.post(&effect).0, 202, "sent again it is still pending");
    assert_eq!(world.post(&last).0, 202);
    let why = world.refused(&third);
    assert!(why.contains("predecessors is unknown"), "no more may be pending: {why}");
    let broken = world.causal(&name(5), &[]);
    world.admit(&broken);
    assert_eq!(world.status(&path), 204, "other records do not matter");

    world.admit(&world.causal(&name(1), &[]));
    assert_eq!(
        (status_after_pending(&world, &effect), status_after_pending(&world, &last)),
        (200, 200)
    );
    let found = world.get(&format!("/api/v1/lineages/{}", name(3)));
    assert_eq!(found["ancestors"], serde_json::json!([name(2), name(1)]));
    assert_eq!(world.post(&third).0, 202, "there is room again");
    assert_eq!(world.post(&effect).0, 201, "and this one is logged");
}

#[test]
fn pending_effect_expires() {
    let world = world(1, 1);
    let effect = world.causal(&name(2), &[&name(1)]);
    assert_eq!(world.post(&effect).0, 202);
    assert_eq!(status_after_pending(&world, &effect), 404);
    assert_eq!(world.post(&effect).0, 202, "it may be sent again");
}

/// A record that would be refused for another reason is not pending.
#[test]
fn only_missing_predecessors_make_pending() {
    let world = world(600, 10);
    world.admit(&world.causal(&name(1), &[]));
    let other = world.causal(&name(1), &[&name(9)]);
    assert!(world.refused(&other).contains("record_id is other-content"));
}

/// Within one request, a statement that depends on a pending one is pending.
#[test]
fn chain_is_pending_as_a_whole() {
    let world = world(600, 10);
    let chain = [3, 4, 2].map(|n| world.causal(&name(n), &[&name(n - 1)]));
    let statuses = |sent: &[Vec<u8>]| -> Vec<u16> {
        world.post_all(sent).into_iter().map(|(status, _)| status).collect()
    };
    assert_eq!(statuses(&chain), [202, 202, 202]);
    let first = [world.causal(&name(1), &[])];
    assert_eq!(statuses(&first), [201]);
    for statement in &chain {
        assert_eq!(status_after_pending(&world, statement), 200);
    }
    assert_eq!(statuses(&chain), [201, 201, 201]);
}

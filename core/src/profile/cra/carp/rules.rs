//! What the text demands of a CARP document beyond the shape of its members.

use super::Kind;
use crate::profile::cra::notes::Notes;
use crate::wire::json::Json;

pub(super) fn check(kind: Kind, document: &Json, notes: &mut Notes) {
    if kind == Kind::Resolution {
        decision(document, notes);
        actions(document, notes);
    }
}

/// The decision types of 3.3.1. What no allow names is denied, so an `allow`
/// without actions allows nothing.
fn decision(document: &Json, notes: &mut Notes) {
    let count = |name| document.get(name).and_then(Json::array).map_or(0, <[Json]>::len);
    let (allowed, denied) = (count("allowed_actions"), count("denied_actions"));
    let approval = document.pointer("/decision/approval_id").and_then(Json::text);
    let at = "/decision/type";
    match document.pointer(at).and_then(Json::text).unwrap_or_default() {
        "deny" if allowed > 0 => {
            let detail = format!("a denial permits no action, {allowed} are listed (3.3.1)");
            notes.error("carp-decision-conflict", at, detail);
        }
        "partial" if allowed == 0 || denied == 0 => {
            let detail = "partial, but not some actions allowed and some denied (3.3.1)";
            notes.warning("carp-decision-doubtful", at, detail);
        }
        "allow" if allowed == 0 => {
            let detail = "allows, but no action is listed: nothing may be executed";
            notes.warning("carp-decision-doubtful", at, detail);
        }
        "requires_approval" if approval.is_none() => {
            let detail = "asks for an approval that has no id";
            notes.warning("carp-decision-doubtful", at, detail);
        }
        _ => {}
    }
}

fn actions(document: &Json, notes: &mut Notes) {
    let ids = |name| {
        let items = document.get(name).and_then(Json::array).unwrap_or_default();
        items.iter().map(|item| item.get("action_id").and_then(Json::text))
    };
    let denied: std::collections::HashSet<&str> = ids("denied_actions").flatten().collect();
    for (i, id) in ids("allowed_actions").enumerate() {
        if id.is_some_and(|id| denied.contains(id)) {
            let at = format!("/allowed_actions/{i}/action_id");
            notes.error("carp-action-conflict", at, "both allowed and denied");
        }
    }
}

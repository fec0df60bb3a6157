//! Whether what a manifest refers to is in it.

use std::collections::HashSet;

use crate::profile::cra::notes::Notes;
use crate::profile::finding::Severity;
use crate::wire::json::Json;

pub(super) fn check(manifest: &Json, notes: &mut Notes) {
    let actions: HashSet<&str> = ids(manifest, "actions", "action_id").flatten().collect();
    let packs: HashSet<&str> = ids(manifest, "context_packs", "pack_id").flatten().collect();
    unique(manifest, notes);
    capabilities(manifest, &actions, &packs, notes);
    policies(manifest, &actions, notes);
    files(manifest, notes);
    let own = manifest.get("atlas_id").and_then(Json::text).unwrap_or_default();
    if manifest.get("dependencies").is_some_and(|all| all.get(own).is_some()) {
        let at = format!("/dependencies/{own}");
        notes.error("atlas-dependency-self", at, "an atlas cannot depend on itself");
    }
}

fn list<'a>(value: &'a Json, name: &str) -> &'a [Json] {
    value.get(name).and_then(Json::array).unwrap_or_default()
}

fn ids<'a>(manifest: &'a Json, of: &str, id: &'a str) -> impl Iterator<Item = Option<&'a str>> {
    list(manifest, of).iter().map(move |item| item.get(id).and_then(Json::text))
}

/// Ids are unique in their list.
fn unique(manifest: &Json, notes: &mut Notes) {
    const NAMED: [(&str, &str); 4] = [
        ("actions", "action_id"),
        ("capabilities", "capability_id"),
        ("context_packs", "pack_id"),
        ("policies", "policy_id"),
    ];
    for (of, id) in NAMED {
        let mut seen = HashSet::new();
        for (i, text) in ids(manifest, of, id).enumerate() {
            if text.is_some_and(|text| !seen.insert(text)) {
                notes.error("atlas-id-repeated", format!("/{of}/{i}/{id}"), "used twice");
            }
        }
    }
}

fn capabilities(
    manifest: &Json,
    actions: &HashSet<&str>,
    packs: &HashSet<&str>,
    notes: &mut Notes,
) {
    for (i, capability) in list(manifest, "capabilities").iter().enumerate() {
        for (j, action) in list(capability, "actions").iter().enumerate() {
            if action.text().is_some_and(|id| !actions.contains(id)) {
                let at = format!("/capabilities/{i}/actions/{j}");
                notes.error("atlas-action-unknown", at, "no such action in this manifest");
            }
        }
        for (j, pack) in list(capability, "context_packs").iter().enumerate() {
            if pack.text().is_some_and(|id| !packs.contains(id)) {
                let at = format!("/capabilities/{i}/context_packs/{j}");
                notes.error("atlas-pack-unknown", at, "no such context pack in this manifest");
            }
        }
    }
}

/// The text says that a policy's `actions` is an object, but not what it
/// contains; producers write an array of ids and globs, which is resolved.
fn policies(manifest: &Json, actions: &HashSet<&str>, notes: &mut Notes) {
    let policies = list(manifest, "policies");
    for (i, policy) in policies.iter().enumerate() {
        if policy.get("actions").is_some_and(|of| of.members().is_some()) {
            notes.once(Severity::Info, "atlas-policy-actions-opaque", || {
                let detail = "an object as in the text, which does not define its members";
                (format!("/policies/{i}/actions"), detail.to_owned())
            });
        }
        for (j, pattern) in list(policy, "actions").iter().enumerate() {
            let Some(pattern) = pattern.text() else { continue };
            let at = format!("/policies/{i}/actions/{j}");
            if !pattern.contains('*') {
                if !actions.contains(pattern) {
                    notes.error("atlas-action-unknown", at, "no such action in this manifest");
                }
            } else if !actions.iter().any(|action| matches(pattern, action)) {
                notes.warning("atlas-glob-empty", at, "no action of this manifest matches");
            }
        }
    }
    let allows = |policy: &Json| policy.get("type").and_then(Json::text) == Some("allow");
    if !actions.is_empty() && !policies.iter().any(allows) {
        notes.once(Severity::Info, "atlas-nothing-allowed", || {
            let detail = "no policy allows anything, and the default is to deny (5.5)";
            ("/policies".to_owned(), detail.to_owned())
        });
    }
}

/// `*`, `x.*`, `*.y`, or the id itself.
fn matches(pattern: &str, action: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(""), _) => true,
        (Some(end), _) => !end.contains('*') && action.ends_with(end),
        (_, Some(start)) => !start.contains('*') && action.starts_with(start),
        _ => pattern == action,
    }
}

/// Files must be inside the package (5.2).
fn files(manifest: &Json, notes: &mut Notes) {
    for (i, pack) in list(manifest, "context_packs").iter().enumerate() {
        for (j, file) in list(pack, "files").iter().enumerate() {
            let leaves = |path: &str| {
                path.starts_with('/') || path.contains('\\') || path.split('/').any(|p| p == "..")
            };
            if file.text().is_some_and(leaves) {
                let at = format!("/context_packs/{i}/files/{j}");
                notes.error("atlas-path-outside", at, "the path leaves the package");
            }
        }
    }
}

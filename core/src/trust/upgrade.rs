//! Adds scopes to trust files from before anchors had them.
//!
//! In: the text of a trust file, and scopes for its anchors. Out: the same text
//! with only those lines added; both are parsed and compared to check that.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::x509::Scope;
use super::{Error, TrustAnchors};

/// A trust file after an upgrade.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Upgraded {
    /// The whole text.
    pub text: String,
    /// The anchors that got a scope.
    pub added: Vec<(String, Scope)>,
    /// The anchors that still have none.
    pub left: Vec<String>,
}

#[derive(Deserialize)]
struct Anchors {
    #[serde(default)]
    anchor: Vec<AnchorAt>,
}

/// The position of an anchor in the text, and whether it has a scope.
#[derive(Deserialize)]
struct AnchorAt {
    name: Spanned<String>,
    spiffe: Option<IgnoredAny>,
    dns: Option<IgnoredAny>,
    uri: Option<IgnoredAny>,
    did_x509: Option<IgnoredAny>,
}

impl AnchorAt {
    fn is_scoped(&self) -> bool {
        let lists = [&self.spiffe, &self.dns, &self.uri, &self.did_x509];
        lists.iter().any(|list| list.is_some())
    }
}

/// Adds scopes to the anchors of a trust file that have none. An anchor that
/// is not in `scopes` is listed in `left`.
pub fn upgrade(text: &str, scopes: &BTreeMap<String, Scope>) -> Result<Upgraded, Error> {
    TrustAnchors::parse_any(text)?;
    let not_toml = |e: toml::de::Error| Error::NotToml { detail: e.to_string() };
    let found: Anchors = toml::from_str(text).map_err(not_toml)?;
    let mut upgraded = Upgraded { text: text.to_owned(), added: Vec::new(), left: Vec::new() };
    // From the end, so that earlier offsets stay valid.
    let unscoped = found.anchor.iter().enumerate().filter(|(_, anchor)| !anchor.is_scoped());
    for (place, anchor) in unscoped.rev() {
        let name = anchor.name.get_ref();
        let Some(scope) = scopes.get(name).filter(|scope| !scope.is_empty()) else {
            upgraded.left.push(name.clone());
            continue;
        };
        let edited = insert(&upgraded.text, place, anchor.name.span().end, scope);
        upgraded.text = edited.ok_or_else(|| Error::NotToml {
            detail: format!("add to anchor {name} yourself: {}", scope.to_toml().join("; ")),
        })?;
        upgraded.added.push((name.clone(), scope.clone()));
    }
    TrustAnchors::parse_any(&upgraded.text)?;
    upgraded.added.reverse();
    upgraded.left.reverse();
    Ok(upgraded)
}

/// Inserts a scope after the name of an anchor: on new lines or, in an inline
/// table, on the same line.
fn insert(text: &str, place: usize, end: usize, scope: &Scope) -> Option<String> {
    let lines = scope.to_toml();
    let added: toml::Table = toml::from_str(&lines.join("\n")).ok()?;
    let mut expected: toml::Table = toml::from_str(text).ok()?;
    let anchors = expected.get_mut("anchor")?.as_array_mut()?;
    anchors.get_mut(place)?.as_table_mut()?.extend(added);
    let (before, after) = text.split_at_checked(end)?;
    let rest_of_line = after.find('\n').map_or(after.len(), |at| at + 1);
    let (line, after_line) = after.split_at_checked(rest_of_line)?;
    let newline = if line.ends_with("\r\n") { "\r\n" } else { "\n" };
    let missing = if line.ends_with('\n') { "" } else { newline };
    let own_lines: String = lines.iter().map(|line| format!("{line}{newline}")).collect();
    let candidates = [
        format!("{before}{line}{missing}{own_lines}{after_line}"),
        format!("{before}, {}{after}", lines.join(", ")),
    ];
    let is_right = |text: &String| toml::from_str(text).is_ok_and(|t: toml::Table| t == expected);
    candidates.into_iter().find(is_right)
}

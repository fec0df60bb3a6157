//! The policy file: TOML in which every key is known.

use toml::de::{DeTable, DeValue};

use super::condition::{Claim, Condition, KINDS, Kind, Shape, Want};
use super::condition::{Pattern, Rule};
#[cfg(feature = "rego")]
use super::rego::Program;
use super::table::{At, words};
use super::{Clock, Pending, Policy, Rate};
use crate::profile;
use crate::wire::text::did_you_mean;

const TOP_KEYS: &[&str] = &["name", "description", "allow", "clock", "pending", "rate", "refuse"];

pub(super) fn parse(text: &str) -> Result<Policy, Error> {
    let table = DeTable::parse(text).map_err(|e| Error::NotToml { detail: e.to_string() })?;
    let table = At { text, table: table.get_ref() };
    table.refuse_unknown(TOP_KEYS)?;
    table.text("description")?;
    Ok(Policy {
        name: table.text("name")?.ok_or(Error::Missing { key: "name" })?,
        refuse: rules(&table, "refuse")?,
        allow: rules(&table, "allow")?,
        rate: rate(&table)?,
        pending: pending(&table)?,
        clock: clock(&table)?,
        text: text.to_owned(),
    })
}

fn rate(table: &At<'_>) -> Result<Option<Rate>, Error> {
    let Some(value) = table.get("rate") else { return Ok(None) };
    let DeValue::Table(inner) = value else { return Err(table.wrong("rate", "a table")) };
    let inner = At { text: table.text, table: inner };
    inner.refuse_unknown(&["per_minute"])?;
    let per_minute = inner.number("per_minute")?.ok_or(Error::Missing { key: "per_minute" })?;
    let per_minute = u32::try_from(per_minute).ok().filter(|n| *n > 0);
    let per_minute = per_minute.ok_or_else(|| inner.wrong("per_minute", "a number from 1"))?;
    Ok(Some(Rate { per_minute }))
}

fn pending(table: &At<'_>) -> Result<Option<Pending>, Error> {
    let Some(value) = table.get("pending") else { return Ok(None) };
    let DeValue::Table(inner) = value else { return Err(table.wrong("pending", "a table")) };
    let inner = At { text: table.text, table: inner };
    inner.refuse_unknown(&["seconds", "statements"])?;
    let number = |key: &'static str, most: u64| {
        let found = inner.number(key)?.ok_or(Error::Missing { key })?;
        let found = u64::try_from(found).ok().filter(|n| (1..=most).contains(n));
        found.ok_or_else(|| inner.wrong(key, "a number from 1, of reasonable size"))
    };
    let seconds = number("seconds", 86_400)?;
    let statements = usize::try_from(number("statements", 100_000)?).unwrap_or(usize::MAX);
    Ok(Some(Pending { seconds, statements }))
}

fn clock(table: &At<'_>) -> Result<Option<Clock>, Error> {
    let Some(value) = table.get("clock") else { return Ok(None) };
    let DeValue::Table(inner) = value else { return Err(table.wrong("clock", "a table")) };
    let inner = At { text: table.text, table: inner };
    inner.refuse_unknown(&["skew_seconds"])?;
    let seconds = inner.number("skew_seconds")?.ok_or(Error::Missing { key: "skew_seconds" })?;
    Ok(Some(Clock { skew_seconds: u64::try_from(seconds).unwrap_or(u64::MAX) }))
}

fn rules(table: &At<'_>, list: &'static str) -> Result<Vec<Rule>, Error> {
    let Some(value) = table.get(list) else { return Ok(Vec::new()) };
    let DeValue::Array(items) = value else {
        return Err(table.wrong(list, "a list of rules, each under its own [[...]]"));
    };
    items
        .iter()
        .enumerate()
        .map(|(nth, item)| match item.get_ref() {
            DeValue::Table(rule) => self::rule(&At { text: table.text, table: rule }, list, nth),
            _ => Err(table.wrong(list, "a list of rules, each under its own [[...]]")),
        })
        .collect()
}

fn rule(table: &At<'_>, list: &str, nth: usize) -> Result<Rule, Error> {
    let keys: Vec<&'static str> =
        std::iter::once("name").chain(KINDS.iter().map(|kind| kind.key)).collect();
    table.refuse_unknown(&keys)?;
    let name = table.text("name")?.unwrap_or_else(|| format!("{list} {}", nth + 1));
    let mut conditions = Vec::new();
    for kind in KINDS {
        conditions.extend(want(table, kind)?.map(|want| Condition { kind, want }));
    }
    // Most rules are about other profiles: that is seen first.
    conditions.sort_by_key(|condition| condition.key() != "profile");
    if conditions.is_empty() {
        return Err(Error::EmptyRule { rule: name });
    }
    // A module that fails must not be a rule that does not hold.
    if list == "refuse" && table.get("rego").is_some() {
        return Err(table.wrong("rego", "in an [[allow]] rule; its `errors` refuse"));
    }
    Ok(Rule { name, conditions })
}

fn want(table: &At<'_>, kind: &'static Kind) -> Result<Option<Want>, Error> {
    let key = kind.key;
    let patterns = |words: Vec<String>| words.into_iter().map(Pattern).collect();
    Ok(match &kind.shape {
        Shape::Patterns => table.words(key)?.map(patterns).map(Want::OneOf),
        Shape::Words(known) => table.known(key, known)?.map(patterns).map(Want::OneOf),
        Shape::Profiles => table.known(key, profile::names())?.map(patterns).map(Want::OneOf),
        Shape::NoWord(known) => table.known(key, known)?.map(patterns).map(Want::NoConflict),
        Shape::NoFinding => findings(table, key)?.map(Want::NoneOf),
        Shape::Flag => table.flag(key)?.map(Want::Flag),
        Shape::Number => table.number(key)?.map(Want::AtMost),
        Shape::AtMost(order) => up_to(table, key, order)?,
        Shape::Claims => claims(table, key)?,
        Shape::Rego => match table.text(key)? {
            None => None,
            Some(module) => Some(rego(&module, table.line(key))?),
        },
    })
}

#[cfg(feature = "rego")]
fn rego(module: &str, line: usize) -> Result<Want, Error> {
    let program = Program::compile(module).map_err(|detail| Error::Rego { line, detail })?;
    Ok(Want::Rego(Box::new(program)))
}

#[cfg(not(feature = "rego"))]
fn rego(_: &str, line: usize) -> Result<Want, Error> {
    let detail = "this build cannot run Rego; build with `--features rego`".to_owned();
    Err(Error::Rego { line, detail })
}

/// A pattern that no finding can ever match forbids nothing: a slip.
fn findings(table: &At<'_>, key: &'static str) -> Result<Option<Vec<Pattern>>, Error> {
    let Some(words) = table.words(key)? else { return Ok(None) };
    let patterns: Vec<Pattern> = words.into_iter().map(Pattern).collect();
    let names_nothing = |p: &&Pattern| !profile::codes().any(|code| p.matches(code));
    match patterns.iter().find(names_nothing) {
        None => Ok(Some(patterns)),
        Some(Pattern(word)) => {
            let hint = match did_you_mean(word, profile::codes()) {
                Some(near) => format!("did you mean {near}?"),
                None => "no finding has such a code".to_owned(),
            };
            Err(Error::UnknownWord { line: table.line(key), key, word: word.clone(), hint })
        }
    }
}

fn up_to(
    table: &At<'_>,
    key: &'static str,
    order: &'static [&'static str],
) -> Result<Option<Want>, Error> {
    let Some(found) = table.known(key, order)? else { return Ok(None) };
    let [word] = found.as_slice() else { return Err(table.wrong(key, "one word")) };
    let place = order.iter().position(|known| known == word).unwrap_or_default();
    Ok(order.get(..=place).map(Want::UpTo))
}

/// `claim = { "6" = true, "name" = "pattern" }`
fn claims(table: &At<'_>, key: &'static str) -> Result<Option<Want>, Error> {
    const EXPECTED: &str = "a table of claims, each with text, a list of text, true or false";
    let Some(value) = table.get(key) else { return Ok(None) };
    let DeValue::Table(inner) = value else { return Err(table.wrong(key, EXPECTED)) };
    let claim = |value: &DeValue<'_>| match value {
        DeValue::Boolean(yes) => Some(Claim::Present(*yes)),
        value => words(value).map(|all| Claim::OneOf(all.into_iter().map(Pattern).collect())),
    };
    let claims: Option<Vec<_>> = inner
        .iter()
        .map(|(name, value)| Some((name.get_ref().to_string(), claim(value.get_ref())?)))
        .collect();
    match claims.filter(|claims| !claims.is_empty()) {
        Some(claims) => Ok(Some(Want::Claims(claims))),
        None => Err(table.wrong(key, EXPECTED)),
    }
}

/// Why a policy file cannot run.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "policy-")]
pub enum Error {
    /// A rule without conditions would admit everything by accident.
    #[error("rule {rule:?} has no conditions; say what it admits")]
    EmptyRule { rule: String },
    /// A key that must be there.
    #[error("{key} is missing")]
    Missing { key: &'static str },
    /// Not TOML.
    #[error("not TOML: {detail}")]
    NotToml { detail: String },
    /// A Rego module that does not compile, or asks what cannot be replayed.
    #[error("line {line}: rego: {detail}")]
    Rego { line: usize, detail: String },
    /// A key nobody reads.
    #[error("line {line}: unknown key {key}; {hint}")]
    UnknownKey { line: usize, key: String, hint: String },
    /// A word outside its list.
    #[error("line {line}: {word:?} is not a word of {key}; {hint}")]
    UnknownWord { line: usize, key: &'static str, word: String, hint: String },
    /// A value of another kind.
    #[error("line {line}: {key} must be {expected}")]
    WrongKind { line: usize, key: &'static str, expected: &'static str },
}

impl Error {
    /// The stable word for this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

//! The policy file: TOML in which every key is known.

use toml::de::{DeTable, DeValue};

use super::rule::{Condition, Pattern, Rule};
use super::{Policy, Rate};
use crate::envelope::Binding;
use crate::key::Algorithm;
use crate::wire::text::did_you_mean;

const TOP_KEYS: &[&str] = &["name", "description", "allow", "rate"];
const RULE_KEYS: &[&str] = &[
    "name",
    "algorithm",
    "binding",
    "content_type",
    "issuer",
    "profile",
    "statement_bytes_max",
    "subject",
];
const PROFILES: &[&str] = &["hash", "opaque"];

pub(super) fn parse(text: &str) -> Result<Policy, Error> {
    let table = DeTable::parse(text).map_err(|e| Error::NotToml { detail: e.to_string() })?;
    let table = At { text, table: table.get_ref() };
    table.refuse_unknown(TOP_KEYS)?;
    let rules = match table.get("allow") {
        None => Vec::new(),
        Some(DeValue::Array(rules)) => {
            let rule = |(i, value)| rule(text, i, value);
            rules.iter().map(|r| r.get_ref()).enumerate().map(rule).collect::<Result<_, _>>()?
        }
        Some(_) => return Err(table.wrong("allow", "a list of [[allow]] rules")),
    };
    Ok(Policy {
        name: table.text("name")?.ok_or(Error::Missing { key: "name" })?,
        rules,
        rate: rate(&table)?,
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

fn rule(text: &str, position: usize, value: &DeValue<'_>) -> Result<Rule, Error> {
    let DeValue::Table(table) = value else { return Err(Error::Missing { key: "[[allow]]" }) };
    let table = At { text, table };
    table.refuse_unknown(RULE_KEYS)?;
    let patterns = |key| table.words(key).map(|w| w.map(|w| w.into_iter().map(Pattern).collect()));
    let mut conditions = Vec::new();
    conditions.extend(table.known("algorithm", Algorithm::from_name)?.map(Condition::Algorithm));
    conditions.extend(table.known("binding", Binding::from_name)?.map(Condition::Binding));
    conditions.extend(patterns("content_type")?.map(Condition::ContentType));
    conditions.extend(patterns("issuer")?.map(Condition::Issuer));
    let profile = |word: &str| PROFILES.contains(&word).then(|| word.to_owned());
    conditions.extend(table.known("profile", profile)?.map(Condition::Profile));
    conditions.extend(table.number("statement_bytes_max")?.map(Condition::StatementBytesMax));
    conditions.extend(patterns("subject")?.map(Condition::Subject));
    let name = table.text("name")?.unwrap_or_else(|| format!("allow {}", position + 1));
    if conditions.is_empty() {
        return Err(Error::EmptyRule { rule: name });
    }
    Ok(Rule { name, conditions })
}

/// A table and the text its spans point into.
struct At<'a> {
    text: &'a str,
    table: &'a DeTable<'a>,
}

impl<'a> At<'a> {
    fn get(&self, key: &str) -> Option<&'a DeValue<'a>> {
        self.table.iter().find(|(k, _)| k.get_ref() == key).map(|(_, v)| v.get_ref())
    }

    fn line(&self, key: &str) -> usize {
        let entry = self.table.iter().find(|(k, _)| k.get_ref() == key);
        let start = entry.map_or(0, |(k, _)| k.span().start);
        self.text.get(..start).unwrap_or_default().matches('\n').count() + 1
    }

    fn refuse_unknown(&self, known: &[&'static str]) -> Result<(), Error> {
        for (key, _) in self.table {
            let key = key.get_ref().as_ref();
            if !known.contains(&key) {
                return Err(Error::UnknownKey {
                    line: self.line(key),
                    key: key.to_owned(),
                    hint: hint(key, known),
                });
            }
        }
        Ok(())
    }

    fn text(&self, key: &'static str) -> Result<Option<String>, Error> {
        match self.get(key) {
            None => Ok(None),
            Some(DeValue::String(s)) => Ok(Some(s.to_string())),
            Some(_) => Err(self.wrong(key, "text")),
        }
    }

    fn number(&self, key: &'static str) -> Result<Option<usize>, Error> {
        match self.get(key) {
            None => Ok(None),
            Some(DeValue::Integer(n)) => usize::from_str_radix(n.as_str(), n.radix())
                .map(Some)
                .map_err(|_| self.wrong(key, "a number from 0")),
            Some(_) => Err(self.wrong(key, "a number from 0")),
        }
    }

    /// A non-empty list of words; one word alone is a list of one.
    fn words(&self, key: &'static str) -> Result<Option<Vec<String>>, Error> {
        let word = |value: &DeValue<'_>| match value {
            DeValue::String(s) => Some(s.to_string()),
            _ => None,
        };
        let words = match self.get(key) {
            None => return Ok(None),
            Some(DeValue::Array(items)) if !items.is_empty() => {
                items.iter().map(|item| word(item.get_ref())).collect()
            }
            Some(one) => word(one).map(|w| vec![w]),
        };
        words.map(Some).ok_or_else(|| self.wrong(key, "text or a list of text"))
    }

    fn known<T>(
        &self,
        key: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<Vec<T>>, Error> {
        let Some(words) = self.words(key)? else { return Ok(None) };
        let unknown =
            |word: &String| Error::UnknownWord { line: self.line(key), key, word: word.clone() };
        words.iter().map(|w| read(w).ok_or_else(|| unknown(w))).collect::<Result<_, _>>().map(Some)
    }

    fn wrong(&self, key: &'static str, expected: &'static str) -> Error {
        Error::WrongKind { line: self.line(key), key, expected }
    }
}

fn hint(word: &str, known: &[&'static str]) -> String {
    match did_you_mean(word, known.iter().copied()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("known are {}", known.join(", ")),
    }
}

/// Why a policy file cannot run.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
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
    /// A key nobody reads.
    #[error("line {line}: unknown key {key}; {hint}")]
    UnknownKey { line: usize, key: String, hint: String },
    /// A word outside its list.
    #[error("line {line}: {word:?} is not a {key}")]
    UnknownWord { line: usize, key: &'static str, word: String },
    /// A value of another kind.
    #[error("line {line}: {key} must be {expected}")]
    WrongKind { line: usize, key: &'static str, expected: &'static str },
}

impl Error {
    /// The stable word for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::EmptyRule { .. } => "policy-empty-rule",
            Self::Missing { .. } => "policy-missing",
            Self::NotToml { .. } => "policy-not-toml",
            Self::UnknownKey { .. } => "policy-unknown-key",
            Self::UnknownWord { .. } => "policy-unknown-word",
            Self::WrongKind { .. } => "policy-wrong-kind",
        }
    }
}

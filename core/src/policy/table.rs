//! A TOML table in which every key is known and every mistake has a line.

use toml::de::{DeTable, DeValue};

use super::Error;
use crate::wire::text::did_you_mean;

/// A table and the text its spans point into.
pub(super) struct At<'a> {
    pub(super) text: &'a str,
    pub(super) table: &'a DeTable<'a>,
}

impl<'a> At<'a> {
    pub(super) fn get(&self, key: &str) -> Option<&'a DeValue<'a>> {
        self.table.iter().find(|(k, _)| k.get_ref() == key).map(|(_, v)| v.get_ref())
    }

    pub(super) fn line(&self, key: &str) -> usize {
        let entry = self.table.iter().find(|(k, _)| k.get_ref() == key);
        let start = entry.map_or(0, |(k, _)| k.span().start);
        self.text.get(..start).unwrap_or_default().matches('\n').count() + 1
    }

    pub(super) fn refuse_unknown(&self, known: &[&'static str]) -> Result<(), Error> {
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

    pub(super) fn text(&self, key: &'static str) -> Result<Option<String>, Error> {
        match self.get(key) {
            None => Ok(None),
            Some(DeValue::String(s)) => Ok(Some(s.to_string())),
            Some(_) => Err(self.wrong(key, "text")),
        }
    }

    pub(super) fn number(&self, key: &'static str) -> Result<Option<usize>, Error> {
        match self.get(key) {
            None => Ok(None),
            Some(DeValue::Integer(n)) => usize::from_str_radix(n.as_str(), n.radix())
                .map(Some)
                .map_err(|_| self.wrong(key, "a number from 0")),
            Some(_) => Err(self.wrong(key, "a number from 0")),
        }
    }

    /// A non-empty list of words; one word alone is a list of one.
    pub(super) fn words(&self, key: &'static str) -> Result<Option<Vec<String>>, Error> {
        let Some(value) = self.get(key) else { return Ok(None) };
        words(value).map(Some).ok_or_else(|| self.wrong(key, "text or a list of text"))
    }

    /// Words of a closed list.
    pub(super) fn known(
        &self,
        key: &'static str,
        known: &'static [&'static str],
    ) -> Result<Option<Vec<String>>, Error> {
        let Some(words) = self.words(key)? else { return Ok(None) };
        match words.iter().find(|word| !known.contains(&word.as_str())) {
            None => Ok(Some(words)),
            Some(word) => Err(Error::UnknownWord {
                line: self.line(key),
                key,
                word: word.clone(),
                hint: hint(word, known),
            }),
        }
    }

    pub(super) fn flag(&self, key: &'static str) -> Result<Option<bool>, Error> {
        match self.get(key) {
            None => Ok(None),
            Some(DeValue::Boolean(yes)) => Ok(Some(*yes)),
            Some(_) => Err(self.wrong(key, "true or false")),
        }
    }

    pub(super) fn wrong(&self, key: &'static str, expected: &'static str) -> Error {
        Error::WrongKind { line: self.line(key), key, expected }
    }
}

/// Text, or a non-empty list of text.
pub(super) fn words(value: &DeValue<'_>) -> Option<Vec<String>> {
    let word = |value: &DeValue<'_>| match value {
        DeValue::String(s) => Some(s.to_string()),
        _ => None,
    };
    match value {
        DeValue::Array(items) if !items.is_empty() => {
            items.iter().map(|item| word(item.get_ref())).collect()
        }
        one => word(one).map(|w| vec![w]),
    }
}

fn hint(word: &str, known: &[&'static str]) -> String {
    match did_you_mean(word, known.iter().copied()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("known are {}", known.join(", ")),
    }
}

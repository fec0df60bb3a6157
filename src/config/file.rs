//! Reads `capstan.toml` into values with their line numbers.
//!
//! In: the label and text of a file. Out: its values and every mistake in it. A
//! line that is not TOML is reported once and otherwise ignored.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::settings::{SECTIONS, SETTINGS, Setting};
use super::value::Kind;
use super::{Given, Mistake, Source, Wrong};
use crate::wire::text::did_you_mean;

/// The values of a file, and its mistakes.
pub(super) fn read(label: &str, text: &str) -> (Vec<Given>, Vec<Mistake>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut walk = Walk { label, text, given: Vec::new(), mistakes: Vec::new() };
    for error in errors {
        let at = walk.line_of(error.span().map_or(text.len(), |span| span.start));
        let wrong = Wrong::Syntax { message: error.message().to_owned() };
        if walk.mistakes.iter().all(|mistake| mistake.at != at) {
            walk.mistakes.push(Mistake { at, wrong });
        }
    }
    let syntax = std::mem::take(&mut walk.mistakes);
    let readable = |place: &Source| syntax.iter().all(|mistake| mistake.at != *place);
    walk.table(None, table.get_ref());
    walk.given.retain(|value| readable(&value.source));
    walk.mistakes.retain(|mistake| readable(&mistake.at));
    walk.mistakes.extend(syntax);
    (walk.given, walk.mistakes)
}

struct Walk<'a> {
    label: &'a str,
    text: &'a str,
    given: Vec<Given>,
    mistakes: Vec<Mistake>,
}

impl Walk<'_> {
    fn line_of(&self, offset: usize) -> Source {
        let before = self.text.as_bytes().iter().take(offset);
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        Source::File { label: self.label.to_owned(), line }
    }

    fn table(&mut self, section: Option<&str>, table: &DeTable<'_>) {
        for (key, value) in table {
            let key_text = key.get_ref();
            let name = match section {
                // A quoted key with a dot is not a path.
                _ if key_text.contains('.') => format!("{key_text:?}"),
                Some(section) => format!("{section}.{key_text}"),
                None => key_text.to_string(),
            };
            let source = self.line_of(key.span().start);
            if let Err(wrong) = self.entry(section, &name, value, &source) {
                self.mistakes.push(Mistake { at: source, wrong });
            }
        }
    }

    fn entry(
        &mut self,
        section: Option<&str>,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        source: &Source,
    ) -> Result<(), Wrong> {
        let is_section = section.is_none() && SECTIONS.iter().any(|(known, _)| *known == name);
        match value.get_ref() {
            DeValue::Table(rows) if is_section => self.table(Some(name), rows),
            other if is_section => {
                let (name, found) = (name.to_owned(), other.type_str());
                return Err(Wrong::Type { name, expected: "table", found });
            }
            value => {
                let setting = Setting::named(name).ok_or_else(|| unknown(section, name))?;
                let text = scalar(setting, value)?;
                self.given.push(Given { setting, text, source: source.clone() });
            }
        }
        Ok(())
    }
}

/// The text of a value whose TOML type fits the setting.
fn scalar(setting: &Setting, value: &DeValue<'_>) -> Result<String, Wrong> {
    let expected = match setting.kind {
        Kind::Boolean => "boolean",
        Kind::Whole => "integer",
        _ => "string",
    };
    match (value, setting.kind) {
        (DeValue::Boolean(value), Kind::Boolean) => Ok(value.to_string()),
        (DeValue::Integer(number), Kind::Whole | Kind::Boolean) => {
            let whole = i128::from_str_radix(number.as_str(), number.radix());
            Ok(whole.map_or_else(|_| number.to_string(), |n| n.to_string()))
        }
        (DeValue::String(text), kind) if kind != Kind::Whole => Ok(text.to_string()),
        (other, _) => {
            let (name, found) = (setting.name.to_owned(), other.type_str());
            Err(Wrong::Type { name, expected, found })
        }
    }
}

fn unknown(section: Option<&str>, name: &str) -> Wrong {
    let sections = SECTIONS.iter().map(|(section, _)| *section);
    let whole = did_you_mean(name, SETTINGS.iter().map(|s| s.name));
    // The right word in the wrong section: `token` for `auth.token`.
    let last = name.rsplit('.').next().unwrap_or(name);
    let elsewhere = || SETTINGS.iter().map(|s| s.name).find(|n| n.rsplit('.').next() == Some(last));
    let section = || section.is_none().then(|| did_you_mean(name, sections)).flatten();
    let suggestion = whole.or_else(elsewhere).or_else(section).map(str::to_owned);
    Wrong::Unknown { name: name.to_owned(), suggestion }
}

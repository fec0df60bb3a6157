//! Finds statements by anything that output prints for them: index, id, record
//! id, subject.

use std::collections::BTreeSet;

use super::reader::{ReadError, Reader};
use super::views::{EntryView, NOT_PROOF, NameMatches};
use crate::log::LeafIndex;
use crate::service::Fault;
use crate::store::Field;

/// Statements listed for an ambiguous name, at most.
const CANDIDATES_MAX: usize = 20;
/// The fewest hex digits that are taken for the beginning of a statement id.
const PREFIX_MIN: usize = 8;

/// The interpretations of a name.
#[derive(Debug, Default, Eq, PartialEq)]
struct ParsedName {
    /// An index: `#6`, `6`, `1.6`.
    index: Option<u64>,
    /// A statement id, or its beginning.
    prefix: Option<String>,
    /// The end of an id that was printed short: `7f3c9d21…04a1`.
    suffix: String,
    /// A whole value: capsule id, action id, subject, session, decision.
    is_value: bool,
}

impl ParsedName {
    fn of(name: &str) -> Self {
        let number = |text: &str| {
            // As it is printed: an id of zeros only is no index.
            text.parse().ok().filter(|index: &u64| index.to_string() == text)
        };
        for marked in ["#", "1."] {
            if let Some(index) = name.strip_prefix(marked).and_then(number) {
                return Self { index: Some(index), ..Self::default() };
            }
        }
        let is_hex = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let (head, tail) = name.split_once('…').unwrap_or((name, ""));
        let names_an_id = is_hex(head) && is_hex(tail) && (PREFIX_MIN..=64).contains(&head.len());
        Self {
            index: number(name),
            prefix: names_an_id.then(|| head.to_owned()),
            suffix: if names_an_id { tail.to_owned() } else { String::new() },
            is_value: true,
        }
    }
}

impl Reader<'_> {
    /// The statements that match a name, in the order of the log.
    pub fn names(&mut self, name: &str) -> Result<NameMatches, Fault> {
        let mut statements = Vec::new();
        match self.candidates(name, &mut statements) {
            Ok(()) | Err(ReadError::BudgetExhausted(_)) => {}
            Err(ReadError::Fault(fault)) => return Err(fault),
        }
        Ok(NameMatches {
            name: name.to_owned(),
            statements,
            is_cut: self.is_cut(),
            tree_size: self.size(),
            note: NOT_PROOF.into(),
        })
    }

    fn candidates(&mut self, name: &str, statements: &mut Vec<EntryView>) -> Result<(), ReadError> {
        let mut found: BTreeSet<LeafIndex> = BTreeSet::new();
        let parsed = ParsedName::of(name);
        found.extend(parsed.index.map(LeafIndex::new));
        if let Some(prefix) = &parsed.prefix {
            let ids = self.ids_with_prefix(prefix, CANDIDATES_MAX + 1)?;
            let ids = ids.into_iter().filter(|(id, _)| id.to_string().ends_with(&parsed.suffix));
            found.extend(ids.map(|(_, index)| index));
        }
        let fields =
            [Field::RecordId, Field::ActionId, Field::DecisionId, Field::Session, Field::Subject];
        for field in fields.into_iter().filter(|_| parsed.is_value) {
            found.extend(self.indices_with(field, name, CANDIDATES_MAX + 1)?);
        }
        let size = self.size();
        found.retain(|index| size.contains(*index));
        if found.len() > CANDIDATES_MAX {
            self.mark_cut();
        }
        for index in found.into_iter().take(CANDIDATES_MAX) {
            statements.push(EntryView::from(&self.entry(index)?));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_parsed_in_every_form() {
        let id = "7f3c9d21".repeat(8);
        let at = |index| ParsedName { index: Some(index), ..ParsedName::default() };
        let value = || ParsedName { is_value: true, ..ParsedName::default() };
        let prefix = |head: &str, tail: &str| ParsedName {
            prefix: Some(head.to_owned()),
            suffix: tail.to_owned(),
            ..value()
        };
        let rows = [
            ("#6", at(6)),
            ("1.6", at(6)),
            ("6", ParsedName { index: Some(6), ..value() }),
            ("12345678", ParsedName { index: Some(12_345_678), ..prefix("12345678", "") }),
            (id.as_str(), prefix(&id, "")),
            ("7f3c9d21", prefix("7f3c9d21", "")),
            ("7f3c9d2", value()),
            ("7F3C9D21", value()),
            ("7f3c9d21…04a1", prefix("7f3c9d21", "04a1")),
            ("7f3c…04a1", value()),
            ("order-17", value()),
            ("007", value()),
            ("+6", value()),
            (&"0".repeat(64), prefix(&"0".repeat(64), "")),
            ("#order", value()),
            ("", value()),
            ("99999999999999999999999", prefix("99999999999999999999999", "")),
        ];
        for (name, expected) in rows {
            assert_eq!(ParsedName::of(name), expected, "{name}");
        }
    }
}

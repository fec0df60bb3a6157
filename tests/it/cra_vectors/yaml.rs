//! The subset of YAML that the conformance cases use: mappings, lists, quoted and
//! plain scalars, `[a, b]`. Anything else fails the test.

use serde_json::{Map, Value};

/// One value per document.
pub(super) fn documents(text: &str) -> Vec<Value> {
    let parts = text.split("\n---\n").filter(|part| part.contains("test_id"));
    parts
        .map(|part| {
            let lines: Vec<(usize, &str)> = part.lines().filter_map(line).collect();
            let mut lines = lines.as_slice();
            let value = block(&mut lines);
            assert!(lines.is_empty(), "left: {lines:?}");
            value
        })
        .collect()
}

/// Indent and text of a line, without comments.
fn line(line: &str) -> Option<(usize, &str)> {
    let bare = line.trim_start();
    let text = bare.split("  #").next().unwrap_or_default().trim_end();
    (!text.is_empty() && !text.starts_with('#')).then_some((line.len() - bare.len(), text))
}

fn block(lines: &mut &[(usize, &str)]) -> Value {
    match lines.first() {
        Some((indent, text)) if text.starts_with("- ") => list(lines, *indent),
        Some((indent, _)) => Value::Object(mapping(lines, *indent, None)),
        None => Value::Null,
    }
}

fn list(lines: &mut &[(usize, &str)], indent: usize) -> Value {
    let mut items = Vec::new();
    while let Some((at, text)) = lines.first().copied() {
        let Some(rest) = text.strip_prefix("- ").filter(|_| at == indent) else { break };
        *lines = &lines[1..];
        items.push(match rest.split_once(": ").filter(|(name, _)| !name.contains(' ')) {
            Some(_) => Value::Object(mapping(lines, indent + 2, Some(rest))),
            None => scalar(rest),
        });
    }
    Value::Array(items)
}

fn mapping(lines: &mut &[(usize, &str)], indent: usize, first: Option<&str>) -> Map<String, Value> {
    let mut members = Map::new();
    let mut pending = first.map(|text| (indent, text));
    loop {
        let (at, text) = match pending.take().or_else(|| lines.first().copied()) {
            Some((at, text)) if at == indent && !text.starts_with("- ") => (at, text),
            _ => return members,
        };
        if lines.first() == Some(&(at, text)) {
            *lines = &lines[1..];
        }
        let (name, value) = text.split_once(':').unwrap_or_else(|| panic!("{text:?}"));
        let value = match value.trim() {
            "" => block(lines),
            value => scalar(value),
        };
        members.insert(name.to_owned(), value);
    }
}

fn scalar(text: &str) -> Value {
    if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inner.split(", ").map(scalar).collect();
    }
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

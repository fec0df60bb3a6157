//! Removes or replaces entries of a trust file. Everything else stays,
//! including comments; the result is parsed again to check that.

use super::{Error, TrustAnchors, TrustedLog, log_block};

/// The text without the entries of a kind (`log`, `issuer`) with this name, and
/// the number of entries removed.
pub fn without(text: &str, kind: &str, name: &str) -> Result<(String, usize), Error> {
    let not_toml = |e: toml::de::Error| Error::NotToml { detail: e.to_string() };
    let mut expected: toml::Table = toml::from_str(text).map_err(not_toml)?;
    let is_named = |entry: &toml::Value| entry.get("name").and_then(|n| n.as_str()) == Some(name);
    let mut removed = 0;
    if let Some(toml::Value::Array(entries)) = expected.get_mut(kind) {
        let before = entries.len();
        entries.retain(|entry| !is_named(entry));
        removed = before - entries.len();
    }
    expected.retain(|_, value| value.as_array().is_none_or(|entries| !entries.is_empty()));
    if removed == 0 {
        return Ok((text.to_owned(), 0));
    }
    let header = format!("[[{kind}]]");
    let mut out = String::with_capacity(text.len());
    for block in blocks(text) {
        let table: Option<toml::Table> = toml::from_str(block).ok();
        let entry = table.as_ref().and_then(|table| table.get(kind)?.as_array()?.first());
        if block.trim_start().starts_with(&header) && entry.is_some_and(is_named) {
            out.push_str(comments_after(block));
        } else {
            out.push_str(block);
        }
    }
    let same = toml::from_str(&out).is_ok_and(|found: toml::Table| found == expected);
    if same {
        return Ok((out, removed));
    }
    let detail =
        format!("the entry of {name} cannot be removed automatically; edit the file yourself");
    Err(Error::NotToml { detail })
}

/// The text with all entries of this log replaced by this one.
pub fn with_log(text: &str, log: &TrustedLog) -> Result<String, Error> {
    let (mut text, _) = without(text, "log", &log.name)?;
    text.push_str(&log_block(log));
    TrustAnchors::parse(&text)?;
    Ok(text)
}

/// The text before the first header, then each header with its lines.
fn blocks(text: &str) -> Vec<&str> {
    let mut starts = vec![0];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with('[') && at > 0 {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).filter_map(|(start, end)| text.get(*start..end)).collect()
}

/// The comments at the end of a block, which belong to the next block.
fn comments_after(block: &str) -> &str {
    let mut at = block.len();
    let mut kept = at;
    for line in block.split_inclusive('\n').rev() {
        at -= line.len();
        match line.trim() {
            "" => {}
            comment if comment.starts_with('#') => kept = at,
            _ => break,
        }
    }
    block.get(kept..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Algorithm, SigningKey};

    fn log(name: &str) -> TrustedLog {
        let key = SigningKey::generate(Algorithm::Es256).unwrap().public().clone();
        TrustedLog { name: name.to_owned(), keys: vec![key], checkpoint: None }
    }

    fn names(text: &str) -> Vec<String> {
        TrustAnchors::parse(text).unwrap().logs().iter().map(|log| log.name.clone()).collect()
    }

    #[test]
    fn removes_one_entry_and_keeps_comments() {
        let (a, b) = (log_block(&log("a")), log_block(&log("b")));
        let text = format!("# mine\n{a}\n# about b\n{b}{}# the end\n", log_block(&log("a")));
        let (out, removed) = without(&text, "log", "a").unwrap();
        assert_eq!((removed, names(&out)), (2, vec!["b".to_owned()]));
        for kept in ["# mine\n", "# about b\n", "# the end\n", b.trim_start()] {
            assert!(out.contains(kept), "{kept:?} in {out}");
        }
        assert_eq!(without(&text, "log", "c").unwrap(), (text.clone(), 0));
        assert_eq!(without(&text, "issuer", "a").unwrap(), (text.clone(), 0));
        let (out, _) = without(&out, "log", "b").unwrap();
        assert!(TrustAnchors::parse(&out).unwrap().is_empty());
    }

    #[test]
    fn log_replaces_its_entries() {
        let text =
            format!("{}{}{}", log_block(&log("a")), log_block(&log("b")), log_block(&log("a")));
        let new = log("a");
        let out = with_log(&text, &new).unwrap();
        assert_eq!(names(&out), ["b", "a"]);
        let trust = TrustAnchors::parse(&out).unwrap();
        assert_eq!(trust.logs()[1].keys, new.keys);
        assert_eq!(names(&with_log("", &new).unwrap()), ["a"]);
    }

    #[test]
    fn inline_entries_are_not_removed() {
        let pem = SigningKey::generate(Algorithm::Es256).unwrap().public().to_pem().unwrap();
        let text = format!("log = [{{ name = \"a\", keys = ['''\n{pem}'''] }}]\n");
        assert_eq!(without(&text, "log", "a").unwrap_err().code(), "trust-not-toml");
        assert_eq!(without("name", "log", "a").unwrap_err().code(), "trust-not-toml");
    }
}

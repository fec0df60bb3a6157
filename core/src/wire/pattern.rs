//! Text in which `*` stands for any run of characters.

/// A pattern, as policies and trust files write it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pattern(pub String);

impl Pattern {
    /// Whether the whole of `text` fits.
    pub fn matches(&self, text: &str) -> bool {
        matches(&self.0, text)
    }
}

/// Whether the whole of `text` fits a pattern. Linear in both: after a `*`
/// the earliest fit of the next piece is as good as any later one.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    let mut rest = rest;
    for piece in pieces {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

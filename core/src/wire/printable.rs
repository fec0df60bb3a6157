//! Text that is safe to show: on a terminal, in a log, in a page.
//!
//! Untrusted text can hold newlines that forge lines, escape sequences that
//! hide them, and characters that reorder, hide or overlap others. Output
//! functions take a [`Printable`], and every way to make one escapes whatever
//! is not a literal of this program:
//!
//! ```
//! use capstan_core::wire::printable::printable;
//! let issuer = "https://bank.example\nyes\u{1b}[8m";
//! let line = printable!("signed by {}", issuer);
//! assert_eq!(line.as_str(), r"signed by https://bank.example\nyes\u{1b}[8m");
//! ```
//!
//! A formatted `String` is not a `Printable`, and an inline argument would
//! not be escaped, so neither compiles:
//!
//! ```compile_fail
//! # use capstan_core::wire::printable::Printable;
//! let issuer = String::from("https://bank.example");
//! let line: Printable = format!("signed by {issuer}").into();
//! ```
//!
//! ```compile_fail
//! # use capstan_core::wire::printable::printable;
//! let issuer = "https://bank.example";
//! let line = printable!("signed by {issuer}");
//! ```
//!
//! A backslash is not escaped, so the two characters `\n` look like an escaped
//! newline. Neither ends the line, and escaping is idempotent. Programs get the
//! exact text, as JSON.

use std::fmt::{self, Write as _};

/// Characters shown of one untrusted text.
const OUTSIDE_CHARS_MAX: usize = 512;
/// The same for an explanation, which may list many rules.
const LONG_CHARS_MAX: usize = 4096;
/// Lines shown of a quoted document.
const QUOTED_LINES_MAX: usize = 40;
/// Consecutive spaces shown unescaped: more could wrap text to the next row
/// and make it look like a separate line.
const SPACES_MAX: usize = 2;
/// Combining marks on one character: more overlap other lines.
const MARKS_MAX: usize = 2;

/// Text without control, bidi or invisible characters; only this program adds
/// its line breaks.
///
/// It has no `Display`, so that it cannot be mixed with unescaped text.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Printable(String);

/// Escapes every argument that is not yet `Printable`. The template is a
/// literal, whose line breaks are kept.
#[macro_export]
#[doc(hidden)]
macro_rules! __printable {
    ($template:literal $(, $argument:expr)* $(,)?) => {
        // `concat!` makes inline arguments a compile error.
        $crate::wire::printable::Printable::from_template(::std::format_args!(
            ::std::concat!($template)
            $(, $crate::wire::printable::Shown(&$argument))*
        ))
    };
}

pub use crate::__printable as printable;

impl Printable {
    /// For the macro only, which wraps every argument.
    #[doc(hidden)]
    pub fn from_template(arguments: fmt::Arguments<'_>) -> Self {
        Self(arguments.to_string())
    }

    /// One untrusted text.
    pub fn of(text: impl fmt::Display) -> Self {
        Self(shortened(&text.to_string(), OUTSIDE_CHARS_MAX))
    }

    /// An explanation, which may be longer than other texts.
    pub fn long(text: impl fmt::Display) -> Self {
        Self(shortened(&text.to_string(), LONG_CHARS_MAX))
    }

    /// A text of any length that the user asked to see.
    pub fn whole(text: impl fmt::Display) -> Self {
        Self(escaped(&text.to_string(), Escape::Braces))
    }

    /// An untrusted document, each line marked with `|`.
    pub fn quoted(document: &str) -> Self {
        let mut lines = Self::default();
        for line in document.lines().take(QUOTED_LINES_MAX) {
            lines.line(printable!("  | {}", line));
        }
        let more = document.lines().count().saturating_sub(QUOTED_LINES_MAX);
        if more > 0 {
            lines.line(printable!("  | … ({} more lines)", more));
        }
        lines
    }

    /// Appends.
    pub fn push(&mut self, more: impl Into<Self>) {
        self.0.push_str(&more.into().0);
    }

    /// Appends a line with its line break.
    pub fn line(&mut self, line: impl Into<Self>) {
        self.push(line);
        self.0.push('\n');
    }

    /// Joins the parts with a separator.
    pub fn join(parts: impl IntoIterator<Item = Self>, separator: &'static str) -> Self {
        let parts: Vec<String> = parts.into_iter().map(|part| part.0).collect();
        Self(parts.join(separator))
    }

    /// Joins untrusted texts with a separator.
    pub fn list<T: fmt::Display>(
        parts: impl IntoIterator<Item = T>,
        separator: &'static str,
    ) -> Self {
        Self::join(parts.into_iter().map(Self::of), separator)
    }

    /// The text without trailing line breaks.
    pub fn without_end(&self) -> &str {
        self.0.trim_end_matches('\n')
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The escaped text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Literals of this program need no escaping.
impl From<&'static str> for Printable {
    fn from(literal: &'static str) -> Self {
        Self(literal.to_owned())
    }
}

impl FromIterator<Self> for Printable {
    fn from_iter<I: IntoIterator<Item = Self>>(parts: I) -> Self {
        Self(parts.into_iter().map(|part| part.0).collect())
    }
}

/// An argument of a template: any text, escaped, or a `Printable` unchanged.
pub trait Show {
    /// The text to show, with `precision` decimals.
    fn show(&self, precision: Option<usize>) -> String;
}

impl<T: fmt::Display + ?Sized> Show for T {
    fn show(&self, precision: Option<usize>) -> String {
        let text = match precision {
            Some(precision) => format!("{self:.precision$}"),
            None => self.to_string(),
        };
        shortened(&text, OUTSIDE_CHARS_MAX)
    }
}

impl Show for Printable {
    fn show(&self, _: Option<usize>) -> String {
        self.0.clone()
    }
}

impl Show for &Printable {
    fn show(&self, _: Option<usize>) -> String {
        self.0.clone()
    }
}

/// Formats an argument of a template.
#[doc(hidden)]
pub struct Shown<'a, T: ?Sized>(pub &'a T);

impl<T: Show + ?Sized> fmt::Display for Shown<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        pad(f, &self.0.show(f.precision()))
    }
}

impl<T: fmt::Debug + ?Sized> fmt::Debug for Shown<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        pad(f, &shortened(&format!("{:?}", self.0), OUTSIDE_CHARS_MAX))
    }
}

/// Like `Formatter::pad`, which would truncate to the precision.
fn pad(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let missing = f.width().unwrap_or(0).saturating_sub(text.chars().count());
    let before = match f.align() {
        Some(fmt::Alignment::Right) => missing,
        Some(fmt::Alignment::Center) => missing / 2,
        _ => 0,
    };
    let fill = f.fill();
    (0..before).try_for_each(|_| f.write_char(fill))?;
    f.write_str(text)?;
    (before..missing).try_for_each(|_| f.write_char(fill))
}

/// Escapes, and truncates with a note what is too long.
fn shortened(text: &str, max: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(max) else {
        return escaped(text, Escape::Braces);
    };
    let length = text.chars().count();
    let head = escaped(text.get(..end).unwrap_or_default(), Escape::Braces);
    format!("{head}… (cut: {length} characters)")
}

/// How an unsafe character is escaped.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Escape {
    /// `\u{1b}`, for terminals.
    Braces,
    /// `\u001b`, inside a JSON string.
    Json,
}

impl Escape {
    fn write(self, out: &mut String, c: char) {
        let _infallible = match (self, c) {
            (Self::Braces, '\n') => out.write_str("\\n"),
            (Self::Braces, '\r') => out.write_str("\\r"),
            (Self::Braces, '\t') => out.write_str("\\t"),
            (Self::Braces, c) => write!(out, "\\u{{{:x}}}", u32::from(c)),
            (Self::Json, c) => {
                let mut units = [0; 2];
                c.encode_utf16(&mut units).iter().try_for_each(|unit| write!(out, "\\u{unit:04x}"))
            }
        };
    }
}

fn escaped(text: &str, escape: Escape) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut spaces, mut marks) = (0, 0);
    for c in text.chars() {
        spaces = if c == ' ' { spaces + 1 } else { 0 };
        let kind = Kind::of(c);
        marks = if kind == Kind::Mark { marks + 1 } else { 0 };
        let is_shown = match kind {
            Kind::Shown => spaces <= SPACES_MAX || escape == Escape::Json,
            Kind::Mark => marks <= MARKS_MAX,
            Kind::Hidden => false,
        };
        if is_shown {
            out.push(c);
        } else {
            escape.write(&mut out, c);
        }
    }
    out
}

/// How a terminal displays a character.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Kind {
    /// In a cell of its own.
    Shown,
    /// Combined with the previous character.
    Mark,
    /// As a control, a reordering, or not at all.
    Hidden,
}

impl Kind {
    fn of(c: char) -> Self {
        if c.is_ascii() {
            return if matches!(c, ' '..='~') { Self::Shown } else { Self::Hidden };
        }
        if c.is_whitespace() || is_blank(c) {
            return Self::Hidden;
        }
        if c.escape_debug().next() == Some(c) {
            return Self::Shown;
        }
        // After a letter `escape_debug` keeps combining marks but still escapes
        // control, format, private and unassigned characters.
        let after_a_letter: String = ['a', c].iter().collect();
        match after_a_letter.escape_debug().nth(1) {
            Some(shown) if shown == c => Self::Mark,
            _ => Self::Hidden,
        }
    }
}

/// Letters, symbols and marks without a glyph: fillers, blanks, joiners,
/// variation selectors.
fn is_blank(c: char) -> bool {
    matches!(
        u32::from(c),
        0x034f
            | 0x115f..=0x1160
            | 0x17b4..=0x17b5
            | 0x180b..=0x180f
            | 0x2800
            | 0x3164
            | 0xfe00..=0xfe0f
            | 0xffa0
            | 0xfff9..=0xfffc
            | 0x16fe4
            | 0x1d159
            | 0xe0000..=0xe0fff
    )
}

/// A serialised JSON document with unsafe characters escaped as `\u…`, which
/// does not change the value.
pub fn json(document: &str) -> String {
    // Most documents are ASCII, and some are large.
    if document.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) {
        return document.to_owned();
    }
    // Outside of strings JSON is ASCII. A raw line break is always between
    // members; the serialiser has escaped those inside strings.
    let pieces = document.split_inclusive('\n').map(|line| match line.strip_suffix('\n') {
        Some(line) => escaped(line, Escape::Json) + "\n",
        None => escaped(line, Escape::Json),
    });
    pieces.collect()
}

/// One line of the program log, whatever its message contains.
pub fn log_line(line: &str) -> String {
    shortened_line(line.strip_suffix('\n').unwrap_or(line)) + "\n"
}

fn shortened_line(line: &str) -> String {
    // Log columns are padded with spaces, so long runs are allowed here.
    let words = line.split(' ').map(|word| escaped(word, Escape::Braces));
    let line = words.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONG_CHARS_MAX) {
        None => line,
        Some((end, _)) => {
            let head = line.get(..end).unwrap_or_default();
            format!("{head}… (cut: {} characters)", line.chars().count())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Untrusted text, and how it is shown.
    const TABLE: &[(&str, &str)] = &[
        ("https://bank.example/a?b=c#d", "https://bank.example/a?b=c#d"),
        ("line\nline", r"line\nline"),
        ("a\r\tb\0", r"a\r\tb\u{0}"),
        ("\u{1b}[8mhidden\u{1b}]0;title\u{7}", r"\u{1b}[8mhidden\u{1b}]0;title\u{7}"),
        ("\u{7f}\u{80}\u{85}\u{9b}31m", r"\u{7f}\u{80}\u{85}\u{9b}31m"),
        ("\u{202a}\u{202e}\u{2066}\u{2069}", r"\u{202a}\u{202e}\u{2066}\u{2069}"),
        ("\u{200e}\u{200f}\u{61c}", r"\u{200e}\u{200f}\u{61c}"),
        ("\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}", r"\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}"),
        ("\u{2028}\u{2029}", r"\u{2028}\u{2029}"),
        ("\u{ad}\u{a0}\u{3000}\u{2003}", r"\u{ad}\u{a0}\u{3000}\u{2003}"),
        ("\u{fe0f}\u{e0101}\u{e0041}", r"\u{fe0f}\u{e0101}\u{e0041}"),
        ("\u{3164}\u{2800}\u{115f}\u{ffa0}", r"\u{3164}\u{2800}\u{115f}\u{ffa0}"),
        ("\u{e000}\u{10ffff}\u{378}", r"\u{e000}\u{10ffff}\u{378}"),
        ("Zoë, Ω, नमस्ते, ขอบคุณ, 日本, 🙂", "Zoë, Ω, नमस्ते, ขอบคุณ, 日本, 🙂"),
        ("e\u{301}\u{302}\u{303}\u{304}", "e\u{301}\u{302}\\u{303}\\u{304}"),
        ("a  b   c    d", r"a  b  \u{20}c  \u{20}\u{20}d"),
        (r"C:\new", r"C:\new"),
    ];

    #[test]
    fn control_characters_are_escaped() {
        for (text, shown) in TABLE {
            assert_eq!(printable!("{}", text).as_str(), *shown);
            assert_eq!(printable!("{}", shown).as_str(), *shown, "escaping twice changes nothing");
        }
    }

    #[test]
    fn long_text_is_truncated() {
        let text = "x".repeat(100_000);
        for (shown, max) in [
            (Printable::of(&text), OUTSIDE_CHARS_MAX),
            (printable!("{}", text), OUTSIDE_CHARS_MAX),
            (Printable::long(&text), LONG_CHARS_MAX),
        ] {
            let expected = format!("{}… (cut: 100000 characters)", "x".repeat(max));
            assert_eq!(shown.as_str(), expected);
        }
        assert_eq!(Printable::whole(&text).as_str(), text);
        let lines = "x\n".repeat(QUOTED_LINES_MAX + 2);
        assert!(Printable::quoted(&lines).as_str().ends_with("  | … (2 more lines)\n"));
    }

    #[test]
    fn templates_pad_and_keep_newlines() {
        let mut text = printable!("{:<6}|{:>4}|{:.1}|{:?}\n", "a\n", 7, 1.25, "q\"\u{202e}");
        text.line("ours");
        text.push(Printable::join([Printable::of("a\n"), printable!("{}\n{}", 1, 2)], ", "));
        let nested = printable!("{}|{:<8}|", text, Printable::of("\u{9b}"));
        let expected = "a\\n   |   7|1.2|\"q\\\"\\u{202e}\"\nours\na\\n, 1\n2|\\u{9b}  |";
        assert_eq!(nested.as_str(), expected);
        assert_eq!(Printable::list(["a", "b\n"], " and ").as_str(), "a and b\\n");
        assert_eq!(Printable::quoted("a\n\u{1b}b").as_str(), "  | a\n  | \\u{1b}b\n");
    }

    #[test]
    fn json_escapes_and_keeps_the_value() {
        for (text, _) in TABLE {
            let value = serde_json::json!({ "text": text, "list": [text, 1, null] });
            for document in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let shown = json(&document);
                assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
                assert!(!shown.contains(|c| c != '\n' && Kind::of(c) == Kind::Hidden), "{shown}");
            }
        }
        assert_eq!(json("\"\u{e0041}\u{7f}\""), "\"\\udb40\\udc41\\u007f\"");
    }

    #[test]
    fn log_record_is_one_line() {
        let forged = "  INFO reason=x\n2026-01-01 ERROR all is lost\u{1b}[8m\u{202e}\n";
        let shown = r"  INFO reason=x\n2026-01-01 ERROR all is lost\u{1b}[8m\u{202e}";
        assert_eq!(log_line(forged), format!("{shown}\n"));
        let long = log_line(&"y".repeat(LONG_CHARS_MAX + 1));
        assert!(long.ends_with("… (cut: 4097 characters)\n"), "{long}");
    }

    proptest! {
        #[test]
        fn nothing_hidden_gets_through(text in any::<String>(), raw in ".*") {
            for text in [text, raw] {
                for shown in [printable!("{}", text), printable!("{:?}", text), Printable::long(&text)] {
                    prop_assert!(!shown.as_str().contains(|c| Kind::of(c) == Kind::Hidden));
                    prop_assert!(!shown.as_str().contains("   "));
                }
                let line = log_line(&text);
                prop_assert!(line.ends_with('\n'));
                prop_assert!(!line.trim_end_matches('\n').contains(|c| Kind::of(c) == Kind::Hidden));
            }
        }
    }
}

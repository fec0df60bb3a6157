//! A recursive reader with a depth limit.

use super::{Error, Fault, Json, pointer_token};
use crate::wire::limits::{JSON_BYTES_MAX, JSON_DEPTH_MAX};

pub(super) fn read(bytes: &[u8]) -> Result<Json, Error> {
    let at = |fault, offset| Error { fault, offset, pointer: String::new() };
    if bytes.len() > JSON_BYTES_MAX {
        return Err(at(Fault::TooLarge { size: bytes.len(), limit: JSON_BYTES_MAX }, 0));
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(at(Fault::ByteOrderMark, 0));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| at(Fault::BadUtf8, e.valid_up_to()))?;
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.space();
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.fault(Fault::TrailingBytes)),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn fault(&self, fault: Fault) -> Error {
        Error { fault, offset: self.at, pointer: String::new() }
    }

    fn unexpected(&self, expected: &'static str) -> Error {
        self.fault(match self.peek() {
            None => Fault::Truncated,
            Some(_) => Fault::Unexpected { expected },
        })
    }

    /// Takes `byte` if it is next.
    fn took(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// `depth` counts the containers around the value.
    fn value(&mut self, depth: usize) -> Result<Json, Error> {
        self.space();
        match self.peek() {
            Some(b'{' | b'[') if depth == JSON_DEPTH_MAX => {
                Err(self.fault(Fault::TooDeep { limit: JSON_DEPTH_MAX }))
            }
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<Json, Error> {
        let words =
            [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))];
        let rest = self.text.get(self.at..).unwrap_or_default();
        for (word, value) in words {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.unexpected("a value"))
    }

    fn array(&mut self, depth: usize) -> Result<Json, Error> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.took(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            let item = self.value(depth).map_err(|e| e.under(&items.len().to_string()))?;
            items.push(item);
            self.space();
            if self.took(b']') {
                return Ok(Json::Array(items));
            }
            if !self.took(b',') {
                return Err(self.unexpected("`,` or `]`"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, Error> {
        self.at += 1;
        let mut members: Vec<(String, Json)> = Vec::new();
        let mut offsets = Vec::new();
        self.space();
        if self.took(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.space();
            offsets.push(self.at);
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a name"));
            }
            let name = self.string()?;
            self.space();
            if !self.took(b':') {
                return Err(self.unexpected("`:`").under(&name));
            }
            let value = self.value(depth).map_err(|e| e.under(&name))?;
            members.push((name, value));
            self.space();
            if self.took(b'}') {
                return unique(&members, &offsets).map(|()| Json::Object(members));
            }
            if !self.took(b',') {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
    }

    /// `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`
    fn number(&mut self) -> Result<Json, Error> {
        let start = self.at;
        self.took(b'-');
        if !self.took(b'0') {
            self.digits()?;
        }
        if self.took(b'.') {
            self.digits()?;
        }
        if self.took(b'e') || self.took(b'E') {
            let _sign = self.took(b'+') || self.took(b'-');
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.fault(Fault::BadNumber));
        }
        Ok(Json::Number(self.text.get(start..self.at).unwrap_or_default().to_owned()))
    }

    fn digits(&mut self) -> Result<(), Error> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            let fault = if self.peek().is_none() { Fault::Truncated } else { Fault::BadNumber };
            return Err(self.fault(fault));
        }
        Ok(())
    }

    fn string(&mut self) -> Result<String, Error> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let plain = rest.find(|c: char| c == '"' || c == '\\' || c < ' ');
            let plain = plain.unwrap_or(rest.len());
            out.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => return Err(self.fault(Fault::ControlCharacter)),
                None => return Err(self.fault(Fault::Truncated)),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        let start = self.at;
        self.at += 1;
        let character = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(start),
            Some(_) => return Err(self.fault(Fault::BadEscape)),
            None => return Err(self.fault(Fault::Truncated)),
        };
        self.at += 1;
        Ok(character)
    }

    /// `\uXXXX`, or two of them for a character beyond U+FFFF.
    fn unicode(&mut self, start: usize) -> Result<char, Error> {
        let first = self.unit()?;
        let mut units = vec![first];
        let rest = self.text.get(self.at..).unwrap_or_default();
        if (0xd800..0xdc00).contains(&first) && rest.starts_with("\\u") {
            self.at += 1;
            units.push(self.unit()?);
        }
        let mut decoded = char::decode_utf16(units);
        let lone = Error { fault: Fault::LoneSurrogate, offset: start, pointer: String::new() };
        decoded.next().and_then(Result::ok).ok_or(lone)
    }

    /// The four digits after `u`, which is next.
    fn unit(&mut self) -> Result<u16, Error> {
        let digits = self.text.get(self.at + 1..self.at + 5);
        let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let unit = digits.and_then(|d| u16::from_str_radix(d, 16).ok());
        let unit = unit.ok_or_else(|| self.fault(Fault::BadEscape))?;
        self.at += 5;
        Ok(unit)
    }
}

/// Sorted, since objects may have many members.
fn unique(members: &[(String, Json)], offsets: &[usize]) -> Result<(), Error> {
    let mut names: Vec<(&str, usize)> =
        members.iter().map(|(name, _)| name.as_str()).zip(offsets.iter().copied()).collect();
    names.sort_unstable();
    let repeated = names.windows(2).filter_map(|pair| match pair {
        [(first, _), (second, offset)] if first == second => Some((*offset, *second)),
        _ => None,
    });
    match repeated.min() {
        None => Ok(()),
        Some((offset, name)) => {
            let fault = Fault::DuplicateKey { name: name.to_owned() };
            Err(Error { fault, offset, pointer: pointer_token(name) })
        }
    }
}

impl Error {
    /// The same error, with a step prepended to its pointer.
    fn under(mut self, name: &str) -> Self {
        self.pointer.insert_str(0, &pointer_token(name));
        self
    }
}

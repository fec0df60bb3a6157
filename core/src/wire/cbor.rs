//! CBOR with one encoding per value: definite lengths, shortest heads, no
//! duplicate map keys, nothing after the end, bounded depth and item count.
//!
//! In: untrusted bytes. Out: a `Value` that borrows from them. The encoder
//! follows the same rules.

mod error;

use std::borrow::Cow;
use std::fmt;

use minicbor::data::Type;
use minicbor::{Decoder, Encoder};

use crate::wire::limits::{CBOR_DEPTH_MAX, CBOR_ITEMS_MAX};

pub use error::{CODES, Error};

/// One CBOR data item, borrowing its strings.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Major types 0 and 1.
    Int(i128),
    /// Major type 2.
    Bytes(&'a [u8]),
    /// Major type 3.
    Text(&'a str),
    /// Major type 4.
    Array(Vec<Self>),
    /// Major type 5, in encoded order, without duplicate keys.
    Map(Vec<(Self, Self)>),
    /// Major type 6.
    Tag(u64, Box<Self>),
    /// `false` and `true`.
    Bool(bool),
    /// A half, single or double.
    Float(f64),
    /// `null`.
    Null,
    /// `undefined` and the other simple values.
    Simple(u8),
}

impl<'a> Value<'a> {
    /// Reads exactly one item that fills `bytes`.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let value = reader.value()?;
        reader.end()?;
        Ok(value)
    }

    /// The entry of a map under an integer or text key.
    pub fn get(&self, key: impl Into<Label<'a>>) -> Option<&Self> {
        let Self::Map(entries) = self else { return None };
        let wanted = key.into();
        let is_wanted = |key: &Self| match (key, wanted) {
            (Self::Int(n), Label::Int(wanted)) => *n == i128::from(wanted),
            (Self::Text(t), Label::Text(wanted)) => *t == wanted,
            _ => false,
        };
        entries.iter().find(|(key, _)| is_wanted(key)).map(|(_, value)| value)
    }

    /// The byte string, if it is one.
    pub fn bytes(&self) -> Option<&'a [u8]> {
        if let Self::Bytes(b) = self { Some(b) } else { None }
    }

    /// The text string, if it is one.
    pub fn text(&self) -> Option<&'a str> {
        if let Self::Text(t) = self { Some(t) } else { None }
    }

    /// The integer, if it is one that fits.
    pub fn int<T: TryFrom<i128>>(&self) -> Option<T> {
        if let Self::Int(n) = self { T::try_from(*n).ok() } else { None }
    }

    /// The elements, if it is an array.
    pub fn array(&self) -> Option<&[Self]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// The kind of item, for error messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Int(_) => "an integer",
            Self::Bytes(_) => "a byte string",
            Self::Text(_) => "a text string",
            Self::Array(_) => "an array",
            Self::Map(_) => "a map",
            Self::Tag(..) => "a tagged item",
            Self::Bool(_) => "a boolean",
            Self::Float(_) => "a floating-point number",
            Self::Null => "null",
            Self::Simple(_) => "a simple value",
        }
    }

    pub(super) fn holds_float(&self) -> bool {
        match self {
            Self::Float(_) => true,
            Self::Array(items) => items.iter().any(Self::holds_float),
            Self::Map(entries) => entries.iter().any(|(k, v)| k.holds_float() || v.holds_float()),
            Self::Tag(_, item) => item.holds_float(),
            _ => false,
        }
    }

    /// Encodes by the rules of `read`; the map order is kept.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out
    }

    fn encode_into(&self, out: &mut Vec<u8>) {
        match self {
            Self::Int(n) => int(out, *n),
            Self::Bytes(b) => bytes(out, b),
            Self::Text(t) => text(out, t),
            Self::Array(items) => {
                array(out, items.len());
                items.iter().for_each(|item| item.encode_into(out));
            }
            Self::Map(entries) => {
                map(out, entries.len());
                for (k, v) in entries {
                    k.encode_into(out);
                    v.encode_into(out);
                }
            }
            Self::Tag(tag, item) => {
                head(out, 6, *tag);
                item.encode_into(out);
            }
            Self::Bool(b) => out.push(if *b { 0xf5 } else { 0xf4 }),
            Self::Float(f) => infallible(Encoder::new(out).f64(*f)),
            Self::Null => null(out),
            Self::Simple(n) if *n < 24 => out.push(0xe0 | n),
            Self::Simple(n) => out.extend([0xf8, *n]),
        }
    }
}

/// Diagnostic notation (RFC 8949, 8), with long byte strings truncated.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, items: &[Self]| {
            items
                .iter()
                .enumerate()
                .try_for_each(|(i, item)| write!(f, "{}{item}", if i > 0 { ", " } else { "" }))
        };
        match self {
            Self::Int(n) => write!(f, "{n}"),
            Self::Bytes(b) if b.len() > 64 => {
                let head = super::text::hex(b.get(..16).unwrap_or_default());
                write!(f, "h'{head}…' /{} bytes/", b.len())
            }
            Self::Bytes(b) => write!(f, "h'{}'", super::text::hex(b)),
            Self::Text(t) => write!(f, "{t:?}"),
            Self::Array(items) => {
                f.write_str("[")?;
                list(f, items)?;
                f.write_str("]")
            }
            Self::Map(entries) => {
                f.write_str("{")?;
                for (i, (k, v)) in entries.iter().enumerate() {
                    write!(f, "{}{k}: {v}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
            Self::Tag(tag, item) => write!(f, "{tag}({item})"),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Float(x) => write!(f, "{x:?}"),
            Self::Null => f.write_str("null"),
            Self::Simple(n) => write!(f, "simple({n})"),
        }
    }
}

/// A header or claim label: `int / tstr`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Label<'a> {
    /// A registered or private number.
    Int(i64),
    /// A name.
    Text(&'a str),
}

impl From<i64> for Label<'_> {
    fn from(n: i64) -> Self {
        Self::Int(n)
    }
}

impl<'a> From<&'a str> for Label<'a> {
    fn from(t: &'a str) -> Self {
        Self::Text(t)
    }
}

/// A cursor over strict CBOR.
pub struct Reader<'a> {
    input: &'a [u8],
    position: usize,
    items: usize,
}

/// Major types with an argument.
mod major {
    pub(super) const UNSIGNED: u8 = 0;
    pub(super) const NEGATIVE: u8 = 1;
    pub(super) const BYTES: u8 = 2;
    pub(super) const TEXT: u8 = 3;
    pub(super) const ARRAY: u8 = 4;
    pub(super) const MAP: u8 = 5;
    pub(super) const TAG: u8 = 6;
}

/// Capacity reserved for an array or map before its members are read: enough
/// for headers and proofs. A larger announced length reserves no more.
const ROOM: u64 = 32;

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { input: bytes, position: 0, items: 0 }
    }

    /// The offset of the next byte.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Whether every byte was read.
    pub fn is_at_end(&self) -> bool {
        self.position >= self.input.len()
    }

    /// Fails if bytes remain.
    pub fn end(&self) -> Result<(), Error> {
        let count = self.input.len().saturating_sub(self.position);
        if count == 0 { Ok(()) } else { Err(Error::TrailingBytes { at: self.position, count }) }
    }

    /// Reads one item of any kind.
    pub fn value(&mut self) -> Result<Value<'a>, Error> {
        self.items = 0;
        self.value_at(0)
    }

    /// Reads a tag.
    pub fn tag(&mut self) -> Result<u64, Error> {
        self.head_of(major::TAG, "a tag")
    }

    /// Reads the head of an array; returns its length.
    pub fn array(&mut self) -> Result<u64, Error> {
        self.head_of(major::ARRAY, "an array")
    }

    /// Reads a byte string.
    pub fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let at = self.position;
        let len = self.head_of(major::BYTES, "a byte string")?;
        self.take(len, at)
    }

    fn value_at(&mut self, depth: usize) -> Result<Value<'a>, Error> {
        let at = self.position;
        if depth > CBOR_DEPTH_MAX {
            return Err(Error::TooDeep { at, limit: CBOR_DEPTH_MAX });
        }
        self.items += 1;
        if self.items > CBOR_ITEMS_MAX {
            return Err(Error::TooManyItems { at, limit: CBOR_ITEMS_MAX });
        }
        if self.first()? >> 5 > major::TAG {
            return self.scalar(at);
        }
        let (major, argument) = self.head()?;
        match major {
            major::UNSIGNED => Ok(Value::Int(argument.into())),
            major::NEGATIVE => Ok(Value::Int(-1 - i128::from(argument))),
            major::BYTES => self.take(argument, at).map(Value::Bytes),
            major::TEXT => {
                let text = std::str::from_utf8(self.take(argument, at)?);
                text.map(Value::Text).map_err(|_| Error::NotWellFormed { at })
            }
            major::ARRAY => self.array_at(argument, depth),
            major::MAP => self.map_at(argument, depth),
            _ => Ok(Value::Tag(argument, Box::new(self.value_at(depth + 1)?))),
        }
    }

    /// Floats and simple values, whose argument is not a number.
    fn scalar(&mut self, at: usize) -> Result<Value<'a>, Error> {
        let mut decoder = Decoder::new(self.input);
        decoder.set_position(at);
        let value = match decoder.datatype().map_err(|_| Error::UnexpectedEnd { at })? {
            Type::Bool => decoder.bool().map(Value::Bool),
            Type::Null => decoder.null().map(|()| Value::Null),
            Type::Undefined => decoder.undefined().map(|()| Value::Simple(23)),
            Type::F16 => decoder.f16().map(|f| Value::Float(f.into())),
            Type::F32 => decoder.f32().map(|f| Value::Float(f.into())),
            Type::F64 => decoder.f64().map(Value::Float),
            Type::Simple => decoder.simple().map(Value::Simple),
            _ => return Err(Error::NotWellFormed { at }),
        };
        let value = value.map_err(|error| match error.is_end_of_input() {
            true => Error::UnexpectedEnd { at },
            false => Error::NotWellFormed { at },
        })?;
        self.position = decoder.position();
        // RFC 8949, 3.3: two-byte simple values are 32 and above.
        let is_short = self.position - at == 1;
        match value {
            Value::Simple(n) if is_short != (n < 32) => Err(Error::NotWellFormed { at }),
            value => Ok(value),
        }
    }

    fn array_at(&mut self, count: u64, depth: usize) -> Result<Value<'a>, Error> {
        let mut items = Vec::with_capacity(room(count));
        for _ in 0..count {
            items.push(self.value_at(depth + 1)?);
        }
        Ok(Value::Array(items))
    }

    fn map_at(&mut self, count: u64, depth: usize) -> Result<Value<'a>, Error> {
        let mut entries: Vec<(Value<'a>, Value<'a>)> = Vec::with_capacity(room(count));
        let mut keys: Vec<(Cow<'a, [u8]>, usize)> = Vec::with_capacity(room(count));
        for _ in 0..count {
            let at = self.position;
            let key = self.value_at(depth + 1)?;
            keys.push((self.encoding(&key, at), at));
            entries.push((key, self.value_at(depth + 1)?));
        }
        // Equal keys have equal encodings; sorting makes them adjacent.
        keys.sort_unstable();
        let mut neighbours = keys.iter().zip(keys.iter().skip(1));
        match neighbours.find(|((a, _), (b, _))| a == b) {
            Some((_, (encoded, at))) => {
                let key =
                    Value::read(encoded).map_or_else(|_| "?".to_owned(), |key| key.to_string());
                Err(Error::DuplicateKey { at: *at, key })
            }
            None => Ok(Value::Map(entries)),
        }
    }

    /// The unique encoding of an item that was read from `at` on. Only floats
    /// may have several.
    fn encoding(&self, item: &Value<'a>, at: usize) -> Cow<'a, [u8]> {
        if item.holds_float() {
            return Cow::Owned(item.encode());
        }
        Cow::Borrowed(self.input.get(at..self.position).unwrap_or_default())
    }

    /// The argument of an item that must be of one major type.
    fn head_of(&mut self, major: u8, expected: &'static str) -> Result<u64, Error> {
        if self.first()? >> 5 != major {
            return Err(Error::UnexpectedType { at: self.position, expected });
        }
        self.head().map(|(_, argument)| argument)
    }

    /// Major type and argument, in shortest form. Not for major type 7, whose
    /// argument is not a number.
    fn head(&mut self) -> Result<(u8, u64), Error> {
        let at = self.position;
        let first = self.first()?;
        let width = match first & 31 {
            0..=23 => 0,
            24 => 1,
            25 => 2,
            26 => 4,
            27 => 8,
            31 => return Err(Error::IndefiniteLength { at }),
            _ => return Err(Error::NotWellFormed { at }),
        };
        let tail = self.input.get(at + 1..at + 1 + width).ok_or(Error::UnexpectedEnd { at })?;
        let argument = match width {
            0 => u64::from(first & 31),
            _ => tail.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte)),
        };
        if head_len(argument) != 1 + width {
            return Err(Error::LongHead { at });
        }
        self.position += 1 + width;
        Ok((first >> 5, argument))
    }

    /// The content of a string that began at `at`.
    fn take(&mut self, len: u64, at: usize) -> Result<&'a [u8], Error> {
        let end = usize::try_from(len).ok().and_then(|len| self.position.checked_add(len));
        let content = end.and_then(|end| self.input.get(self.position..end));
        let content = content.ok_or(Error::UnexpectedEnd { at })?;
        self.position += content.len();
        Ok(content)
    }

    fn first(&self) -> Result<u8, Error> {
        let at = self.position;
        self.input.get(at).copied().ok_or(Error::UnexpectedEnd { at })
    }
}

fn room(count: u64) -> usize {
    usize::try_from(count.min(ROOM)).unwrap_or(0)
}

/// Splits a CBOR sequence into its items, at most `limit`. The items need
/// only be well-formed here.
pub fn split_sequence(bytes: &[u8], limit: usize) -> Result<Vec<&[u8]>, Error> {
    let mut decoder = Decoder::new(bytes);
    let mut items = Vec::new();
    while decoder.position() < bytes.len() {
        let at = decoder.position();
        if items.len() == limit {
            return Err(Error::TooManyItems { at, limit });
        }
        // A break outside an indefinite-length item.
        if bytes.get(at) == Some(&0xff) {
            return Err(Error::NotWellFormed { at });
        }
        decoder.skip().map_err(|_| Error::NotWellFormed { at })?;
        items.extend(bytes.get(at..decoder.position()));
    }
    Ok(items)
}

/// Appends an integer.
pub fn int(out: &mut Vec<u8>, n: impl Into<i128>) {
    let n = n.into();
    head(out, u8::from(n < 0), argument(n));
}

/// Appends a byte string.
pub fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    infallible(Encoder::new(out).bytes(bytes));
}

/// Appends a text string.
pub fn text(out: &mut Vec<u8>, text: &str) {
    infallible(Encoder::new(out).str(text));
}

/// Appends the head of an array of `len` items.
pub fn array(out: &mut Vec<u8>, len: usize) {
    head(out, 4, u64::try_from(len).unwrap_or(u64::MAX));
}

/// Appends the head of a map of `len` entries.
pub fn map(out: &mut Vec<u8>, len: usize) {
    head(out, 5, u64::try_from(len).unwrap_or(u64::MAX));
}

/// The encoding of `null`.
pub const NULL: u8 = 0xf6;

/// Appends `null`.
pub fn null(out: &mut Vec<u8>) {
    out.push(NULL);
}

/// Appends the head of a tagged item.
pub fn tag(out: &mut Vec<u8>, tag: u64) {
    head(out, 6, tag);
}

fn head(out: &mut Vec<u8>, major: u8, argument: u64) {
    let start = out.len();
    infallible(Encoder::new(&mut *out).u64(argument));
    if let Some(first) = out.get_mut(start) {
        *first |= major << 5;
    }
}

/// Writing to a vector cannot fail.
fn infallible<T>(result: Result<T, minicbor::encode::Error<std::convert::Infallible>>) {
    debug_assert!(result.is_ok(), "writing to a vector failed");
}

/// The argument of an integer's head: n, or -1 - n.
fn argument(n: i128) -> u64 {
    u64::try_from(if n < 0 { -1 - n } else { n }).unwrap_or(u64::MAX)
}

fn head_len(argument: u64) -> usize {
    match argument {
        0..=23 => 1,
        24..=0xff => 2,
        0x100..=0xffff => 3,
        0x1_0000..=0xffff_ffff => 5,
        _ => 9,
    }
}

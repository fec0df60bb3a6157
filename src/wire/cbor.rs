//! CBOR with one spelling per value: definite lengths, shortest heads, no
//! duplicate map keys, nothing after the end, bounded depth and item count.
//!
//! In: bytes from outside. Out: a `Value` that borrows from them. The same
//! rules hold for what we write.

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
    /// Major type 5, in the order of the bytes, without duplicate keys.
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
        let key = match key.into() {
            Label::Int(n) => Self::Int(n.into()),
            Label::Text(t) => Self::Text(t),
        };
        entries.iter().find(|(k, _)| *k == key).map(|(_, v)| v)
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

    /// What kind of item this is, in the words of an error message.
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

    /// Encodes by the rules `read` demands; map order is kept as it is.
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
            Self::Null => out.push(0xf6),
            Self::Simple(n) if *n < 24 => out.push(0xe0 | n),
            Self::Simple(n) => out.extend([0xf8, *n]),
        }
    }
}

/// Diagnostic notation (RFC 8949, 8), with long byte strings cut for people.
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
    decoder: Decoder<'a>,
    items: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { decoder: Decoder::new(bytes), items: 0 }
    }

    /// The offset of the next byte.
    pub fn position(&self) -> usize {
        self.decoder.position()
    }

    /// Whether every byte was read.
    pub fn is_at_end(&self) -> bool {
        self.position() >= self.decoder.input().len()
    }

    /// Says no if bytes remain.
    pub fn end(&self) -> Result<(), Error> {
        let count = self.decoder.input().len().saturating_sub(self.position());
        if count == 0 { Ok(()) } else { Err(Error::TrailingBytes { at: self.position(), count }) }
    }

    /// Reads one item of any kind.
    pub fn value(&mut self) -> Result<Value<'a>, Error> {
        self.items = 0;
        self.value_at(0)
    }

    /// Reads a tag.
    pub fn tag(&mut self) -> Result<u64, Error> {
        self.sized("a tag", |d| d.tag().map(|t| t.as_u64()), |n| head_len(*n))
    }

    /// Reads the head of an array and gives its length.
    pub fn array(&mut self) -> Result<u64, Error> {
        self.definite("an array", |d| d.array())
    }

    /// Reads a byte string.
    pub fn bytes(&mut self) -> Result<&'a [u8], Error> {
        self.refuse_indefinite()?;
        self.sized("a byte string", |d| d.bytes(), |b| string_len(b.len()))
    }

    fn value_at(&mut self, depth: usize) -> Result<Value<'a>, Error> {
        let at = self.position();
        if depth > CBOR_DEPTH_MAX {
            return Err(Error::TooDeep { at, limit: CBOR_DEPTH_MAX });
        }
        self.items += 1;
        if self.items > CBOR_ITEMS_MAX {
            return Err(Error::TooManyItems { at, limit: CBOR_ITEMS_MAX });
        }
        self.refuse_indefinite()?;
        match self.datatype()? {
            Type::Array => {
                let count = self.array()?;
                (0..count)
                    .map(|_| self.value_at(depth + 1))
                    .collect::<Result<_, _>>()
                    .map(Value::Array)
            }
            Type::Map => self.map_at(depth),
            Type::Tag => {
                let tag = self.tag()?;
                Ok(Value::Tag(tag, Box::new(self.value_at(depth + 1)?)))
            }
            Type::Bytes => self.bytes().map(Value::Bytes),
            Type::String => {
                let text = self.sized("a text string", |d| d.str(), |t| string_len(t.len()));
                text.map(Value::Text)
            }
            _ => self.scalar(at),
        }
    }

    fn scalar(&mut self, at: usize) -> Result<Value<'a>, Error> {
        match self.datatype()? {
            Type::Bool => self.token("a boolean", |d| d.bool()).map(Value::Bool),
            Type::Null => self.token("null", |d| d.null()).map(|()| Value::Null),
            Type::Undefined => {
                self.token("undefined", |d| d.undefined()).map(|()| Value::Simple(23))
            }
            Type::F16 => self.token("a float", |d| d.f16()).map(|f| Value::Float(f.into())),
            Type::F32 => self.token("a float", |d| d.f32()).map(|f| Value::Float(f.into())),
            Type::F64 => self.token("a float", |d| d.f64()).map(Value::Float),
            Type::Simple => {
                let value = self.token("a simple value", |d| d.simple())?;
                // RFC 8949, 3.3: two bytes are for 32 and up, and only for them.
                let is_short = self.position() - at == 1;
                if is_short == (value < 32) {
                    Ok(Value::Simple(value))
                } else {
                    Err(Error::NotWellFormed { at })
                }
            }
            Type::Break | Type::Unknown(_) => Err(Error::NotWellFormed { at }),
            _ => {
                let int = |d: &mut Decoder<'a>| d.int().map(i128::from);
                self.sized("an integer", int, |n| head_len(argument(*n))).map(Value::Int)
            }
        }
    }

    fn map_at(&mut self, depth: usize) -> Result<Value<'a>, Error> {
        let count = self.definite("a map", |d| d.map())?;
        let mut entries: Vec<(Value<'a>, Value<'a>)> = Vec::new();
        let mut keys: Vec<(Cow<'a, [u8]>, usize)> = Vec::new();
        for _ in 0..count {
            let at = self.position();
            let key = self.value_at(depth + 1)?;
            keys.push((self.spelling(&key, at), at));
            entries.push((key, self.value_at(depth + 1)?));
        }
        // Equal keys have equal spellings; sorting brings them together.
        keys.sort_unstable();
        let mut neighbours = keys.iter().zip(keys.iter().skip(1));
        match neighbours.find(|((a, _), (b, _))| a == b) {
            Some((_, (spelt, at))) => {
                let key = Value::read(spelt).map_or_else(|_| "?".to_owned(), |key| key.to_string());
                Err(Error::DuplicateKey { at: *at, key })
            }
            None => Ok(Value::Map(entries)),
        }
    }

    /// The one spelling of an item that was read from `at` on. Only floats
    /// may come in several.
    fn spelling(&self, item: &Value<'a>, at: usize) -> Cow<'a, [u8]> {
        if item.holds_float() {
            return Cow::Owned(item.encode());
        }
        Cow::Borrowed(self.decoder.input().get(at..self.position()).unwrap_or_default())
    }

    /// A head that says how many items follow.
    fn definite(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&mut Decoder<'a>) -> Result<Option<u64>, minicbor::decode::Error>,
    ) -> Result<u64, Error> {
        let at = self.position();
        self.refuse_indefinite()?;
        let count = self.sized(expected, read, |n| n.map_or(1, head_len))?;
        count.ok_or(Error::IndefiniteLength { at })
    }

    /// A token whose shortest spelling has a known length.
    fn sized<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&mut Decoder<'a>) -> Result<T, minicbor::decode::Error>,
        shortest: impl FnOnce(&T) -> usize,
    ) -> Result<T, Error> {
        let at = self.position();
        let value = self.token(expected, read)?;
        if self.position() - at == shortest(&value) {
            Ok(value)
        } else {
            Err(Error::LongHead { at })
        }
    }

    fn token<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&mut Decoder<'a>) -> Result<T, minicbor::decode::Error>,
    ) -> Result<T, Error> {
        let at = self.position();
        read(&mut self.decoder).map_err(|e| {
            if e.is_end_of_input() {
                Error::UnexpectedEnd { at }
            } else if e.is_type_mismatch() {
                Error::UnexpectedType { at, expected }
            } else {
                Error::NotWellFormed { at }
            }
        })
    }

    fn datatype(&self) -> Result<Type, Error> {
        self.decoder.datatype().map_err(|_| Error::UnexpectedEnd { at: self.position() })
    }

    /// Heads with additional information 31 start an indefinite item.
    fn refuse_indefinite(&self) -> Result<(), Error> {
        let at = self.position();
        match self.decoder.input().get(at) {
            Some(first) if first & 31 == 31 && first >> 5 != 7 => {
                Err(Error::IndefiniteLength { at })
            }
            _ => Ok(()),
        }
    }
}

/// Splits a CBOR sequence into its items, at most `limit`. The items need
/// only be well-formed: each is judged by itself later.
pub fn split_sequence(bytes: &[u8], limit: usize) -> Result<Vec<&[u8]>, Error> {
    let mut decoder = Decoder::new(bytes);
    let mut items = Vec::new();
    while decoder.position() < bytes.len() {
        let at = decoder.position();
        if items.len() == limit {
            return Err(Error::TooManyItems { at, limit });
        }
        // A break on its own ends nothing.
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

/// Writing to a vector cannot fail; the encoder's type says so.
fn infallible<T>(result: Result<T, minicbor::encode::Error<std::convert::Infallible>>) {
    debug_assert!(result.is_ok(), "a vector takes every byte");
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

fn string_len(len: usize) -> usize {
    head_len(u64::try_from(len).unwrap_or(u64::MAX)) + len
}

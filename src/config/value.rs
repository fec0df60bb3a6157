//! The types of settings: how each is read, shown and described.
//!
//! In: the text of one value. Out: a typed value, or `None` if the text is
//! invalid. The table checks ranges.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use strum::{EnumString, IntoStaticStr, VariantNames};

/// The kind of value of a setting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Address,
    Boolean,
    Path,
    Secret,
    Url,
    Whole,
    Word(&'static [&'static str]),
}

/// A type that a setting can have.
pub(super) trait Value: Sized {
    const KIND: Kind;
    fn read(text: &str) -> Option<Self>;
    fn show(&self) -> String;
}

/// An empty text means that an optional setting is not set.
impl<T: Value> Value for Option<T> {
    const KIND: Kind = T::KIND;
    fn read(text: &str) -> Option<Self> {
        if text.is_empty() { Some(None) } else { T::read(text).map(Some) }
    }
    fn show(&self) -> String {
        self.as_ref().map(T::show).unwrap_or_default()
    }
}

impl Value for SocketAddr {
    const KIND: Kind = Kind::Address;
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    const KIND: Kind = Kind::Boolean;
    fn read(text: &str) -> Option<Self> {
        match text {
            "true" | "1" | "yes" => Some(true),
            "false" | "0" | "no" => Some(false),
            _ => None,
        }
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for PathBuf {
    const KIND: Kind = Kind::Path;
    fn read(text: &str) -> Option<Self> {
        (!text.contains('\0')).then(|| Self::from(text))
    }
    fn show(&self) -> String {
        self.display().to_string()
    }
}

macro_rules! whole {
    ($($number:ty),+) => {$(
        impl Value for $number {
            const KIND: Kind = Kind::Whole;
            fn read(text: &str) -> Option<Self> {
                text.parse().ok()
            }
            fn show(&self) -> String {
                self.to_string()
            }
        }
    )+};
}
whole!(u32, u64, usize);

/// A web address: `http://` or `https://`, and a host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Url(String);

impl Url {
    /// The address as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for Url {
    const KIND: Kind = Kind::Url;
    fn read(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
        let printable = rest.chars().all(|c| c.is_ascii_graphic() && !"\"'<>".contains(c));
        let host = rest.split('/').next().is_some_and(|host| !host.is_empty());
        (printable && host).then(|| Self(text.to_owned()))
    }
    fn show(&self) -> String {
        self.0.clone()
    }
}

/// A bearer token. It is never shown, not even by `Debug`.
#[derive(Clone, Eq, PartialEq)]
pub struct Secret(String);

impl Secret {
    /// Compares in constant time.
    pub fn is(&self, offered: &[u8]) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(self.0.as_bytes(), offered).is_ok()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(set)")
    }
}

impl Value for Secret {
    const KIND: Kind = Kind::Secret;
    /// Other characters are not allowed in an `Authorization` header.
    fn read(text: &str) -> Option<Self> {
        let fits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
        fits.then(|| Self(text.to_owned()))
    }
    fn show(&self) -> String {
        "(set)".to_owned()
    }
}

macro_rules! word {
    ($($name:ty),+) => {$(
        impl $name {
            /// The word in a file.
            pub fn as_str(self) -> &'static str {
                self.into()
            }
        }

        impl Value for $name {
            const KIND: Kind = Kind::Word(Self::VARIANTS);
            fn read(text: &str) -> Option<Self> {
                text.parse().ok()
            }
            fn show(&self) -> String {
                self.as_str().to_owned()
            }
        }
    )+};
}

word!(LogLevel, LogFormat);

/// The lowest severity that is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum LogLevel {
    /// Needs attention.
    Error,
    /// May need attention soon.
    Warn,
    /// Start, stop, and one line per registration.
    Info,
    /// How decisions were reached.
    Debug,
    /// Everything.
    Trace,
}

/// The format of a log line.
#[derive(Clone, Copy, Debug, Eq, PartialEq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum LogFormat {
    /// Plain text.
    Text,
    /// One JSON object per line.
    Json,
}

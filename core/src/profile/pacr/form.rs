//! The two encodings behind one interface, each with its own exact rules.

use super::tuple::CausalId;
use crate::wire::cbor::Value;
use crate::wire::json::Json;
use crate::wire::text;

/// A value in one of the encodings.
pub(super) trait Form: Sized {
    /// The forms of an identity, an Estimate and a payload, for messages.
    const ID: &'static str;
    const ESTIMATE: &'static str;
    const PAYLOAD: &'static str;
    /// Pointer tokens of point, lower and upper in an Estimate.
    const PLACES: [&'static str; 3];

    fn kind(&self) -> &'static str;
    fn is_null(&self) -> bool;
    fn is_map(&self) -> bool;
    fn member(&self, name: &str) -> Option<&Self>;
    /// The keys of a map; one that is not text in diagnostic notation.
    fn names(&self) -> Vec<String>;
    fn items(&self) -> Option<&[Self]>;
    fn id(&self) -> Option<CausalId>;
    fn payload(&self) -> Option<Vec<u8>>;
    /// Point, lower and upper, if this has the form of an Estimate.
    fn estimate(&self) -> Option<[Option<&Self>; 3]>;
    /// A number as a double, which may be infinite or NaN.
    fn number(&self) -> Option<f64>;
}

impl Form for Json {
    const ID: &'static str = "32 uppercase hex digits";
    const ESTIMATE: &'static str = "an object of point, lower and upper";
    const PAYLOAD: &'static str = "base64 with its padding";
    const PLACES: [&'static str; 3] = ["point", "lower", "upper"];

    fn kind(&self) -> &'static str {
        self.kind()
    }

    fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    fn is_map(&self) -> bool {
        self.members().is_some()
    }

    fn member(&self, name: &str) -> Option<&Self> {
        self.get(name)
    }

    fn names(&self) -> Vec<String> {
        self.members().unwrap_or_default().iter().map(|(name, _)| name.clone()).collect()
    }

    fn items(&self) -> Option<&[Self]> {
        self.array()
    }

    fn id(&self) -> Option<CausalId> {
        CausalId::from_hex(self.text()?)
    }

    fn payload(&self) -> Option<Vec<u8>> {
        text::from_base64(self.text()?)
    }

    fn estimate(&self) -> Option<[Option<&Self>; 3]> {
        self.is_map().then(|| Self::PLACES.map(|name| self.get(name)))
    }

    /// Infinite beyond the range of a double.
    fn number(&self) -> Option<f64> {
        if let Self::Number(token) = self { token.parse().ok() } else { None }
    }
}

impl Form for Value<'_> {
    const ID: &'static str = "a byte string of 16 bytes";
    const ESTIMATE: &'static str = "an array [point, lower, upper]";
    const PAYLOAD: &'static str = "a byte string";
    const PLACES: [&'static str; 3] = ["0", "1", "2"];

    fn kind(&self) -> &'static str {
        self.kind()
    }

    fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    fn is_map(&self) -> bool {
        matches!(self, Self::Map(_))
    }

    fn member(&self, name: &str) -> Option<&Self> {
        let Self::Map(entries) = self else { return None };
        entries.iter().find(|(key, _)| key.text() == Some(name)).map(|(_, value)| value)
    }

    fn names(&self) -> Vec<String> {
        let Self::Map(entries) = self else { return Vec::new() };
        let name = |key: &Self| key.text().map_or_else(|| key.to_string(), str::to_owned);
        entries.iter().map(|(key, _)| name(key)).collect()
    }

    fn items(&self) -> Option<&[Self]> {
        self.array()
    }

    fn id(&self) -> Option<CausalId> {
        CausalId::from_bytes(self.bytes()?)
    }

    fn payload(&self) -> Option<Vec<u8>> {
        self.bytes().map(<[u8]>::to_vec)
    }

    fn estimate(&self) -> Option<[Option<&Self>; 3]> {
        match self.array()? {
            [point, lower, upper] => Some([Some(point), Some(lower), Some(upper)]),
            _ => None,
        }
    }

    /// A whole number is rounded to a double, as in JSON.
    fn number(&self) -> Option<f64> {
        match self {
            Self::Float(number) => Some(*number),
            Self::Int(number) => number.to_string().parse().ok(),
            _ => None,
        }
    }
}

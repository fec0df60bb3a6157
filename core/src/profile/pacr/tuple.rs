//! The six fields of a record, and how they are encoded and compared.
//!
//! The CBOR is deterministic (RFC 8949, 4.2.1, doubles always 64 bits); the
//! JSON has sorted members and the shortest decimals that read back. The two
//! have different digests, which are never compared.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value as Json, json};
use strum::IntoStaticStr;

use super::Encoding;
use crate::wire::cbor::Value;
use crate::wire::text;

/// The identity of a record: 128 bits that imply no order; in text 32 uppercase
/// hex digits.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CausalId([u8; 16]);

impl CausalId {
    /// From 16 bytes, as in CBOR.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// From exactly 32 uppercase hex digits, as in JSON.
    pub fn from_hex(hex: &str) -> Option<Self> {
        if hex.bytes().any(|b| b.is_ascii_lowercase()) {
            return None;
        }
        Self::from_bytes(&text::from_hex(hex)?)
    }

    /// Whether this is the genesis sentinel, which stands for no record.
    pub fn is_sentinel(self) -> bool {
        self.0 == [0; 16]
    }

    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for CausalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::hex(&self.0).to_ascii_uppercase())
    }
}

impl fmt::Debug for CausalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A measurement: the best value and the interval it lies in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub point: f64,
    pub lower: f64,
    pub upper: f64,
}

impl Estimate {
    /// The value of an absent `info_gain`.
    pub const ZERO: Self = Self { point: 0.0, lower: 0.0, upper: 0.0 };

    /// Compares two intervals. Estimates are compared by overlap, never for
    /// equality.
    pub fn compare(self, other: Self) -> Comparison {
        if self.upper < other.lower {
            Comparison::Below
        } else if self.lower > other.upper {
            Comparison::Above
        } else {
            Comparison::Overlaps
        }
    }

    fn to_json(self) -> Json {
        json!({ "lower": self.lower, "point": self.point, "upper": self.upper })
    }

    fn to_cbor(self) -> Value<'static> {
        Value::Array([self.point, self.lower, self.upper].map(Value::Float).into())
    }
}

/// How the interval of one Estimate relates to another's.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "lowercase")]
pub enum Comparison {
    /// It is entirely above the other.
    Above,
    /// It is entirely below the other.
    Below,
    /// They share a value, so they cannot be distinguished.
    Overlaps,
}

impl Comparison {
    /// Its name in reports and the API.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The Estimates of a record by name, always in the same order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimates([(&'static str, Estimate); 7]);

impl Estimates {
    /// Compares each with the Estimate of the same name of another record.
    pub fn compare(self, other: Self) -> Compared {
        let mut theirs = other.0.into_iter();
        Compared(self.0.map(|(name, own)| {
            let other = theirs.next().map_or(own, |(_, estimate)| estimate);
            (name, own.compare(other))
        }))
    }
}

/// The Estimates of two records, compared by name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Compared([(&'static str, Comparison); 7]);

impl Compared {
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Comparison)> + '_ {
        self.0.iter().copied()
    }

    /// Whether no measurement distinguishes the two records.
    pub fn all_overlap(&self) -> bool {
        self.iter().all(|(_, how)| how == Comparison::Overlaps)
    }

    /// As shown in reports and the API.
    pub fn to_json(self) -> Json {
        let member = |(name, how): (&str, Comparison)| (name.to_owned(), how.name().into());
        Json::Object(self.iter().map(member).collect::<Map<_, _>>())
    }
}

/// What the event cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resources {
    /// Joules.
    pub energy: Estimate,
    /// Seconds.
    pub time: Estimate,
    /// Bytes.
    pub space: Estimate,
}

/// How much structure its data has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CognitiveSplit {
    /// Bits.
    pub statistical_complexity: Estimate,
    /// Bits for each symbol.
    pub entropy_rate: Estimate,
    /// Bits.
    pub info_gain: Estimate,
}

/// A whole record.
#[derive(Clone, Debug, PartialEq)]
pub struct SixTuple {
    pub id: CausalId,
    /// Its direct causes: a set, without the genesis sentinel.
    pub predecessors: Vec<CausalId>,
    /// The least energy for the bits it erases, in joules.
    pub landauer_cost: Estimate,
    pub resources: Resources,
    pub cognitive_split: CognitiveSplit,
    /// The application's data, with or without an intervention tag before it.
    pub payload: Vec<u8>,
}

impl SixTuple {
    /// Every Estimate of the record.
    pub fn estimates(&self) -> Estimates {
        let (cost, split) = (self.resources, self.cognitive_split);
        Estimates([
            ("landauer_cost", self.landauer_cost),
            ("energy", cost.energy),
            ("time", cost.time),
            ("space", cost.space),
            ("statistical_complexity", split.statistical_complexity),
            ("entropy_rate", split.entropy_rate),
            ("info_gain", split.info_gain),
        ])
    }

    /// The record in an encoding.
    pub fn encode(&self, encoding: Encoding) -> Vec<u8> {
        match encoding {
            Encoding::Cbor => self.to_cbor(),
            Encoding::Json => self.to_json(),
        }
    }

    /// The record as JSON (7.1).
    pub fn to_json(&self) -> Vec<u8> {
        let (resources, split) = (&self.resources, &self.cognitive_split);
        let predecessors = as_set(&self.predecessors);
        let predecessors: Vec<String> = predecessors.iter().map(CausalId::to_string).collect();
        // Sorted by name here, because the map may or may not sort.
        let record = json!({
            "cognitive_split": {
                "entropy_rate": split.entropy_rate.to_json(),
                "info_gain": split.info_gain.to_json(),
                "statistical_complexity": split.statistical_complexity.to_json(),
            },
            "id": self.id.to_string(),
            "landauer_cost": self.landauer_cost.to_json(),
            "payload": text::base64(&self.payload),
            "predecessors": predecessors,
            "resources": {
                "energy": resources.energy.to_json(),
                "space": resources.space.to_json(),
                "time": resources.time.to_json(),
            },
        });
        record.to_string().into_bytes()
    }

    /// The record as deterministic CBOR (7.2).
    pub fn to_cbor(&self) -> Vec<u8> {
        let (resources, split) = (&self.resources, &self.cognitive_split);
        let predecessors = as_set(&self.predecessors);
        let predecessors = predecessors.iter().map(|id| Value::Bytes(id.as_bytes())).collect();
        let record = map([
            ("id", Value::Bytes(self.id.as_bytes())),
            ("predecessors", Value::Array(predecessors)),
            ("landauer_cost", self.landauer_cost.to_cbor()),
            (
                "resources",
                map([
                    ("energy", resources.energy.to_cbor()),
                    ("time", resources.time.to_cbor()),
                    ("space", resources.space.to_cbor()),
                ]),
            ),
            (
                "cognitive_split",
                map([
                    ("statistical_complexity", split.statistical_complexity.to_cbor()),
                    ("entropy_rate", split.entropy_rate.to_cbor()),
                    ("info_gain", split.info_gain.to_cbor()),
                ]),
            ),
            ("payload", Value::Bytes(&self.payload)),
        ]);
        record.encode()
    }
}

/// A map in the order of its encoded keys: the length comes first in each, so
/// short names sort before long ones.
fn map<'a, const N: usize>(mut entries: [(&'static str, Value<'a>); N]) -> Value<'a> {
    entries.sort_by_key(|(name, _)| (name.len(), *name));
    Value::Map(entries.into_iter().map(|(name, value)| (Value::Text(name), value)).collect())
}

/// Predecessors as a set, without the sentinel.
pub(super) fn as_set(ids: &[CausalId]) -> BTreeSet<CausalId> {
    ids.iter().copied().filter(|id| !id.is_sentinel()).collect()
}

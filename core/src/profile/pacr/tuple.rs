//! The six fields of a record, and how we write them.
//!
//! Our CBOR is deterministic (RFC 8949, 4.2.1, doubles always 64 bits), our
//! JSON has sorted members and the shortest decimals that read back. The two
//! have different digests; nothing compares them.

use std::collections::BTreeSet;

use serde_json::{Value as Written, json};

use super::Encoding;
use super::compare::{Comparison, Estimates};
use super::id::CausalId;
use crate::wire::cbor::Value;
use crate::wire::text;

/// A measurement: the best value and the interval it lies in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The best single value.
    pub point: f64,
    /// The lower end of the interval.
    pub lower: f64,
    /// The upper end of the interval.
    pub upper: f64,
}

impl Estimate {
    /// What an absent `info_gain` means.
    pub const ZERO: Self = Self { point: 0.0, lower: 0.0, upper: 0.0 };

    /// How two intervals lie to each other. Estimates are compared by overlap,
    /// never for equality.
    pub fn compare(self, other: Self) -> Comparison {
        if self.upper < other.lower {
            Comparison::Below
        } else if self.lower > other.upper {
            Comparison::Above
        } else {
            Comparison::Overlaps
        }
    }

    fn to_json(self) -> Written {
        json!({ "lower": self.lower, "point": self.point, "upper": self.upper })
    }

    fn to_cbor(self) -> Value<'static> {
        Value::Array([self.point, self.lower, self.upper].map(Value::Float).into())
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
    /// Its name.
    pub id: CausalId,
    /// What directly caused it: a set, without the genesis sentinel.
    pub predecessors: Vec<CausalId>,
    /// The least energy its erasures need, in joules.
    pub landauer_cost: Estimate,
    /// What it cost.
    pub resources: Resources,
    /// How much structure its data has.
    pub cognitive_split: CognitiveSplit,
    /// What the application says, maybe behind an intervention tag.
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
        // In the order of the names, because the map may or may not sort them.
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

/// A map in the order of its encoded keys: short names sort before long ones,
/// because their length comes first.
fn map<'a, const N: usize>(mut entries: [(&'static str, Value<'a>); N]) -> Value<'a> {
    entries.sort_by_key(|(name, _)| (name.len(), *name));
    Value::Map(entries.into_iter().map(|(name, value)| (Value::Text(name), value)).collect())
}

/// Causes as the set they are, without the sentinel that stands for none.
pub(super) fn as_set(ids: &[CausalId]) -> BTreeSet<CausalId> {
    ids.iter().copied().filter(|id| !id.is_sentinel()).collect()
}

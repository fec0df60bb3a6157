//! Two records measured against each other: Estimates are compared by
//! overlap, never for equality.

use serde_json::{Map, Value};

use super::tuple::Estimate;

/// How one Estimate lies to another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Comparison {
    /// All of it is above the other.
    Above,
    /// All of it is below the other.
    Below,
    /// They share a value: nothing tells them apart.
    Overlaps,
}

impl Comparison {
    /// Its name in reports and the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Above => "above",
            Self::Below => "below",
            Self::Overlaps => "overlaps",
        }
    }
}

/// The Estimates of a record, by name and always in this order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimates(pub(super) [(&'static str, Estimate); 7]);

impl Estimates {
    /// Each of them against the same one of another record.
    pub fn compare(self, other: Self) -> Compared {
        let mut theirs = other.0.into_iter();
        Compared(self.0.map(|(name, own)| {
            // Both have the same names in the same order.
            let other = theirs.next().map_or(own, |(_, estimate)| estimate);
            (name, own.compare(other))
        }))
    }
}

/// How the Estimates of one record lie to those of another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Compared([(&'static str, Comparison); 7]);

impl Compared {
    /// Name and comparison of each.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Comparison)> + '_ {
        self.0.iter().copied()
    }

    /// Whether nothing measured tells the two apart.
    pub fn all_overlap(&self) -> bool {
        self.iter().all(|(_, how)| how == Comparison::Overlaps)
    }

    /// As reports and the API show it.
    pub fn to_json(self) -> Value {
        let member = |(name, how): (&str, Comparison)| (name.to_owned(), how.name().into());
        Value::Object(self.iter().map(member).collect::<Map<_, _>>())
    }
}

//! Points in time as numbers. Nothing here reads the clock.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Seconds since 1970-01-01T00:00:00Z, as CWT `iat` counts them.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct UnixSeconds(u64);

impl UnixSeconds {
    /// That many seconds after the epoch.
    pub const fn new(seconds: u64) -> Self {
        Self(seconds)
    }

    /// Reads RFC 3339 text; `None` before 1970.
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        let time: jiff::Timestamp = text.parse().ok()?;
        u64::try_from(time.as_second()).ok().map(Self)
    }

    /// The number of seconds.
    pub const fn seconds(self) -> u64 {
        self.0
    }
}

impl fmt::Display for UnixSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = i64::try_from(self.0).ok().and_then(|s| jiff::Timestamp::from_second(s).ok());
        match time {
            Some(time) => write!(f, "{time}"),
            None => write!(f, "{}{AFTER_1970}", self.0),
        }
    }
}

/// The suffix of times outside the range of RFC 3339.
const AFTER_1970: &str = " s after 1970";

impl Serialize for UnixSeconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UnixSeconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let beyond = || text.strip_suffix(AFTER_1970)?.parse().ok().map(Self);
        let time = Self::from_rfc3339(&text).or_else(beyond);
        time.ok_or_else(|| serde::de::Error::custom("not a time"))
    }
}

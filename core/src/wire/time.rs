//! Points in time as numbers. There is no way to ask what time it is.

use std::fmt;

/// Seconds since 1970-01-01T00:00:00Z, as CWT `iat` counts them.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct UnixSeconds(u64);

impl UnixSeconds {
    /// That many seconds after the epoch.
    pub const fn new(seconds: u64) -> Self {
        Self(seconds)
    }

    /// Reads RFC 3339 text; a time before 1970 is none.
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
            None => write!(f, "{} s after 1970", self.0),
        }
    }
}

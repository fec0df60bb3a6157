//! The one place that asks what time it is.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::wire::time::UnixSeconds;

/// The wall clock. The log's own time is clamped by its head record, so a
/// clock that jumps back cannot make it run backwards.
pub fn now() -> UnixSeconds {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixSeconds::new(elapsed.as_secs())
}

//! Latency quantiles. A run of any length takes the same memory.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Significant digits: a quantile is off by less than 1 %.
const DIGITS: u8 = 2;
/// An hour: what takes longer is counted as this.
const MICROS_MAX: u64 = 3_600_000_000;

/// Latencies in microseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Latencies {
    /// Absent until the first one is recorded.
    histogram: Option<Histogram<u64>>,
    /// Exact, where the histogram only knows the bucket.
    max: u64,
}

/// Quantiles in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Quantiles {
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

impl Latencies {
    pub(super) fn record(&mut self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        if self.histogram.is_none() {
            self.histogram = Histogram::new_with_max(MICROS_MAX, DIGITS).ok();
        }
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(micros);
        }
        self.max = self.max.max(micros);
    }

    pub(super) fn quantiles(&self) -> Quantiles {
        let quantile = |q: f64| {
            let micros = self.histogram.as_ref().map_or(0, |h| h.value_at_quantile(q));
            millis(micros.min(self.max))
        };
        Quantiles {
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            max: millis(self.max),
        }
    }
}

/// Whole microseconds as milliseconds, at most 71 minutes.
fn millis(micros: u64) -> f64 {
    f64::from(u32::try_from(micros).unwrap_or(u32::MAX)) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_one_percent() {
        for scale in [1, 40, 1_000, 77_777, 600_000] {
            let mut all = Latencies::default();
            (1..=1000).for_each(|n| all.record(Duration::from_micros(n * scale)));
            let found = all.quantiles();
            let near = |found: f64, wanted: u64| {
                let wanted = millis(wanted * scale);
                wanted <= found && found <= wanted * 1.01
            };
            assert!(near(found.p50, 500) && near(found.p90, 900), "{scale}: {found:?}");
            assert!(near(found.p99, 990) && found.max == millis(1000 * scale), "{found:?}");
        }
    }

    #[test]
    fn no_latencies_give_zero() {
        let none = Latencies::default().quantiles();
        assert_eq!(none, Quantiles { p50: 0.0, p90: 0.0, p99: 0.0, max: 0.0 });
        let mut extreme = Latencies::default();
        extreme.record(Duration::MAX);
        assert!(extreme.quantiles().max > 3_600_000.0);
    }
}

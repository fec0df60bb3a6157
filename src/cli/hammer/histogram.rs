//! Latencies in buckets, log-linear: 32 to each doubling, so that a quantile
//! is off by 3 % at most, and a run of any length takes the same memory.

use std::time::Duration;

use serde::Serialize;

/// Buckets to one doubling, as a power of two.
const SUB_BITS: u32 = 5;
/// Below this, a microsecond is a bucket.
const LINEAR: u64 = 1 << (SUB_BITS + 1);

/// How long things took.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    max: u64,
}

/// What people ask of a histogram, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Quantiles {
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

impl Histogram {
    pub(super) fn record(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let at = bucket(micros);
        if self.buckets.len() <= at {
            self.buckets.resize(at + 1, 0);
        }
        if let Some(slot) = self.buckets.get_mut(at) {
            *slot += 1;
        }
        self.count += 1;
        self.max = self.max.max(micros);
    }

    pub(super) fn quantiles(&self) -> Quantiles {
        Quantiles {
            p50: self.quantile(50),
            p90: self.quantile(90),
            p99: self.quantile(99),
            max: millis(self.max),
        }
    }

    /// The end of the bucket below which `percent` of all lie.
    fn quantile(&self, percent: u64) -> f64 {
        let wanted = self.count.saturating_mul(percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (at, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return millis(last_of(at).min(self.max));
            }
        }
        millis(self.max)
    }
}

fn bucket(micros: u64) -> usize {
    let octave = micros.max(1).ilog2();
    let at = if micros < LINEAR {
        micros
    } else {
        let sub = micros >> (octave - SUB_BITS);
        u64::from(octave - SUB_BITS) * (LINEAR / 2) + sub
    };
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// The largest value of a bucket.
fn last_of(at: usize) -> u64 {
    let at = u64::try_from(at).unwrap_or(u64::MAX);
    if at < LINEAR {
        return at;
    }
    let half = LINEAR / 2;
    let shift = u32::try_from(at / half - 1).unwrap_or(0);
    let sub = half + at % half;
    ((sub + 1) << shift) - 1
}

/// Whole microseconds as milliseconds; above an hour nobody reads them.
fn millis(micros: u64) -> f64 {
    f64::from(u32::try_from(micros).unwrap_or(u32::MAX)) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_narrow() {
        let mut values: Vec<u64> = (0..5000).collect();
        values.extend((12..60).map(|bits| (1 << bits) + 12_345));
        values.windows(2).for_each(|pair| {
            assert!(bucket(pair[0]) <= bucket(pair[1]), "{pair:?}");
        });
        for value in values {
            let last = last_of(bucket(value));
            assert!(last >= value && last - value <= value / 32, "{value} in a bucket to {last}");
        }
    }

    #[test]
    fn quantiles_of_a_thousand() {
        let mut all = Histogram::default();
        assert_eq!(all.quantiles(), Quantiles { p50: 0.0, p90: 0.0, p99: 0.0, max: 0.0 });
        (1..=1000).for_each(|ms| all.record(Duration::from_millis(ms)));
        let found = all.quantiles();
        let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 0.04;
        assert!(near(found.p50, 500.0) && near(found.p90, 900.0), "{found:?}");
        assert!(near(found.p99, 990.0) && found.max == 1000.0, "{found:?}");
    }
}

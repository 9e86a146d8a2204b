//! Percentiles of a set of samples.

use std::time::Duration;

use serde::Serialize;

/// In milliseconds, by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Summary {
    pub(super) samples: usize,
    pub(super) min_ms: f64,
    pub(super) p50_ms: f64,
    pub(super) p90_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) max_ms: f64,
}

impl Summary {
    /// None when nothing was measured.
    pub(super) fn of(samples: &[Duration]) -> Option<Self> {
        let mut ms: Vec<f64> = samples.iter().map(|d| d.as_secs_f64() * 1e3).collect();
        ms.sort_by(f64::total_cmp);
        let rank = |percent: usize| {
            let rank = (percent * ms.len()).div_ceil(100).max(1);
            ms.get(rank - 1).copied()
        };
        Some(Self {
            samples: ms.len(),
            min_ms: *ms.first()?,
            p50_ms: rank(50)?,
            p90_ms: rank(90)?,
            p99_ms: rank(99)?,
            max_ms: *ms.last()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let samples: Vec<_> = (1..=100).rev().map(Duration::from_millis).collect();
        let summary = Summary::of(&samples).unwrap();
        let near = |found: f64, wanted: f64| (found - wanted).abs() < 1e-9;
        assert!(near(summary.p50_ms, 50.0) && near(summary.p90_ms, 90.0));
        assert!(near(summary.p99_ms, 99.0) && near(summary.max_ms, 100.0));
        assert!(near(summary.min_ms, 1.0));
    }

    #[test]
    fn one_sample_is_every_percentile_and_none_is_no_summary() {
        let one = Summary::of(&[Duration::from_millis(5)]).unwrap();
        assert!((one.p50_ms - one.p99_ms).abs() < 1e-9);
        assert_eq!(Summary::of(&[]), None);
    }
}

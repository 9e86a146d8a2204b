//! Interleaved measuring: every round runs every peer once, in a new random order.
//!
//! Whatever else the machine does then falls on all peers alike, and no peer profits from
//! following another that warmed its caches.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;

use super::peer::Peer;

/// How long to measure.
#[derive(Clone, Copy)]
pub(super) struct Rounds {
    pub(super) warm_up: usize,
    pub(super) counted: usize,
}

/// The counted samples of each peer, in the order of `peers`.
pub(super) fn interleaved(
    peers: &[Peer],
    rounds: Rounds,
    seed: u64,
    mut progress: impl FnMut(usize),
) -> Result<Vec<Vec<Duration>>> {
    let mut samples = vec![Vec::with_capacity(rounds.counted); peers.len()];
    let mut random = SplitMix(seed);
    let mut order: Vec<usize> = (0..peers.len()).collect();
    for round in 0..rounds.warm_up + rounds.counted {
        progress(round);
        random.shuffle(&mut order);
        for &index in &order {
            let elapsed = peers[index].run()?;
            if round >= rounds.warm_up {
                samples[index].push(elapsed);
            }
        }
    }
    Ok(samples)
}

pub(super) fn seed_from_clock() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

/// SplitMix64: small, seedable, and good enough to shuffle five peers.
pub(super) struct SplitMix(pub(super) u64);

impl SplitMix {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn shuffle(&mut self, order: &mut [usize]) {
        for last in (1..order.len()).rev() {
            let bound = last as u64 + 1;
            order.swap(last, (self.next() % bound) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::peer::Expect;
    use super::*;

    fn sh(name: &'static str, script: &str) -> Peer {
        Peer {
            name,
            about: String::new(),
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            expect: Expect::Line("hi"),
        }
    }

    #[test]
    fn warm_up_rounds_are_run_and_dropped() {
        let rounds = Rounds {
            warm_up: 1,
            counted: 3,
        };
        let mut seen = 0;
        let peers = [sh("a", "echo hi"), sh("b", "echo hi")];
        let samples = interleaved(&peers, rounds, 7, |_| seen += 1).unwrap();
        assert_eq!(seen, 4);
        assert_eq!(samples.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
    }

    #[test]
    fn one_wrong_answer_ends_the_benchmark() {
        let rounds = Rounds {
            warm_up: 0,
            counted: 1,
        };
        assert!(interleaved(&[sh("a", "echo no")], rounds, 7, |_| ()).is_err());
    }

    #[test]
    fn the_order_changes_between_rounds_and_stays_a_permutation() {
        let mut random = SplitMix(1);
        let mut orders = std::collections::BTreeSet::new();
        let mut order = [0, 1, 2, 3];
        for _ in 0..50 {
            random.shuffle(&mut order);
            let mut sorted = order;
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
            orders.insert(order);
        }
        assert!(orders.len() > 10, "{orders:?}");
    }
}

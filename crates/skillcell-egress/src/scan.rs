//! Looks for secrets in a stream, in the spellings that programs commonly give them. It finds
//! accidents and simple tricks; a skill that wants to can always invent another spelling, which is
//! why the hosts that it reaches are named one by one.

mod automaton;
mod hide;
mod spellings;

use std::sync::Arc;

use automaton::Automaton;
pub use hide::{Hider, TooLong};

/// A shorter needle is looked for as it is only: its encodings are so short that they occur by
/// chance.
pub const MIN_FOR_SPELLINGS: usize = 6;
/// A longer needle is found by its beginning.
pub const MAX_NEEDLE: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// So many bytes of the stream, the oldest first and those held earlier included, may go on.
    Clean {
        safe: usize,
    },
    Hit,
}

/// The needles are shared by all clones, and a clone stands where its original does; `restarted`
/// gives one for another stream.
#[derive(Clone)]
pub struct Scanner {
    automaton: Arc<Automaton>,
    state: u32,
    held: usize,
    hit: bool,
}

impl std::fmt::Debug for Scanner {
    /// The needles are secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scanner")
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

impl Scanner {
    /// Empty needles are ignored; see also [`MIN_FOR_SPELLINGS`] and [`MAX_NEEDLE`].
    pub fn new(needles: &[Vec<u8>]) -> Self {
        let mut words: Vec<Vec<u8>> = needles.iter().flat_map(|n| spellings::of(n)).collect();
        for word in &mut words {
            word.truncate(MAX_NEEDLE);
        }
        Self {
            automaton: Arc::new(Automaton::new(&words)),
            state: Automaton::START,
            held: 0,
            hit: false,
        }
    }

    /// For the same needles at the start of another stream.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self {
            automaton: Arc::clone(&self.automaton),
            state: Automaton::START,
            held: 0,
            hit: false,
        }
    }

    /// Held back is the longest end of the stream that may be the beginning of a needle: it is
    /// often nothing, and never more than [`MAX_NEEDLE`]. After a hit every answer is a hit.
    pub fn scan(&mut self, chunk: &[u8]) -> Verdict {
        for byte in chunk {
            self.state = self.automaton.next(self.state, *byte);
            if self.hit || self.automaton.is_match(self.state) {
                self.hit = true;
                return Verdict::Hit;
            }
        }
        if self.hit {
            return Verdict::Hit;
        }
        let before = self.held + chunk.len();
        self.held = self.automaton.depth(self.state).min(before);
        Verdict::Clean {
            safe: before - self.held,
        }
    }

    /// The stream is over, or nothing can follow that belongs together with it: what was held is
    /// no needle after all.
    pub fn finish(&mut self) -> Verdict {
        if self.hit {
            return Verdict::Hit;
        }
        let safe = std::mem::take(&mut self.held);
        self.state = Automaton::START;
        Verdict::Clean { safe }
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;

//! Lets a stream pass but for secrets. What may be the beginning of one waits; a few bytes of a
//! beginning don't wait for long, because a client that waits for its answer would wait forever,
//! and they tell nothing. The rest of a secret never follows them.

use super::secrets::Leak;
use crate::scan::{Scanner, Verdict};
use std::time::Duration;

/// How long a short beginning waits.
pub(super) const IDLE: Duration = Duration::from_millis(20);
const SHORT: usize = 8;

pub(super) struct Sieve {
    /// `None`: there is nothing to look for.
    scanner: Option<Scanner>,
    held: Vec<u8>,
    /// How many of the held bytes have gone ahead.
    ahead: usize,
}

impl Sieve {
    pub(super) fn new(scanner: Option<Scanner>) -> Sieve {
        Sieve {
            scanner,
            held: Vec::new(),
            ahead: 0,
        }
    }

    pub(super) fn looks(&self) -> bool {
        self.scanner.is_some()
    }

    /// What may go on now.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<Vec<u8>, Leak> {
        self.held.extend_from_slice(chunk);
        let safe = match self.scanner.as_mut().map(|s| s.scan(chunk)) {
            Some(Verdict::Hit) => return Err(Leak),
            Some(Verdict::Clean { safe }) => safe.min(self.held.len()),
            None => self.held.len(),
        };
        let gone = self.ahead.min(safe);
        self.ahead -= gone;
        let mut ready: Vec<u8> = self.held.drain(..safe).collect();
        ready.drain(..gone);
        Ok(ready)
    }

    /// Whether something waits that `idle` would let go.
    pub(super) fn waits(&self) -> bool {
        self.held.len() > self.ahead && self.held.len() <= SHORT
    }

    /// What has waited for long enough.
    pub(super) fn idle(&mut self) -> Vec<u8> {
        if !self.waits() {
            return Vec::new();
        }
        let ready = self.held[self.ahead..].to_vec();
        self.ahead = self.held.len();
        ready
    }

    /// The end of the stream: a beginning that never became a secret.
    pub(super) fn finish(self) -> Vec<u8> {
        self.held.get(self.ahead..).unwrap_or_default().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sieve() -> Sieve {
        Sieve::new(Some(Scanner::new(&[b"topsecret".to_vec()])))
    }

    #[test]
    fn a_secret_in_pieces_never_passes_whole_even_when_its_beginning_did() {
        let mut sieve = sieve();
        let mut passed = sieve.push(b"say: top").expect("clean");
        passed.extend(sieve.idle());
        assert_eq!(passed, b"say: top");
        assert_eq!(sieve.push(b"secret"), Err(Leak));
    }

    #[test]
    fn what_went_ahead_is_not_sent_twice() {
        let mut sieve = sieve();
        let mut passed = sieve.push(b"a to").expect("clean");
        passed.extend(sieve.idle());
        passed.extend(sieve.push(b"p hat").expect("clean"));
        passed.extend(sieve.push(b" t").expect("clean"));
        passed.extend(sieve.finish());
        assert_eq!(passed, b"a top hat t");
    }
}

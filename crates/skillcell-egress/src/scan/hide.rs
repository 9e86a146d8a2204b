use super::automaton::{Automaton, Word};
use super::{MAX_NEEDLE, MIN_FOR_SPELLINGS, spellings};
use std::sync::Arc;

/// Puts something else in the place of each needle of a stream, in all of its spellings.
#[derive(Clone)]
pub struct Hider {
    automaton: Arc<Automaton>,
    /// For each word; `None` where the word is only the beginning of a needle.
    puts: Arc<[Option<Vec<u8>>]>,
    state: u32,
    held: Vec<u8>,
    /// How much of it the automaton has read.
    at: usize,
    found: Option<Found>,
}

/// In what is held: a longer needle may still begin at the same place.
#[derive(Debug, Clone, Copy)]
struct Found {
    start: usize,
    end: usize,
    word: usize,
}

/// A needle so long that its end can't be told: nothing may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl std::fmt::Debug for Hider {
    /// The needles are secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hider")
            .field("held", &self.held.len())
            .finish_non_exhaustive()
    }
}

impl Hider {
    /// Of needles and what to put in their places. Needles shorter than [`MIN_FOR_SPELLINGS`] occur
    /// by chance, and are left alone.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        let (mut words, mut puts) = (Vec::new(), Vec::new());
        for (needle, put) in pairs {
            if needle.len() < MIN_FOR_SPELLINGS {
                continue;
            }
            for mut word in spellings::of(needle) {
                puts.push((word.len() <= MAX_NEEDLE).then(|| put.to_vec()));
                word.truncate(MAX_NEEDLE);
                words.push(word);
            }
        }
        Self {
            automaton: Arc::new(Automaton::new(&words)),
            puts: puts.into(),
            state: Automaton::START,
            held: Vec::new(),
            at: 0,
            found: None,
        }
    }

    /// For the same needles at the start of another stream.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self {
            automaton: Arc::clone(&self.automaton),
            puts: Arc::clone(&self.puts),
            state: Automaton::START,
            held: Vec::new(),
            at: 0,
            found: None,
        }
    }

    /// What may go on now: all but the end that may be the beginning of a needle.
    pub fn push(&mut self, chunk: &[u8]) -> Result<Vec<u8>, TooLong> {
        self.held.extend_from_slice(chunk);
        let mut out = Vec::with_capacity(self.held.len());
        let from = self.read(0, &mut out)?;
        let kept = match self.found {
            Some(found) => found.start,
            None => self.at - self.automaton.depth(self.state).min(self.at - from),
        };
        out.extend_from_slice(self.held.get(from..kept).unwrap_or_default());
        self.held.drain(..kept);
        self.at -= kept;
        self.found = self.found.map(|found| Found {
            start: 0,
            end: found.end - kept,
            ..found
        });
        Ok(out)
    }

    /// The stream is over.
    pub fn finish(&mut self) -> Result<Vec<u8>, TooLong> {
        let (mut out, mut from) = (Vec::new(), 0);
        while let Some(found) = self.found {
            from = self.put(from, found, &mut out)?;
            from = self.read(from, &mut out)?;
        }
        out.extend_from_slice(self.held.get(from..).unwrap_or_default());
        *self = self.restarted();
        Ok(out)
    }

    /// All of a text.
    pub fn hidden(&self, text: &[u8]) -> Result<Vec<u8>, TooLong> {
        let mut hider = self.restarted();
        let mut out = hider.push(text)?;
        out.extend(hider.finish()?);
        Ok(out)
    }

    /// Reads what is held, of which everything up to `from` is out; says up to where it then is.
    fn read(&mut self, mut from: usize, out: &mut Vec<u8>) -> Result<usize, TooLong> {
        while let Some(byte) = self.held.get(self.at) {
            self.state = self.automaton.next(self.state, *byte);
            self.at += 1;
            if let Some(Word { index, length }) = self.automaton.word(self.state) {
                let start = self.at - length;
                if self.found.is_none_or(|found| start <= found.start) {
                    self.found = Some(Found {
                        start,
                        end: self.at,
                        word: index,
                    });
                }
            }
            // Done when nothing that could still become a word begins there.
            let begins = self.at - self.automaton.depth(self.state);
            if let Some(found) = self.found
                && (begins > found.start
                    || (found.end == self.at && self.automaton.is_leaf(self.state)))
            {
                from = self.put(from, found, out)?;
            }
        }
        Ok(from)
    }

    /// What follows a needle is read anew: another one may begin there.
    fn put(&mut self, from: usize, found: Found, out: &mut Vec<u8>) -> Result<usize, TooLong> {
        out.extend_from_slice(self.held.get(from..found.start).unwrap_or_default());
        match self.puts.get(found.word) {
            Some(Some(put)) => out.extend_from_slice(put),
            _ => return Err(TooLong),
        }
        self.found = None;
        self.state = Automaton::START;
        self.at = found.end;
        Ok(found.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hider(pairs: &[(&str, &str)]) -> Hider {
        Hider::new(pairs.iter().map(|(n, p)| (n.as_bytes(), p.as_bytes())))
    }

    fn hidden(pairs: &[(&str, &str)], text: &str) -> String {
        let out = hider(pairs).hidden(text.as_bytes()).expect("short needles");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn every_spelling_is_replaced() {
        let pairs = [("s3cret/value+1", "STANDIN")];
        for spelling in [
            "s3cret/value+1",
            "s3cret%2Fvalue%2B1",
            "s3cret%2fvalue%2b1",
            "s3cret\\/value+1",
            "S3CRET/VALUE+1",
        ] {
            assert_eq!(hidden(&pairs, &format!("a {spelling} z")), "a STANDIN z");
        }
        assert!(!hidden(&pairs, "Basic bWU6czNjcmV0L3ZhbHVlKzE=").contains("czNjcmV0L3Zhb"));
        assert_eq!(hidden(&pairs, "s3cret/value+"), "s3cret/value+");
    }

    #[test]
    fn of_two_secrets_the_longer_one_leaves_no_rest() {
        let pairs = [
            ("abcdef", "SHORT"),
            ("abcdefghij", "LONG"),
            ("cdefgh", "MID"),
        ];
        assert_eq!(hidden(&pairs, "abcdefghij."), "LONG.");
        assert_eq!(hidden(&pairs, "abcdefghi."), "SHORTghi.");
        assert_eq!(hidden(&pairs, "xcdefghabcdef"), "xMIDSHORT");
        assert_eq!(hidden(&pairs, "abcdeabcdef"), "abcdeSHORT");
    }

    #[test]
    fn a_secret_at_an_end_does_not_wait_for_what_follows() {
        let mut hider = hider(&[("abcdef", "X")]);
        assert_eq!(hider.push(b"1 abc"), Ok(b"1 ".to_vec()));
        assert_eq!(hider.push(b"def"), Ok(b"X".to_vec()));
        assert_eq!(hider.push(b"ab\n"), Ok(b"ab\n".to_vec()));
    }

    #[test]
    fn a_secret_whose_end_can_t_be_told_ends_the_stream() {
        let long = "k".repeat(MAX_NEEDLE + 1);
        let mut hider = hider(&[(&long, "X")]);
        assert_eq!(hider.push(long.as_bytes()), Err(TooLong));
    }

    #[test]
    fn a_short_secret_is_left_alone() {
        assert_eq!(hidden(&[("abc", "X")], "an abc"), "an abc");
    }

    proptest! {
        #[test]
        fn in_any_split_the_answer_is_the_same(
            needles in proptest::collection::vec("[ab]{6,9}", 1..4),
            chunks in proptest::collection::vec("[abc]{0,9}", 0..12),
        ) {
            let pairs: Vec<(&[u8], &[u8])> =
                needles.iter().map(|n| (n.as_bytes(), &b"-"[..])).collect();
            let hider = Hider::new(pairs);
            let whole = hider.hidden(chunks.concat().as_bytes()).expect("short needles");
            let (mut parts, mut out) = (hider.restarted(), Vec::new());
            for chunk in &chunks {
                out.extend(parts.push(chunk.as_bytes()).expect("short needles"));
            }
            out.extend(parts.finish().expect("short needles"));
            prop_assert_eq!(&out, &whole);
            let text = String::from_utf8_lossy(&whole).into_owned();
            prop_assert!(needles.iter().all(|n| !text.contains(n.as_str())), "{text}");
        }
    }
}

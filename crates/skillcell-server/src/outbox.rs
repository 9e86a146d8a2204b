//! Events on their way to somebody who may not read them.
//!
//! A caller who stops reading must not stop the call: its supervisor would no longer see the
//! deadline. So events are written as far as they can be without waiting, kept up to a bound, and
//! beyond that dropped and counted.

use std::io::{self, ErrorKind};

const MOST_KEPT: usize = 256 << 10;

#[derive(Debug, Default)]
pub struct Outbox {
    kept: Vec<u8>,
    written: usize,
    dropped: u64,
}

impl Outbox {
    /// Takes one event, or drops it whole.
    pub fn push(&mut self, event: &[u8]) {
        if self.kept.len() - self.written + event.len() > MOST_KEPT {
            self.dropped += 1;
        } else {
            self.kept.extend_from_slice(event);
        }
    }

    /// Writes what can be written now. `write` says `WouldBlock` where it would have to wait.
    pub fn flush(&mut self, mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<()> {
        while self.written < self.kept.len() {
            match write(&self.kept[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => self.written += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.kept.clear();
        self.written = 0;
        Ok(())
    }

    /// What is still to be written, and how many events never will be.
    pub fn into_rest(mut self) -> (Vec<u8>, u64) {
        (self.kept.split_off(self.written), self.dropped)
    }

    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_in_the_middle_and_what_is_too_much_is_counted() {
        let mut outbox = Outbox::default();
        let mut seen = Vec::new();
        for n in 0..100_000 {
            outbox.push(format!("event {n}\n").as_bytes());
            let mut room = 3;
            outbox
                .flush(|bytes| {
                    if room == 0 {
                        return Err(ErrorKind::WouldBlock.into());
                    }
                    let n = bytes.len().min(room);
                    room -= n;
                    seen.extend_from_slice(&bytes[..n]);
                    Ok(n)
                })
                .unwrap();
        }
        let (rest, dropped) = outbox.into_rest();
        seen.extend_from_slice(&rest);
        let text = String::from_utf8(seen).unwrap();
        assert!(
            text.lines().all(|l| l.starts_with("event ")),
            "a torn event"
        );
        assert!(dropped > 0);
        assert_eq!(text.lines().count() as u64 + dropped, 100_000);
    }
}

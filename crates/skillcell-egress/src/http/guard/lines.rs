use super::HttpFault;

/// Cuts a stream into lines that end in CRLF, and keeps them until they are taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    held: Vec<u8>,
    start: usize,
}

impl Lines {
    /// The next line without its end, of which it takes no byte too many off `input`. All lines
    /// that are held may together be `limit` bytes long. A CR or LF that is not a line's end is a
    /// fault at once: others take each of them for one.
    pub(super) fn next(
        &mut self,
        input: &mut &[u8],
        limit: usize,
    ) -> Result<Option<Vec<u8>>, HttpFault> {
        while let Some((byte, rest)) = input.split_first() {
            if self.held.len() >= limit {
                return Err(HttpFault::TooLong);
            }
            let line = self.held.get(self.start..).unwrap_or_default();
            match (line.last(), *byte) {
                (Some(b'\r'), b'\n') => {}
                (Some(b'\r'), _) => return Err(HttpFault::BareCr),
                (_, b'\n') => return Err(HttpFault::BareLf),
                _ => {}
            }
            self.held.push(*byte);
            *input = rest;
            if *byte == b'\n' {
                let end = self.held.len();
                let line = self.held.get(self.start..end.saturating_sub(2));
                let line = line.unwrap_or_default().to_vec();
                self.start = end;
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Everything that is held, as it came.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.start = 0;
        std::mem::take(&mut self.held)
    }
}

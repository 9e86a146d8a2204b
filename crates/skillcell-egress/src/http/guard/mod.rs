//! A strict reader of a stream of HTTP/1 requests. It lets through only what every server reads
//! the same way: where a request ends decides which bytes are the next one's `Host`, so a head is
//! held back until it is complete and sound, and a fault ends the stream for good.

mod fault;
mod head;
mod lines;

pub use fault::HttpFault;
pub(crate) use head::HeadReader;
pub use head::{Framing, Head, Header, Version, parse_head};

use lines::Lines;

/// Of a head, or of a body's trailers.
pub const MAX_HEAD: usize = 64 * 1024;
pub const MAX_HEADERS: usize = 200;
const MAX_CHUNK_LINE: usize = 1024;
/// Early bytes of a tunnel, before anybody has said that there is one.
const MAX_HELD: usize = 64 * 1024;

#[derive(Debug, Clone)]
pub struct Guard {
    state: State,
    allow_connect: bool,
}

#[derive(Debug, Clone)]
enum State {
    Head(HeadReader),
    Body(u64),
    ChunkSize(Lines),
    ChunkData(u64),
    ChunkEnd(Lines),
    Trailers {
        lines: Lines,
        count: usize,
    },
    /// Behind a `CONNECT`: whether these bytes are HTTP is for the answer to say.
    Waiting(Vec<u8>),
    Open(Vec<u8>),
    Faulty(HttpFault),
}

impl Default for Guard {
    fn default() -> Self {
        Self::new()
    }
}

impl Guard {
    pub fn new() -> Self {
        Self {
            state: State::Head(HeadReader::default()),
            allow_connect: false,
        }
    }

    /// For a proxy's own listener, where `CONNECT` is how a client begins.
    pub fn allow_connect() -> Self {
        Self {
            allow_connect: true,
            ..Self::new()
        }
    }

    /// Appends to `out` what may pass on: all of the input, but for an unfinished head or line.
    pub fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), HttpFault> {
        self.feed_with(input, out, |_| Ok(()))
    }

    /// As `feed`, and asks `check` about each complete head before a byte of it passes. What
    /// `check` refuses is the end of the stream, as a fault is.
    pub fn feed_with<E: From<HttpFault>>(
        &mut self,
        mut input: &[u8],
        out: &mut Vec<u8>,
        mut check: impl FnMut(&Head) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            match self.step(&mut input, out, &mut check) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(Stop::Fault(fault)) => {
                    self.state = State::Faulty(fault);
                    return Err(fault.into());
                }
                Err(Stop::Refused(error)) => {
                    self.state = State::Faulty(HttpFault::AfterRefusal);
                    return Err(error);
                }
            }
        }
    }

    /// The server agreed to another protocol: from now on everything passes, beginning with what
    /// was held, which comes with the next `feed` (an empty one will do). After an upgrade to
    /// HTTP/2 nobody looks at the requests any more: a caller that cares must not allow it.
    pub fn upgraded(&mut self) {
        let held = match &mut self.state {
            State::Faulty(_) => return,
            State::Head(reader) => reader.take_held(),
            State::ChunkSize(lines) | State::ChunkEnd(lines) | State::Trailers { lines, .. } => {
                lines.take()
            }
            State::Waiting(held) | State::Open(held) => std::mem::take(held),
            State::Body(_) | State::ChunkData(_) => Vec::new(),
        };
        self.state = State::Open(held);
    }

    /// Between requests, with nothing held: the only good moment for the stream's end.
    pub fn is_idle(&self) -> bool {
        match &self.state {
            State::Head(reader) => reader.is_empty(),
            State::Open(held) => held.is_empty(),
            _ => false,
        }
    }

    /// One step: whether there may be another one.
    fn step<E>(
        &mut self,
        input: &mut &[u8],
        out: &mut Vec<u8>,
        check: &mut impl FnMut(&Head) -> Result<(), E>,
    ) -> Result<bool, Stop<E>> {
        match &mut self.state {
            State::Faulty(fault) => return Err(Stop::Fault(*fault)),
            State::Open(held) => {
                out.append(held);
                out.extend_from_slice(input);
                return Ok(false);
            }
            State::Waiting(held) => {
                if held.len() + input.len() > MAX_HELD {
                    return Err(Stop::Fault(HttpFault::TooMuchBeforeTunnel));
                }
                held.extend_from_slice(input);
                return Ok(false);
            }
            _ if input.is_empty() => return Ok(false),
            State::Head(reader) => {
                let Some(head) = reader.feed(input)? else {
                    return Ok(false);
                };
                let raw = reader.take_held();
                if head.method == "CONNECT" && !self.allow_connect {
                    return Err(Stop::Fault(HttpFault::Connect));
                }
                check(&head).map_err(Stop::Refused)?;
                out.extend_from_slice(&raw);
                self.state = after_head(&head);
            }
            State::Body(left) => {
                pass(left, input, out);
                if *left == 0 {
                    self.state = State::Head(HeadReader::default());
                }
            }
            State::ChunkSize(lines) => {
                let Some(line) = lines.next(input, MAX_CHUNK_LINE)? else {
                    return Ok(false);
                };
                let size = chunk_size(&line)?;
                out.extend_from_slice(&lines.take());
                self.state = if size == 0 {
                    State::Trailers {
                        lines: Lines::default(),
                        count: 0,
                    }
                } else {
                    State::ChunkData(size)
                };
            }
            State::ChunkData(left) => {
                pass(left, input, out);
                if *left == 0 {
                    self.state = State::ChunkEnd(Lines::default());
                }
            }
            State::ChunkEnd(lines) => {
                let Some(line) = lines.next(input, 2).map_err(|_| HttpFault::ChunkEnd)? else {
                    return Ok(false);
                };
                if !line.is_empty() {
                    return Err(Stop::Fault(HttpFault::ChunkEnd));
                }
                out.extend_from_slice(&lines.take());
                self.state = State::ChunkSize(Lines::default());
            }
            State::Trailers { lines, count } => {
                let Some(line) = lines.next(input, MAX_HEAD)? else {
                    return Ok(false);
                };
                if line.is_empty() {
                    out.extend_from_slice(&lines.take());
                    self.state = State::Head(HeadReader::default());
                } else {
                    *count += 1;
                    head::trailer(&line, *count)?;
                }
            }
        }
        Ok(true)
    }
}

enum Stop<E> {
    Fault(HttpFault),
    Refused(E),
}

impl<E> From<HttpFault> for Stop<E> {
    fn from(fault: HttpFault) -> Self {
        Self::Fault(fault)
    }
}

fn after_head(head: &Head) -> State {
    match head.framing {
        _ if head.method == "CONNECT" => State::Waiting(Vec::new()),
        Framing::None | Framing::Length(0) => State::Head(HeadReader::default()),
        Framing::Length(length) => State::Body(length),
        Framing::Chunked => State::ChunkSize(Lines::default()),
    }
}

fn pass(left: &mut u64, input: &mut &[u8], out: &mut Vec<u8>) {
    let count = usize::try_from(*left)
        .unwrap_or(usize::MAX)
        .min(input.len());
    let (now, later) = input.split_at_checked(count).unwrap_or((input, &[]));
    out.extend_from_slice(now);
    *left = left.saturating_sub(now.len() as u64);
    *input = later;
}

fn chunk_size(line: &[u8]) -> Result<u64, HttpFault> {
    let end = line.iter().position(|byte| *byte == b';');
    let (digits, extension) = line
        .split_at_checked(end.unwrap_or(line.len()))
        .unwrap_or((line, &[]));
    if digits.is_empty() || digits.len() > 16 {
        return Err(HttpFault::ChunkSize);
    }
    if extension.iter().any(|byte| !head::is_text(*byte)) {
        return Err(HttpFault::ChunkExtension);
    }
    digits.iter().try_fold(0_u64, |size, digit| {
        let value = char::from(*digit)
            .to_digit(16)
            .ok_or(HttpFault::ChunkSize)?;
        Ok((size << 4) | u64::from(value))
    })
}

#[cfg(test)]
mod tests;

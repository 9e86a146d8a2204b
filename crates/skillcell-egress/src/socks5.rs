//! The server's half of a SOCKS5 handshake (RFC 1928): no authentication, `CONNECT` only. Nothing
//! is dialled here; the caller decides and then sends one [`Reply`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::reader::Reader;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_ACCEPTABLE_METHOD: u8 = 0xff;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Printable ASCII, and nothing else is promised: whether it is a host is for
    /// `skillcell_core::Host` to say.
    Name(String),
    Address(IpAddr),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    NeedMore,
    Connect {
        target: Target,
        port: u16,
    },
    /// Send what is in `reply` and close. Why, in plain words.
    Failed(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reply {
    Succeeded = 0,
    GeneralFailure = 1,
    NotAllowed = 2,
    NetworkUnreachable = 3,
    HostUnreachable = 4,
    ConnectionRefused = 5,
    TtlExpired = 6,
    CommandNotSupported = 7,
    AddressTypeNotSupported = 8,
}

impl Reply {
    /// The bound address in it is always zero: it is nobody's business in the cell.
    pub fn bytes(self) -> [u8; 10] {
        [VERSION, self as u8, 0, 1, 0, 0, 0, 0, 0, 0]
    }
}

#[derive(Debug, Clone, Default)]
pub struct Handshake {
    /// Of the present message; at most 262 bytes.
    held: Vec<u8>,
    state: State,
}

#[derive(Debug, Clone, Default)]
enum State {
    #[default]
    Greeting,
    Request,
    Ended(Step),
}

impl Handshake {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes of the client, and says how many of them belonged to the handshake: what
    /// follows a request is for whom it asked for. `reply` is sent before anything else is done.
    pub fn feed(&mut self, input: &[u8], reply: &mut Vec<u8>) -> (usize, Step) {
        let mut used = 0;
        for byte in input {
            if let State::Ended(_) = self.state {
                break;
            }
            // Byte by byte: a handshake is short, and so its end can't be overrun.
            self.held.push(*byte);
            used += 1;
            match self.state {
                State::Greeting => self.greeting(reply),
                State::Request => self.request(reply),
                State::Ended(_) => {}
            }
        }
        match &self.state {
            State::Ended(step) => (used, step.clone()),
            _ => (used, Step::NeedMore),
        }
    }

    fn end(&mut self, step: Step) {
        self.held = Vec::new();
        self.state = State::Ended(step);
    }

    fn greeting(&mut self, reply: &mut Vec<u8>) {
        if self.held.first() != Some(&VERSION) {
            return self.end(Step::Failed("the client does not speak SOCKS5"));
        }
        let mut reader = Reader::new(self.held.get(1..).unwrap_or_default());
        let Some(methods) = reader.short_vector() else {
            return;
        };
        if methods.contains(&NO_AUTHENTICATION) {
            reply.extend_from_slice(&[VERSION, NO_AUTHENTICATION]);
            self.held.clear();
            self.state = State::Request;
        } else {
            reply.extend_from_slice(&[VERSION, NO_ACCEPTABLE_METHOD]);
            self.end(Step::Failed("the client insists on SOCKS5 authentication"));
        }
    }

    fn request(&mut self, reply: &mut Vec<u8>) {
        match read_request(&self.held) {
            Ok(None) => {}
            Ok(Some((target, port))) => self.end(Step::Connect { target, port }),
            Err((code, reason)) => {
                if let Some(code) = code {
                    reply.extend_from_slice(&code.bytes());
                }
                self.end(Step::Failed(reason));
            }
        }
    }
}

type Failure = (Option<Reply>, &'static str);

/// Answers as soon as a byte decides, so that nobody waits for the rest of a hopeless request.
fn read_request(held: &[u8]) -> Result<Option<(Target, u16)>, Failure> {
    let mut reader = Reader::new(held);
    if reader.byte().is_some_and(|version| version != VERSION) {
        return Err((None, "the client does not speak SOCKS5"));
    }
    if reader.byte().is_some_and(|command| command != 1) {
        return Err((
            Some(Reply::CommandNotSupported),
            "the client asked SOCKS5 for something other than a connection",
        ));
    }
    if reader.byte().is_some_and(|reserved| reserved != 0) {
        return Err((
            Some(Reply::GeneralFailure),
            "the SOCKS5 request is malformed",
        ));
    }
    let Some(kind) = reader.byte() else {
        return Ok(None);
    };
    let target = match kind {
        1 => reader
            .array()
            .map(|bytes| Target::Address(Ipv4Addr::from(bytes).into())),
        4 => reader
            .array()
            .map(|bytes| Target::Address(Ipv6Addr::from(bytes).into())),
        3 => reader.short_vector().map(name).transpose()?,
        _ => {
            return Err((
                Some(Reply::AddressTypeNotSupported),
                "the SOCKS5 request has an unknown type of address",
            ));
        }
    };
    Ok(target.and_then(|target| Some((target, reader.u16()?))))
}

fn name(bytes: &[u8]) -> Result<Target, Failure> {
    if bytes.is_empty() || !bytes.iter().all(u8::is_ascii_graphic) {
        return Err((
            Some(Reply::NotAllowed),
            "the name in the SOCKS5 request is empty or not plain ASCII",
        ));
    }
    Ok(Target::Name(
        bytes.iter().copied().map(char::from).collect(),
    ))
}

#[cfg(test)]
#[path = "socks5_tests.rs"]
mod tests;

//! Reads a ClientHello, put together from as many records as the client cut it into. A reader that
//! looks at the first record only, or takes the first of two names, can be shown a name that the
//! server doesn't see; so lengths must fit exactly, and nothing may occur twice.

use std::collections::BTreeSet;

use crate::progress::Progress;
use crate::reader::Reader;

/// Of everything up to the end of the hello, record headers included: a caller's buffer needs no
/// more.
pub const MAX_BYTES: usize = 64 * 1024;

const HANDSHAKE: u8 = 0x16;
const MAX_RECORD: usize = 16384 + 256;
const RECORD_HEADER: usize = 5;
const MESSAGE_HEADER: usize = 4;
const CLIENT_HELLO: u8 = 1;

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const ESNI: u16 = 0xffce;
/// The drafts' numbers, and the one that was kept.
const ECH: std::ops::RangeInclusive<u16> = 0xfe08..=0xfe0d;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// The text of the one `host_name` entry: visible ASCII, and nothing else is promised.
    pub server_name: Option<String>,
    /// There is an encrypted hello, or what looks like one: browsers send a dummy, which on
    /// purpose can't be told from a real one.
    pub encrypted: bool,
    pub alpn: Vec<Vec<u8>>,
}

/// `buffer` is all that the client sent so far, from the first byte.
pub fn read(buffer: &[u8]) -> Progress<ClientHello> {
    HelloReader::default().read(buffer)
}

/// Reads a hello as it comes in, and looks at each byte once: a client may send it in crumbs.
#[derive(Debug, Clone, Default)]
pub struct HelloReader {
    /// How much of the buffer has been taken.
    at: usize,
    /// Where the present record ends; `at` itself where the next header is due.
    end: usize,
    /// The message so far.
    message: Vec<u8>,
}

impl HelloReader {
    /// `buffer` is all that the client sent so far, from the first byte, and so begins with what it
    /// was the last time.
    pub fn read(&mut self, buffer: &[u8]) -> Progress<ClientHello> {
        match self
            .reassemble(buffer)
            .and_then(|message| message.as_deref().map(parse).transpose())
        {
            Ok(Some(hello)) => Progress::Done(hello),
            Ok(None) => Progress::NeedMore,
            Err(reason) => Progress::Malformed(reason),
        }
    }

    /// The message without its header, once it is complete. Says no as soon as a byte makes a yes
    /// impossible, so that nobody waits for the rest.
    fn reassemble(&mut self, buffer: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
        loop {
            let rest = buffer.get(self.at..).unwrap_or_default();
            if self.at == self.end {
                let Some(length) = record_length(rest)? else {
                    return Ok(None);
                };
                self.at += RECORD_HEADER;
                self.end = self.at + length;
                if self.end > MAX_BYTES {
                    return Err("the ClientHello is too long");
                }
                continue;
            }
            let left = self.end - self.at;
            let present = rest.get(..left).unwrap_or(rest);
            self.message.extend_from_slice(present);
            self.at += present.len();
            let announced = self.message.len() + self.end - self.at;

            if self
                .message
                .first()
                .is_some_and(|kind| *kind != CLIENT_HELLO)
            {
                return Err("the TLS handshake does not begin with a ClientHello");
            }
            if let Some(&[_, a, b, c]) = self.message.first_chunk::<MESSAGE_HEADER>() {
                let total = MESSAGE_HEADER.saturating_add(
                    usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap_or(usize::MAX),
                );
                if total > MAX_BYTES {
                    return Err("the ClientHello is too long");
                }
                if announced > total {
                    return Err("something follows the ClientHello in its TLS record");
                }
                if self.message.len() == total {
                    return Ok(Some(self.message.split_off(MESSAGE_HEADER)));
                }
            }
            if self.at < self.end {
                return Ok(None);
            }
        }
    }
}

/// Of the record that begins here, once its header is complete.
fn record_length(header: &[u8]) -> Result<Option<usize>, &'static str> {
    let mut bytes = header.iter();
    if bytes.next().is_some_and(|kind| *kind != HANDSHAKE) {
        return Err("a TLS record before the end of the ClientHello is not a handshake record");
    }
    if bytes.next().is_some_and(|major| *major != 3) {
        return Err("a TLS record has an unknown version");
    }
    let Some(&[_, _, _, high, low]) = header.first_chunk::<RECORD_HEADER>() else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length == 0 || length > MAX_RECORD {
        return Err("a TLS record is empty or too long");
    }
    Ok(Some(length))
}

const CUT: &str = "a length in the ClientHello does not fit";

fn parse(message: &[u8]) -> Result<ClientHello, &'static str> {
    let mut reader = Reader::new(message);
    if reader.u16().ok_or(CUT)? >> 8 != 3 {
        return Err("the ClientHello has an unknown version");
    }
    reader.take(32).ok_or(CUT)?; // random
    if reader.short_vector().ok_or(CUT)?.len() > 32 {
        return Err("the ClientHello has a session id longer than 32 bytes");
    }
    let suites = reader.vector().ok_or(CUT)?;
    if suites.is_empty() || suites.len() % 2 != 0 {
        return Err("the ClientHello has a malformed list of cipher suites");
    }
    if reader.short_vector().ok_or(CUT)?.is_empty() {
        return Err("the ClientHello has no compression method");
    }
    let mut hello = ClientHello::default();
    if reader.is_empty() {
        return Ok(hello); // from before there were extensions
    }
    let mut extensions = Reader::new(reader.vector().ok_or(CUT)?);
    if !reader.is_empty() {
        return Err("the ClientHello goes on behind its extensions");
    }
    let mut seen = BTreeSet::new();
    while !extensions.is_empty() {
        let kind = extensions.u16().ok_or(CUT)?;
        let data = extensions.vector().ok_or(CUT)?;
        if !seen.insert(kind) {
            return Err("the ClientHello has the same extension twice");
        }
        match kind {
            SERVER_NAME => hello.server_name = Some(server_name(data)?),
            ALPN => hello.alpn = protocols(data)?,
            _ if kind == ESNI || ECH.contains(&kind) => hello.encrypted = true,
            _ => {}
        }
    }
    Ok(hello)
}

fn server_name(data: &[u8]) -> Result<String, &'static str> {
    let mut outer = Reader::new(data);
    let mut list = Reader::new(outer.vector().ok_or(CUT)?);
    let kind = list.byte().ok_or(CUT)?;
    let name = list.vector().ok_or(CUT)?;
    if !outer.is_empty() || !list.is_empty() || kind != 0 {
        return Err("the ClientHello does not have exactly one server name");
    }
    if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
        return Err("the server name in the ClientHello is empty or not plain ASCII");
    }
    Ok(name.iter().copied().map(char::from).collect())
}

fn protocols(data: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut outer = Reader::new(data);
    let mut list = Reader::new(outer.vector().ok_or(CUT)?);
    if !outer.is_empty() {
        return Err(CUT);
    }
    let mut names = Vec::new();
    while !list.is_empty() {
        let name = list.short_vector().ok_or(CUT)?;
        if name.is_empty() {
            return Err("the ClientHello offers a protocol without a name");
        }
        names.push(name.to_vec());
    }
    if names.is_empty() {
        return Err("the ClientHello has an empty list of protocols");
    }
    Ok(names)
}

#[cfg(test)]
#[path = "client_hello_tests.rs"]
mod tests;

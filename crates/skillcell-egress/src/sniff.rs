//! What a client's first bytes are. The question is not what they should be but what a server
//! might take them for: a shape that some server reads as HTTP, and we would not, is refused,
//! because its `Host` would go unseen.

/// A request line longer than this is refused.
pub const MAX_LINE: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sniff {
    NeedMore,
    /// A handshake record; whether it holds a ClientHello is for `tls::client_hello` to say.
    Tls,
    /// A request line that is complete; whether the head is sound is for `http::Guard` to say.
    Http1,
    Http2,
    /// Nothing that a server could take for HTTP or TLS.
    Opaque,
    /// Neither good HTTP nor clearly something else. Why, in plain words.
    Refused(&'static str),
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const METHODS: [&[u8]; 19] = [
    b"GET",
    b"HEAD",
    b"POST",
    b"PUT",
    b"DELETE",
    b"CONNECT",
    b"OPTIONS",
    b"TRACE",
    b"PATCH",
    b"PRI",
    b"PROPFIND",
    b"PROPPATCH",
    b"MKCOL",
    b"COPY",
    b"MOVE",
    b"LOCK",
    b"UNLOCK",
    b"REPORT",
    // Not a method, but what a server may take off before it reads a request.
    b"PROXY",
];

/// `buffer` is all that the client sent so far. More bytes change only a `NeedMore`.
pub fn sniff(buffer: &[u8]) -> Sniff {
    Sniffer::default().sniff(buffer)
}

/// Remembers how far it has looked, so that a line in crumbs is not read again for each of them.
#[derive(Debug, Clone, Default)]
pub struct Sniffer {
    /// Everything before has been looked at, and doesn't end the line.
    at: usize,
    /// Where the first word ends.
    word_end: Option<usize>,
    mentions_http: bool,
    /// A carriage return that no line feed follows.
    bare: bool,
}

impl Sniffer {
    /// `buffer` is all that the client sent so far, and so begins with what it was the last time.
    pub fn sniff(&mut self, buffer: &[u8]) -> Sniff {
        match buffer {
            [] | [0x16] => Sniff::NeedMore,
            [0x16, 3, ..] => Sniff::Tls,
            // Servers are told to ignore the version of the first record.
            [0x16, ..] => Sniff::Refused("a TLS record of another version"),
            [b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c, ..] => {
                Sniff::Refused("white space before anything else")
            }
            [0x80..=0xff, ..] => old_tls(buffer),
            _ => self.line(buffer),
        }
    }

    fn line(&mut self, buffer: &[u8]) -> Sniff {
        let window = buffer.get(..MAX_LINE).unwrap_or(buffer);
        let Some(word_end) = self.find_word_end(window) else {
            return unfinished(window);
        };
        let (word, rest) = window.split_at_checked(word_end).unwrap_or((window, &[]));
        let known = METHODS
            .iter()
            .any(|method| method.eq_ignore_ascii_case(word));
        match rest.first() {
            Some(b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c) => {}
            _ if known => return Sniff::Refused("a method with strange characters behind it"),
            _ => return Sniff::Opaque,
        }
        let stop = self.find_stop(window, word_end);
        let like_http = known || self.mentions_http;
        // Some servers take a carriage return alone for the end of a line.
        if self.bare && like_http {
            return Sniff::Refused("a carriage return in a line");
        }
        let Some(stop) = stop else {
            return unfinished(window);
        };
        if window.get(stop) != Some(&b'\n') {
            return if like_http {
                Sniff::Refused("control characters in a request line")
            } else {
                Sniff::Opaque
            };
        }
        match request_line(window.get(word_end..stop).unwrap_or_default()) {
            Some(Version::One) => Sniff::Http1,
            Some(Version::Two) if word == b"PRI" => preface(buffer),
            Some(Version::Two) => Sniff::Refused("an HTTP version that is not 1.x"),
            None if like_http => Sniff::Refused("a request line that is not strict HTTP/1"),
            None => Sniff::Opaque,
        }
    }

    fn find_word_end(&mut self, window: &[u8]) -> Option<usize> {
        if self.word_end.is_none() {
            let fresh = window.get(self.at..).unwrap_or_default();
            let length = fresh.iter().position(|byte| !is_token(*byte));
            self.at += length.unwrap_or(fresh.len());
            self.word_end = length.map(|_| self.at);
        }
        self.word_end
    }

    /// The line's end, or a byte that no line of text has.
    fn find_stop(&mut self, window: &[u8], word_end: usize) -> Option<usize> {
        while let Some(byte) = window.get(self.at) {
            if *byte == b'\n' || is_binary(*byte) {
                return Some(self.at);
            }
            self.at += 1;
            // Behind the word, up to here.
            let line = window.get(word_end..self.at).unwrap_or_default();
            self.bare |= matches!(line, [.., b'\r', _]);
            self.mentions_http |= line
                .last_chunk::<5>()
                .is_some_and(|part| part.eq_ignore_ascii_case(b"HTTP/"));
        }
        None
    }
}

/// The hello of SSL 2, which could announce TLS: two bytes of length, type 1, a version.
fn old_tls(buffer: &[u8]) -> Sniff {
    match buffer {
        [_] | [_, _] | [_, _, 1] | [_, _, 1, 0 | 3] => Sniff::NeedMore,
        [_, _, 1, 0, 2, ..] | [_, _, 1, 3, ..] => Sniff::Refused("a hello in the format of SSL 2"),
        _ => Sniff::Opaque,
    }
}

fn unfinished(window: &[u8]) -> Sniff {
    if window.len() < MAX_LINE {
        Sniff::NeedMore
    } else {
        Sniff::Refused("a first line that does not end")
    }
}

fn preface(buffer: &[u8]) -> Sniff {
    if buffer.starts_with(PREFACE) {
        Sniff::Http2
    } else if PREFACE.starts_with(buffer) {
        Sniff::NeedMore
    } else {
        Sniff::Refused("a broken HTTP/2 preface")
    }
}

enum Version {
    One,
    Two,
}

/// What follows the method: a space, a target, a space, the version, a carriage return.
fn request_line(line: &[u8]) -> Option<Version> {
    let mut words = line.strip_suffix(b"\r")?.split(|byte| *byte == b' ');
    let ([], Some(target), Some(version), None) =
        (words.next()?, words.next(), words.next(), words.next())
    else {
        return None;
    };
    if target.is_empty() || !target.iter().all(u8::is_ascii_graphic) {
        return None;
    }
    match version.strip_prefix(b"HTTP/")? {
        [b'1', b'.', minor] if minor.is_ascii_digit() => Some(Version::One),
        b"2.0" => Some(Version::Two),
        _ => None,
    }
}

pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_binary(byte: u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\t' | b'\r' | b'\n' | 0x0b | 0x0c)
}

#[cfg(test)]
#[path = "sniff_tests.rs"]
mod tests;

use super::lines::Lines;
use super::{HttpFault, MAX_HEAD, MAX_HEADERS};
use crate::progress::Progress;
use crate::sniff::is_token;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Http10,
    Http11,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// As it was written.
    pub name: String,
    /// Without white space around it.
    pub value: Vec<u8>,
}

/// How long the body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    None,
    Length(u64),
    Chunked,
}

/// A head without two readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub method: String,
    /// As it was written: a path, a whole URL, `*`, or for `CONNECT` an authority.
    pub target: String,
    pub version: Version,
    pub headers: Vec<Header>,
    /// The one `Host`, as it was written. Only a `CONNECT` may be without it: old Pythons send
    /// none, and the target says it all.
    pub host: Option<String>,
    pub framing: Framing,
    /// In bytes, with the empty line.
    pub length: usize,
}

impl Head {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        let header = self
            .headers
            .iter()
            .find(|h| h.name.eq_ignore_ascii_case(name))?;
        Some(&header.value)
    }
}

/// Reads a head from the start of `input`, which may go on behind it.
pub fn parse_head(mut input: &[u8]) -> Progress<Head> {
    match HeadReader::default().feed(&mut input) {
        Ok(None) => Progress::NeedMore,
        Ok(Some(head)) => Progress::Done(head),
        Err(fault) => Progress::Malformed(fault.as_str()),
    }
}

/// Judges each line when it is complete: nobody waits for the end of a head that is lost.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeadReader {
    lines: Lines,
    length: usize,
    request: Option<(String, String, Version)>,
    headers: Vec<Header>,
}

impl HeadReader {
    /// Takes the head's bytes off `input`, which goes on where it went on the last time.
    pub(crate) fn feed(&mut self, input: &mut &[u8]) -> Result<Option<Head>, HttpFault> {
        while let Some(line) = self.lines.next(input, MAX_HEAD)? {
            self.length += line.len() + 2;
            if self.request.is_none() {
                self.request = Some(request_line(&line)?);
            } else if !line.is_empty() {
                if self.headers.len() >= MAX_HEADERS {
                    return Err(HttpFault::TooManyHeaders);
                }
                self.headers.push(header(&line)?);
            } else if let Some((method, target, version)) = self.request.take() {
                let headers = std::mem::take(&mut self.headers);
                let host = host(&headers, &method)?;
                let framing = framing(&headers, &method, version)?;
                return Ok(Some(Head {
                    method,
                    target,
                    version,
                    headers,
                    host,
                    framing,
                    length: self.length,
                }));
            }
        }
        Ok(None)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn take_held(&mut self) -> Vec<u8> {
        self.lines.take()
    }
}

fn request_line(line: &[u8]) -> Result<(String, String, Version), HttpFault> {
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(HttpFault::RequestLine);
    };
    if method.is_empty() || !method.iter().all(|byte| is_token(*byte)) {
        return Err(HttpFault::RequestLine);
    }
    let version = match version {
        b"HTTP/1.1" => Version::Http11,
        b"HTTP/1.0" => Version::Http10,
        _ => return Err(HttpFault::Version),
    };
    let (method, target) = (text(method), text(target));
    // `#` is no part of a target, and servers differ in what they do with it.
    let plain = target.bytes().all(|b| b.is_ascii_graphic() && b != b'#');
    let shape = match method.as_str() {
        // Other spellings are no CONNECT for us but could be for a lenient server.
        "CONNECT" => !target.is_empty() && !target.contains('/'),
        other if other.eq_ignore_ascii_case("CONNECT") => return Err(HttpFault::RequestLine),
        "OPTIONS" if target == "*" => true,
        _ => target.starts_with('/') || is_url(&target),
    };
    if !plain || !shape {
        return Err(HttpFault::Target);
    }
    Ok((method, target, version))
}

fn is_url(target: &str) -> bool {
    target.split_once("://").is_some_and(|(scheme, rest)| {
        (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"))
            && !rest.is_empty()
    })
}

fn header(line: &[u8]) -> Result<Header, HttpFault> {
    if let [b' ' | b'\t', ..] = line {
        return Err(HttpFault::FoldedHeader);
    }
    let mut parts = line.splitn(2, |byte| *byte == b':');
    let (Some(name), Some(value)) = (parts.next(), parts.next()) else {
        return Err(HttpFault::HeaderName);
    };
    if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
        return Err(HttpFault::HeaderName);
    }
    if !value.iter().all(|byte| is_text(*byte)) {
        return Err(HttpFault::HeaderValue);
    }
    // Of the white space that this removes only spaces and tabs are left.
    let value = value.trim_ascii().to_vec();
    Ok(Header {
        name: text(name),
        value,
    })
}

/// Of a name: its values.
fn all<'a>(headers: &'a [Header], name: &'static str) -> impl Iterator<Item = &'a [u8]> {
    let named = move |header: &&Header| header.name.eq_ignore_ascii_case(name);
    headers.iter().filter(named).map(|h| h.value.as_slice())
}

fn host(headers: &[Header], method: &str) -> Result<Option<String>, HttpFault> {
    let mut hosts = all(headers, "host");
    let Some(host) = hosts.next() else {
        return if method == "CONNECT" {
            Ok(None)
        } else {
            Err(HttpFault::NoHost)
        };
    };
    if hosts.next().is_some() {
        return Err(HttpFault::SeveralHosts);
    }
    if host.is_empty() || !host.iter().all(u8::is_ascii_graphic) {
        return Err(HttpFault::Host);
    }
    Ok(Some(text(host)))
}

fn framing(headers: &[Header], method: &str, version: Version) -> Result<Framing, HttpFault> {
    // A proxy behind us removes what is named here, and then reads another request than we did.
    for value in all(headers, "connection") {
        for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            let vital = [&b"host"[..], b"content-length", b"transfer-encoding"];
            if vital.iter().any(|name| name.eq_ignore_ascii_case(option)) {
                return Err(HttpFault::ConnectionHeader);
            }
        }
    }
    let mut lengths = all(headers, "content-length");
    let mut encodings = all(headers, "transfer-encoding");
    let framing = match (lengths.next(), encodings.next()) {
        (None, None) => return Ok(Framing::None),
        (Some(_), Some(_)) => return Err(HttpFault::LengthAndEncoding),
        (Some(length), None) => {
            if lengths.next().is_some() {
                return Err(HttpFault::SeveralContentLengths);
            }
            Framing::Length(content_length(length)?)
        }
        (None, Some(encoding)) => {
            if version == Version::Http10 {
                return Err(HttpFault::EncodingInHttp10);
            }
            if encodings.next().is_some() || !encoding.eq_ignore_ascii_case(b"chunked") {
                return Err(HttpFault::TransferEncoding);
            }
            Framing::Chunked
        }
    };
    if method == "CONNECT" {
        return Err(HttpFault::ConnectBody);
    }
    Ok(framing)
}

/// Digits only: no sign, no list, and no leading zeros, which somebody may read as octal.
fn content_length(value: &[u8]) -> Result<u64, HttpFault> {
    let sound = match value {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let number = std::str::from_utf8(value).ok().filter(|_| sound);
    number
        .and_then(|digits| digits.parse().ok())
        .ok_or(HttpFault::ContentLength)
}

/// The `count`th line behind the last chunk.
pub(super) fn trailer(line: &[u8], count: usize) -> Result<(), HttpFault> {
    if count > MAX_HEADERS {
        return Err(HttpFault::TooManyHeaders);
    }
    let header = header(line)?;
    let forbidden = [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "expect",
        "trailer",
    ];
    if forbidden
        .iter()
        .any(|name| header.name.eq_ignore_ascii_case(name))
    {
        return Err(HttpFault::Trailer);
    }
    Ok(())
}

/// May stand in a header's value: everything but control characters, of which a tab is none here.
pub(super) fn is_text(byte: u8) -> bool {
    byte == b'\t' || !byte.is_ascii_control()
}

/// Of bytes that are known to be ASCII, or about to be checked.
fn text(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

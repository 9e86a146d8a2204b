//! One canonical host. What was checked is what is dialled, so a destination is read once, here.
//!
//! Anything that two programs read as two different hosts is refused instead of being given a
//! reading of ours: `0177.0.0.1` is 127.0.0.1 to one resolver and 177.0.0.1 to another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longest name, in characters of its text form without a closing dot.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;
/// Longer text is not even looked at: mapping to ASCII costs time.
const MAX_TEXT: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("a host is missing")]
    Empty,
    #[error("a host of {0} bytes is too long: a name has at most 253")]
    TooLong(usize),
    #[error("`{0}` is not a host: `{1}` can't stand in one")]
    Character(String, String),
    #[error("`{0}` is not a host: a label is empty, too long, or begins or ends with `-`")]
    Label(String),
    #[error("`{0}` is not a host name that can be mapped to ASCII")]
    Idna(String),
    #[error("`{0}` is an odd spelling of an IPv4 address: write four decimal numbers")]
    OddAddress(String),
    #[error("`{0}` is not an IPv6 address")]
    Ipv6(String),
    #[error("`{0}` has a zone id, which means something only on one machine")]
    Zone(String),
    #[error("`{0}` is an address, where a name is expected")]
    AddressNotName(String),
}

/// A domain name: ASCII, lower case, without a closing dot, never readable as an address.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct DomainName(String);

impl DomainName {
    pub fn parse(text: &str) -> Result<Self, HostError> {
        match Host::parse(text)? {
            Host::Name(name) => Ok(name),
            Host::Addr(_) => Err(HostError::AddressNotName(shown(text))),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for DomainName {
    type Error = HostError;
    fn try_from(text: String) -> Result<Self, HostError> {
        DomainName::parse(&text)
    }
}

impl From<DomainName> for String {
    fn from(name: DomainName) -> String {
        name.0
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A destination: a name or an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    Name(DomainName),
    /// Never an IPv4-mapped IPv6 address where this was made by parsing or by `From`.
    Addr(IpAddr),
}

impl Host {
    /// Reads the host of an authority: no port, no user information. IPv6 with or without brackets.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if text.len() > MAX_TEXT {
            return Err(HostError::TooLong(text.len()));
        }
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').unwrap_or(text);
            return ipv6(inner, text);
        }
        if text.matches(':').count() > 1 {
            return ipv6(text, text);
        }
        name_or_ipv4(text)
    }

    pub fn name(&self) -> Option<&DomainName> {
        match self {
            Host::Name(name) => Some(name),
            Host::Addr(_) => None,
        }
    }

    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Host::Name(_) => None,
            Host::Addr(address) => Some(*address),
        }
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Host::Addr(address.to_canonical())
    }
}

impl From<DomainName> for Host {
    fn from(name: DomainName) -> Self {
        Host::Name(name)
    }
}

impl fmt::Display for Host {
    /// Addresses stand without brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => name.fmt(f),
            Host::Addr(address) => address.fmt(f),
        }
    }
}

fn ipv6(inner: &str, whole: &str) -> Result<Host, HostError> {
    if inner.contains('%') {
        return Err(HostError::Zone(shown(whole)));
    }
    let address: Ipv6Addr = inner.parse().map_err(|_| HostError::Ipv6(shown(whole)))?;
    Ok(Host::from(IpAddr::V6(address)))
}

fn name_or_ipv4(text: &str) -> Result<Host, HostError> {
    // Before mapping: it removes some invisible characters, and what is there twice for the eye and
    // once for the resolver is not to be guessed at.
    if let Some(c) = text.chars().find(|c| refused(*c)) {
        return Err(HostError::Character(
            shown(text),
            c.escape_debug().to_string(),
        ));
    }
    let mapped = idna::uts46::Uts46::new()
        .to_ascii(
            text.as_bytes(),
            idna::AsciiDenyList::EMPTY,
            idna::uts46::Hyphens::Allow,
            idna::uts46::DnsLength::Ignore,
        )
        .map_err(|_| HostError::Idna(shown(text)))?;
    let name = mapped.strip_suffix('.').unwrap_or(&mapped);
    // After mapping: full-width forms become ASCII characters by it.
    if let Some(c) = name
        .chars()
        .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
    {
        return Err(HostError::Character(
            shown(text),
            c.escape_debug().to_string(),
        ));
    }
    if name.is_empty() {
        return Err(HostError::Empty);
    }
    if ends_in_a_number(name) {
        // The standard library reads four plain decimal numbers and nothing else. Of the text as it
        // was given: circled and full-width digits are odd too.
        return match text.parse::<Ipv4Addr>() {
            Ok(address) => Ok(Host::Addr(address.into())),
            Err(_) => Err(HostError::OddAddress(shown(text))),
        };
    }
    if name.len() > MAX_NAME {
        return Err(HostError::TooLong(name.len()));
    }
    let label =
        |l: &str| (1..=MAX_LABEL).contains(&l.len()) && !l.starts_with('-') && !l.ends_with('-');
    if !name.split('.').all(label) {
        return Err(HostError::Label(shown(text)));
    }
    Ok(Host::Name(DomainName(name.to_ascii_lowercase())))
}

/// Whether some client would read the text as an IPv4 address: its last label is digits, or `0x`
/// with or without hexadecimal digits.
fn ends_in_a_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    let hex = last
        .strip_prefix("0x")
        .or_else(|| last.strip_prefix("0X"))
        .is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    hex || (!last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()))
}

/// Characters that end, split or hide a host for somebody.
fn refused(c: char) -> bool {
    c.is_control()
        || c.is_whitespace()
        || matches!(
            c,
            '@' | '/' | ':' | '%' | '\\' | '?' | '#' | '[' | ']' | '<' | '>' | '^' | '|' | '"'
        )
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// For messages: bounded, and without characters that could drive a terminal.
fn shown(text: &str) -> String {
    text.chars()
        .take(260)
        .flat_map(|c| {
            if c.is_control() || refused(c) && !c.is_ascii_graphic() {
                c.escape_default().collect::<Vec<_>>()
            } else {
                vec![c]
            }
        })
        .collect()
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;

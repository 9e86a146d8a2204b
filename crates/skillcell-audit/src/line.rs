//! The layout of a line: `{"seq":N,` body `,"hash":"…"}`. The hash covers everything before it and
//! the hash of the line before, so checking a line takes no parsing.

use sha2::{Digest as _, Sha256};

pub(crate) type Hash = [u8; 32];

/// What the first line of a log follows.
pub(crate) const GENESIS: Hash = [0; 32];
const PREFIX: &[u8] = b"{\"seq\":";
const HASH: &[u8] = b",\"hash\":\"";
/// `,"hash":"`, 64 digits, `"}`.
const TAIL: usize = HASH.len() + 64 + 2;
/// No line is longer: every part of an event is bounded.
pub(crate) const MAX_LINE: usize = 4 << 20;

/// Adds a whole line to `out`; gives its hash. `body` is the inside of an object.
pub(crate) fn write(out: &mut Vec<u8>, seq: u64, body: &[u8], previous: &Hash) -> Hash {
    let start = out.len();
    out.extend_from_slice(PREFIX);
    out.extend_from_slice(seq.to_string().as_bytes());
    out.push(b',');
    out.extend_from_slice(body);
    let hash = digest(previous, &out[start..]);
    out.extend_from_slice(HASH);
    out.extend_from_slice(hex(&hash).as_bytes());
    out.extend_from_slice(b"\"}\n");
    hash
}

/// Why a line is not the next one of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    NotALine,
    Seq { found: u64 },
    Hash,
}

/// Checks a line, without its newline, against the one before; gives its hash.
pub(crate) fn check(line: &[u8], seq: u64, previous: &Hash) -> Result<Hash, Fault> {
    let (covered, hash) = parts(line).ok_or(Fault::NotALine)?;
    let found = number(covered).ok_or(Fault::NotALine)?;
    if found != seq {
        return Err(Fault::Seq { found });
    }
    if digest(previous, covered) == hash {
        Ok(hash)
    } else {
        Err(Fault::Hash)
    }
}

/// Number and hash that a line claims.
pub(crate) fn claims(line: &[u8]) -> Option<(u64, Hash)> {
    let (covered, hash) = parts(line)?;
    Some((number(covered)?, hash))
}

fn parts(line: &[u8]) -> Option<(&[u8], Hash)> {
    let (covered, tail) = line.split_at_checked(line.len().checked_sub(TAIL)?)?;
    let digits = tail.strip_prefix(HASH)?.strip_suffix(b"\"}")?;
    Some((covered, unhex(digits)?))
}

fn number(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(PREFIX)?;
    let end = rest.iter().position(|b| *b == b',')?;
    let digits = std::str::from_utf8(&rest[..end]).ok()?;
    let canonical = !digits.starts_with(['0', '+']);
    digits.parse().ok().filter(|_| canonical)
}

fn digest(previous: &Hash, covered: &[u8]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update(previous);
    hasher.update(covered);
    hasher.finalize().into()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS[usize::from(nibble)] as char;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}

/// 64 lower-case digits.
pub(crate) fn unhex(digits: &[u8]) -> Option<Hash> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_only_in_its_place() {
        let mut out = Vec::new();
        let first = write(&mut out, 1, b"\"x\":1", &GENESIS);
        let line = &out[..out.len() - 1];
        assert_eq!(check(line, 1, &GENESIS), Ok(first));
        assert_eq!(check(line, 1, &first), Err(Fault::Hash));
        assert_eq!(check(line, 2, &GENESIS), Err(Fault::Seq { found: 1 }));
        assert_eq!(check(&line[1..], 1, &GENESIS), Err(Fault::NotALine));
        assert!(serde_json::from_slice::<serde_json::Value>(line).is_ok());
        assert_eq!(claims(line), Some((1, first)));
    }

    #[test]
    fn hex_and_back() {
        let bytes: Hash = std::array::from_fn(|i| i as u8 * 7);
        assert_eq!(unhex(hex(&bytes).as_bytes()), Some(bytes));
        assert_eq!(unhex(&[b'A'; 64]), None);
    }
}

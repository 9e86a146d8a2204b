use std::collections::BTreeSet;

use super::MIN_FOR_SPELLINGS;

pub(super) const STANDARD: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
pub(super) const URL: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// How a secret may look on the wire.
pub(super) fn of(secret: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut all = BTreeSet::new();
    if secret.is_empty() {
        return all;
    }
    all.insert(secret.to_vec());
    if secret.len() < MIN_FOR_SPELLINGS {
        return all;
    }
    // RFC 3986; JavaScript's encodeURIComponent; everything.
    for keep in [&b"-._~"[..], b"-._~!'()*"] {
        for digits in [hex_upper, hex_lower] {
            let kept = |byte: u8| byte.is_ascii_alphanumeric() || keep.contains(&byte);
            all.insert(percent(secret, kept, digits, false));
            all.insert(percent(secret, kept, digits, true));
            all.insert(percent(secret, |_| false, digits, false));
        }
    }
    for alphabet in [STANDARD, URL] {
        for offset in 0..3 {
            all.insert(in_groups(secret, offset, 6, alphabet));
        }
    }
    // Names of hosts and of headers keep no upper and lower case, and base32 was made for them.
    all.insert(secret.to_ascii_lowercase());
    all.insert(secret.to_ascii_uppercase());
    for offset in 0..5 {
        let upper = in_groups(secret, offset, 5, BASE32);
        all.insert(upper.to_ascii_lowercase());
        all.insert(upper);
    }
    all.insert(secret.iter().flat_map(|byte| hex_upper(*byte)).collect());
    all.insert(secret.iter().flat_map(|byte| hex_lower(*byte)).collect());
    for slash in [false, true] {
        all.insert(json(secret, slash));
        if let Ok(text) = std::str::from_utf8(secret) {
            all.insert(json_ascii(text, slash, hex_lower));
            all.insert(json_ascii(text, slash, hex_upper));
        }
    }
    all
}

fn hex_upper(byte: u8) -> [u8; 2] {
    hex_lower(byte).map(|digit| digit.to_ascii_uppercase())
}

fn hex_lower(byte: u8) -> [u8; 2] {
    let digit = |value: u8| {
        if value < 10 {
            b'0' + value
        } else {
            b'a' + value - 10
        }
    };
    [digit(byte >> 4), digit(byte & 15)]
}

fn percent(
    secret: &[u8],
    keep: impl Fn(u8) -> bool,
    hex: fn(u8) -> [u8; 2],
    plus_for_space: bool,
) -> Vec<u8> {
    let mut out = Vec::new();
    for byte in secret {
        match byte {
            b' ' if plus_for_space => out.push(b'+'),
            _ if keep(*byte) => out.push(*byte),
            _ => {
                out.push(b'%');
                out.extend(hex(*byte));
            }
        }
    }
    out
}

/// In an alphabet of 32 or 64, the characters that depend on the secret alone when `offset` bytes
/// precede it in its group. Those at its ends mix in bits of the neighbours and are left out.
fn in_groups(secret: &[u8], offset: usize, bits: usize, alphabet: &[u8]) -> Vec<u8> {
    let bit = |index: usize| {
        let byte = secret.get(index / 8).copied().unwrap_or(0);
        (byte >> (7 - index % 8)) & 1
    };
    let first = (offset * 8).div_ceil(bits);
    let end = (offset + secret.len()) * 8 / bits;
    (first..end)
        .filter_map(|character| {
            let start = character * bits - offset * 8;
            let value = (start..start + bits).fold(0, |value, index| (value << 1) | bit(index));
            alphabet.get(usize::from(value)).copied()
        })
        .collect()
}

fn json_escape(byte: u8, slash: bool) -> Option<[u8; 2]> {
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'/' if slash => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => return None,
    };
    Some([b'\\', letter])
}

fn json(secret: &[u8], slash: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for byte in secret {
        match json_escape(*byte, slash) {
            Some(escape) => out.extend(escape),
            None if *byte < 0x20 => {
                out.extend(b"\\u00");
                out.extend(hex_lower(*byte));
            }
            None => out.push(*byte),
        }
    }
    out
}

/// As Python writes it: everything outside of ASCII in UTF-16 units.
fn json_ascii(text: &str, slash: bool, hex: fn(u8) -> [u8; 2]) -> Vec<u8> {
    let mut out = Vec::new();
    for unit in text.encode_utf16() {
        let [high, low] = unit.to_be_bytes();
        match json_escape(low, slash) {
            Some(escape) if high == 0 => out.extend(escape),
            None if high == 0 && (0x20..0x7f).contains(&low) => out.push(low),
            _ => {
                out.extend(b"\\u");
                out.extend(hex(high));
                out.extend(hex(low));
            }
        }
    }
    out
}

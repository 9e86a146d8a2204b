//! Python's marshal format, version 2, for plain values: JSON in, JSON out.
//!
//! What comes back is hostile: bytes are bounds-checked, depth and size are limited, and anything
//! that JSON doesn't have (bytes, sets, code objects) is an error that names it.

use serde_json::Value;
use std::fmt::Write;

/// Nesting that a result or params may have.
pub(crate) const MAX_DEPTH: usize = 128;

/// Encodes a JSON value. Integers of any size keep their digits.
pub(crate) fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(b'N'),
        Value::Bool(true) => out.push(b'T'),
        Value::Bool(false) => out.push(b'F'),
        Value::Number(number) => {
            if let Some(n) = number.as_i64() {
                encode_integer(n < 0, n.unsigned_abs(), out);
            } else if let Some(n) = number.as_u64() {
                encode_integer(false, n, out);
            } else {
                out.push(b'g');
                out.extend_from_slice(&number.as_f64().unwrap_or(f64::NAN).to_le_bytes());
            }
        }
        Value::String(text) => encode_text(text, out),
        Value::Array(items) => {
            out.push(b'[');
            encode_len(items.len(), out);
            for item in items {
                encode(item, out);
            }
        }
        Value::Object(entries) => {
            out.push(b'{');
            for (key, value) in entries {
                encode_text(key, out);
                encode(value, out);
            }
            out.push(b'0');
        }
    }
}

fn encode_len(len: usize, out: &mut Vec<u8>) {
    // Params are bounded far below 4 GiB before they get here.
    out.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
}

fn encode_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'u');
    encode_len(text.len(), out);
    out.extend_from_slice(text.as_bytes());
}

fn encode_integer(negative: bool, magnitude: u64, out: &mut Vec<u8>) {
    if let Ok(small) = i32::try_from(magnitude) {
        out.push(b'i');
        out.extend_from_slice(&(if negative { -small } else { small }).to_le_bytes());
        return;
    }
    // Digits of 15 bits, least significant first; the sign is the sign of the count.
    out.push(b'l');
    let mut digits = Vec::new();
    let mut rest = magnitude;
    while rest > 0 {
        digits.push((rest & 0x7fff) as u16);
        rest >>= 15;
    }
    let count = digits.len() as i32;
    out.extend_from_slice(&(if negative { -count } else { count }).to_le_bytes());
    for digit in digits {
        out.extend_from_slice(&digit.to_le_bytes());
    }
}

/// Why a value is not a JSON value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotJson {
    #[error("it holds {0}, which JSON doesn't have")]
    Type(&'static str),
    #[error("it holds a number that is not finite (NaN or infinity), which JSON doesn't have")]
    NotFinite,
    #[error("it has an object key of type {0}; keys must be strings")]
    Key(&'static str),
    #[error("it is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    #[error("it holds text that is not valid Unicode")]
    Unicode,
    #[error("the frame is broken")]
    Broken,
}

/// Decodes to JSON text.
pub(crate) fn to_json(bytes: &[u8]) -> Result<String, NotJson> {
    let mut reader = Reader {
        bytes,
        at: 0,
        out: String::with_capacity(bytes.len() * 2),
    };
    reader.value(0)?;
    if reader.at == bytes.len() {
        Ok(reader.out)
    } else {
        Err(NotJson::Broken)
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    out: String,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], NotJson> {
        let end = self.at.checked_add(len).ok_or(NotJson::Broken)?;
        let slice = self.bytes.get(self.at..end).ok_or(NotJson::Broken)?;
        self.at = end;
        Ok(slice)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], NotJson> {
        self.take(N)?.try_into().map_err(|_| NotJson::Broken)
    }

    fn length(&mut self) -> Result<usize, NotJson> {
        let length = i32::from_le_bytes(self.array()?);
        usize::try_from(length).map_err(|_| NotJson::Broken)
    }

    fn value(&mut self, depth: usize) -> Result<(), NotJson> {
        if depth > MAX_DEPTH {
            return Err(NotJson::TooDeep);
        }
        let [kind] = self.array()?;
        match kind {
            b'N' => self.out.push_str("null"),
            b'T' => self.out.push_str("true"),
            b'F' => self.out.push_str("false"),
            b'i' | b'l' => {
                let text = self.integer(kind)?;
                self.out.push_str(&text);
            }
            b'g' => {
                let number = f64::from_le_bytes(self.array()?);
                let number = serde_json::Number::from_f64(number).ok_or(NotJson::NotFinite)?;
                // Writing to a String can't fail.
                write!(self.out, "{number}").unwrap_or_default();
            }
            b'u' | b't' | b'a' | b'A' => {
                let text = self.text()?;
                self.quote(text);
            }
            b'[' | b'(' => {
                let count = self.length()?;
                self.out.push('[');
                for index in 0..count {
                    if index > 0 {
                        self.out.push(',');
                    }
                    self.value(depth + 1)?;
                }
                self.out.push(']');
            }
            b'{' => self.object(depth)?,
            b's' => return Err(NotJson::Type("bytes")),
            b'<' | b'>' => return Err(NotJson::Type("a set")),
            b'y' | b'x' => return Err(NotJson::Type("a complex number")),
            b'c' => return Err(NotJson::Type("a code object")),
            b'.' => return Err(NotJson::Type("an ellipsis")),
            b'S' => return Err(NotJson::Type("StopIteration")),
            _ => return Err(NotJson::Broken),
        }
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<(), NotJson> {
        self.out.push('{');
        let mut first = true;
        while self.bytes.get(self.at) != Some(&b'0') {
            if !first {
                self.out.push(',');
            }
            first = false;
            let [kind] = self.array()?;
            // As Python's json does: plain keys become strings.
            match kind {
                b'u' | b't' | b'a' | b'A' => {
                    let text = self.text()?;
                    self.quote(text);
                }
                b'i' | b'l' => {
                    let number = self.integer(kind)?;
                    self.quote(&number);
                }
                b'T' => self.quote("true"),
                b'F' => self.quote("false"),
                b'N' => self.quote("null"),
                b'g' => {
                    let number = f64::from_le_bytes(self.array()?);
                    let number = serde_json::Number::from_f64(number).ok_or(NotJson::NotFinite)?;
                    self.quote(&number.to_string());
                }
                b's' => return Err(NotJson::Key("bytes")),
                b'(' => return Err(NotJson::Key("tuple")),
                _ => return Err(NotJson::Key("another kind")),
            }
            self.out.push(':');
            self.value(depth + 1)?;
        }
        self.at += 1;
        self.out.push('}');
        Ok(())
    }

    fn text(&mut self) -> Result<&'a str, NotJson> {
        let length = self.length()?;
        std::str::from_utf8(self.take(length)?).map_err(|_| NotJson::Unicode)
    }

    fn quote(&mut self, text: &str) {
        // A string always serialises.
        self.out
            .push_str(&serde_json::to_string(text).unwrap_or_default());
    }

    fn integer(&mut self, kind: u8) -> Result<String, NotJson> {
        if kind == b'i' {
            return Ok(i32::from_le_bytes(self.array()?).to_string());
        }
        let count = i32::from_le_bytes(self.array()?);
        let digits = count.unsigned_abs() as usize;
        // 15 bits each: about 18,000 decimal digits, far above any real number.
        if digits > 4096 {
            return Err(NotJson::Type("an integer of more than 18,000 digits"));
        }
        let mut limbs = Vec::with_capacity(digits);
        for _ in 0..digits {
            let digit = u16::from_le_bytes(self.array()?);
            if digit > 0x7fff {
                return Err(NotJson::Broken);
            }
            limbs.push(u32::from(digit));
        }
        let text = decimal(limbs);
        Ok(if count < 0 && text != "0" {
            format!("-{text}")
        } else {
            text
        })
    }
}

/// Decimal digits of a number in base 2^15, least significant limb first.
fn decimal(mut limbs: Vec<u32>) -> String {
    let mut groups = Vec::new();
    while limbs.iter().any(|l| *l != 0) {
        let mut remainder = 0u64;
        for limb in limbs.iter_mut().rev() {
            let current = (remainder << 15) | u64::from(*limb);
            *limb = (current / 10_000) as u32;
            remainder = current % 10_000;
        }
        groups.push(remainder);
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
    }
    let Some(top) = groups.pop() else {
        return "0".into();
    };
    let mut text = top.to_string();
    for group in groups.iter().rev() {
        write!(text, "{group:04}").unwrap_or_default();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn round(value: &Value) -> Value {
        let mut bytes = Vec::new();
        encode(value, &mut bytes);
        serde_json::from_str(&to_json(&bytes).expect("decodes")).expect("is JSON")
    }

    #[test]
    fn json_values_survive_the_round_trip() {
        for value in [
            json!(null),
            json!({"a": [1, -2, 2.5, "é\n\"", true, {}], "b": {"c": null}}),
            json!([i64::MIN, i64::MAX, u64::MAX, 0, -1, i32::MIN, 1e300]),
        ] {
            assert_eq!(round(&value), value);
        }
    }

    #[test]
    fn integers_above_64_bits_keep_their_digits() {
        // 10**30, as Python writes it.
        let bytes = [
            b'l', 7, 0, 0, 0, 0, 0, 0, 0, 0x74, 0x28, 0x46, 0x5f, 0x49, 0x17, 0xd0, 0x3b, 0x0c, 0,
        ];
        let n: u128 = [0u128, 0, 0x2874, 0x5f46, 0x1749, 0x3bd0, 0x000c]
            .iter()
            .rev()
            .fold(0, |a, d| (a << 15) | d);
        assert_eq!(to_json(&bytes), Ok(n.to_string()));
    }

    #[test]
    fn what_json_does_not_have_is_named() {
        assert_eq!(to_json(b"s\x01\0\0\0a"), Err(NotJson::Type("bytes")));
        assert_eq!(
            to_json(&[&b"g"[..], &f64::NAN.to_le_bytes()].concat()),
            Err(NotJson::NotFinite)
        );
        assert_eq!(to_json(&[b'('; 3]), Err(NotJson::Broken));
    }

    #[test]
    fn deep_nesting_is_an_error_not_a_crash() {
        let mut bytes = Vec::new();
        for _ in 0..100_000 {
            bytes.extend_from_slice(b"[\x01\0\0\0");
        }
        bytes.push(b'N');
        assert_eq!(to_json(&bytes), Err(NotJson::TooDeep));
    }

    #[test]
    fn every_truncation_is_an_error() {
        let mut bytes = Vec::new();
        encode(
            &json!({"a": [1, 99999999999i64, 2.5, "text"], "b": null}),
            &mut bytes,
        );
        for end in 0..bytes.len() {
            assert!(to_json(&bytes[..end]).is_err(), "{end}");
        }
    }
}

//! What a scalar stands for, by the core schema of YAML 1.2.

/// The text of a scalar, and whether it was written plainly (without quotes): only then can it be
/// anything but text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar {
    pub text: String,
    pub plain: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Resolved<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(&'a str),
}

impl Scalar {
    pub fn resolve(&self) -> Resolved<'_> {
        let text = self.text.as_str();
        if !self.plain {
            return Resolved::Text(text);
        }
        match text {
            "" | "~" | "null" | "Null" | "NULL" => return Resolved::Null,
            "true" | "True" | "TRUE" => return Resolved::Bool(true),
            "false" | "False" | "FALSE" => return Resolved::Bool(false),
            ".nan" | ".NaN" | ".NAN" => return Resolved::Float(f64::NAN),
            _ => {}
        }
        integer(text)
            .or_else(|| float(text))
            .unwrap_or(Resolved::Text(text))
    }
}

fn integer(text: &str) -> Option<Resolved<'_>> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            // `from_str_radix` takes a sign, which YAML doesn't allow here.
            let valid = digits.bytes().all(|b| b.is_ascii_alphanumeric());
            return valid.then(|| {
                u64::from_str_radix(digits, radix)
                    .ok()
                    .map(Resolved::Unsigned)
            })?;
        }
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // A whole number beyond 64 bits falls through to a float.
    match text.parse::<u64>() {
        Ok(n) => Some(Resolved::Unsigned(n)),
        Err(_) => text.parse::<i64>().ok().map(Resolved::Signed),
    }
}

fn float(text: &str) -> Option<Resolved<'_>> {
    let (negative, rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if matches!(rest, ".inf" | ".Inf" | ".INF") {
        let value = if negative {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        };
        return Some(Resolved::Float(value));
    }
    // Rust's own grammar also takes `inf`, `nan` and `infinity`, which are text in YAML.
    let numeric = rest.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && rest.bytes().any(|b| b.is_ascii_digit())
        && rest
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    if !numeric {
        return None;
    }
    text.parse().ok().map(Resolved::Float)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Scalar {
        Scalar {
            text: text.into(),
            plain: true,
        }
    }

    #[test]
    fn words_that_older_yaml_read_as_booleans_are_text() {
        for word in [
            "off", "on", "yes", "no", "y", "n", "Off", "inf", "nan", "infinity", "1_000", "1:30",
        ] {
            assert_eq!(plain(word).resolve(), Resolved::Text(word), "{word}");
        }
    }

    #[test]
    fn numbers_follow_the_core_schema() {
        assert_eq!(plain("12").resolve(), Resolved::Unsigned(12));
        assert_eq!(plain("-12").resolve(), Resolved::Signed(-12));
        assert_eq!(plain("+12").resolve(), Resolved::Unsigned(12));
        assert_eq!(plain("0x1F").resolve(), Resolved::Unsigned(31));
        assert_eq!(plain("0o17").resolve(), Resolved::Unsigned(15));
        assert_eq!(plain("017").resolve(), Resolved::Unsigned(17));
        assert_eq!(plain("1.5e3").resolve(), Resolved::Float(1500.0));
        assert_eq!(plain(".5").resolve(), Resolved::Float(0.5));
        assert_eq!(
            plain("99999999999999999999").resolve(),
            Resolved::Float(1e20)
        );
        assert_eq!(plain("-.inf").resolve(), Resolved::Float(f64::NEG_INFINITY));
        for text in [
            "0x", "0x+1", "-0x1", "0o8", "1.2.3", "-", ".", "e5", "1e", "--1", "0.1.0",
        ] {
            assert_eq!(plain(text).resolve(), Resolved::Text(text), "{text}");
        }
    }

    #[test]
    fn quoted_scalars_are_always_text() {
        let quoted = Scalar {
            text: "true".into(),
            plain: false,
        };
        assert_eq!(quoted.resolve(), Resolved::Text("true"));
    }
}

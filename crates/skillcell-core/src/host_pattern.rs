use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostPatternError {
    #[error("`{0}` is not a domain: use letters, digits, `-` and `.`, such as api.example.com")]
    Domain(String),
    #[error(
        "`{0}`: a wildcard stands only as the first label and above two more, such as *.example.com"
    )]
    Wildcard(String),
    #[error("`{0}` is an address, not a domain: use `cidrs` for addresses")]
    Address(String),
}

/// An exact domain, or every name below one (`*.example.com` doesn't match `example.com`).
/// Stored in lower case, without a trailing dot, ASCII only.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern(String);

impl HostPattern {
    pub fn parse(text: &str) -> Result<Self, HostPatternError> {
        let shown = || text.chars().take(260).collect::<String>();
        let lower = text.to_ascii_lowercase();
        let name = lower.strip_suffix('.').unwrap_or(&lower);
        let (wildcard, rest) = match name.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, name),
        };
        if rest.contains('*') || (wildcard && !rest.contains('.')) || name == "*" {
            return Err(HostPatternError::Wildcard(shown()));
        }
        let label = |l: &str| {
            (1..=63).contains(&l.len())
                && !l.starts_with('-')
                && !l.ends_with('-')
                && l.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        if rest.len() > 253 || !rest.split('.').all(label) {
            return Err(HostPatternError::Domain(shown()));
        }
        // A last label of digits (or 0x…) would be read as an IPv4 address by some client.
        let last = rest.rsplit('.').next().unwrap_or_default();
        if last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x") {
            return Err(HostPatternError::Address(shown()));
        }
        Ok(HostPattern(if wildcard {
            format!("*.{rest}")
        } else {
            rest.to_owned()
        }))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether everything that `other` matches is matched by `self` too.
    pub fn covers(&self, other: &HostPattern) -> bool {
        match self.0.strip_prefix("*.") {
            None => self == other,
            Some(base) => {
                let other_base = other.0.strip_prefix("*.");
                if other_base == Some(base) {
                    return true;
                }
                other_base
                    .unwrap_or(&other.0)
                    .strip_suffix(base)
                    .is_some_and(|head| head.len() > 1 && head.ends_with('.'))
            }
        }
    }
}

impl TryFrom<String> for HostPattern {
    type Error = HostPatternError;
    fn try_from(s: String) -> Result<Self, HostPatternError> {
        HostPattern::parse(&s)
    }
}

impl From<HostPattern> for String {
    fn from(p: HostPattern) -> String {
        p.0
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(s: &str) -> HostPattern {
        HostPattern::parse(s).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn patterns_are_canonical_or_rejected() {
        assert_eq!(p("API.Example.COM.").as_str(), "api.example.com");
        for bad in [
            "",
            "*",
            "*.com",
            "a.*.com",
            "a..b",
            "-a.com",
            "1.2.3.4",
            "0x7f.1",
            "2130706433",
            "a b.com",
            "a\0.com",
            "é.com",
            "a@b.com",
            "http://a.com",
        ] {
            assert!(HostPattern::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_wildcard_covers_names_below_it_only() {
        assert!(p("*.example.com").covers(&p("a.example.com")));
        assert!(p("*.example.com").covers(&p("a.b.example.com")));
        assert!(p("*.example.com").covers(&p("*.b.example.com")));
        assert!(!p("*.example.com").covers(&p("example.com")));
        assert!(!p("*.example.com").covers(&p("badexample.com")));
        assert!(!p("a.example.com").covers(&p("*.example.com")));
    }
}

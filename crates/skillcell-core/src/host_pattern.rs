use crate::host::{DomainName, Host, HostError};
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
    #[error(
        "`{0}`: `{1}` is a public suffix, below which anybody can have a name: name the domains"
    )]
    PublicSuffix(String, String),
    #[error("`{0}` is an address, not a domain: use `cidrs` for addresses")]
    Address(String),
}

/// An exact domain, or every name below one (`*.example.com` doesn't match `example.com`).
/// Stored in lower case, without a trailing dot, mapped to ASCII.
///
/// A wildcard never stands on a public suffix, and never matches one: what lies directly below
/// `co.uk` or `github.io` belongs to anybody who asks.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern(String);

impl HostPattern {
    pub fn parse(text: &str) -> Result<Self, HostPatternError> {
        let (wildcard, name) = split(text)?;
        if wildcard {
            if !name.as_str().contains('.') {
                return Err(HostPatternError::Wildcard(shown(text)));
            }
            // `*.ck` in the list of suffixes makes every name directly below `ck` a suffix, so a
            // wildcard on `ck` would be one on suffixes only.
            let below = format!("x.{name}");
            if is_public_suffix(name.as_str()) || is_public_suffix(&below) {
                return Err(HostPatternError::PublicSuffix(
                    shown(text),
                    name.to_string(),
                ));
            }
        }
        Ok(HostPattern(joined(wildcard, &name)))
    }

    /// The name below which everything matches, for a wildcard.
    pub fn wildcard_base(&self) -> Option<&str> {
        self.0.strip_prefix("*.")
    }

    pub fn matches(&self, name: &DomainName) -> bool {
        match self.wildcard_base() {
            None => self.0 == name.as_str(),
            Some(base) => is_below(name.as_str(), base) && !is_public_suffix(name.as_str()),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether everything that `other` matches is matched by `self` too.
    pub fn covers(&self, other: &HostPattern) -> bool {
        match (self.wildcard_base(), other.wildcard_base()) {
            (None, _) => self == other,
            (Some(base), Some(other)) => base == other || is_below(other, base),
            (Some(base), None) => is_below(&other.0, base) && !is_public_suffix(&other.0),
        }
    }
}

/// A domain, or every name below one, that is denied. Unlike what is allowed this may stand on a
/// public suffix and matches those too: to deny `*.github.io` is to deny all of it.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct DenyPattern(String);

impl DenyPattern {
    pub fn parse(text: &str) -> Result<Self, HostPatternError> {
        let (wildcard, name) = split(text)?;
        Ok(DenyPattern(joined(wildcard, &name)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name below which everything matches, for a wildcard.
    pub fn wildcard_base(&self) -> Option<&str> {
        self.0.strip_prefix("*.")
    }

    pub fn matches(&self, name: &DomainName) -> bool {
        match self.wildcard_base() {
            None => self.0 == name.as_str(),
            Some(base) => is_below(name.as_str(), base),
        }
    }
}

/// Whether anybody can register names directly below this one, as under `com` or `github.io`.
/// A name that the list doesn't know is none.
pub fn is_public_suffix(name: &str) -> bool {
    psl::suffix(name.as_bytes())
        .is_some_and(|suffix| suffix.is_known() && suffix.as_bytes() == name.as_bytes())
}

fn is_below(name: &str, base: &str) -> bool {
    name.strip_suffix(base)
        .is_some_and(|head| head.len() > 1 && head.ends_with('.'))
}

fn split(text: &str) -> Result<(bool, DomainName), HostPatternError> {
    let (wildcard, rest) = match text.strip_prefix("*.") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if rest.contains('*') {
        return Err(HostPatternError::Wildcard(shown(text)));
    }
    match Host::parse(rest) {
        Ok(Host::Name(name)) => Ok((wildcard, name)),
        Ok(Host::Addr(_)) | Err(HostError::OddAddress(_) | HostError::Zone(_)) => {
            Err(HostPatternError::Address(shown(text)))
        }
        Err(_) => Err(HostPatternError::Domain(shown(text))),
    }
}

fn joined(wildcard: bool, name: &DomainName) -> String {
    if wildcard {
        format!("*.{name}")
    } else {
        name.to_string()
    }
}

fn shown(text: &str) -> String {
    text.chars().take(260).collect()
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

impl TryFrom<String> for DenyPattern {
    type Error = HostPatternError;
    fn try_from(s: String) -> Result<Self, HostPatternError> {
        DenyPattern::parse(&s)
    }
}

impl From<DenyPattern> for String {
    fn from(p: DenyPattern) -> String {
        p.0
    }
}

impl fmt::Display for DenyPattern {
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

    #[test]
    fn a_wildcard_never_stands_on_or_matches_a_public_suffix() {
        for suffix in [
            "*.co.uk",
            "*.github.io",
            "*.CO.UK.",
            "*.kawasaki.jp",
            "*.公司.cn",
        ] {
            assert!(
                matches!(
                    HostPattern::parse(suffix),
                    Err(HostPatternError::PublicSuffix(..))
                ),
                "{suffix}: {:?}",
                HostPattern::parse(suffix)
            );
            assert!(DenyPattern::parse(suffix).is_ok());
        }
        let name = |s: &str| DomainName::parse(s).unwrap_or_else(|e| panic!("{e}"));
        assert!(p("*.amazonaws.com").matches(&name("sts.amazonaws.com")));
        assert!(!p("*.amazonaws.com").matches(&name("s3.amazonaws.com")));
        assert!(!p("*.amazonaws.com").covers(&p("s3.amazonaws.com")));
        assert!(p("s3.amazonaws.com").matches(&name("s3.amazonaws.com")));
        let deny = DenyPattern::parse("*.amazonaws.com").unwrap_or_else(|e| panic!("{e}"));
        assert!(deny.matches(&name("s3.amazonaws.com")));
        assert!(p("*.corp.internal").matches(&name("a.corp.internal")));
    }

    #[test]
    fn international_patterns_are_mapped_to_ascii() {
        assert_eq!(p("*.bücher.example").as_str(), "*.xn--bcher-kva.example");
        assert_eq!(p("é.com").as_str(), "xn--9ca.com");
    }
}

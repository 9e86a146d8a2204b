//! One spelling of an HTTP path, so that a rule about `/public/*` is not passed by
//! `/public/%2e%2e/admin`.
//!
//! What servers disagree about is refused: an encoded slash, a backslash, an empty segment, a step
//! above the root, a dot segment with parameters, and what becomes one of these when it is decoded
//! twice. The rest is brought into one form, and that form is what should be sent on.

use std::fmt;

const MAX_PATH: usize = 32 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("a path begins with `/`")]
    NotAbsolute,
    #[error("the path is longer than 32768 bytes")]
    TooLong,
    #[error("the path has a character that must be encoded")]
    Character,
    #[error("the path has a `%` that isn't followed by two hexadecimal digits")]
    BadEscape,
    #[error("the path has an encoded slash, backslash or control character")]
    EncodedSeparator,
    #[error("the path is encoded twice")]
    DoubleEncoding,
    #[error("the path has an empty segment (`//`)")]
    EmptySegment,
    #[error("the path steps above its root")]
    AboveRoot,
    #[error("the path has a dot segment with parameters")]
    DotParameters,
}

/// A path in normal form: unreserved characters plain, escapes in upper case, no dot segments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NormalPath(String);

impl NormalPath {
    /// Reads the path of a request target, without its query.
    pub fn parse(raw: &str) -> Result<Self, PathError> {
        let normal = Self::read(raw)?;
        // What is read a second time says the same, or somebody further on would read another path.
        match Self::read(&normal.0) {
            Ok(again) if again == normal => Ok(normal),
            _ => Err(PathError::DoubleEncoding),
        }
    }

    fn read(raw: &str) -> Result<Self, PathError> {
        if raw.len() > MAX_PATH {
            return Err(PathError::TooLong);
        }
        let Some(rest) = raw.strip_prefix('/') else {
            return Err(PathError::NotAbsolute);
        };
        let mut segments: Vec<String> = Vec::new();
        let mut parts = rest.split('/').peekable();
        while let Some(part) = parts.next() {
            let last = parts.peek().is_none();
            let segment = decode(part)?;
            match segment.as_str() {
                "" if last => segments.push(segment),
                "" => return Err(PathError::EmptySegment),
                "." | ".." => {
                    if segment == ".." && segments.pop().is_none() {
                        return Err(PathError::AboveRoot);
                    }
                    // `/a/..` is the folder `/`, and `/a/.` the folder `/a/`.
                    if last {
                        segments.push(String::new());
                    }
                }
                other => {
                    let head = other.split(';').next().unwrap_or_default();
                    let head = head.split("%3B").next().unwrap_or_default();
                    if matches!(head, "." | "..") {
                        return Err(PathError::DotParameters);
                    }
                    segments.push(segment);
                }
            }
        }
        Ok(NormalPath(format!("/{}", segments.join("/"))))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a pattern of a rule matches: a closing `*` is any rest, also none; elsewhere `*` is
    /// one or more characters of one segment.
    pub fn matches(&self, pattern: &str) -> bool {
        match pattern.strip_suffix('*') {
            Some(prefix) if !prefix.contains('*') => self.0.starts_with(prefix),
            None if !pattern.contains('*') => self.0 == pattern,
            Some(prefix) => wild(prefix.as_bytes(), self.0.as_bytes(), Rest::Any),
            None => wild(pattern.as_bytes(), self.0.as_bytes(), Rest::Nothing),
        }
    }
}

impl fmt::Display for NormalPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Nothing,
    Any,
}

/// A row of reachable places in the text, moved along the pattern: the product of both lengths at
/// most, whatever the pattern.
fn wild(pattern: &[u8], text: &[u8], rest: Rest) -> bool {
    let mut at = vec![false; text.len() + 1];
    at[0] = true;
    for p in pattern {
        let mut next = vec![false; text.len() + 1];
        for (i, byte) in text.iter().enumerate() {
            let reached = match p {
                b'*' => (at[i] || next[i]) && *byte != b'/',
                p => at[i] && p == byte,
            };
            next[i + 1] = reached;
        }
        at = next;
    }
    match rest {
        Rest::Any => at.contains(&true),
        Rest::Nothing => at[text.len()],
    }
}

fn decode(part: &str) -> Result<String, PathError> {
    let bytes = part.as_bytes();
    let mut out = String::with_capacity(part.len());
    let mut i = 0;
    while let Some(&byte) = bytes.get(i) {
        match byte {
            b'%' => {
                let value = escape(&bytes[i..]).ok_or(PathError::BadEscape)?;
                i += 3;
                match value {
                    b'/' | b'\\' | 0..0x20 | 0x7f => return Err(PathError::EncodedSeparator),
                    b'%' => {
                        if twice(&bytes[i..]) {
                            return Err(PathError::DoubleEncoding);
                        }
                        out.push_str("%25");
                    }
                    b if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~') => {
                        out.push(char::from(b));
                    }
                    b => out.push_str(&format!("%{b:02X}")),
                }
                continue;
            }
            b'\\' | b'?' | b'#' | b'"' | b'<' | b'>' | b'^' | b'`' | b'{' | b'|' | b'}' => {
                return Err(PathError::Character);
            }
            0..=b' ' | 0x7f.. => return Err(PathError::Character),
            b => out.push(char::from(b)),
        }
        i += 1;
    }
    if is_text(&out) {
        Ok(out)
    } else {
        Err(PathError::Character)
    }
}

/// Whether the escapes of a segment spell UTF-8: an overlong spelling of a dot or slash doesn't.
fn is_text(segment: &str) -> bool {
    let bytes = segment.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while let Some(byte) = bytes.get(i) {
        match escape(&bytes[i..]).filter(|_| *byte == b'%') {
            Some(value) => {
                decoded.push(value);
                i += 3;
            }
            None => {
                decoded.push(*byte);
                i += 1;
            }
        }
    }
    std::str::from_utf8(&decoded).is_ok()
}

/// The byte that `%XX` at the start of the text stands for.
fn escape(text: &[u8]) -> Option<u8> {
    let digit = |b: &u8| char::from(*b).to_digit(16);
    let value = digit(text.get(1)?)? * 16 + digit(text.get(2)?)?;
    u8::try_from(value).ok()
}

/// Whether what follows an encoded `%` is an escape that matters to paths.
fn twice(rest: &[u8]) -> bool {
    let digits: Vec<u8> = std::iter::once(b'%')
        .chain(rest.iter().take(2).copied())
        .collect();
    matches!(
        escape(&digits),
        Some(b'/' | b'\\' | b'.' | b'%' | 0..0x20 | 0x7f)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_could_be_read_twice_is_refused() {
        for raw in [
            "/public/%25%32%65%25%32%65/admin",
            "/public/x%25%32%66..%25%32%66admin",
            "/public/..%3B/admin",
            "/public/..%3bx/admin",
            "/public/%C0%AE%C0%AE/admin",
            "/public/%ff",
        ] {
            assert!(NormalPath::parse(raw).is_err(), "{raw}");
        }
        assert_eq!(normal("/caf%C3%A9/a%3Bb"), "/caf%C3%A9/a%3Bb");
    }

    fn normal(raw: &str) -> String {
        NormalPath::parse(raw)
            .unwrap_or_else(|e| panic!("{raw}: {e}"))
            .to_string()
    }

    #[test]
    fn one_path_has_one_spelling() {
        for (raw, expected) in [
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("/a/", "/a/"),
            ("/a/./b", "/a/b"),
            ("/a/../b", "/b"),
            ("/a/%2e%2e/b", "/b"),
            ("/a/.%2E/b", "/b"),
            ("/a/..", "/"),
            ("/a/.", "/a/"),
            ("/a/b/..", "/a/"),
            ("/%61%7e", "/a~"),
            ("/%c3%a9", "/%C3%A9"),
            ("/a%20b", "/a%20b"),
            ("/a;v=1/b", "/a;v=1/b"),
            ("/100%25", "/100%25"),
            ("/a/...", "/a/..."),
        ] {
            assert_eq!(normal(raw), expected, "{raw}");
        }
    }

    #[test]
    fn what_servers_read_in_two_ways_is_rejected() {
        for raw in [
            "",
            "a",
            "*",
            "/a//b",
            "//",
            "/..",
            "/a/../../b",
            "/%2e%2e/x",
            "/a%2fb",
            "/a%2Fb",
            "/a%5cb",
            "/a\\b",
            "/a%00",
            "/a%0a",
            "/a\n",
            "/a b",
            "/é",
            "/%",
            "/%2",
            "/%zz",
            "/a?b",
            "/a#b",
            "/%252e%252e/x",
            "/a%252fb",
            "/a%255cb",
            "/%25252e",
            "/..;/x",
            "/a/..;v=1/b",
            "/.;/x",
            "/%2e%2e;/x",
            "/\0",
        ] {
            assert!(NormalPath::parse(raw).is_err(), "{raw:?}");
        }
        assert!(NormalPath::parse(&format!("/{}", "a".repeat(40_000))).is_err());
    }

    #[test]
    fn a_closing_star_is_any_rest_and_another_is_within_one_segment() {
        let hit = |pattern: &str, raw: &str| {
            NormalPath::parse(raw).is_ok_and(|path| path.matches(pattern))
        };
        assert!(hit("/repos/*", "/repos/a/b"));
        assert!(hit("/repos/*", "/repos/"));
        assert!(hit("/*", "/"));
        assert!(!hit("/repos/*", "/repos"));
        assert!(!hit("/repos/*", "/repos/../admin"));
        assert!(hit("/repos/*/issues", "/repos/a/issues"));
        assert!(!hit("/repos/*/issues", "/repos/a/b/issues"));
        assert!(!hit("/repos/*/issues", "/repos/a/issues/1"));
        assert!(hit("/repos/*/issues/*", "/repos/a/issues/1/2"));
        assert!(hit("/v*/x", "/v10/x"));
        assert!(!hit("/v*/x", "/v/x"));
        assert!(!hit("/a", "/a/"));
        assert!(!hit(
            &format!("/{}b", "*a".repeat(200)),
            &format!("/{}", "a".repeat(5000))
        ));
    }

    proptest! {
        #[test]
        fn parsing_never_panics_and_is_idempotent(raw in "/?[a-zA-Z./%2eEfF5cC;~*-]{0,40}|\\PC{0,30}") {
            if let Ok(path) = NormalPath::parse(&raw) {
                prop_assert_eq!(NormalPath::parse(path.as_str()), Ok(path.clone()));
                prop_assert!(!path.as_str().split('/').any(|s| s == "." || s == ".."));
            }
        }

        #[test]
        fn a_path_in_normal_form_matches_itself(raw in "/[a-z./-]{0,20}") {
            if let Ok(path) = NormalPath::parse(&raw) {
                prop_assert!(path.matches(path.as_str()) && path.matches("/*"));
            }
        }
    }
}

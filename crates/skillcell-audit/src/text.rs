//! Words of hostile origin on their way into the log: file names, arguments, hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes that a skill chose, as text: what isn't UTF-8 is written `\xNN` and a backslash is doubled,
/// so that nothing is lost; long ones are cut, with their length; secrets are gone. Made from such
/// bytes only by a [`Redactor`]. Control characters are still in it: escape it before it meets a terminal.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Text(String);

impl Text {
    /// Words of our own, such as numbers and the names of flags. Never for what a skill chose.
    pub fn of_ours(words: String) -> Text {
        Text(words)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Knows the values that must never be recorded, and makes every [`Text`].
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a value within another doesn't leave the rest of it.
    values: Vec<(Vec<u8>, String)>,
}

impl Redactor {
    /// Longer words are cut.
    pub const MAX_TEXT: usize = 4096;
    /// Shorter values are ordinary words; hiding them would hide everything else.
    const MIN_VALUE: usize = 6;

    /// `secrets`: each value with the name that stands in its place.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut values: Vec<(Vec<u8>, String)> = secrets
            .into_iter()
            .filter(|(value, _)| value.len() >= Self::MIN_VALUE)
            .map(|(value, name)| (value.as_bytes().to_vec(), format!("[redacted {name}]")))
            .collect();
        values.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        Redactor { values }
    }

    pub fn text(&self, bytes: &[u8]) -> Text {
        if self
            .values
            .iter()
            .any(|(value, _)| find(bytes, value).is_some())
        {
            let mut clean = bytes.to_vec();
            for (value, name) in &self.values {
                clean = replace(&clean, value, name.as_bytes());
            }
            return Text(quote(&clean));
        }
        Text(quote(bytes))
    }

    /// Replaces secrets in what is text already, such as a denial's target.
    pub fn clean(&self, text: &str) -> String {
        let mut clean = text.as_bytes().to_vec();
        for (value, name) in &self.values {
            clean = replace(&clean, value, name.as_bytes());
        }
        String::from_utf8_lossy(&clean).into_owned()
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("values", &self.values.len())
            .finish()
    }
}

fn find(bytes: &[u8], value: &[u8]) -> Option<usize> {
    bytes
        .windows(value.len())
        .position(|window| window == value)
}

fn replace(bytes: &[u8], value: &[u8], with: &[u8]) -> Vec<u8> {
    let mut rest = bytes;
    let mut out = Vec::with_capacity(bytes.len());
    while let Some(at) = find(rest, value) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(with);
        rest = &rest[at + value.len()..];
    }
    out.extend_from_slice(rest);
    out
}

fn quote(bytes: &[u8]) -> String {
    let length = bytes.len();
    let kept = &bytes[..length.min(Redactor::MAX_TEXT)];
    let mut text = String::with_capacity(kept.len());
    for chunk in kept.utf8_chunks() {
        if chunk.valid().contains('\\') {
            text.push_str(&chunk.valid().replace('\\', "\\\\"));
        } else {
            text.push_str(chunk.valid());
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    if length > kept.len() {
        text.push_str(&format!("\\…({length} bytes)"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        Redactor::default().text(bytes).0
    }

    #[test]
    fn plain_text_stays_and_odd_bytes_are_written_out() {
        assert_eq!(text("/tmp/größe".as_bytes()), "/tmp/größe");
        assert_eq!(text(b"a\xffb\\c"), "a\\xffb\\\\c");
        assert_eq!(text(b"line\nbreak\x1b[2J"), "line\nbreak\u{1b}[2J");
    }

    #[test]
    fn long_words_are_cut_and_say_so() {
        let cut = text(&vec![b'x'; 65536]);
        assert!(cut.len() < Redactor::MAX_TEXT + 40);
        assert!(cut.ends_with("\\…(65536 bytes)"), "{cut}");
    }

    #[test]
    fn secrets_are_replaced_wherever_they_stand() {
        let redactor = Redactor::new([("hunter2-hunter2", "KEY"), ("abc", "SHORT")]);
        assert_eq!(
            redactor.text(b"--key=hunter2-hunter2&x").0,
            "--key=[redacted KEY]&x"
        );
        assert_eq!(redactor.text(b"abc").0, "abc");
        assert!(!format!("{redactor:?}").contains("hunter2"));
    }

    #[test]
    fn a_secret_at_the_cut_leaves_no_half_of_itself() {
        let redactor = Redactor::new([("s3cr3t-s3cr3t", "KEY")]);
        let mut bytes = vec![b'x'; Redactor::MAX_TEXT - 4];
        bytes.extend_from_slice(b"s3cr3t-s3cr3t");
        assert!(!redactor.text(&bytes).0.contains("s3c"));
    }
}

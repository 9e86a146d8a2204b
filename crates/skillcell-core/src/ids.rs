use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error(
        "`{0}` is not the id of a run: it has 28 hexadecimal digits, as in an envelope's `run_id`"
    )]
    Run(String),
    #[error("`{0}` is not a digest: it is `sha256:` and 64 hexadecimal digits")]
    Digest(String),
    #[error(
        "`{0}` is not a skill id: use lower-case words of a-z, 0-9, `_`, `-` and `.`, with at most one `/`"
    )]
    Skill(String),
    #[error(
        "`{0}` is not the name of an environment variable: use A-Z, a-z, 0-9 and `_`, not starting with a digit"
    )]
    Env(String),
    #[error("`{0}` can't be given to a skill: the dynamic loader or interpreter would obey it")]
    ReservedEnv(String),
}

macro_rules! string_value {
    ($name:ident) => {
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

/// One call. Made by the supervisor, unique, safe as a file name.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);
string_value!(RunId);

impl RunId {
    /// Milliseconds since the epoch and 64 random bits, so that ids sort by time.
    pub fn new(unix_millis: u64, random: u64) -> Self {
        RunId(format!("{unix_millis:012x}{random:016x}"))
    }

    pub fn parse(text: &str) -> Result<Self, IdError> {
        let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() == 28 && text.bytes().all(digit) {
            Ok(RunId(text.to_owned()))
        } else {
            Err(IdError::Run(text.chars().take(200).collect()))
        }
    }
}

impl TryFrom<String> for RunId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        RunId::parse(&text)
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> String {
        id.0
    }
}

/// `category/name` or `name`, as a manifest claims it.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct SkillId(String);
string_value!(SkillId);

impl SkillId {
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let word = |w: &str| {
            !w.is_empty()
                && w.len() <= 128
                && w.chars()
                    .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
                && !w.starts_with('.')
        };
        let mut words = text.split('/');
        let valid = match (words.next(), words.next(), words.next()) {
            (Some(name), None, _) => word(name),
            (Some(category), Some(name), None) => word(category) && word(name),
            _ => false,
        };
        if valid {
            Ok(SkillId(text.to_owned()))
        } else {
            Err(IdError::Skill(text.chars().take(200).collect()))
        }
    }

    pub fn category(&self) -> Option<&str> {
        self.0.split_once('/').map(|(category, _)| category)
    }
}

impl TryFrom<String> for SkillId {
    type Error = IdError;
    fn try_from(s: String) -> Result<Self, IdError> {
        SkillId::parse(&s)
    }
}

impl From<SkillId> for String {
    fn from(id: SkillId) -> String {
        id.0
    }
}

/// `sha256:` and 64 hex digits.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);
string_value!(Digest);

impl Digest {
    pub fn sha256(bytes: &[u8; 32]) -> Self {
        use fmt::Write;
        let mut text = String::with_capacity(71);
        text.push_str("sha256:");
        for byte in bytes {
            // Writing to a String can't fail.
            write!(text, "{byte:02x}").unwrap_or_default();
        }
        Digest(text)
    }

    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?;
        (hex.len() == 64
            && hex
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)))
        .then(|| Digest(text.to_owned()))
    }

    /// The hex digits alone: safe as a file name.
    pub fn hex(&self) -> &str {
        self.0.strip_prefix("sha256:").unwrap_or(&self.0)
    }
}

impl TryFrom<String> for Digest {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        Digest::parse(&text).ok_or_else(|| IdError::Digest(text.chars().take(200).collect()))
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.0
    }
}

/// The name of an environment variable that may be given to a skill.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct EnvName(String);
string_value!(EnvName);

impl EnvName {
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let valid = !text.is_empty()
            && text.len() <= 128
            && !text.as_bytes()[0].is_ascii_digit()
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !valid {
            return Err(IdError::Env(text.chars().take(200).collect()));
        }
        // These change what code runs before the skill's own does.
        let reserved = [
            "LD_",
            "PYTHON",
            "GLIBC_TUNABLES",
            "GCONV_PATH",
            "NODE_OPTIONS",
            "BASH_ENV",
            "ENV",
            "SHELLOPTS",
            "PATH",
            "HOME",
            "SKILLCELL_",
        ];
        let is_reserved = reserved.iter().any(|r| {
            if r.ends_with('_') || *r == "PYTHON" {
                text.starts_with(r)
            } else {
                text == *r
            }
        });
        if is_reserved {
            return Err(IdError::ReservedEnv(text.to_owned()));
        }
        Ok(EnvName(text.to_owned()))
    }
}

impl TryFrom<String> for EnvName {
    type Error = IdError;
    fn try_from(s: String) -> Result<Self, IdError> {
        EnvName::parse(&s)
    }
}

impl From<EnvName> for String {
    fn from(name: EnvName) -> String {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skill_ids_are_at_most_category_and_name() {
        for good in ["hello", "bio/sequence_ops", "a-b/c.d"] {
            assert!(SkillId::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "", "/", "a/", "a/b/c", "..", "a/../b", ".hidden", "a b", "a\n",
        ] {
            assert!(SkillId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn variables_that_steer_the_loader_are_reserved() {
        for bad in [
            "LD_PRELOAD",
            "PYTHONPATH",
            "NODE_OPTIONS",
            "PATH",
            "BASH_ENV",
        ] {
            assert!(
                matches!(EnvName::parse(bad), Err(IdError::ReservedEnv(_))),
                "{bad}"
            );
        }
        for bad in ["", "1A", "A-B", "A=B", "A\0"] {
            assert!(
                matches!(EnvName::parse(bad), Err(IdError::Env(_))),
                "{bad:?}"
            );
        }
        assert!(EnvName::parse("ETHERSCAN_API_KEY").is_ok());
    }
}

//! Errors and warnings about a manifest.
//!
//! Messages quote hostile text and end on a terminal, so everything that goes into one passes
//! through [`clean`]: a manifest can't move the cursor or hide behind invisible characters.

use crate::Manifest;
use skillcell_core::Location;

/// A manifest that parsed, and what a reader of it should know.
#[derive(Debug, Clone)]
pub struct Parsed {
    pub manifest: Manifest,
    /// The file in the bundle that holds the `security_policy`, where the manifest names one:
    /// relative, without `..`. The manifest's own policy is then the empty one until the file is
    /// read.
    pub policy_file: Option<String>,
    pub warnings: Vec<Warning>,
}

/// Something that parsed but is likely not what was meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub message: String,
    pub location: Option<Location>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    #[error("the file has {size} bytes, more than the limit of {limit}")]
    TooLarge { size: u64, limit: u64 },
    #[error("not valid YAML: {message}")]
    Syntax { message: String, location: Location },
    #[error("{message}")]
    Limit { message: String, location: Location },
    #[error("{message}")]
    Unsupported { message: String, location: Location },
    #[error("duplicate key `{key}`")]
    DuplicateKey { key: String, location: Location },
    #[error("{field}: expected {expected}, found {found}")]
    WrongType {
        field: String,
        expected: &'static str,
        found: String,
        location: Location,
    },
    #[error("`{field}` is missing")]
    MissingField {
        field: &'static str,
        location: Location,
    },
    #[error("name: {message}")]
    SkillName { message: String, location: Location },
    #[error("env_vars: {message}")]
    EnvVar { message: String, location: Location },
    #[error("requirement `{requirement}` {problem}")]
    Requirement {
        requirement: String,
        problem: &'static str,
        location: Option<Location>,
    },
    #[error("execution: {message}")]
    Execution { message: String, location: Location },
    #[error("parameters: {message}")]
    Parameters { message: String, location: Location },
    #[error("security_policy: {message}")]
    Policy { message: String, location: Location },
    #[error("`{path}` can't be the policy file: {problem}")]
    PolicyFile {
        path: String,
        problem: &'static str,
        location: Location,
    },
    #[error("{message}")]
    Frontmatter {
        message: &'static str,
        location: Location,
    },
    #[error("inline script metadata: {message}")]
    ScriptMetadata { message: String, location: Location },
    #[error("shebang line: {message}")]
    Shebang { message: String },
    #[error("`{file}` has no shebang line and no extension that is known")]
    UnknownRuntime { file: String },
}

impl ManifestError {
    /// Where in the file, counted from 1.
    pub fn location(&self) -> Option<Location> {
        match self {
            ManifestError::Syntax { location, .. }
            | ManifestError::Limit { location, .. }
            | ManifestError::Unsupported { location, .. }
            | ManifestError::DuplicateKey { location, .. }
            | ManifestError::WrongType { location, .. }
            | ManifestError::MissingField { location, .. }
            | ManifestError::SkillName { location, .. }
            | ManifestError::EnvVar { location, .. }
            | ManifestError::Execution { location, .. }
            | ManifestError::Parameters { location, .. }
            | ManifestError::Policy { location, .. }
            | ManifestError::PolicyFile { location, .. }
            | ManifestError::Frontmatter { location, .. }
            | ManifestError::ScriptMetadata { location, .. } => Some(*location),
            ManifestError::Requirement { location, .. } => *location,
            ManifestError::TooLarge { .. } | ManifestError::UnknownRuntime { .. } => None,
            ManifestError::Shebang { .. } => Some(Location { line: 1, column: 1 }),
        }
    }

    /// What would make it right, where that can be said in one sentence.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            ManifestError::TooLarge { .. } => {
                "keep data out of the manifest, in files of the bundle"
            }
            ManifestError::DuplicateKey { .. } => "keep one of the two",
            ManifestError::Requirement { .. } => {
                "write a package of the index with an optional version, such as requests>=2.31"
            }
            ManifestError::Execution { .. } => {
                "write `execution: sandbox`, or `execution: {command: [program, argument]}`"
            }
            ManifestError::Policy { .. } => "`skillcell schema security-policy` prints every field",
            ManifestError::PolicyFile { .. } => {
                "name a file inside the bundle, such as security_policy.yaml"
            }
            ManifestError::Frontmatter { .. } => {
                "begin SKILL.md with a line `---`, then name and description, then a line `---`"
            }
            ManifestError::UnknownRuntime { .. } => {
                "name it .py, .sh, .bash, .js, .mjs or .cjs, or begin it with a line such as #!/usr/bin/env python3"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// Text from a manifest, safe to print: control and invisible formatting characters escaped, and
/// cut to a length that a message can hold.
pub fn clean(text: &str) -> String {
    const MAX_CHARS: usize = 400;
    let mut out = String::with_capacity(text.len().min(MAX_CHARS));
    for (count, c) in text.chars().enumerate() {
        if count == MAX_CHARS {
            out.push('…');
            break;
        }
        let invisible = matches!(c,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if c.is_control() || invisible {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_a_manifest_can_not_drive_a_terminal() {
        assert_eq!(clean("a\x1b[2Jb\u{202e}c\n"), "a\\u{1b}[2Jb\\u{202e}c\\n");
        assert_eq!(clean(&"x".repeat(1000)).chars().count(), 401);
        assert_eq!(clean("日本語 é"), "日本語 é");
    }
}

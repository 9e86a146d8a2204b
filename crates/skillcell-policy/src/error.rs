use skillcell_core::Location;

/// Why a policy file can't be used. A file that can't be read as a whole is not used at all: half
/// a policy is a weaker policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("{file}: {bytes} bytes is too large for a policy: at most 1 MiB is read")]
    TooLarge { file: String, bytes: usize },
    #[error("{file}{}: {message}", location.map(|l| format!(":{l}")).unwrap_or_default())]
    Invalid {
        file: String,
        location: Option<Location>,
        message: String,
    },
}

impl PolicyError {
    pub fn file(&self) -> &str {
        match self {
            PolicyError::TooLarge { file, .. } | PolicyError::Invalid { file, .. } => file,
        }
    }

    pub fn location(&self) -> Option<Location> {
        match self {
            PolicyError::TooLarge { .. } => None,
            PolicyError::Invalid { location, .. } => *location,
        }
    }

    pub fn hint(&self) -> Option<&'static str> {
        match self {
            PolicyError::TooLarge { .. } => Some("split it: every policy file is a ceiling"),
            PolicyError::Invalid { message, .. }
                if message.contains("missing field `version`")
                    || message.starts_with("the file ends") =>
            {
                Some("start the file with `version: 1`")
            }
            PolicyError::Invalid { .. } => {
                Some("`skillcell schema policy` prints every field that a policy may have")
            }
        }
    }
}

use crate::output;
use serde::Serialize;
use skillcell_core::Location;
use skillcell_manifest::ManifestError;
use skillcell_policy::PolicyError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Severity {
    Error,
    Warning,
}

/// Something wrong, and where.
#[derive(Debug, Serialize)]
pub(super) struct Problem {
    pub(super) severity: Severity,
    pub(super) file: Option<String>,
    pub(super) line: Option<u64>,
    pub(super) column: Option<u64>,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Problem {
    pub(super) fn error(
        file: Option<String>,
        location: Option<Location>,
        message: String,
        hint: Option<String>,
    ) -> Self {
        Problem {
            severity: Severity::Error,
            file,
            line: location.map(|l| l.line),
            column: location.map(|l| l.column),
            message,
            hint,
        }
    }

    pub(super) fn warning(file: String, location: Option<Location>, message: String) -> Self {
        Problem {
            severity: Severity::Warning,
            ..Problem::error(Some(file), location, message, None)
        }
    }

    pub(super) fn manifest(file: String, error: &ManifestError) -> Self {
        Problem::error(
            Some(file),
            error.location(),
            error.to_string(),
            error.hint(),
        )
    }

    pub(super) fn policy(error: &PolicyError) -> Self {
        let text = error.to_string();
        let place = match error.location() {
            Some(location) => format!("{}:{location}: ", error.file()),
            None => format!("{}: ", error.file()),
        };
        let message = text.strip_prefix(&place).unwrap_or(&text).to_owned();
        Problem::error(
            Some(error.file().to_owned()),
            error.location(),
            message,
            error.hint().map(str::to_owned),
        )
    }

    pub(super) fn print(&self) {
        let place = match (&self.file, self.line, self.column) {
            (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}: "),
            (Some(file), _, _) => format!("{file}: "),
            _ => String::new(),
        };
        let text = format!("{place}{}", self.message);
        match self.severity {
            Severity::Error => output::error_line(&text, self.hint.as_deref()),
            Severity::Warning => output::warning(&text),
        }
    }
}

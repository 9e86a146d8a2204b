//! The command line of `audit export` and `audit report`.

use clap::{Args, ValueEnum, ValueHint};
use skillcell_audit::export::parse_rfc3339;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

const EXPORT_EXAMPLES: &str = "\
Examples:
  skillcell audit export --format jsonl --run 019a97d0c7f8 -o run.jsonl
  skillcell audit export --format ocsf --since 24h | vector --config siem.toml
  skillcell audit export --format otlp --since 1h --endpoint http://127.0.0.1:4318
  skillcell audit export --format csv --skill finance/wallet_screening --since 2026-11-01 -o november.csv
  skillcell audit export --format skillhub --since 7d -o audit_log.jsonl

A file is written whole or not at all, readable by you alone. Headers for --endpoint, such as an API
key, are taken from OTEL_EXPORTER_OTLP_HEADERS (name=value, separated by commas).";

#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportArgs {
    /// What to write
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: ExportFormat,

    /// Only this run; the first digits of its id are enough
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,

    /// Only events from this moment on: RFC 3339, a date, or how long ago (30s, 15m, 2h, 7d, 4w)
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub(crate) since: Option<Moment>,

    /// Only events before this moment
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub(crate) until: Option<Moment>,

    /// Only calls of this skill, by its id
    #[arg(long, value_name = "SKILL")]
    pub(crate) skill: Option<String>,

    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Send traces to an OpenTelemetry collector, by OTLP over HTTP (only with --format otlp)
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, conflicts_with = "output")]
    pub(crate) endpoint: Option<String>,

    /// The log's folder, instead of your own log
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) log: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The lines of the log as they are, byte for byte
    Jsonl,
    /// Security events of OCSF 1.5, for SIEMs; one JSON object per line
    Ocsf,
    /// OpenTelemetry traces, one per call; one JSON request per line
    Otlp,
    /// A table for spreadsheets
    Csv,
    /// Rows of a skillhub registry's audit_log table; one JSON object per line
    Skillhub,
}

/// Microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(pub(crate) u64);

fn moment(text: &str) -> Result<Moment, String> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    ago(text)
        .map(|ago| (now.as_micros() as u64).saturating_sub(ago))
        .or_else(|| parse_rfc3339(text))
        .map(Moment)
        .ok_or_else(|| {
            "not a moment: use 2026-11-18T13:30:00Z, 2026-11-18, or how long ago, such as 30s, 15m, \
             2h, 7d, 4w"
                .to_owned()
        })
}

/// `2h` and the like, in microseconds.
fn ago(text: &str) -> Option<u64> {
    let unit = text.chars().next_back()?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return None,
    };
    let digits = text.strip_suffix(unit)?;
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(seconds)?.checked_mul(1_000_000)
}

const REPORT_EXAMPLES: &str = "\
Examples:
  skillcell audit report 019a97d0c7f8 --html -o run.html

The page needs nothing else: no network, no other files. The whole log is verified for it, and the
page says with which result.";

#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub(crate) struct ReportArgs {
    /// The run; the first digits of its id are enough
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// A page for a browser, which is the only kind there is
    #[arg(long)]
    pub(crate) html: bool,

    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// The log's folder, instead of your own log
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) log: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_absolute_or_ago() {
        assert_eq!(moment("1970-01-01T00:00:01Z"), Ok(Moment(1_000_000)));
        let (hour, day) = (moment("1h").expect("ago"), moment("1d").expect("ago"));
        assert!(hour.0 > day.0);
        for bad in [
            "",
            "h",
            "2",
            "2y",
            "-2h",
            "+2h",
            "tomorrow",
            "99999999999999999w",
            "é",
        ] {
            assert!(moment(bad).is_err(), "{bad}");
        }
    }
}

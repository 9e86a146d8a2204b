//! Which requirement failed, and why, from an installer's words. Where they don't tell, the end of
//! them is all there is to say.

use crate::error::Cause;
use crate::output::printable;
use crate::{DepsError, DepsRequest, normalise};
use skillcell_core::Denial;
use skillcell_linux::cell::Exit;

/// Words that stand right before the name of what failed.
const BEFORE_NAME: &[&str] = &[
    "No matching distribution found for ",
    "Could not find a version that satisfies the requirement ",
    "Failed to download and build `",
    "Failed to build `",
    "Failed to download `",
    "Failed to fetch: `",
    "Failed building wheel for ",
    "Wheels are required for `",
    "there is no version of ",
    "there are no versions of ",
    "only the following versions of ",
    "all versions of ",
    "Because ",
    "because ",
];

pub(crate) fn failure(
    request: &DepsRequest<'_>,
    exit: Exit,
    output: String,
    denials: Vec<Denial>,
) -> DepsError {
    let flat = output
        .split_ascii_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let words = cause(&flat, request.source_builds);
    let culprit = culprit(request.requirements, &flat, words);
    // The installer saw a connection that failed, or a page that wasn't there.
    let unclear = matches!(words, Cause::Network | Cause::NotFound | Cause::Other);
    let (cause, mut reason) = match denials.first() {
        Some(first) if unclear => (Cause::Denied, denied(first, denials.len() - 1)),
        _ => (words, reason(words, &output, exit)),
    };
    match culprit {
        Some(requirement) => DepsError::Requirement {
            requirement,
            reason,
            cause,
            output,
            denials,
        },
        None => {
            if request.requirements.len() == 1 && !matches!(cause, Cause::Disk) {
                return DepsError::Requirement {
                    requirement: request.requirements[0].clone(),
                    reason,
                    cause,
                    output,
                    denials,
                };
            }
            reason.truncate(reason.trim_end_matches('.').len());
            DepsError::Install {
                reason,
                cause,
                output,
                denials,
            }
        }
    }
}

fn denied(first: &Denial, more: usize) -> String {
    let target = printable(&first.target);
    match more {
        0 => format!("the build cell may not reach {target}"),
        _ => format!("the build cell may not reach {target}, nor {more} more"),
    }
}

fn cause(text: &str, source_builds: bool) -> Cause {
    let has = |words: &[&str]| words.iter().any(|w| text.contains(w));
    if has(&["No space left on device", "Disk quota exceeded"]) {
        Cause::Disk
    } else if has(&[
        "CERTIFICATE_VERIFY_FAILED",
        "invalid peer certificate",
        "SSLCertVerificationError",
        "UnknownIssuer",
    ]) {
        Cause::Certificate
    } else if has(&[
        "dns error",
        "tcp connect error",
        "Could not connect",
        "client error (Connect)",
        "connection broken by",
        "NewConnectionError",
        "Temporary failure in name resolution",
        "error sending request",
        "ConnectTimeoutError",
        "operation timed out",
        "ReadTimeoutError",
    ]) {
        Cause::Network
    } else if !source_builds
        && has(&[
            "no usable wheels",
            "has no wheels",
            "no wheels with",
            "Wheels are required for",
            "Building source distributions is disabled",
            "building from source is disabled",
        ])
    {
        Cause::NoWheel
    } else if has(&[
        "was not found in the package registry",
        "was not found in the provided package locations",
        "(from versions: none)",
    ]) {
        Cause::NotFound
    } else if has(&[
        "conflicting dependencies",
        "ResolutionImpossible",
        "are incompatible",
    ]) {
        Cause::Conflict
    } else if has(&[
        "No matching distribution found",
        "there is no version of",
        "there are no versions of",
        "only the following versions of",
    ]) {
        Cause::NotFound
    } else {
        Cause::Other
    }
}

fn reason(cause: Cause, output: &str, exit: Exit) -> String {
    match cause {
        Cause::NotFound => {
            "the package index has no such package or version for this Python".into()
        }
        Cause::NoWheel => "there is no wheel of it for this Python and machine".into(),
        Cause::Conflict => "its versions conflict with those of another requirement".into(),
        Cause::Network => "the package index can't be reached".into(),
        Cause::Certificate => "the certificate of the package index isn't trusted".into(),
        Cause::Disk => "the disk is full".into(),
        Cause::Denied | Cause::Other => match (last_error(output), exit) {
            (Some(line), _) => line,
            (None, Exit::Code(code)) => format!("the installer ended with code {code}"),
            (None, Exit::Signal(signal)) => format!("the installer was ended by signal {signal}"),
        },
    }
}

/// The last line that calls itself an error, without that word.
fn last_error(output: &str) -> Option<String> {
    let marked = output.lines().rev().find_map(|line| {
        let line = line.trim();
        ["ERROR: ", "error: ", "Caused by: "]
            .iter()
            .find_map(|mark| line.strip_prefix(mark))
    });
    let line = marked.or_else(|| output.lines().next_back())?.trim();
    (!line.is_empty()).then(|| line.chars().take(300).collect())
}

/// The requirement that the words are about; or the name of a package that one of them needs.
fn culprit(requirements: &[String], text: &str, cause: Cause) -> Option<String> {
    let mut found = None;
    for mark in BEFORE_NAME {
        for (at, _) in text.match_indices(mark) {
            let rest = &text[at + mark.len()..];
            let end = rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
                .unwrap_or(rest.len());
            let name = normalise::name_of(rest[..end].trim_end_matches('.'));
            if let Some(own) = requirements.iter().find(|r| normalise::name_of(r) == name) {
                return Some(own.clone());
            }
            let plausible = matches!(cause, Cause::NotFound | Cause::NoWheel)
                && name.len() > 1
                && !COMMON.contains(&name.as_str());
            if plausible && found.is_none() {
                found = Some(name);
            }
        }
    }
    found
}

/// Words of sentences that stand where a name could.
const COMMON: &[&str] = &[
    "only", "there", "the", "all", "no", "you", "http", "https", "your", "we", "these", "any", "of",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(requirements: &[&str], output: &str, who: Option<&str>, why: Cause) {
        let requirements: Vec<String> = requirements.iter().map(|r| (*r).to_owned()).collect();
        let flat = output
            .split_ascii_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let cause = cause(&flat, false);
        assert_eq!(
            (culprit(&requirements, &flat, cause).as_deref(), cause),
            (who, why)
        );
    }

    #[test]
    fn uv_says_which_package_is_missing() {
        let text = "  × No solution found when resolving dependencies:\n  ╰─▶ Because no-such-thing was not found in the package\n      registry and you require no-such-thing, we can conclude that your\n      requirements are unsatisfiable.\n";
        check(
            &["six", "No_Such.Thing>=1"],
            text,
            Some("No_Such.Thing>=1"),
            Cause::NotFound,
        );
    }

    #[test]
    fn uv_says_which_package_has_no_wheel() {
        let text = "  × No solution found when resolving dependencies:\n  ╰─▶ Because only thing==0.7 is available and thing==0.7 has no usable wheels, we can conclude that all versions of thing cannot be used.\n  hint: Wheels are required for `thing` because building from source is disabled for all packages (i.e., with `--no-build`)";
        check(&["six", "thing"], text, Some("thing"), Cause::NoWheel);
        check(&["needs-thing", "six"], text, Some("thing"), Cause::NoWheel);
    }

    #[test]
    fn pip_says_which_package_is_missing() {
        let text = "ERROR: Could not find a version that satisfies the requirement no-such (from versions: none)\nERROR: No matching distribution found for no-such\n";
        check(&["six", "no-such"], text, Some("no-such"), Cause::NotFound);
    }

    #[test]
    fn an_unreachable_index_is_told_from_a_missing_package() {
        let pip = "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError(...)': /simple/six/\nERROR: Could not find a version that satisfies the requirement six (from versions: none)\n";
        check(&["six"], pip, Some("six"), Cause::Network);
        let uv = "error: Request failed after 3 retries\n  Caused by: Failed to fetch: `https://index.invalid/simple/six/`\n  Caused by: error sending request\n  Caused by: dns error";
        check(&["six", "a"], uv, None, Cause::Network);
    }

    #[test]
    fn unknown_words_end_up_in_the_message() {
        assert_eq!(
            last_error("a\nERROR: it broke\nnoise\n").as_deref(),
            Some("it broke")
        );
        assert_eq!(last_error("only this\n").as_deref(), Some("only this"));
        assert_eq!(last_error(""), None);
    }
}

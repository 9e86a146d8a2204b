//! Every problem of every skill and policy, with its place.

mod problem;
mod skill;

use crate::args::CheckArgs;
use crate::output;
use problem::{Problem, Severity};
use serde::Serialize;
use skillcell_core::Status;
use skillcell_manifest::MAX_BYTES;
use skillcell_policy::OperatorPolicy;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

#[derive(Serialize)]
struct Report {
    checked: usize,
    errors: usize,
    warnings: usize,
    problems: Vec<Problem>,
}

pub(crate) fn check(args: &CheckArgs) -> ExitCode {
    let mut problems = Vec::new();
    for subject in &args.subjects {
        problems.extend(match kind(subject) {
            Kind::Skill => skill::problems(subject),
            Kind::SecurityPolicy => security_policy(Path::new(subject)).into_iter().collect(),
            Kind::OperatorPolicy => operator_policy(Path::new(subject)).into_iter().collect(),
        });
    }
    for path in &args.policy {
        problems.extend(operator_policy(path));
    }
    let count = |severity| problems.iter().filter(|p| p.severity == severity).count();
    let report = Report {
        checked: args.subjects.len() + args.policy.len(),
        errors: count(Severity::Error),
        warnings: count(Severity::Warning),
        problems,
    };
    if args.json {
        output::json_value(&report);
    } else {
        report.problems.iter().for_each(Problem::print);
        output::line(&summary(&report));
    }
    match report.errors {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(Status::InvalidInput.exit_code()),
    }
}

fn summary(report: &Report) -> String {
    let number = |n: usize, what: &str| match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    format!(
        "{} checked: {}, {}",
        report.checked,
        number(report.errors, "error"),
        number(report.warnings, "warning")
    )
}

enum Kind {
    Skill,
    SecurityPolicy,
    OperatorPolicy,
}

/// By name alone: what a file says about itself is not asked.
fn kind(subject: &str) -> Kind {
    let path = Path::new(subject);
    let name = path
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or_default();
    let yaml = name.ends_with(".yaml") || name.ends_with(".yml");
    if !yaml || name == "manifest.yaml" || path.is_dir() {
        Kind::Skill
    } else if matches!(name, "security_policy.yaml" | "security-policy.yaml") {
        Kind::SecurityPolicy
    } else {
        Kind::OperatorPolicy
    }
}

/// The text of a policy file, bounded.
fn read(path: &Path) -> Result<String, Problem> {
    let fail = |error: std::io::Error| {
        let file = path.to_string_lossy().into_owned();
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or(&text);
        Problem::error(Some(file), None, format!("can't be read: {text}"), None)
    };
    let file = std::fs::File::open(path).map_err(fail)?;
    let mut text = String::new();
    file.take(MAX_BYTES as u64 + 1)
        .read_to_string(&mut text)
        .map_err(fail)?;
    Ok(text)
}

fn operator_policy(path: &Path) -> Option<Problem> {
    let name = path.to_string_lossy();
    let text = match read(path) {
        Ok(text) => text,
        Err(problem) => return Some(problem),
    };
    let error = OperatorPolicy::parse(&text, &name).err()?;
    Some(Problem::policy(&error))
}

fn security_policy(path: &Path) -> Option<Problem> {
    let text = match read(path) {
        Ok(text) => text,
        Err(problem) => return Some(problem),
    };
    let error = skillcell_manifest::parse_security_policy(&text).err()?;
    Some(Problem::manifest(
        path.to_string_lossy().into_owned(),
        &error,
    ))
}

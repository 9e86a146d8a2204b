//! What a call would be allowed, and who said so.

use crate::args::ExplainArgs;
use crate::commands::run::request;
use crate::output::{self, Format, printable};
use crate::table::{heading, table};
use serde_json::{Value, json};
use skillcell_bundle::Description;
use skillcell_core::EnforcementStatus;
use skillcell_manifest::{Entry, ParamAccess, Runtime};
use skillcell_supervisor::{CallError, Explanation, Interprets};
use std::process::ExitCode;

pub(crate) fn explain(args: ExplainArgs) -> ExitCode {
    let format = Format::of(args.json);
    let host = skillcell_linux::probe::quick();
    match skillcell_supervisor::explain(&request(args.call), &host) {
        Ok(found) => {
            match format {
                Format::Json => match found.bundle.describe() {
                    Ok(description) => output::json_value(&as_json(&found, description)),
                    Err(error) => {
                        let error = CallError::from(error);
                        return output::failure(error.status(), &error.body(), format);
                    }
                },
                Format::Human => output::print(&as_text(&found)),
            }
            ExitCode::SUCCESS
        }
        Err(error) => output::failure(error.status(), &error.body(), format),
    }
}

/// Also what a daemon answers.
pub(super) fn as_json(found: &Explanation, description: Description) -> Value {
    let manifest = &found.bundle.manifest;
    let interpreter = match &found.interpreter {
        Interprets::Program(path) => json!({"path": path.to_string_lossy()}),
        Interprets::Nothing => Value::Null,
        Interprets::Missing(error) => json!({"error": error.body()}),
    };
    let of_manifest = found.bundle.warnings.iter().map(|w| w.message.clone());
    let warnings: Vec<String> = of_manifest.chain(description.problems).collect();
    json!({
        "plan": found.plan,
        "plan_digest": found.plan.digest(),
        "ceiling": found.ceiling,
        "entry": manifest.entry,
        "scripts": found.scripts,
        "interpreter": interpreter,
        "requirements": found.requirements,
        "missing_env": found.missing_env,
        "parameters": manifest.parameters,
        "folder": found.bundle.root.to_string_lossy(),
        "manifest": description.manifest,
        "instructions": description.instructions,
        "card": description.card,
        "classes": description.classes,
        "path_params": manifest.security_policy.filesystem.params,
        "warnings": warnings,
    })
}

fn as_text(found: &Explanation) -> String {
    let manifest = &found.bundle.manifest;
    let plan = &found.plan;
    let version = manifest
        .version
        .as_deref()
        .map(|v| format!(" {v}"))
        .unwrap_or_default();
    let mut out = heading(&printable(&format!("{}{version}", manifest.id)));
    let mut facts = vec![
        [
            "folder".into(),
            found.bundle.root.to_string_lossy().into_owned(),
        ],
        ["entry".into(), entry(&manifest.entry)],
        ["interpreter".into(), interpreter(&found.interpreter)],
        ["isolation".into(), isolation(found)],
        ["policy".into(), policy(found)],
    ];
    if let Some(digest) = &plan.skill.digest {
        facts.insert(1, ["digest".into(), digest.to_string()]);
    }
    out += &table(["", ""], &facts);
    for (title, part) in [
        ("Grants", grants(found)),
        ("Held on this host by", receipt(found)),
        ("Params", params(manifest.parameters.as_ref())),
        ("Host paths in params", path_params(found)),
        ("Dependencies", dependencies(found)),
        ("Before a call can be made", to_do(found)),
    ] {
        if !part.is_empty() {
            out += &format!("\n{}{part}", heading(title));
        }
    }
    out
}

fn entry(entry: &Entry) -> String {
    match entry {
        Entry::PythonClass { file } => format!("the class in {file}"),
        Entry::Script { file, runtime } => {
            let runtime = match runtime {
                Runtime::Python => "Python",
                Runtime::Sh => "sh",
                Runtime::Bash => "bash",
                Runtime::Node => "Node",
                Runtime::Shebang { program, .. } => program,
            };
            format!("{file} ({runtime})")
        }
        Entry::Command { argv } => format!("the command {}", argv.join(" ")),
        Entry::None => "none chosen".to_owned(),
    }
}

fn interpreter(interpreter: &Interprets) -> String {
    match interpreter {
        Interprets::Program(path) => path.to_string_lossy().into_owned(),
        Interprets::Nothing => "none".to_owned(),
        Interprets::Missing(error) => format!("missing: {error}"),
    }
}

fn isolation(found: &Explanation) -> String {
    let level = found.plan.isolation.to_string();
    if found.plan.trusted {
        format!("{level}, lowered by --trust")
    } else {
        level
    }
}

fn policy(found: &Explanation) -> String {
    let sections: Vec<String> = found
        .ceiling
        .sections
        .iter()
        .map(ToString::to_string)
        .collect();
    if sections.is_empty() {
        found.ceiling.isolation.origin.to_string()
    } else {
        sections.join(", ")
    }
}

fn grants(found: &Explanation) -> String {
    let rows: Vec<[String; 5]> = found
        .plan
        .grants
        .iter()
        .map(|grant| {
            let by = grant.narrowed_by.as_ref().map(ToString::to_string);
            [
                grant.what.clone(),
                grant.asked.clone(),
                grant.effective.clone(),
                grant.source.to_string(),
                by.unwrap_or_else(|| "-".to_owned()),
            ]
        })
        .collect();
    table(["what", "asked", "effective", "from", "narrowed by"], &rows)
}

fn receipt(found: &Explanation) -> String {
    let rows: Vec<[String; 2]> = found
        .plan
        .receipt
        .iter()
        .map(|entry| {
            let mechanism = match entry.status {
                EnforcementStatus::Enforced => entry.mechanism.clone(),
                EnforcementStatus::Degraded => format!("NOT ENFORCED ({})", entry.mechanism),
            };
            [entry.control.to_string(), mechanism]
        })
        .collect();
    table(["control", "mechanism"], &rows)
}

/// The top level of the schema: enough to write a call.
fn params(schema: Option<&Value>) -> String {
    let Some(schema) = schema else {
        return "  any: the manifest has no schema for them\n".to_owned();
    };
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|n| n == name))
    };
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return "  none that the manifest names\n".to_owned();
    };
    let rows: Vec<[String; 3]> = properties
        .iter()
        .map(|(name, property)| {
            let required = if required(name) {
                "required"
            } else {
                "optional"
            };
            [name.clone(), type_of(property), required.to_owned()]
        })
        .collect();
    if rows.is_empty() {
        return "  none\n".to_owned();
    }
    table(["name", "type", ""], &rows)
}

fn type_of(property: &Value) -> String {
    const MAX: usize = 60;
    let text = match (property.get("enum"), property.get("type")) {
        (Some(Value::Array(values)), _) => {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            format!("one of {}", values.join(", "))
        }
        (_, Some(Value::String(name))) => name.clone(),
        (_, Some(Value::Array(names))) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            names.join(" or ")
        }
        _ => "any".to_owned(),
    };
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Params that hold paths, and where those may lead without a flag.
fn path_params(found: &Explanation) -> String {
    let asked = &found.bundle.manifest.security_policy.filesystem.params;
    let rows: Vec<[String; 3]> = asked
        .iter()
        .map(|(name, access)| {
            let (word, roots, flag) = match access {
                ParamAccess::Read => ("read", &found.ceiling.read, "--read PATH"),
                ParamAccess::Write => ("write", &found.ceiling.write, "--write PATH"),
            };
            let roots_text: Vec<String> = roots
                .value
                .iter()
                .map(|root| root.display().to_string())
                .collect();
            let granted = if roots_text.is_empty() {
                format!("by {flag} only")
            } else {
                format!(
                    "under {} ({}), or by {flag}",
                    roots_text.join(", "),
                    roots.origin
                )
            };
            [name.clone(), word.to_owned(), granted]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    table(["param", "access", "granted"], &rows)
}

fn dependencies(found: &Explanation) -> String {
    if found.requirements.is_empty() {
        return "  none\n".to_owned();
    }
    let rows: Vec<[String; 1]> = found.requirements.iter().map(|r| [r.clone()]).collect();
    table([""], &rows)
}

/// What a call would fail for as things are.
fn to_do(found: &Explanation) -> String {
    let mut rows: Vec<[String; 2]> = Vec::new();
    for name in &found.missing_env {
        rows.push([
            format!("{name} is required and has no value"),
            format!("pass --env {name}, or --env {name}=VALUE"),
        ]);
    }
    if matches!(found.bundle.manifest.entry, Entry::None) {
        let hint = if found.scripts.is_empty() {
            "its folder has no scripts/ to run".to_owned()
        } else {
            format!("pass --entry with one of: {}", found.scripts.join(", "))
        };
        rows.push(["no script is chosen".to_owned(), hint]);
    }
    if let Interprets::Missing(error) = &found.interpreter {
        rows.push([error.to_string(), error.hint().unwrap_or_default()]);
    }
    if rows.is_empty() {
        return String::new();
    }
    table(["", ""], &rows)
}

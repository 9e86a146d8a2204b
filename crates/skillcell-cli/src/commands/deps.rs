//! Packages that skills need: installed ahead, listed, removed.

use crate::args_deps::{DepsCommand, ListArgs, PrepareArgs, PruneArgs};
use crate::output::{self, Format, Terminal, printable};
use crate::table::table;
use serde_json::{Value, json};
use skillcell_core::{ByteSize, HostFacts};
use skillcell_deps::{Cache, DepsError, Entry, Prune};
use skillcell_manifest::Entry as SkillEntry;
use skillcell_supervisor::{CallError, Installed, Request, open_bundle, prepare_dependencies};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) fn deps(command: DepsCommand) -> ExitCode {
    match command {
        DepsCommand::Prepare(args) => prepare(&args),
        DepsCommand::List(args) => list(&args),
        DepsCommand::Prune(args) => prune(&args),
    }
}

/// Every skill is tried; the exit code is the first failure's.
fn prepare(args: &PrepareArgs) -> ExitCode {
    let host = skillcell_linux::probe::quick();
    let ui = Terminal::new(args.json);
    let mut reports: Vec<Value> = Vec::new();
    let mut code = None;
    for skill in &args.skills {
        let outcome = prepare_skill(skill, args, &host, &ui);
        ui.finish();
        let report = match &outcome {
            Ok(installed) => {
                if !args.json {
                    output::line(&prepared_line(skill, installed));
                }
                json!({"skill": skill, "status": "ok", "prepared": installed.iter().map(installed_json).collect::<Vec<_>>()})
            }
            Err(error) => {
                if !args.json {
                    output::error_line(&format!("{skill}: {error}"), error.hint().as_deref());
                }
                code.get_or_insert(error.status().exit_code());
                let mut report =
                    json!({"skill": skill, "status": error.status(), "error": error.body()});
                let denials = error.denials();
                if !denials.is_empty() {
                    report["denials"] = json!(denials);
                }
                report
            }
        };
        reports.push(report);
        if matches!(outcome, Err(CallError::Deps(DepsError::Interrupted))) {
            break;
        }
    }
    if args.json {
        output::json_value(&reports);
    }
    code.map_or(ExitCode::SUCCESS, ExitCode::from)
}

/// A skill, or each Python script of an Agent Skill.
fn prepare_skill(
    skill: &str,
    args: &PrepareArgs,
    host: &HostFacts,
    ui: &Terminal,
) -> Result<Vec<Installed>, CallError> {
    let request = Request {
        skill: skill.to_owned(),
        policy: args.policy.clone(),
        python: args.python.clone(),
        ..Request::default()
    };
    let bundle = open_bundle(&request)?;
    if !matches!(bundle.manifest.entry, SkillEntry::None) {
        return Ok(vec![prepare_dependencies(&request, host, ui)?]);
    }
    let scripts = bundle.scripts()?.into_iter().filter(|s| s.ends_with(".py"));
    scripts
        .map(|script| {
            let request = Request {
                entry: Some(script),
                ..request.clone()
            };
            prepare_dependencies(&request, host, ui)
        })
        .collect()
}

fn prepared_line(skill: &str, installed: &[Installed]) -> String {
    let needed: Vec<&Installed> = installed
        .iter()
        .filter(|i| i.environment.is_some())
        .collect();
    let packages: Vec<&str> = needed
        .iter()
        .flat_map(|i| i.requirements.iter().map(String::as_str))
        .collect();
    let text = if needed.is_empty() {
        format!("{skill}: nothing to install")
    } else if needed.iter().any(|i| i.fresh) {
        format!("{skill}: installed {}", packages.join(", "))
    } else {
        format!("{skill}: ready ({})", packages.join(", "))
    };
    printable(&text)
}

fn installed_json(installed: &Installed) -> Value {
    let environment = installed.environment.as_ref();
    json!({
        "id": installed.skill,
        "requirements": installed.requirements,
        "digest": environment.map(|(digest, _)| digest),
        "path": environment.map(|(_, path)| path.to_string_lossy()),
        "installed_now": installed.fresh,
    })
}

fn list(args: &ListArgs) -> ExitCode {
    let format = Format::of(args.json);
    match Cache::default_location().and_then(|cache| Ok((cache.list()?, cache))) {
        Ok((entries, cache)) => {
            match format {
                Format::Json => output::json_value(&entries_json(&cache, &entries)),
                Format::Human if entries.is_empty() => {
                    output::line(&format!(
                        "nothing is installed in {}",
                        cache.path().display()
                    ));
                }
                Format::Human => output::print(&entries_table(&entries)),
            }
            ExitCode::SUCCESS
        }
        Err(error) => failed(error, format),
    }
}

fn prune(args: &PruneArgs) -> ExitCode {
    let format = Format::of(args.json);
    let what = if args.all {
        Prune::All
    } else {
        Prune::UnusedFor(args.older_than)
    };
    match Cache::default_location().and_then(|cache| Ok((cache.prune(what)?, cache))) {
        Ok((removed, cache)) => {
            match format {
                Format::Json => output::json_value(&entries_json(&cache, &removed)),
                Format::Human if removed.is_empty() => {
                    output::line("nothing to remove");
                }
                Format::Human => {
                    output::print(&entries_table(&removed));
                    let bytes: u64 = removed.iter().map(|e| e.size).sum();
                    output::line(&format!("removed {}, {}", removed.len(), size(bytes)));
                }
            }
            ExitCode::SUCCESS
        }
        Err(error) => failed(error, format),
    }
}

fn failed(error: DepsError, format: Format) -> ExitCode {
    let error = CallError::Deps(error);
    output::failure(error.status(), &error.body(), format)
}

fn entries_json(cache: &Cache, entries: &[Entry]) -> Value {
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let entries: Vec<Value> = entries
        .iter()
        .map(|entry| {
            json!({
                "digest": entry.key,
                "path": entry.path.to_string_lossy(),
                "requirements": entry.requirements,
                "python": entry.python,
                "source_builds": entry.source_builds,
                "installer": entry.installer,
                "size_bytes": entry.size,
                "created_unix": seconds(entry.created),
                "last_used_unix": seconds(entry.last_used),
            })
        })
        .collect();
    json!({"cache": cache.path().to_string_lossy(), "environments": entries})
}

fn entries_table(entries: &[Entry]) -> String {
    let rows: Vec<[String; 5]> = entries
        .iter()
        .map(|entry| {
            [
                entry.key.hex().chars().take(12).collect(),
                entry.python.clone(),
                size(entry.size),
                ago(entry.last_used),
                entry.requirements.join(", "),
            ]
        })
        .collect();
    table(["digest", "python", "size", "last used", "packages"], &rows)
}

/// To the MiB, so that it has few digits.
fn size(bytes: u64) -> String {
    match bytes >> 20 {
        0 => "under 1MiB".to_owned(),
        mib => ByteSize::mib(mib).to_string(),
    }
}

fn ago(time: SystemTime) -> String {
    let seconds = SystemTime::now()
        .duration_since(time)
        .map_or(0, |d| d.as_secs());
    match seconds {
        0..3600 => "within the hour".to_owned(),
        3600..172_800 => format!("{}h ago", seconds / 3600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

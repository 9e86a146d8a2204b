//! `bench record`: what writing a call down costs, beside the same call unrecorded and beside strace.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use super::measure::{SplitMix, seed_from_clock};
use super::report::Host;
use super::skillcell;
use super::stats::Summary;
use crate::workspace::Places;

/// Makes many cheap system calls: nothing hides behind their own work.
const CALLS: u32 = 20_000;
const PROGRAM: &str = "\
import os, sys
for _ in range(int(sys.argv[1])):
    os.stat('/usr')
print('{}')
";

/// Opens one file again and again, and does nothing else: what it is slower by, divided by the number
/// of opens, is what one of them costs. `foreign` ones leave an event each at `security`; `own` ones are
/// looked at and left out. Each is a program, and what is added to it is the program's own wall time.
const OPENS: [(&str, &str); 2] = [
    ("foreign", "/etc/ld.so.cache"),
    ("own", "/usr/lib/os-release"),
];
const OPEN: &str = "\
import os, sys
for _ in range(int(sys.argv[1])):
    os.close(os.open('FILE', os.O_RDONLY))
print('{}')
";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Rounds that count; each runs everything once
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Write the whole report as JSON; `-` is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// A ready binary to measure, instead of building one
    #[arg(long, value_name = "PATH")]
    skillcell: Option<PathBuf>,
    /// A virtualenv with `skillware`, for the real skills
    #[arg(long, value_name = "DIR")]
    venv: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    benchmark: &'static str,
    host: Host,
    rounds: u32,
    seed: u64,
    rows: Vec<Row>,
    findings: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    #[serde(flatten)]
    summary: Summary,
    /// Lines that one run leaves in the log.
    events: Option<u64>,
}

/// One thing to time.
struct Subject {
    name: String,
    command: Vec<String>,
    log: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let places = Places::here()?;
    let binary = match &args.skillcell {
        Some(path) => path.clone(),
        None => skillcell::build(&places)?,
    };
    let folder = tempfile::tempdir()?;
    let subjects = subjects(args, &binary, folder.path())?;
    let seed = seed_from_clock();
    let mut random = SplitMix(seed);
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    let mut samples: Vec<Vec<Duration>> = vec![Vec::new(); subjects.len()];
    let mut events = vec![None; subjects.len()];
    for round in 0..=args.runs {
        eprintln!("round {round} of {}", args.runs);
        random.shuffle(&mut order);
        for &at in &order {
            let (elapsed, lines) = subjects[at].run()?;
            events[at] = lines;
            // The first round warms caches.
            if round > 0 {
                samples[at].push(elapsed);
            }
        }
    }
    let mut rows = Vec::new();
    for ((subject, samples), events) in subjects.iter().zip(&samples).zip(events) {
        rows.push(Row {
            name: subject.name.clone(),
            summary: Summary::of(samples).context("a subject without samples")?,
            events,
        });
    }
    let report = Report {
        benchmark: "record",
        host: Host::here(),
        rounds: args.runs,
        seed,
        findings: findings(&rows),
        rows,
    };
    let text = markdown(&report);
    super::report::deliver(&report, args.json.as_deref(), Some(text))
}

fn subjects(args: &Args, binary: &Path, folder: &Path) -> Result<Vec<Subject>> {
    let program = write_program(folder, "program", PROGRAM)?;
    let text = |path: &Path| path.display().to_string();
    let plain = vec!["/usr/bin/python3".into(), text(&program), CALLS.to_string()];
    let mut traced = vec![
        "/usr/bin/strace".to_owned(),
        "-f".into(),
        "-o".into(),
        text(&folder.join("trace")),
    ];
    traced.extend(plain.iter().cloned());
    let mut subjects = vec![
        Subject {
            name: "python3".into(),
            command: plain,
            log: None,
        },
        Subject {
            name: "strace -f -o".into(),
            command: traced,
            log: None,
        },
    ];
    let mut cell = |name: &str, skill: String, more: &[String], level: &str| {
        let log = folder.join(format!("log-{}", subjects.len()));
        let mut command = vec![
            text(binary),
            "run".into(),
            skill,
            "--audit".into(),
            level.into(),
        ];
        command.extend(more.iter().cloned());
        subjects.push(Subject {
            name: format!("{name}, {level}"),
            command,
            log: Some(log),
        });
    };
    for level in ["decisions", "security", "full"] {
        cell("cell", text(&folder.join("program")), &[], level);
    }
    for (name, file) in OPENS {
        let program = write_program(folder, name, &OPEN.replace("FILE", file))?;
        let bundle = program.parent().context("a bundle has a folder")?;
        for level in ["decisions", "security"] {
            cell(&format!("{name} opens"), text(bundle), &[], level);
        }
    }
    if let Some(venv) = &args.venv {
        let form = folder.join("form.pdf");
        make_form(venv, &form)?;
        for (skill, params) in [
            (
                "compliance/mica_module",
                r#"{"user_prompt": "I want to issue an asset-referenced token. What are the authorization rules?", "run_evaluator": false}"#.to_owned(),
            ),
            (
                "office/pdf_form_filler",
                format!(
                    r#"{{"action": "inspect", "pdf_path": "{}"}}"#,
                    form.display()
                ),
            ),
        ] {
            let more = [
                "--deps".to_owned(),
                text(venv),
                "--params".into(),
                params,
                "--read".into(),
                text(&form),
            ];
            for level in ["decisions", "security"] {
                cell(skill, skill.to_owned(), &more, level);
            }
        }
    }
    Ok(subjects)
}

/// A bundle of one Python program; gives the program's path.
fn write_program(folder: &Path, name: &str, code: &str) -> Result<PathBuf> {
    let bundle = folder.join(name);
    std::fs::create_dir_all(&bundle)?;
    let program = bundle.join("main.py");
    std::fs::write(&program, code)?;
    std::fs::write(
        bundle.join("manifest.yaml"),
        format!(
            "name: {name}\nversion: 1.0.0\nexecution: {{command: [/usr/bin/python3, main.py, '{CALLS}']}}\nsecurity_policy: {{version: 1, resources: {{timeout: 60s}}}}\n"
        ),
    )?;
    Ok(program)
}

/// A page with one field, made with the skill's own library.
fn make_form(venv: &Path, to: &Path) -> Result<()> {
    let script = "
import pymupdf, sys
document = pymupdf.open()
widget = pymupdf.Widget()
widget.field_name, widget.field_type = 'name', pymupdf.PDF_WIDGET_TYPE_TEXT
widget.rect = pymupdf.Rect(50, 50, 200, 70)
document.new_page().add_widget(widget)
document.save(sys.argv[1])
";
    let status = Command::new(venv.join("bin/python"))
        .args(["-c", script])
        .arg(to)
        .status()
        .context("could not start the virtualenv's python")?;
    ensure!(status.success(), "the form could not be made");
    Ok(())
}

impl Subject {
    fn run(&self) -> Result<(Duration, Option<u64>)> {
        if let Some(log) = &self.log {
            // A log of its own for each run: its length is what the run left.
            std::fs::remove_dir_all(log).unwrap_or_default();
        }
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(log) = &self.log {
            command.env("SKILLCELL_STATE_DIR", log);
        }
        let started = Instant::now();
        let status = command
            .status()
            .with_context(|| format!("could not start {}", self.command[0]))?;
        let elapsed = started.elapsed();
        ensure!(
            status.success(),
            "{} failed: {}",
            self.name,
            self.command.join(" ")
        );
        let lines = match &self.log {
            Some(log) => Some(
                std::fs::read_to_string(log.join("audit/00000001.jsonl"))?
                    .lines()
                    .count() as u64,
            ),
            None => None,
        };
        Ok((elapsed, lines))
    }
}

fn findings(rows: &[Row]) -> Vec<String> {
    let row = |name: &str| rows.iter().find(|row| row.name == name);
    let p50 = |name: &str| row(name).map(|row| row.summary.p50_ms);
    let mut findings = Vec::new();
    if let (Some(plain), Some(traced), Some(less), Some(full)) = (
        p50("python3"),
        p50("strace -f -o"),
        p50("cell, decisions"),
        p50("cell, full"),
    ) {
        let share = (full - less) / (traced - plain);
        findings.push(format!(
            "`full` adds {:.1} ms where strace adds {:.1} ms: {:.3} of it (target 0.2)",
            full - less,
            traced - plain,
            share
        ));
    }
    for (name, what) in [
        ("foreign", "recorded (target 10 µs)"),
        ("own", "looked at and left out"),
    ] {
        if let (Some(less), Some(more)) = (
            p50(&format!("{name} opens, decisions")),
            p50(&format!("{name} opens, security")),
        ) {
            findings.push(format!(
                "`security` adds {:.1} µs of wall time for each event that is {what}",
                1000.0 * (more - less) / f64::from(CALLS)
            ));
        }
    }
    for skill in ["compliance/mica_module", "office/pdf_form_filler"] {
        let (Some(less), Some(more)) = (
            row(&format!("{skill}, decisions")),
            row(&format!("{skill}, security")),
        ) else {
            continue;
        };
        let added = more.summary.p50_ms - less.summary.p50_ms;
        findings.push(format!(
            "`security` adds {added:.1} ms to {skill}: {:+.1} % (target 5 %)",
            100.0 * added / less.summary.p50_ms,
        ));
    }
    findings
}

fn markdown(report: &Report) -> String {
    let mut text = format!(
        "Linux {}, {} CPUs, as {}; {} rounds in random order (seed {}).\n\n| what | p50 ms | p90 ms | p99 ms | events |\n|---|--:|--:|--:|--:|\n",
        report.host.kernel, report.host.cpus, report.host.caller, report.rounds, report.seed
    );
    for Row {
        name,
        summary,
        events,
    } in &report.rows
    {
        let events = events.map_or(String::new(), |n| n.to_string());
        text.push_str(&format!(
            "| {name} | {:.1} | {:.1} | {:.1} | {events} |\n",
            summary.p50_ms, summary.p90_ms, summary.p99_ms
        ));
    }
    text.push('\n');
    for finding in &report.findings {
        text.push_str(&format!("- {finding}\n"));
    }
    text
}

//! Asking a large log: how long it takes to check it, to index it, and to answer. Everything is
//! done by the command, so the start of a process is in every number.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use super::super::measure::SplitMix;
use super::super::report::Target;
use super::super::stats::Summary;
use super::{Args, generate};

/// Times that whole-log work is repeated.
const WHOLE: usize = 3;

#[derive(Serialize)]
pub(super) struct Part {
    events: u64,
    log_mib: f64,
    index_mib: f64,
    /// Through the crate, in a debug build of this program unless it is a release build.
    generate_s: Option<f64>,
    verify_s: Vec<f64>,
    index_s: Vec<f64>,
    rounds: u32,
    questions: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    /// Searches have a target, but for those by the beginning of a word.
    target: bool,
    question: String,
    lines: usize,
    #[serde(flatten)]
    summary: Summary,
}

struct Question {
    args: Vec<String>,
    lines: usize,
    samples: Vec<Duration>,
}

pub(super) fn measure(args: &Args, binary: &Path, seed: u64) -> Result<Part> {
    let temporary;
    let folder: PathBuf = match &args.log {
        Some(folder) => std::path::absolute(folder)?,
        None => {
            temporary = tempfile::Builder::new().prefix("bench-audit-").tempdir()?;
            temporary.path().join("audit")
        }
    };
    let generate_s = if folder.exists() {
        None
    } else {
        eprintln!("writing {} events", args.events);
        let begin = Instant::now();
        generate::log(&folder, args.events, 1)?;
        Some(begin.elapsed().as_secs_f64()).filter(|_| !cfg!(debug_assertions))
    };
    let asked = |words: &[&str]| {
        let log = folder.display().to_string();
        let mut all = vec!["audit".to_owned()];
        all.extend(words.iter().map(|w| (*w).to_owned()));
        all.extend(["--log".to_owned(), log]);
        all
    };
    let (mut verify_s, mut index_s) = (Vec::new(), Vec::new());
    for _ in 0..WHOLE {
        eprintln!("verify and index");
        verify_s.push(run(binary, &asked(&["verify"]))?.0.as_secs_f64());
        index_s.push(run(binary, &asked(&["reindex"]))?.0.as_secs_f64());
    }
    let mut questions: Vec<Question> = questions(args.events)
        .iter()
        .map(|words| Question {
            args: asked(&words.iter().map(String::as_str).collect::<Vec<_>>()),
            lines: 0,
            samples: Vec::new(),
        })
        .collect();
    let mut random = SplitMix(seed);
    let mut order: Vec<usize> = (0..questions.len()).collect();
    for round in 0..args.warm_up + args.runs {
        eprint!("\rround {} of {}", round + 1, args.warm_up + args.runs);
        random.shuffle(&mut order);
        for &index in &order {
            let question = &mut questions[index];
            let (elapsed, lines) = run(binary, &question.args)?;
            question.lines = lines;
            if round >= args.warm_up {
                question.samples.push(elapsed);
            }
        }
    }
    eprintln!();
    let size =
        |path: PathBuf| fs::metadata(path).map_or(0.0, |m| m.len() as f64 / f64::from(1 << 20));
    let segments = skillcell_audit::Folder::at(&folder).segments()?;
    Ok(Part {
        events: args.events,
        log_mib: segments.into_iter().map(|s| size(s.path)).sum(),
        index_mib: size(folder.join("index.sqlite")),
        generate_s,
        verify_s,
        index_s,
        rounds: args.runs,
        questions: rows(questions)?,
    })
}

/// What people ask: rare and common things, alone and together.
fn questions(events: u64) -> Vec<Vec<String>> {
    let some_call = generate::run_id(events / 300).to_string();
    let lines = [
        format!("search --host {}", generate::RARE_HOST),
        "search --host *.example.com".to_owned(),
        format!("search --path {}", generate::RARE_PATH),
        "search --path /usr/lib".to_owned(),
        "search --path /tmp/work/17".to_owned(),
        "search shadow".to_owned(),
        "search part json".to_owned(),
        "search /usr/lib/python3/dist".to_owned(),
        "search part*".to_owned(),
        "search mod* p*".to_owned(),
        "search --event denied --reason host_not_allowed".to_owned(),
        format!("search --event denied --skill {}", generate::skill(3)),
        format!(
            "search jq --skill {} --event process_started",
            generate::skill(3)
        ),
        "search --syscall openat --path /usr/lib/lib10.so".to_owned(),
        "search --status denied --event call_started".to_owned(),
        format!("search --run {some_call}"),
        "search --since 30d --until 2001-01-01 --limit 1".to_owned(),
        "list".to_owned(),
        format!("list --host {}", generate::RARE_HOST),
        format!("show {some_call}"),
        "tail -n 100".to_owned(),
        "stats".to_owned(),
    ];
    lines
        .iter()
        .map(|line| line.split(' ').map(str::to_owned).collect())
        .collect()
}

/// Time and lines of the answer.
fn run(binary: &Path, args: &[String]) -> Result<(Duration, usize)> {
    let begin = Instant::now();
    let output = Command::new(binary)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .context("could not start skillcell")?;
    let elapsed = begin.elapsed();
    ensure!(
        output.status.success() && output.stderr.is_empty() && !output.stdout.is_empty(),
        "`skillcell {}` failed: {}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = output.stdout.iter().filter(|b| **b == b'\n').count();
    Ok((elapsed, lines))
}

fn rows(questions: Vec<Question>) -> Result<Vec<Row>> {
    questions
        .into_iter()
        .map(|question| {
            let words = &question.args[1..question.args.len() - 2];
            Ok(Row {
                target: words[0] == "search" && !words.iter().any(|w| w.ends_with('*')),
                question: words.join(" "),
                lines: question.lines,
                summary: Summary::of(&question.samples).context("a question without samples")?,
            })
        })
        .collect()
}

impl Part {
    pub(super) fn targets(&self) -> Vec<Target> {
        let worst = |seconds: &[f64]| seconds.iter().copied().fold(0.0, f64::max);
        let searches = self.questions.iter().filter(|row| row.target);
        let slowest = searches.map(|row| row.summary.p99_ms).fold(0.0, f64::max);
        let verify = worst(&self.verify_s);
        vec![
            Target {
                claim: "a million events are verified in under 5 s",
                measured: format!("{verify:.2} s at most"),
                met: verify < 5.0,
            },
            Target {
                claim: "every search by words and filters over a million events answers in under 100 ms p99",
                measured: format!("{slowest:.1} ms at most"),
                met: slowest < 100.0,
            },
        ]
    }

    pub(super) fn write_markdown(&self, text: &mut String) -> std::fmt::Result {
        let list = |seconds: &[f64]| {
            let words: Vec<_> = seconds.iter().map(|s| format!("{s:.2}")).collect();
            words.join(", ")
        };
        let Part {
            events,
            log_mib,
            index_mib,
            ..
        } = self;
        writeln!(
            text,
            "{events} events: {log_mib:.0} MiB of log, {index_mib:.0} MiB of index.\n"
        )?;
        writeln!(text, "| the whole log | seconds |\n|---|--:|")?;
        if let Some(seconds) = self.generate_s {
            writeln!(text, "| write it, call by call | {seconds:.1} |")?;
        }
        writeln!(text, "| verify | {} |", list(&self.verify_s))?;
        writeln!(text, "| index | {} |", list(&self.index_s))?;
        writeln!(
            text,
            "\n{} rounds in random order, each asking everything once:\n",
            self.rounds
        )?;
        writeln!(
            text,
            "| question | lines | p50 ms | p90 ms | p99 ms |\n|---|--:|--:|--:|--:|"
        )?;
        for row in &self.questions {
            let Summary {
                p50_ms,
                p90_ms,
                p99_ms,
                ..
            } = row.summary;
            writeln!(
                text,
                "| `{}` | {} | {p50_ms:.1} | {p90_ms:.1} | {p99_ms:.1} |",
                row.question, row.lines
            )?;
        }
        Ok(())
    }
}

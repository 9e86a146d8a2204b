use super::{failure, words};
use crate::args_audit_query::TailArgs;
use crate::output::{self, Format};
use skillcell_audit::{AuditError, Folder, Lines, Position, before_last};
use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Duration;

/// Between two looks at a log that is followed.
const PAUSE: Duration = Duration::from_millis(100);
/// Calls whose skill is remembered.
const MAX_CALLS: usize = 10_000;

pub(super) fn tail(args: &TailArgs) -> ExitCode {
    let format = args.log.format();
    match print(args, format) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure(&error, format),
    }
}

fn print(args: &TailArgs, format: Format) -> Result<(), AuditError> {
    let folder = args.log.folder()?;
    let mut printer = Printer {
        format,
        skills: HashMap::new(),
    };
    let mut position = before_last(&folder, u64::from(args.lines))?;
    while printer.rest(&folder, &mut position)? && args.follow {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

struct Printer {
    format: Format,
    /// Of calls that were seen to begin, by run.
    skills: HashMap<String, String>,
}

impl Printer {
    /// Prints everything after a place. False when nobody reads any more.
    fn rest(&mut self, folder: &Folder, position: &mut Position) -> Result<bool, AuditError> {
        let mut lines = Lines::from(folder, *position)?;
        loop {
            match lines.next() {
                Ok(Some((line, after))) => {
                    *position = after;
                    if !self.line(line) {
                        return Ok(false);
                    }
                }
                Ok(None) => return Ok(true),
                // Pruned while it was being read; what is left is found next time.
                Err(AuditError::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::NotFound =>
                {
                    return Ok(true);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn line(&mut self, line: &[u8]) -> bool {
        match self.format {
            Format::Json => output::line(&output::tame_json(&String::from_utf8_lossy(line))),
            Format::Human => {
                let (run, begins) = words::run_of(line);
                if let (Some(run), Some(skill)) = (&run, begins) {
                    if self.skills.len() >= MAX_CALLS {
                        self.skills.clear();
                    }
                    self.skills.insert(run.clone(), skill);
                }
                let skill = run.and_then(|run| self.skills.get(&run));
                output::styled_line(&words::line(line, skill.map(String::as_str)))
            }
        }
    }
}

use super::export::{Stop, folder, run};
use crate::args_audit_export::ReportArgs;
use crate::sink::Sink;
use skillcell_audit::Expectation;
use skillcell_audit::export::{Filter, Selection};
use skillcell_audit::report::{Checked, Report};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) fn report(args: &ReportArgs) -> ExitCode {
    match work(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => stop.tell(),
    }
}

fn work(args: &ReportArgs) -> Result<(), Stop> {
    let folder = folder(args.log.as_deref())?;
    let filter = Filter {
        run: Some(run(&folder, &args.run)?),
        ..Filter::default()
    };
    let mut sink = Sink::new(args.output.as_deref())?;
    let mut selection = Selection::new(&folder, filter)?;
    let mut report = Report::default();
    while let Some(selected) = selection.next()? {
        if let Some(entry) = &selected.entry {
            report.take(entry);
        }
    }
    // After reading: what the page shows is in what was checked.
    let result = skillcell_audit::verify(&folder, &Expectation::default())?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let checked = Checked {
        log: folder.path().display().to_string(),
        result,
        at_us: now.as_micros() as u64,
        unreadable: selection.unreadable(),
    };
    sink.write(report.html(&checked).as_bytes())?;
    Ok(sink.finish()?)
}

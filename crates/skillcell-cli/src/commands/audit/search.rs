use super::ask::{ask, filter};
use super::words;
use crate::args_audit_query::SearchArgs;
use crate::output::{self, FAINT, Format};
use skillcell_audit::Found;
use std::process::ExitCode;

pub(super) fn search(args: &SearchArgs) -> ExitCode {
    let format = args.log.format();
    let limit = args.limit as usize;
    let answer = ask(&args.log, |index| {
        match filter(index, &args.filter, &args.text)? {
            Ok(filter) => Ok(Ok(index.search(&filter, limit.saturating_add(1))?)),
            Err(none) => Ok(Err(none)),
        }
    });
    match answer {
        Ok(found) => {
            tell(&found, limit, format);
            ExitCode::SUCCESS
        }
        Err(none) => none.tell(format),
    }
}

fn tell(found: &[Found], limit: usize, format: Format) {
    let newest = &found[found.len().saturating_sub(limit)..];
    let mut text = String::new();
    for Found { line, skill, .. } in newest {
        text.push_str(&match format {
            Format::Json => output::tame_json(&String::from_utf8_lossy(line)),
            Format::Human => words::line(line, skill.as_deref()),
        });
        text.push('\n');
    }
    match format {
        Format::Json => output::print_raw(&text),
        Format::Human if newest.is_empty() => {
            output::line("no recorded event fits");
        }
        Format::Human => {
            if found.len() > limit {
                text.push_str(&format!(
                    "{FAINT}older events are not shown; see --limit{FAINT:#}\n"
                ));
            }
            output::print(&text);
        }
    }
}

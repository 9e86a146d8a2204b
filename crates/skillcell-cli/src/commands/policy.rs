//! Questions to policies.

mod target;
mod verdict;
mod yaml;

use crate::args_policy::{PolicyCommand, PolicyTestArgs};
use crate::output::{self, Format, printable};
use crate::table::table;
use skillcell_core::{ErrorBody, Reason, Status};
use skillcell_supervisor::Request;
use std::process::ExitCode;
use target::Target;
use verdict::Verdict;

pub(crate) fn policy(command: PolicyCommand) -> ExitCode {
    match command {
        PolicyCommand::Test(args) => test(args),
    }
}

fn test(args: PolicyTestArgs) -> ExitCode {
    let format = Format::of(args.json);
    let target = match Target::parse(&args.url, &args.method) {
        Ok(target) => target,
        Err(message) => {
            let body = ErrorBody {
                code: Reason::InvalidUsage,
                message,
                hint: Some("write https://host/path or host:port".to_owned()),
            };
            return output::failure(Status::InvalidInput, &body, format);
        }
    };
    let request = Request {
        skill: args.skill,
        policy: args.policy,
        ..Request::default()
    };
    match skillcell_supervisor::network_view(&request) {
        Ok(view) => {
            let verdict = verdict::judge(&view, &target);
            match format {
                Format::Json => output::json_value(&verdict),
                Format::Human => output::print(&as_text(&verdict)),
            }
            ExitCode::from(match verdict.allowed {
                true => Status::Ok.exit_code(),
                false => Status::Denied.exit_code(),
            })
        }
        Err(error) => output::failure(error.status(), &error.body(), format),
    }
}

fn as_text(verdict: &Verdict) -> String {
    let head = match &verdict.reason {
        None => format!("allowed: {}", verdict.target),
        Some(reason) => format!("denied: {} ({reason})", verdict.target),
    };
    let mut rows: Vec<[String; 2]> = vec![["why".to_owned(), verdict.why.clone()]];
    rows.push(["manifest".to_owned(), verdict.manifest.text.clone()]);
    rows.push(["operator".to_owned(), verdict.operator.text.clone()]);
    for secret in &verdict.secrets {
        rows.push(["secret".to_owned(), secret.clone()]);
    }
    for fix in &verdict.fixes {
        rows.push([
            "to allow".to_owned(),
            format!("{}: `{}`", fix.place, fix.line),
        ]);
    }
    for note in &verdict.notes {
        rows.push(["note".to_owned(), note.clone()]);
    }
    format!("{}\n{}", printable(&head), table(["", ""], &rows))
}

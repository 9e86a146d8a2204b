use crate::args::{CallArgs, RunArgs};
use crate::commands::daemon;
use crate::output;
use skillcell_core::Status;
use skillcell_supervisor::{Outcome, ParamsSource, Request};
use std::process::ExitCode;

pub(crate) fn run(args: RunArgs) -> ExitCode {
    let request = Request {
        strict_denials: args.strict_denials,
        actor: args.actor,
        request_id: args.request_id,
        args: args.args,
        ..request(args.call)
    };
    let ui = output::Terminal::new(args.json);
    let mut outcome = match args.daemon {
        Some(socket) => daemon::run(socket, request, args.show_output, &ui),
        None => skillcell_supervisor::run(&request, skillcell_linux::probe::quick(), &ui),
    };
    ui.finish();
    if args.json {
        // What a skill printed is part of the envelope on request, or when it explains a failure.
        if !args.show_output && outcome.status == Status::Ok {
            outcome.output = None;
        }
        output::json(&outcome)
    } else {
        print(&outcome, args.show_output)
    }
}

pub(crate) fn request(call: CallArgs) -> Request {
    let params = match (call.params, call.params_file) {
        (Some(text), _) if text == "-" => ParamsSource::Stdin,
        (Some(text), _) => ParamsSource::Text(text),
        (None, Some(path)) => ParamsSource::File(path),
        (None, None) => ParamsSource::None,
    };
    Request {
        skill: call.skill,
        entry: call.entry,
        args: Vec::new(),
        params,
        env: call.env,
        read: call.read,
        write: call.write,
        timeout: call.timeout,
        memory: call.memory,
        isolation: call.isolation,
        trust: call.trust,
        allow_degraded: call.allow_degraded.into_iter().collect(),
        policy: call.policy,
        python: call.python,
        deps: call.deps,
        audit: call.audit,
        actor: None,
        request_id: None,
        strict_denials: false,
        caller: skillcell_supervisor::Caller::default(),
    }
}

fn print(outcome: &Outcome, show_output: bool) -> ExitCode {
    if let Some(captured) = &outcome.output
        && show_output
    {
        output::captured(&captured.stdout, &captured.stderr);
    }
    for denial in &outcome.denials {
        output::denial(denial);
    }
    for entry in &outcome.enforcement {
        if entry.status == skillcell_core::EnforcementStatus::Degraded {
            output::warning(&format!(
                "{} is not enforced ({})",
                entry.control, entry.mechanism
            ));
        }
    }
    if let Some(error) = &outcome.error {
        output::error(error);
    }
    let mut code = ExitCode::from(outcome.status.exit_code());
    if let Some(result) = &outcome.result
        && !output::line(result.get())
    {
        code = ExitCode::from(Status::InternalError.exit_code());
    }
    code
}

//! The process that holds one template and makes cells that rest on it. It is single-threaded
//! whenever it clones, lives as long as its daemon wants it to, and takes its cells with it.

use super::template::{self, NoTemplate, Template};
use super::wire::{Folder, FromNursery, Loaded, Made, ToNursery};
use crate::{Known, Quiet, Request, prepare, program, shelf};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use skillcell_backend::{BackendError, Begin, Facts, Launch, Params, Running};
use skillcell_core::HostFacts;
use skillcell_linux::LinuxError;
use skillcell_linux::cgroup::CellCgroup;
use skillcell_linux::channel::Channel;
use skillcell_linux::image::Unfit;
use skillcell_linux::seccomp::AllowList;
use skillcell_plan::Plan;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

/// The name that `main` recognises.
pub const NURSERY_ARGV0: &str = "skillcell-nursery";

/// A cell that was given away, and whose end is awaited.
struct Given {
    cgroup: Option<CellCgroup>,
    /// Nobody asks about it any more.
    done: bool,
    gone: bool,
}

/// Runs until the daemon closes its end of the channel, which is standard input.
pub fn nursery_main(probe: impl FnOnce() -> HostFacts) -> ExitCode {
    let done = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(Channel::from_descriptor)
        .map_err(|_| ())
        .and_then(|channel| serve(&channel, probe).map_err(drop));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The daemon sees the channel close, and makes its calls cold.
        Err(()) => ExitCode::from(70),
    }
}

fn serve(channel: &Channel, probe: impl FnOnce() -> HostFacts) -> Result<(), LinuxError> {
    let Some(ToNursery::Load(request)) = receive(channel)? else {
        return Ok(());
    };
    let template = match load(&request, probe()) {
        Ok(template) => template,
        Err(NoTemplate::Unfit(why)) => return say(channel, &FromNursery::Unfit(why.to_string())),
        Err(NoTemplate::Failed(why)) => return say(channel, &FromNursery::Failed(why)),
    };
    say(
        channel,
        &FromNursery::Loaded(Loaded {
            plan: template.ready.plan.base_digest().to_string(),
            run_id: template.run_id.to_string(),
            image_bytes: template.stage.image().bytes(),
            denials: template.denials.clone(),
            deps: template.layout.deps.clone(),
            allowed: template.allowed.to_bytes(),
        }),
    )?;
    let children = skillcell_linux::ended_children()?;
    let mut given: BTreeMap<u64, Given> = BTreeMap::new();
    let mut numbers: BTreeMap<u32, u64> = BTreeMap::new();
    loop {
        let mut fds = [
            PollFd::new(channel, PollFlags::IN),
            PollFd::new(&children, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return Ok(()),
            Ok(_) => {}
        }
        let (asked, ended) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        if ended {
            for pid in children.reap() {
                if let Some(cell) = numbers.remove(&pid).and_then(|n| given.get_mut(&n)) {
                    cell.gone = true;
                }
            }
        }
        if asked {
            match receive(channel)? {
                None | Some(ToNursery::Load(_)) => return Ok(()),
                Some(ToNursery::Done(number)) => {
                    if let Some(cell) = given.get_mut(&number) {
                        cell.done = true;
                    }
                }
                Some(ToNursery::Make { number, call }) => {
                    match make(&template, number, call, channel) {
                        Ok((pid, cgroup)) => {
                            numbers.insert(pid, number);
                            let cell = Given {
                                cgroup,
                                done: false,
                                gone: false,
                            };
                            given.insert(number, cell);
                        }
                        Err(why) => say(channel, &FromNursery::NotMade { number, why })?,
                    }
                }
            }
        }
        given.retain(|_, cell| {
            if cell.done && cell.gone {
                drop(cell.cgroup.take());
            }
            !(cell.done && cell.gone)
        });
    }
}

/// Entries of a bundle whose change would be noticed.
const MOST_ENTRIES: usize = 20_000;

fn load(request: &Request, host: HostFacts) -> Result<Template, NoTemplate> {
    let when = prepare::When::Later;
    let ready = prepare::prepare_with(request, host, &mut Known::default(), when, None)?;
    let root = ready.bundle.root.clone();
    let digest = ready.plan.skill.digest.clone();
    let stood = || shelf::stamp(&root, MOST_ENTRIES).map_err(|_| Unfit::Changing);
    let before = stood().map_err(NoTemplate::Unfit)?;
    // The image is used for as long as the bundle has this digest: what was loaded must be what has
    // it, although the folder is the host's and may change while it is read.
    let now = ready.bundle.fingerprint().map_err(crate::CallError::from)?;
    let template = template::load(request, ready, &Quiet)?;
    if Some(now.digest) != digest || stood().map_err(NoTemplate::Unfit)? != before {
        return Err(NoTemplate::Unfit(Unfit::Changing));
    }
    Ok(template)
}

/// Makes a cell and gives it away.
fn make(
    template: &Template,
    number: u64,
    call: Option<Box<Request>>,
    channel: &Channel,
) -> Result<(u32, Option<CellCgroup>), String> {
    let plan = match call {
        None => None,
        Some(call) => Some(plan_of(template, &call)?),
    };
    let plan = plan.as_ref().unwrap_or(&template.ready.plan);
    let name = format!("warm{number}");
    let facts = Facts {
        run_id: &name,
        host: &template.ready.host,
        bundle: &template.ready.bundle.root,
        deps: &template.deps.folders,
        runtime: &template.trees,
        network: &template.network,
    };
    let start = || -> Result<(Running, OwnedFd, AllowList), BackendError> {
        let sample = program::message(&serde_json::json!({"sample": "text"}));
        let (reader, writer) = template::pipe_with(&sample)?;
        let launch = Launch {
            begin: Begin::Resume {
                stage: Rc::clone(&template.stage),
                cwd: template.layout.scratch.clone(),
            },
            params: Params::Later(reader),
            stdin: None,
        };
        let layout = template.layout.clone();
        let prepared = template.backend.prepare(plan, &facts, layout, launch)?;
        let allowed = prepared.allowed();
        Ok((prepared.make()?.start()?, writer, allowed))
    };
    let (running, writer, allowed) = start().map_err(|e| e.to_string())?;
    let (outputs, shown) = (running.outputs.clone(), running.shown.clone());
    let (shape, cell, cgroup) = running.hand_over().map_err(|e| e.to_string())?;
    let made = FromNursery::Made(Made {
        number,
        pid: shape.pid,
        scratch: shape.scratch,
        dns: shape.dns,
        doors: shape.doors,
        listener: shape.listener,
        staging: shape.staging,
        // A folder of the host that is shown changes what sockets are allowed.
        allowed: (!plan.files.is_empty()).then(|| allowed.to_bytes()),
        outputs: outputs
            .into_iter()
            .map(|o| (o.host, o.files.into_iter().map(PathBuf::from).collect()))
            .collect(),
        shown,
        cgroup: cgroup
            .as_ref()
            .map(|c| c.folders().iter().map(Folder::from).collect()),
    });
    let mut fds: Vec<BorrowedFd<'_>> = vec![writer.as_fd()];
    fds.extend(cell.iter().map(AsFd::as_fd));
    let bytes = serde_json::to_vec(&made).map_err(|e| e.to_string())?;
    channel.send(&bytes, &fds).map_err(|e| e.to_string())?;
    Ok((shape.pid, cgroup))
}

/// The plan of a call with files of its own. All else of it is the template's.
fn plan_of(template: &Template, call: &Request) -> Result<Plan, String> {
    let host = template.ready.host.clone();
    let ready = prepare::prepare(call, host, &mut Known::default()).map_err(|e| e.to_string())?;
    if ready.plan.base_digest() != template.ready.plan.base_digest() {
        return Err("the plan has changed".into());
    }
    Ok(ready.plan)
}

fn receive(channel: &Channel) -> Result<Option<ToNursery>, LinuxError> {
    let Some((bytes, _)) = channel.receive()? else {
        return Ok(None);
    };
    // Both ends are the same program, so what can't be read means that it is over.
    Ok(serde_json::from_slice(&bytes).ok())
}

fn say(channel: &Channel, what: &FromNursery) -> Result<(), LinuxError> {
    channel.send(&serde_json::to_vec(what).unwrap_or_default(), &[])
}

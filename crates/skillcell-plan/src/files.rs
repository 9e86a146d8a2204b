//! Host paths inside the cell: what flags name, and what params name under permitted roots.
//!
//! A param is data, and data never defines policy: the path in it is granted only under a root that
//! the caller's flags or the operator's policy permit, compared by whole components.

use crate::host_layout::{collision, is_resolved};
use crate::make::PlanInput;
use crate::model::{
    CallerGrants, FileAccess, FileGrant, Grant, HostPath, ParamPath, PathKind, Source,
};
use crate::refusal::{PathProblem, Refusal};
use skillcell_core::{DenialKind, Denials, Reason};
use skillcell_manifest::ParamAccess;
use skillcell_policy::Bounded;
use std::path::{Path, PathBuf};

pub(crate) fn decide(
    input: &PlanInput<'_>,
    grants: &mut Vec<Grant>,
) -> Result<Vec<FileGrant>, Refusal> {
    let mut files = Files::default();
    let mut denials = Denials::default();
    let ceiling = input.ceiling;
    let flags = [
        (
            "--read",
            FileAccess::Read,
            &input.caller.read,
            &ceiling.caller_read,
        ),
        (
            "--write",
            FileAccess::Write,
            &input.caller.write,
            &ceiling.caller_write,
        ),
    ];
    for (flag, access, paths, roots) in flags {
        for host in paths {
            flag_problem(host, access).map_or(Ok(()), |problem| {
                Err(Refusal::FlagPath {
                    flag,
                    path: host.path.clone(),
                    problem,
                })
            })?;
            match roots {
                Some(roots) if !under_any(&host.path, &roots.value) => denials.record(
                    DenialKind::Filesystem,
                    &host.path.to_string_lossy(),
                    Reason::PathNotGranted,
                    format!("{} doesn't let {flag} point there", roots.origin),
                ),
                _ => files.add(host, access, Source::flag(flag)),
            }
        }
    }
    for param in &input.caller.params {
        decide_param(input, param, &mut files, &mut denials)?;
    }
    let denied = denials.into_vec();
    if !denied.is_empty() {
        return Err(Refusal::PathsNotGranted { denials: denied });
    }
    let files = files.in_order();
    grants.extend(files.iter().map(|file| Grant {
        what: match file.access {
            FileAccess::Read => "filesystem.read".to_owned(),
            FileAccess::Write => "filesystem.write".to_owned(),
        },
        asked: file.path.display().to_string(),
        effective: file.path.display().to_string(),
        source: file.source.clone(),
        narrowed_by: None,
    }));
    Ok(files)
}

fn decide_param(
    input: &PlanInput<'_>,
    param: &ParamPath,
    files: &mut Files,
    denials: &mut Denials,
) -> Result<(), Refusal> {
    let path = &param.host.path;
    let problem = |problem| Refusal::ParamPath {
        param: param.param.clone(),
        path: path.clone(),
        problem,
    };
    if let Some(broken) = not_comparable(path) {
        return Err(problem(broken));
    }
    let access = match param.access {
        ParamAccess::Read => FileAccess::Read,
        ParamAccess::Write => FileAccess::Write,
    };
    let mut deny = |hint: String| {
        denials.record(
            DenialKind::Filesystem,
            &path.to_string_lossy(),
            Reason::PathNotGranted,
            hint,
        );
    };
    if let Some(why) = collision(path) {
        deny(why);
    } else if input
        .manifest
        .security_policy
        .filesystem
        .params
        .get(&param.param)
        != Some(&param.access)
    {
        deny(format!(
            "the manifest doesn't declare `{}` in filesystem.params",
            param.param
        ));
    } else if let Some(source) = permitted_by(input, path, access) {
        if param.host.kind == PathKind::Absent && access == FileAccess::Read {
            return Err(problem(PathProblem::Absent));
        }
        files.add(&param.host, access, source);
    } else {
        let flag = flag_of(access);
        deny(format!(
            "param `{}`: add {flag} {}",
            param.param,
            quoted(path)
        ));
    }
    Ok(())
}

/// Whose root permits a param's path. Who may write under a root may read there too.
fn permitted_by(input: &PlanInput<'_>, path: &Path, access: FileAccess) -> Option<Source> {
    let CallerGrants { read, write, .. } = input.caller;
    let flagged = |roots: &[HostPath]| roots.iter().any(|root| path.starts_with(&root.path));
    let allowed = |roots: &Bounded<Vec<PathBuf>>| {
        under_any(path, &roots.value).then(|| Source::from(&roots.origin))
    };
    match access {
        FileAccess::Read if flagged(read) => Some(Source::flag("--read")),
        _ if flagged(write) => Some(Source::flag("--write")),
        FileAccess::Read => allowed(&input.ceiling.read),
        FileAccess::Write => allowed(&input.ceiling.write),
    }
}

fn under_any(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| path.starts_with(root))
}

fn flag_problem(host: &HostPath, access: FileAccess) -> Option<PathProblem> {
    not_comparable(&host.path)
        .or_else(|| collision(&host.path).map(PathProblem::Collision))
        .or_else(|| {
            let absent = host.kind == PathKind::Absent && access == FileAccess::Read;
            absent.then_some(PathProblem::Absent)
        })
}

fn not_comparable(path: &Path) -> Option<PathProblem> {
    match path.to_str() {
        None => Some(PathProblem::NotUtf8),
        Some(text) if text.contains('\0') || !is_resolved(path) => Some(PathProblem::NotResolved),
        Some(_) => None,
    }
}

fn flag_of(access: FileAccess) -> &'static str {
    match access {
        FileAccess::Read => "--read",
        FileAccess::Write => "--write",
    }
}

/// As one word of a shell command.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+,:@%".contains(&b);
    if text.bytes().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Grants without doubles: a path once, for writing if both were granted, and nothing for a path
/// that a granted folder holds already with the same access.
#[derive(Default)]
struct Files(Vec<FileGrant>);

impl Files {
    fn add(&mut self, host: &HostPath, access: FileAccess, source: Source) {
        let path: PathBuf = host.path.components().collect();
        self.0.push(FileGrant {
            path,
            access,
            kind: host.kind,
            source,
        });
    }

    /// Folders before what is in them, so that mounts can be made in this order.
    fn in_order(mut self) -> Vec<FileGrant> {
        let write_first = |access| match access {
            FileAccess::Write => 0,
            FileAccess::Read => 1,
        };
        self.0.sort_by(|a, b| {
            a.path
                .cmp(&b.path)
                .then(write_first(a.access).cmp(&write_first(b.access)))
        });
        let mut kept: Vec<FileGrant> = Vec::new();
        for file in self.0 {
            let covered = kept.iter().any(|outer| {
                outer.path == file.path
                    || (outer.kind == PathKind::Directory
                        && outer.access == file.access
                        && file.path.starts_with(&outer.path))
            });
            if !covered {
                kept.push(file);
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(files: &mut Files, path: &str, access: FileAccess, kind: PathKind) {
        files.add(
            &HostPath {
                path: path.into(),
                kind,
            },
            access,
            Source::Default,
        );
    }

    #[test]
    fn grants_fold_into_the_folder_that_holds_them() {
        use FileAccess::{Read, Write};
        use PathKind::{Absent, Directory, File};
        let mut files = Files::default();
        add(&mut files, "/data/in.txt", Read, File);
        add(&mut files, "/data", Read, Directory);
        add(&mut files, "/data/out.txt", Write, Absent);
        add(&mut files, "/database/x", Read, File);
        add(&mut files, "/both", Read, File);
        add(&mut files, "/both", Write, File);
        let kept: Vec<_> = files
            .in_order()
            .into_iter()
            .map(|f| (f.path, f.access))
            .collect();
        let expected = [
            ("/both", Write),
            ("/data", Read),
            ("/data/out.txt", Write),
            ("/database/x", Read),
        ];
        assert_eq!(
            kept,
            expected.map(|(path, access)| (PathBuf::from(path), access))
        );
    }

    #[test]
    fn hints_quote_paths_for_the_shell() {
        assert_eq!(quoted(Path::new("/a/b.pdf")), "/a/b.pdf");
        assert_eq!(quoted(Path::new("/a b/$x")), "'/a b/$x'");
        assert_eq!(quoted(Path::new("/it's")), r"'/it'\''s'");
    }
}

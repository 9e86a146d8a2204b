//! Which host paths and variables end up inside.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails may panic"
)]

mod common;

use common::{ceiling, env, host, host_path, make, manifest};
use skillcell_core::{DenialKind, Reason, Status};
use skillcell_manifest::{EnvVar, Manifest, ParamAccess};
use skillcell_plan::{
    CallerGrants, FileAccess, ParamPath, PathKind, Plan, Refusal, Source, missing_required_env,
};

fn pdf_manifest() -> Manifest {
    let mut manifest = manifest();
    manifest.security_policy.filesystem.params = [
        ("input".to_owned(), ParamAccess::Read),
        ("output".to_owned(), ParamAccess::Write),
    ]
    .into();
    manifest
}

fn with_param(param: &str, access: ParamAccess, path: &str, kind: PathKind) -> CallerGrants {
    CallerGrants {
        params: vec![ParamPath {
            param: param.into(),
            access,
            host: host_path(path, kind),
        }],
        ..CallerGrants::default()
    }
}

fn read_param(path: &str) -> CallerGrants {
    with_param("input", ParamAccess::Read, path, PathKind::File)
}

fn run(policies: &[&str], caller: &CallerGrants) -> Result<Plan, Refusal> {
    make(&pdf_manifest(), &ceiling(policies), caller, &host())
}

#[test]
fn a_path_in_a_param_is_denied_without_a_root_and_the_hint_names_the_flag() {
    let refusal = run(&[], &read_param("/data/in file.pdf")).expect_err("denied");
    assert_eq!(
        (refusal.status(), refusal.reason()),
        (Status::Denied, Reason::PathNotGranted)
    );
    assert_eq!(refusal.denials()[0].target, "/data/in file.pdf");
    assert_eq!(refusal.denials()[0].kind, DenialKind::Filesystem);
    assert!(
        refusal
            .hint()
            .expect("a hint")
            .contains("--read '/data/in file.pdf'")
    );
    let write = with_param(
        "output",
        ParamAccess::Write,
        "/data/out.pdf",
        PathKind::Absent,
    );
    let refusal = run(&[], &write).expect_err("denied");
    assert!(
        refusal
            .hint()
            .expect("a hint")
            .contains("--write /data/out.pdf")
    );
}

#[test]
fn every_denied_param_is_named() {
    let mut caller = read_param("/data/in.pdf");
    caller
        .params
        .extend(with_param("output", ParamAccess::Write, "/x/out", PathKind::Absent).params);
    let refusal = run(&[], &caller).expect_err("denied");
    assert_eq!(refusal.denials().len(), 2);
}

#[test]
fn containment_is_by_whole_components() {
    let mut caller = read_param("/database/in.pdf");
    caller.read = vec![host_path("/data", PathKind::Directory)];
    assert!(run(&[], &caller).is_err());
    assert!(
        run(
            &["defaults: {filesystem: {read: [/data]}}"],
            &read_param("/database/x")
        )
        .is_err()
    );
    let mut up = read_param("/data/../etc/passwd");
    up.read = caller.read;
    let refusal = run(&[], &up).expect_err("not resolved");
    assert_eq!(refusal.status(), Status::InvalidInput);
}

#[test]
fn a_file_under_a_granted_folder_needs_no_second_grant() {
    let mut caller = read_param("/data/in.pdf");
    caller.read = vec![host_path("/data", PathKind::Directory)];
    let plan = run(&[], &caller).expect("a plan");
    assert_eq!(plan.files.len(), 1);
    assert_eq!(
        plan.files[0].source,
        Source::Caller {
            flag: "--read".into()
        }
    );
}

#[test]
fn an_operator_root_grants_the_exact_file_and_not_the_root() {
    let policy = "defaults: {filesystem: {read: [/data], write: [/srv/out]}}";
    let plan = run(&[policy], &read_param("/data/a/in.pdf")).expect("a plan");
    assert_eq!(plan.files[0].path.to_str(), Some("/data/a/in.pdf"));
    assert!(matches!(&plan.files[0].source, Source::Policy { file, .. } if file == "0.yaml"));
    let write = with_param(
        "output",
        ParamAccess::Write,
        "/srv/out/o.pdf",
        PathKind::Absent,
    );
    let plan = run(&[policy], &write).expect("a plan");
    assert_eq!(
        (plan.files.len(), plan.files[0].access),
        (1, FileAccess::Write)
    );
    assert!(
        run(
            &[policy],
            &with_param("output", ParamAccess::Write, "/data/o", PathKind::Absent)
        )
        .is_err()
    );
}

#[test]
fn a_write_root_permits_reading_and_a_read_root_no_writing() {
    let mut caller = read_param("/out/in.pdf");
    caller.write = vec![host_path("/out", PathKind::Directory)];
    assert!(run(&[], &caller).is_ok());
    let mut caller = with_param("output", ParamAccess::Write, "/in/o", PathKind::Absent);
    caller.read = vec![host_path("/in", PathKind::Directory)];
    assert!(run(&[], &caller).is_err());
}

#[test]
fn flags_point_anywhere_unless_the_operator_says_where() {
    let caller = CallerGrants {
        read: vec![host_path("/data/x", PathKind::File)],
        write: vec![host_path("/out/y", PathKind::Absent)],
        ..CallerGrants::default()
    };
    assert_eq!(
        run(&["defaults: {filesystem: {read: [/other]}}"], &caller)
            .expect("a plan")
            .files
            .len(),
        2
    );
    let narrow = "defaults: {filesystem: {caller: {read: [/data]}}}";
    let refusal = run(&[narrow], &caller).expect_err("--write is not permitted");
    assert_eq!(refusal.denials().len(), 1);
    assert_eq!(refusal.denials()[0].target, "/out/y");
    assert!(refusal.hint().expect("a hint").contains("0.yaml"));
}

#[test]
fn paths_of_the_cell_itself_are_refused_wherever_they_come_from() {
    for path in [
        "/",
        "/etc/passwd",
        "/proc/self",
        "/tmp",
        "/root",
        "/run/docker.sock",
    ] {
        let flag = CallerGrants {
            read: vec![host_path(path, PathKind::File)],
            ..CallerGrants::default()
        };
        let refusal = run(&[], &flag).expect_err(path);
        assert_eq!(refusal.reason(), Reason::InvalidUsage, "{path}");
        let refusal =
            run(&["defaults: {filesystem: {read: [/]}}"], &read_param(path)).expect_err(path);
        assert_eq!(refusal.reason(), Reason::PathNotGranted, "{path}");
    }
}

#[test]
fn a_param_that_the_manifest_does_not_declare_is_never_granted() {
    let policy = "defaults: {filesystem: {read: [/data], write: [/data]}}";
    let other = with_param("other", ParamAccess::Read, "/data/x", PathKind::File);
    assert!(run(&[policy], &other).is_err());
    let stronger = with_param("input", ParamAccess::Write, "/data/x", PathKind::File);
    assert!(run(&[policy], &stronger).is_err());
}

#[test]
fn a_path_to_read_must_exist() {
    let mut caller = with_param("input", ParamAccess::Read, "/data/none", PathKind::Absent);
    caller.read = vec![host_path("/data", PathKind::Directory)];
    let refusal = run(&[], &caller).expect_err("absent");
    assert_eq!(
        (refusal.status(), refusal.reason()),
        (Status::InvalidInput, Reason::InvalidParams)
    );
}

#[test]
fn only_declared_and_granted_variables_are_inside() {
    let mut manifest = manifest();
    manifest.security_policy.env = vec![env("A"), env("B"), env("C")];
    manifest.env_vars = vec![
        EnvVar {
            name: env("C"),
            required: true,
        },
        EnvVar {
            name: env("D"),
            required: true,
        },
        EnvVar {
            name: env("E"),
            required: false,
        },
    ];
    let caller = CallerGrants {
        env: [env("A"), env("D"), env("STRANGER")].into(),
        ..CallerGrants::default()
    };
    let ceiling = ceiling(&["defaults: {env: [B, UNASKED]}"]);
    let plan = make(&manifest, &ceiling, &caller, &host()).expect("a plan");
    let inside: Vec<_> = plan.env.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(inside, ["A", "B", "D"]);
    assert_eq!(plan.denials.len(), 1);
    assert_eq!(plan.denials[0].target, "STRANGER");
    assert_eq!(plan.denials[0].reason, Reason::EnvNotDeclared);
    assert_eq!(missing_required_env(&manifest, &plan), [&env("C")]);
    let shown = plan
        .grants
        .iter()
        .find(|g| g.what == "env.E")
        .expect("a line");
    assert_eq!(shown.effective, "not granted");
    assert!(shown.narrowed_by.is_some());
}

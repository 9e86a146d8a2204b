//! What will hold each control on a host, or the refusal that says why not.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails may panic"
)]

mod common;

use common::{ceiling, cgroups, host, make, manifest, mechanism};
use skillcell_core::{
    AuditLevel, CgroupVersion, Control, CpuCount, EnforcementStatus, HostFacts, Isolation, Timeout,
};
use skillcell_plan::{CallerGrants, Plan, Refusal};

fn at_process(host: &HostFacts, degraded: &[Control]) -> Result<Plan, Refusal> {
    let caller = CallerGrants {
        isolation: Some(Isolation::Process),
        allow_degraded: degraded.iter().copied().collect(),
        ..CallerGrants::default()
    };
    make(
        &manifest(),
        &ceiling(&["defaults: {isolation: {minimum: process}}"]),
        &caller,
        host,
    )
}

#[test]
fn every_missing_control_is_listed_with_its_fix_and_degrades_only_by_name() {
    let mut host = host();
    host.landlock_abi = 0;
    host.seccomp_notify = false;
    let refusal = at_process(&host, &[]).expect_err("refused");
    let Refusal::Controls { missing } = &refusal else {
        panic!("{refusal}")
    };
    let controls: Vec<_> = missing.iter().map(|(control, _)| *control).collect();
    assert_eq!(
        controls,
        [
            Control::Filesystem,
            Control::HostProcesses,
            Control::Denials,
            Control::Audit,
        ]
    );
    assert!(missing.iter().all(|(_, m)| !m.fix.is_empty()));
    assert!(at_process(&host, &controls[..2]).is_err());
    let plan = at_process(&host, &controls).expect("accepted by name");
    let degraded: Vec<_> = plan
        .receipt
        .iter()
        .filter(|line| line.status == EnforcementStatus::Degraded)
        .map(|line| line.control)
        .collect();
    assert_eq!(degraded, controls);
    assert!(mechanism(&plan, Control::Denials).starts_with("none: "));
    assert_eq!(
        plan.audit,
        AuditLevel::Decisions,
        "what can still be recorded"
    );
}

#[test]
fn allowing_degradation_of_what_can_be_enforced_changes_nothing() {
    let plain = at_process(&host(), &[]).expect("a plan");
    let allowed = at_process(&host(), &Control::ALL).expect("a plan");
    assert_eq!(plain.receipt, allowed.receipt);
}

#[test]
fn without_seccomp_no_level_runs() {
    let mut host = host();
    host.seccomp = false;
    assert!(at_process(&host, &[]).is_err());
    let refusal =
        make(&manifest(), &ceiling(&[]), &CallerGrants::default(), &host).expect_err("refused");
    assert!(refusal.to_string().contains("syscalls"), "{refusal}");
}

#[test]
fn root_that_cannot_drop_its_id_is_refused_at_the_process_level() {
    let mut host = host();
    host.root = true;
    assert!(
        at_process(&host, &[])
            .expect_err("refused")
            .to_string()
            .contains("identity")
    );
    host.privileged = true;
    let plan = at_process(&host, &[]).expect("a plan");
    assert_eq!(
        mechanism(&plan, Control::Identity),
        "unprivileged id, no capabilities, no_new_privs"
    );
    assert_eq!(
        mechanism(&plan, Control::Processes),
        "RLIMIT_NPROC of a private id, 32"
    );
}

#[test]
fn a_part_of_a_cpu_needs_a_cgroup_and_whole_ones_do_not() {
    let with = |cpu: &str, host: &HostFacts| {
        let mut manifest = manifest();
        manifest.security_policy.resources.cpu = Some(CpuCount::parse(cpu).expect("cpus"));
        let plan = make(&manifest, &ceiling(&[]), &CallerGrants::default(), host)?;
        Ok::<_, Refusal>(mechanism(&plan, Control::Cpu).to_owned())
    };
    let mut host = host();
    assert!(
        with("0.5", &host)
            .expect_err("refused")
            .to_string()
            .contains("cpu")
    );
    assert_eq!(
        with("2", &host).as_deref(),
        Ok("affinity to 2 CPUs, sched_setaffinity denied")
    );
    assert_eq!(
        with("4", &host).as_deref(),
        Ok("all CPUs of the host allowed")
    );
    assert_eq!(
        with("4.5", &host).as_deref(),
        Ok("all CPUs of the host allowed")
    );
    host.cgroup = cgroups(CgroupVersion::V1);
    assert_eq!(
        with("0.5", &host).as_deref(),
        Ok("cgroup v1 quota, 0.5 CPUs")
    );
    host.cpus = 0;
    assert_eq!(
        with("0.5", &host).as_deref(),
        Ok("cgroup v1 quota, 0.5 CPUs")
    );
}

#[test]
fn quotas_are_held_by_a_cgroup_where_one_can_be_had() {
    let mut host = host();
    let plan = make(&manifest(), &ceiling(&[]), &CallerGrants::default(), &host).expect("a plan");
    assert_eq!(
        mechanism(&plan, Control::Memory),
        "supervisor watch over the pid namespace, 256MiB"
    );
    assert_eq!(
        mechanism(&plan, Control::Cleanup),
        "pid namespace dies with its init"
    );
    host.cgroup = cgroups(CgroupVersion::V2);
    let plan = make(&manifest(), &ceiling(&[]), &CallerGrants::default(), &host).expect("a plan");
    assert_eq!(
        mechanism(&plan, Control::Memory),
        "cgroup v2 memory, 256MiB"
    );
    assert_eq!(mechanism(&plan, Control::Processes), "cgroup v2 pids, 32");
    assert_eq!(
        mechanism(&plan, Control::Cleanup),
        "pid namespace dies with its init, cgroup v2"
    );
}

#[test]
fn a_digest_is_equal_for_equal_plans_and_differs_for_others() {
    let plan = |timeout| {
        let caller = CallerGrants {
            timeout: Some(Timeout::secs(timeout)),
            ..CallerGrants::default()
        };
        make(&manifest(), &ceiling(&[]), &caller, &host()).expect("a plan")
    };
    assert_eq!(plan(5).digest(), plan(5).digest());
    assert_ne!(plan(5).digest(), plan(6).digest());
}

//! How strongly a call is isolated, within which limits, and with which network.
#![allow(clippy::expect_used, reason = "a test that fails may panic")]

mod common;

use common::{ceiling, host, make, manifest, missing, rule};
use skillcell_core::{ByteSize, Control, CpuCount, Isolation, Reason, Status, Timeout};
use skillcell_plan::{CallerGrants, Plan, Refusal, Source};

fn level(
    policies: &[&str],
    asked: Option<Isolation>,
    flag: Option<Isolation>,
    trust: bool,
) -> Result<Plan, Refusal> {
    let mut manifest = manifest();
    manifest.execution = asked;
    let caller = CallerGrants {
        isolation: flag,
        trust,
        ..CallerGrants::default()
    };
    make(&manifest, &ceiling(policies), &caller, &host())
}

const PERMITS_PROCESS: &str = "defaults: {isolation: {minimum: process}, trust: allow}";

#[test]
fn the_default_is_a_sandbox_whatever_a_manifest_wishes() {
    for asked in [
        None,
        Some(Isolation::InProcess),
        Some(Isolation::Process),
        Some(Isolation::Sandbox),
    ] {
        let plan = level(&[], asked, None, false).expect("a plan");
        assert_eq!(
            (plan.isolation, plan.trusted),
            (Isolation::Sandbox, false),
            "{asked:?}"
        );
    }
}

#[test]
fn a_weaker_wish_is_heard_only_where_the_floor_permits_it() {
    for (asked, expected) in [
        (None, Isolation::Sandbox),
        (Some(Isolation::InProcess), Isolation::Process),
        (Some(Isolation::Process), Isolation::Process),
        (Some(Isolation::Sandbox), Isolation::Sandbox),
    ] {
        let plan = level(&[PERMITS_PROCESS], asked, None, true).expect("a plan");
        assert_eq!(
            (plan.isolation, plan.trusted),
            (expected, false),
            "{asked:?}"
        );
    }
}

#[test]
fn lowering_isolation_needs_trust_and_the_operator_may_deny_it() {
    let process = Some(Isolation::Process);
    let refusal = level(&[], None, process, false).expect_err("no trust");
    assert_eq!(
        (refusal.status(), refusal.reason()),
        (Status::Denied, Reason::IsolationTooLow)
    );
    assert!(refusal.hint().expect("a hint").contains("--trust"));
    let plan = level(&[], None, process, true).expect("trusted");
    assert_eq!((plan.isolation, plan.trusted), (Isolation::Process, true));
    let refusal = level(&["tiers: {}"], None, process, true).expect_err("denied by policy");
    assert!(
        refusal
            .to_string()
            .contains("0.yaml (defaults) doesn't allow --trust"),
        "{refusal}"
    );
    let refusal =
        level(&[PERMITS_PROCESS], Some(Isolation::Sandbox), process, false).expect_err("manifest");
    assert!(
        refusal.to_string().contains("the manifest requires"),
        "{refusal}"
    );
    let plan = level(&[PERMITS_PROCESS], None, process, false).expect("the floor permits it");
    assert!(!plan.trusted);
}

#[test]
fn there_is_no_in_process_level_even_with_trust() {
    let refusal =
        level(&[PERMITS_PROCESS], None, Some(Isolation::InProcess), true).expect_err("never");
    assert_eq!(refusal, Refusal::NoInProcess);
}

#[test]
fn levels_that_this_build_lacks_are_refused_and_never_replaced_by_weaker_ones() {
    for strong in [Isolation::Wasm, Isolation::Container, Isolation::Microvm] {
        let refusal = level(&[], Some(strong), None, false).expect_err("not there");
        assert_eq!(refusal.reason(), Reason::BackendUnavailable);
        assert_eq!(refusal.status(), Status::Refused);
        assert!(level(&[], None, Some(strong), false).is_err());
        let plan = level(&[], Some(strong), Some(Isolation::Sandbox), true).expect("trusted");
        assert!(plan.trusted);
    }
}

#[test]
fn a_sandbox_without_namespaces_is_refused_with_the_fix() {
    let mut host = host();
    host.namespaces = Err(missing());
    let refusal =
        make(&manifest(), &ceiling(&[]), &CallerGrants::default(), &host).expect_err("refused");
    assert_eq!(refusal.status(), Status::Refused);
    let hint = refusal.hint().expect("a hint");
    assert!(
        hint.contains("sysctl") && hint.contains("--isolation process"),
        "{hint}"
    );
    let caller = CallerGrants {
        isolation: Some(Isolation::Process),
        ..CallerGrants::default()
    };
    assert!(make(&manifest(), &ceiling(&[PERMITS_PROCESS]), &caller, &host).is_ok());
}

#[test]
fn limits_are_the_smaller_of_asked_and_allowed_and_say_who_narrowed() {
    let mut manifest = manifest();
    manifest.security_policy.resources.memory = Some(ByteSize::mib(2048));
    manifest.security_policy.resources.processes = Some(0);
    let caller = CallerGrants {
        timeout: Some(Timeout::secs(5)),
        ..CallerGrants::default()
    };
    let ceiling = ceiling(&["defaults: {resources: {memory: 1GiB, timeout: 60s}}"]);
    let plan = make(&manifest, &ceiling, &caller, &host()).expect("a plan");
    assert_eq!(plan.limits.memory, ByteSize::mib(1024));
    assert_eq!(plan.limits.timeout, Timeout::secs(5));
    assert_eq!(plan.limits.cpu, CpuCount::whole(1));
    assert_eq!(plan.limits.processes, 1);
    assert_eq!(plan.limits.scratch_inodes, 16384);
    let line = |what: &str| {
        plan.grants
            .iter()
            .find(|g| g.what == what)
            .expect("a line")
            .clone()
    };
    assert_eq!(line("resources.memory").source, Source::Manifest);
    let by = Source::Policy {
        file: "0.yaml".into(),
        section: "defaults".into(),
    };
    assert_eq!(line("resources.memory").narrowed_by, Some(by));
    assert_eq!(
        line("resources.timeout").source,
        Source::Caller {
            flag: "--timeout".into()
        }
    );
    assert_eq!(line("resources.timeout").narrowed_by, None);
}

#[test]
fn allowed_network_is_refused_until_it_can_be_enforced_and_denied_network_runs() {
    let mut manifest = manifest();
    manifest.security_policy.network.egress = vec![rule("api.example.com", &[443])];
    let caller = CallerGrants {
        allow_degraded: [Control::Network].into(),
        ..CallerGrants::default()
    };
    let open =
        ceiling(&["defaults: {network: {egress: [{domains: ['*.example.com'], ports: [443]}]}}"]);
    let refusal = make(&manifest, &open, &caller, &host()).expect_err("not enforceable");
    assert_eq!(
        (refusal.status(), refusal.reason()),
        (Status::Refused, Reason::ControlUnavailable)
    );
    assert!(
        refusal.to_string().contains("api.example.com:443"),
        "{refusal}"
    );
    let plan = make(&manifest, &ceiling(&[]), &caller, &host()).expect("no network");
    assert!(plan.egress.is_empty());
    let line = plan
        .grants
        .iter()
        .find(|g| g.what == "network.egress")
        .expect("a line");
    assert_eq!(line.effective, "nothing");
    assert_eq!(line.narrowed_by, Some(Source::BuiltIn));
}

#[test]
fn a_hostile_number_of_network_rules_is_an_error_and_not_work() {
    let mut manifest = manifest();
    manifest.security_policy.network.egress = vec![rule("a.example.com", &[443]); 100_000];
    let refusal =
        make(&manifest, &ceiling(&[]), &CallerGrants::default(), &host()).expect_err("too many");
    assert_eq!(refusal.reason(), Reason::InvalidManifest);
}

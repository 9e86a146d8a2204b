//! How strongly a call is isolated, within which limits, and with which network.
#![allow(clippy::expect_used, reason = "a test that fails may panic")]

mod common;

use common::{ceiling, env, host, make, manifest, mechanism, missing, rule};
use skillcell_core::{
    ByteSize, Control, CpuCount, DenyPattern, HostPattern, Isolation, Reason, Status, Timeout,
};
use skillcell_manifest::{DenyRule, Manifest, SecretBinding, SecretPlace};
use skillcell_plan::{Budget, CallerGrants, Grant, Plan, Refusal, Source};

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

const OPEN: &str = "defaults: {network: {egress: [{domains: ['*.example.com'], ports: [443]}]}}";

fn wants_network() -> Manifest {
    let mut manifest = manifest();
    manifest.security_policy.network.egress = vec![rule("api.example.com", &[443])];
    manifest
}

#[test]
fn allowed_network_opens_a_sandbox_and_is_refused_at_the_process_level() {
    let manifest = wants_network();
    let caller = CallerGrants {
        allow_degraded: [Control::Network].into(),
        ..CallerGrants::default()
    };
    let plan = make(&manifest, &ceiling(&[OPEN]), &caller, &host()).expect("a plan");
    assert_eq!(plan.network.egress, [rule("api.example.com", &[443])]);
    assert_eq!(
        mechanism(&plan, Control::Network),
        "network namespace, egress broker: 1 rule, budgets"
    );
    let open = ceiling(&[&format!(
        "{}, isolation: {{minimum: process}}}}",
        &OPEN[..OPEN.len() - 1]
    )]);
    let caller = CallerGrants {
        isolation: Some(Isolation::Process),
        ..caller
    };
    let refusal = make(&manifest, &open, &caller, &host()).expect_err("not enforceable");
    assert_eq!(
        (refusal.status(), refusal.reason()),
        (Status::Refused, Reason::ControlUnavailable)
    );
    assert!(
        refusal.to_string().contains("api.example.com:443"),
        "{refusal}"
    );
    let hint = refusal.hint().expect("a hint");
    assert!(hint.contains("no network namespace"), "{hint}");
}

#[test]
fn network_that_nobody_allows_runs_closed() {
    let plan = make(
        &wants_network(),
        &ceiling(&[]),
        &CallerGrants::default(),
        &host(),
    );
    let plan = plan.expect("no network");
    assert!(plan.network.is_closed());
    assert_eq!(
        mechanism(&plan, Control::Network),
        "network namespace with loopback only"
    );
    let line = grant(&plan, "network.egress");
    assert_eq!(line.effective, "nothing");
    assert_eq!(line.narrowed_by, Some(Source::BuiltIn));
}

#[test]
fn denials_of_both_sides_hold_and_the_operator_bounds_the_budget() {
    let mut manifest = wants_network();
    let denied = |domain: &str| DenyRule {
        domains: vec![DenyPattern::parse(domain).expect("a domain")],
        cidrs: Vec::new(),
        ports: Vec::new(),
    };
    manifest.security_policy.network.deny = vec![denied("a.example.com")];
    manifest.security_policy.network.budget.requests = Some(50);
    let more = "defaults: {network: {egress: [{domains: ['*.example.com'], ports: [443]}], \
                deny: [{domains: [b.example.com]}], budget: {requests: 10, hosts: 3}, \
                resolver: '192.0.2.53'}}";
    let caller = CallerGrants::default();
    let plan = make(&manifest, &ceiling(&[more]), &caller, &host()).expect("a plan");
    let network = &plan.network;
    assert_eq!(
        network.deny,
        [denied("a.example.com"), denied("b.example.com")]
    );
    assert_eq!((network.budget.requests, network.budget.hosts), (10, 3));
    assert_eq!(network.budget.connections, Budget::default().connections);
    assert_eq!(network.resolver, "192.0.2.53:53".parse().ok());
    assert!(
        grant(&plan, "network.budget.requests")
            .narrowed_by
            .is_some()
    );
    assert_eq!(
        grant(&plan, "network.deny").effective,
        "a.example.com, b.example.com"
    );
}

#[test]
fn a_secret_is_bound_to_what_both_sides_and_the_rules_say() {
    let mut manifest = wants_network();
    manifest
        .security_policy
        .network
        .egress
        .push(rule("cdn.example.com", &[443]));
    manifest.security_policy.env = vec![env("PLAIN"), env("FORCED")];
    manifest.security_policy.secrets = vec![SecretBinding {
        env: env("KEY"),
        hosts: ["api.example.com", "other.example.org"]
            .map(|host| HostPattern::parse(host).expect("a domain"))
            .to_vec(),
        places: SecretPlace::ALL.to_vec(),
    }];
    let caller = CallerGrants {
        env: [env("KEY"), env("PLAIN"), env("FORCED")].into(),
        ..CallerGrants::default()
    };
    let bound = |plan: &Plan| -> Vec<(String, Vec<String>, usize)> {
        let secrets = plan.network.secrets.iter();
        secrets
            .map(|s| {
                let hosts = s.hosts.iter().map(ToString::to_string).collect();
                (s.env.to_string(), hosts, s.places.len())
            })
            .collect()
    };
    let plan = make(&manifest, &ceiling(&[OPEN]), &caller, &host()).expect("a plan");
    assert_eq!(
        bound(&plan),
        [("KEY".into(), vec!["api.example.com".into()], 2)]
    );
    assert!(mechanism(&plan, Control::Network).ends_with("TLS inspection, 1 secret, budgets"));
    let forced = "defaults: {network: {egress: [{domains: ['*.example.com'], ports: [443]}]}, \
        secrets: [{env: FORCED, hosts: [cdn.example.com]}, {env: KEY, hosts: [x.example.com], in: [header]}]}";
    let plan = make(&manifest, &ceiling(&[forced]), &caller, &host()).expect("a plan");
    assert_eq!(
        bound(&plan),
        [
            ("FORCED".into(), vec!["cdn.example.com".into()], 2),
            ("KEY".into(), vec![], 1)
        ]
    );
    let closed = make(&manifest, &ceiling(&[]), &caller, &host()).expect("a plan");
    assert_eq!(bound(&closed), [("KEY".into(), vec![], 2)]);
    let ungranted = make(
        &manifest,
        &ceiling(&[OPEN]),
        &CallerGrants::default(),
        &host(),
    );
    assert_eq!(bound(&ungranted.expect("a plan")), []);
}

fn grant(plan: &Plan, what: &str) -> Grant {
    let line = plan.grants.iter().find(|grant| grant.what == what);
    line.expect("a line").clone()
}

#[test]
fn a_hostile_number_of_network_rules_is_an_error_and_not_work() {
    let mut manifest = manifest();
    manifest.security_policy.network.egress = vec![rule("a.example.com", &[443]); 100_000];
    let refusal =
        make(&manifest, &ceiling(&[]), &CallerGrants::default(), &host()).expect_err("too many");
    assert_eq!(refusal.reason(), Reason::InvalidManifest);
}

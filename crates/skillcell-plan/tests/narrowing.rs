//! A plan is never wider than what was asked for, nor than what is allowed.
#![allow(clippy::expect_used, reason = "a test that fails may panic")]

mod common;
#[path = "../../skillcell-policy/tests/common/mod.rs"]
mod policies;

use common::{cgroups, env, host, host_path, make, manifest, missing, rule};
use policies::{DOMAINS, PORTS, ROOTS, VARIABLES, policy};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use skillcell_core::{
    AuditLevel, ByteSize, CgroupVersion, Control, CpuCount, DenyPattern, DomainName, HostFacts,
    HostPattern, Isolation, SkillId, Timeout,
};
use skillcell_manifest::{DenyRule, EnvVar, Manifest, ParamAccess, SecretBinding, SecretPlace};
use skillcell_plan::{
    Budget, CallerGrants, FileAccess, HostPath, ParamPath, PathKind, Plan, Refusal,
};
use skillcell_policy::{Ceiling, Layers, OperatorPolicy, Subject, Trust, intersect};
use std::collections::BTreeSet;
use std::path::Path;

/// Half of them under `/data`, so that roots and paths meet.
const PATHS: [&str; 12] = [
    "/data",
    "/data/a",
    "/data/a",
    "/data/a/b",
    "/data/a/b",
    "/data/a/b/c",
    "/database/x",
    "/srv",
    "/srv/x",
    "/etc/passwd",
    "/tmp",
    "/tmp/x",
];

fn a_ceiling() -> impl Strategy<Value = Ceiling> {
    prop::collection::vec(policy(), 0..3).prop_map(|texts| {
        let id = SkillId::parse("office/pdf").expect("an id");
        let subject = Subject {
            id: &id,
            category: None,
            digest: None,
            path: None,
        };
        let parse = |text: &String| OperatorPolicy::parse(text, "p.yaml").expect("a policy");
        Layers::new(texts.iter().map(parse).collect()).ceiling_for(&subject)
    })
}

fn a_level() -> impl Strategy<Value = Option<Isolation>> {
    use Isolation::{InProcess, Microvm, Process, Sandbox};
    let levels = vec![
        InProcess, Process, Process, Process, Sandbox, Sandbox, Sandbox, Sandbox, Microvm,
    ];
    prop::option::of(select(levels))
}

fn a_size() -> impl Strategy<Value = Option<ByteSize>> {
    prop::option::of((1u64..40_000).prop_map(ByteSize::mib))
}

fn a_manifest() -> impl Strategy<Value = Manifest> {
    let names = (
        subsequence(VARIABLES.to_vec(), 0..4),
        subsequence(VARIABLES.to_vec(), 0..4),
    );
    let egress = prop::collection::vec(
        (select(DOMAINS.to_vec()), subsequence(PORTS.to_vec(), 0..3)),
        0..2,
    );
    let cpu = prop::option::of((1u32..9).prop_map(CpuCount::whole));
    let limits = (
        prop::option::of((1u64..4000).prop_map(Timeout::secs)),
        cpu,
        a_size(),
        a_size(),
    );
    let processes = prop::option::of(any::<u32>());
    let budget = (a_size(), prop::option::of(0u64..200_000));
    let deny = subsequence(DOMAINS.to_vec(), 0..2);
    let secret = (
        select(VARIABLES.to_vec()),
        subsequence(DOMAINS.to_vec(), 1..3),
    );
    let network = (egress, deny, budget, prop::option::of(secret));
    (a_level(), names, network, limits, processes).prop_map(
        |(
            execution,
            (declared, required),
            (egress, deny, (bytes_out, connections), secret),
            (timeout, cpu, memory, scratch),
            processes,
        )| {
            let mut manifest = manifest();
            manifest.execution = execution;
            let variable = |name: &&str| EnvVar {
                name: env(name),
                required: true,
            };
            manifest.env_vars = required.iter().map(variable).collect();
            let asked = &mut manifest.security_policy;
            asked.env = declared.iter().map(|name| env(name)).collect();
            asked.network.egress = egress
                .iter()
                .map(|(domain, ports)| rule(domain, ports))
                .collect();
            asked.network.deny = deny
                .iter()
                .map(|domain| DenyRule {
                    domains: vec![DenyPattern::parse(domain).expect("a domain")],
                    cidrs: Vec::new(),
                    ports: Vec::new(),
                })
                .collect();
            asked.network.budget.bytes_out = bytes_out;
            asked.network.budget.connections = connections;
            asked.secrets = secret
                .iter()
                .map(|(name, hosts)| SecretBinding {
                    env: env(name),
                    hosts: hosts
                        .iter()
                        .map(|host| HostPattern::parse(host).expect("a domain"))
                        .collect(),
                    places: vec![SecretPlace::Header],
                })
                .collect();
            asked.filesystem.scratch = scratch;
            asked.filesystem.params = [
                ("r".to_owned(), ParamAccess::Read),
                ("w".to_owned(), ParamAccess::Write),
            ]
            .into();
            asked.resources.timeout = timeout;
            asked.resources.cpu = cpu;
            asked.resources.memory = memory;
            asked.resources.processes = processes;
            manifest
        },
    )
}

fn a_path() -> impl Strategy<Value = HostPath> {
    let kinds = vec![
        PathKind::File,
        PathKind::Directory,
        PathKind::Directory,
        PathKind::Absent,
    ];
    (select(PATHS.to_vec()), select(kinds)).prop_map(|(path, kind)| host_path(path, kind))
}

fn a_param() -> impl Strategy<Value = ParamPath> {
    let (r, w) = (("r", ParamAccess::Read), ("w", ParamAccess::Write));
    let declared = vec![r, w, r, w, r, w, ("x", ParamAccess::Read)];
    (select(declared), a_path()).prop_map(|((param, access), host)| ParamPath {
        param: param.into(),
        access,
        host,
    })
}

fn a_caller() -> impl Strategy<Value = CallerGrants> {
    (
        subsequence(VARIABLES.to_vec(), 0..4),
        prop::collection::vec(a_path(), 0..2),
        prop::collection::vec(a_path(), 0..2),
        (
            prop::option::of((1u64..4000).prop_map(Timeout::secs)),
            a_size(),
        ),
        (a_level(), any::<bool>()),
        (subsequence(Control::ALL.to_vec(), 0..=17), a_record()),
        prop::collection::vec(a_param(), 0..3),
    )
        .prop_map(
            |(
                names,
                read,
                write,
                (timeout, memory),
                (isolation, trust),
                (degraded, audit),
                params,
            )| {
                CallerGrants {
                    env: names.iter().map(|name| env(name)).collect(),
                    read,
                    write,
                    timeout,
                    memory,
                    isolation,
                    trust,
                    allow_degraded: degraded.into_iter().collect(),
                    audit,
                    params,
                }
            },
        )
}

fn a_record() -> impl Strategy<Value = Option<AuditLevel>> {
    prop::option::of(select(vec![
        AuditLevel::Decisions,
        AuditLevel::Security,
        AuditLevel::Full,
    ]))
}

fn a_host() -> impl Strategy<Value = HostFacts> {
    let cgroup = prop::option::of(select(vec![CgroupVersion::V1, CgroupVersion::V2]));
    let likely = || prop::bool::weighted(0.97);
    (
        any::<[bool; 2]>(),
        [likely(), likely(), likely()],
        0u32..8,
        cgroup,
        0u32..9,
    )
        .prop_map(
            |([root, privileged], [namespaces, seccomp, notify], abi, cgroup, cpus)| HostFacts {
                root,
                privileged,
                namespaces: if namespaces { Ok(()) } else { Err(missing()) },
                landlock_abi: abi,
                seccomp,
                seccomp_notify: notify,
                cgroup: cgroup.map(cgroups).unwrap_or_default(),
                cpus,
                ..host()
            },
        )
}

fn limits_are_within(
    plan: &Plan,
    manifest: &Manifest,
    ceiling: &Ceiling,
    caller: &CallerGrants,
) -> bool {
    let (got, max) = (&plan.limits, &ceiling.limits);
    let asked = &manifest.security_policy.resources;
    let timeout = caller
        .timeout
        .or(asked.timeout)
        .unwrap_or(Timeout::secs(30));
    let memory = caller.memory.or(asked.memory).unwrap_or(ByteSize::mib(256));
    let scratch = manifest
        .security_policy
        .filesystem
        .scratch
        .unwrap_or(ByteSize::mib(64));
    got.timeout == timeout.min(max.timeout.value)
        && got.memory == memory.min(max.memory.value)
        && got.scratch == scratch.min(max.scratch.value)
        && got.cpu == asked.cpu.unwrap_or(CpuCount::whole(1)).min(max.cpu.value)
        && got.processes
            == asked
                .processes
                .unwrap_or(32)
                .max(1)
                .min(max.processes.value)
        && got.output
            == asked
                .output
                .unwrap_or(ByteSize::mib(1))
                .min(max.output.value)
}

fn budget_is_within(got: &Budget, manifest: &Manifest, ceiling: &Ceiling, closed: bool) -> bool {
    let (asked, max) = (&manifest.security_policy.network.budget, &ceiling.budget);
    let (default, none) = (Budget::default(), closed && *got == Budget::default());
    none || (got.bytes_out
        == asked
            .bytes_out
            .unwrap_or(default.bytes_out)
            .min(max.bytes_out.value)
        && got.connections
            == asked
                .connections
                .unwrap_or(default.connections)
                .min(max.connections.value)
        && got.bytes_in <= max.bytes_in.value
        && got.requests <= max.requests.value
        && got.hosts <= max.hosts.value)
}

/// A granted variable that either side calls a secret is one, and its hosts are within what the
/// manifest, the operator and the rules say, each asked about one name at a time.
fn secrets_are_within(
    plan: &Plan,
    manifest: &Manifest,
    ceiling: &Ceiling,
) -> Result<(), TestCaseError> {
    let declared = &manifest.security_policy.secrets;
    for grant in &plan.env {
        let asked = declared.iter().find(|secret| secret.env == grant.name);
        let bound = ceiling.secrets.get(&grant.name);
        let secret = plan.network.secrets.iter().find(|s| s.env == grant.name);
        prop_assert_eq!(secret.is_some(), asked.is_some() || bound.is_some());
        let Some(secret) = secret else { continue };
        for name in [
            "a.example.com",
            "b.example.com",
            "x.a.example.com",
            "example.com",
        ] {
            let name = DomainName::parse(name).expect("a name");
            let hit = |hosts: &[HostPattern]| hosts.iter().any(|host| host.matches(&name));
            let expected = asked.is_none_or(|asked| hit(&asked.hosts))
                && bound.is_none_or(|bound| hit(&bound.value.hosts))
                && plan.network.egress.iter().any(|rule| hit(&rule.domains));
            prop_assert_eq!(hit(&secret.hosts), expected);
        }
        for place in &secret.places {
            prop_assert!(asked.is_none_or(|asked| asked.places.contains(place)));
            prop_assert!(bound.is_none_or(|bound| bound.value.places.contains(place)));
        }
    }
    let inside = |name: &skillcell_core::EnvName| plan.env.iter().any(|grant| grant.name == *name);
    prop_assert!(
        plan.network
            .secrets
            .iter()
            .all(|secret| inside(&secret.env))
    );
    Ok(())
}

/// A granted file was named by a flag or a param, and a root permits it for that access.
fn file_is_permitted(
    path: &Path,
    access: FileAccess,
    ceiling: &Ceiling,
    caller: &CallerGrants,
) -> bool {
    let flags = match access {
        FileAccess::Read => &caller.read,
        FileAccess::Write => &caller.write,
    };
    let wanted = match access {
        FileAccess::Read => ParamAccess::Read,
        FileAccess::Write => ParamAccess::Write,
    };
    let by_flag = flags.iter().any(|flag| flag.path == path);
    let by_param = caller
        .params
        .iter()
        .any(|p| p.host.path == path && p.access == wanted && p.param != "x");
    let under = |roots: &[HostPath]| roots.iter().any(|root| path.starts_with(&root.path));
    let allowed = match access {
        FileAccess::Read => {
            under(&caller.read)
                || under(&caller.write)
                || ceiling.read.value.iter().any(|r| path.starts_with(r))
        }
        FileAccess::Write => {
            under(&caller.write) || ceiling.write.value.iter().any(|r| path.starts_with(r))
        }
    };
    let caller_ceiling = match access {
        FileAccess::Read => &ceiling.caller_read,
        FileAccess::Write => &ceiling.caller_write,
    };
    let flag_allowed = caller_ceiling
        .as_ref()
        .is_none_or(|roots| roots.value.iter().any(|root| path.starts_with(root)));
    (by_flag && flag_allowed) || (by_param && allowed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn a_plan_is_within_what_is_asked_and_what_is_allowed(
        manifest in a_manifest(),
        ceiling in a_ceiling(),
        caller in a_caller(),
        host in a_host(),
    ) {
        let plan = match make(&manifest, &ceiling, &caller, &host) {
            Ok(plan) => plan,
            Err(refusal) => {
                prop_assert!(!refusal.to_string().is_empty());
                prop_assert_eq!(
                    matches!(refusal, Refusal::PathsNotGranted { .. }),
                    !refusal.denials().is_empty()
                );
                return Ok(());
            }
        };
        prop_assert!(limits_are_within(&plan, &manifest, &ceiling, &caller));

        let declared: BTreeSet<_> = manifest.security_policy.env.iter()
            .chain(manifest.env_vars.iter().map(|v| &v.name))
            .chain(manifest.security_policy.secrets.iter().map(|s| &s.env)).collect();
        for grant in &plan.env {
            prop_assert!(declared.contains(&grant.name));
            prop_assert!(caller.env.contains(&grant.name) || ceiling.env.value.contains(&grant.name));
        }

        let mut asked = manifest.security_policy.network.egress.clone();
        asked.iter_mut().for_each(|rule| rule.ports = rule.effective_ports().to_vec());
        let network = &plan.network;
        prop_assert_eq!(&network.egress, &intersect(&asked, &ceiling.egress.value));
        prop_assert!(network.is_closed() || plan.isolation == Isolation::Sandbox);
        if !network.is_closed() {
            let own = &manifest.security_policy.network.deny;
            let theirs = ceiling.deny.iter().map(|denied| &denied.value);
            prop_assert!(own.iter().chain(theirs).all(|rule| network.deny.contains(rule)));
        }
        prop_assert!(budget_is_within(&network.budget, &manifest, &ceiling, network.is_closed()));
        secrets_are_within(&plan, &manifest, &ceiling)?;

        for file in &plan.files {
            prop_assert!(file_is_permitted(&file.path, file.access, &ceiling, &caller), "{file:?}");
            prop_assert!(!file.path.starts_with("/etc") && file.path != Path::new("/tmp"));
        }

        if plan.trusted {
            prop_assert!(caller.trust && ceiling.trust.value == Trust::Allow);
        } else {
            prop_assert!(plan.isolation >= ceiling.isolation.value);
        }
        let unrecordable = !(host.seccomp && host.seccomp_notify);
        let accepted = caller.allow_degraded.contains(&Control::Audit);
        prop_assert!(plan.audit >= ceiling.audit.value || (unrecordable && accepted));
        prop_assert!(matches!(plan.isolation, Isolation::Process | Isolation::Sandbox));
    }

    #[test]
    fn a_receipt_has_every_control_exactly_once(
        manifest in a_manifest(),
        caller in a_caller(),
        host in a_host(),
    ) {
        let ceiling = common::ceiling(&[]);
        if let Ok(plan) = make(&manifest, &ceiling, &caller, &host) {
            let controls: Vec<_> = plan.receipt.iter().map(|line| line.control).collect();
            prop_assert_eq!(controls, Control::ALL.to_vec());
        }
    }

    #[test]
    fn equal_inputs_make_equal_digests(manifest in a_manifest(), ceiling in a_ceiling(), caller in a_caller()) {
        let digest = || make(&manifest, &ceiling, &caller, &host()).map(|plan| plan.digest());
        prop_assert_eq!(digest(), digest());
    }
}

#[test]
fn operator_roots_of_these_tests_cover_their_paths() {
    assert!(
        PATHS
            .iter()
            .any(|path| ROOTS.iter().any(|root| Path::new(path).starts_with(root)))
    );
}

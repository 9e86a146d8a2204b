//! A manifest, a ceiling, a caller and a host that every test starts from.
#![allow(
    dead_code,
    clippy::expect_used,
    reason = "shared by several test binaries"
)]

use skillcell_core::{
    CgroupFacts, CgroupVersion, Control, EnvName, HostFacts, HostPattern, Missing, SkillId,
    SkillRef,
};
use skillcell_manifest::{EgressRule, Entry, Manifest, SecurityPolicy};
use skillcell_plan::{CallerGrants, HostPath, PathKind, Plan, PlanInput, Refusal, plan};
use skillcell_policy::{Ceiling, Layers, OperatorPolicy, Subject};

pub(crate) fn manifest() -> Manifest {
    Manifest {
        id: SkillId::parse("office/pdf").expect("an id"),
        version: None,
        description: None,
        category: None,
        execution: None,
        entry: Entry::PythonClass {
            file: "skill.py".into(),
        },
        parameters: None,
        requirements: Vec::new(),
        env_vars: Vec::new(),
        security_policy: SecurityPolicy::default(),
    }
}

pub(crate) fn ceiling(policies: &[&str]) -> Ceiling {
    let id = SkillId::parse("office/pdf").expect("an id");
    let subject = Subject {
        id: &id,
        category: None,
        digest: None,
        path: None,
    };
    layers(policies).ceiling_for(&subject)
}

pub(crate) fn layers(policies: &[&str]) -> Layers {
    let parse = |(i, body): (usize, &&str)| {
        let text = format!("version: 1\n{body}");
        OperatorPolicy::parse(&text, &format!("{i}.yaml")).expect("a policy")
    };
    Layers::new(policies.iter().enumerate().map(parse).collect())
}

/// A recent kernel, an ordinary user, nothing delegated.
pub(crate) fn host() -> HostFacts {
    HostFacts {
        kernel: "6.18".into(),
        root: false,
        privileged: false,
        namespaces: Ok(()),
        landlock_abi: 7,
        seccomp: true,
        seccomp_notify: true,
        cgroup: CgroupFacts::default(),
        cpus: 4,
        container: None,
    }
}

pub(crate) fn cgroups(version: CgroupVersion) -> CgroupFacts {
    CgroupFacts {
        memory: Some(version),
        pids: Some(version),
        cpu: Some(version),
        ..CgroupFacts::default()
    }
}

pub(crate) fn missing() -> Missing {
    Missing {
        what: "user namespaces are off".into(),
        fix: "sysctl user.max_user_namespaces=1000".into(),
    }
}

pub(crate) fn make(
    manifest: &Manifest,
    ceiling: &Ceiling,
    caller: &CallerGrants,
    host: &HostFacts,
) -> Result<Plan, Refusal> {
    plan(&PlanInput {
        skill: SkillRef::default(),
        manifest,
        ceiling,
        caller,
        host,
    })
}

pub(crate) fn env(name: &str) -> EnvName {
    EnvName::parse(name).expect("a variable")
}

pub(crate) fn rule(domain: &str, ports: &[u16]) -> EgressRule {
    EgressRule {
        domains: vec![HostPattern::parse(domain).expect("a domain")],
        cidrs: Vec::new(),
        ports: ports.to_vec(),
        http: Vec::new(),
    }
}

pub(crate) fn host_path(path: &str, kind: PathKind) -> HostPath {
    HostPath {
        path: path.into(),
        kind,
    }
}

pub(crate) fn mechanism(plan: &Plan, control: Control) -> &str {
    let line = plan.receipt.iter().find(|line| line.control == control);
    &line.expect("every control is in the receipt").mechanism
}

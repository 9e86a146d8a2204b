//! How sections and files become one ceiling.
//!
//! Only `of_defaults` sets values. Everything after it goes through `narrow`, which can take the
//! smaller of two values and nothing else: a section that tries to widen changes nothing.

use crate::ceiling::{Bounded, Ceiling, LogTerms, Origin, SecretBound};
use crate::egress;
use crate::file::{AuditFloor, Section};
use crate::roots::{self, Root};
use skillcell_core::EnvName;
use skillcell_manifest::{EgressRule, SecretPlace};
use std::path::PathBuf;

impl Ceiling {
    /// The `defaults` of one file: what it has counts, what it lacks is the strictest value.
    pub(crate) fn of_defaults(section: &Section, origin: &Origin) -> Self {
        let mut ceiling = Ceiling::strictest(origin);
        ceiling.sections.push(origin.clone());
        let by = || origin.clone();
        if let Some(isolation) = &section.isolation {
            ceiling.isolation.value = isolation.minimum.level();
        }
        if let Some(trust) = section.trust {
            ceiling.trust.value = trust;
        }
        if let Some(audit) = &section.audit {
            ceiling.audit.value = audit.level.unwrap_or(ceiling.audit.value);
            ceiling.log.overrule(log_terms(audit));
        }
        if let Some(egress) = section.network.as_ref().and_then(|n| n.egress.as_ref()) {
            ceiling.egress.value = egress.rules().to_vec();
        }
        // A budget of a file takes the place of the built-in maximum, even when it is larger.
        if let Some(asked) = section.network.as_ref().and_then(|n| n.budget.as_ref()) {
            let budget = &mut ceiling.budget;
            set(&mut budget.bytes_out, asked.bytes_out, origin);
            set(&mut budget.bytes_in, asked.bytes_in, origin);
            set(&mut budget.connections, asked.connections, origin);
            set(&mut budget.requests, asked.requests, origin);
            set(&mut budget.hosts, asked.hosts, origin);
        }
        ceiling.restrict_network(section, origin);
        if let Some(env) = &section.env {
            ceiling.env.value = env.iter().cloned().collect();
        }
        if let Some(filesystem) = &section.filesystem {
            let write = filesystem.write.as_deref().unwrap_or_default();
            ceiling.read.value = readable(filesystem.read.as_deref().unwrap_or_default(), write);
            ceiling.write.value = paths(write);
            if let Some(scratch) = filesystem.scratch {
                ceiling.limits.scratch = Bounded::new(scratch, by());
            }
        }
        ceiling.warm.value = section.warm.unwrap_or(true);
        if let Some(dependencies) = &section.dependencies {
            ceiling.source_builds.value = dependencies.source_builds.unwrap_or(false);
            let hosts = dependencies.index_hosts.as_ref();
            ceiling.index_hosts.value = hosts.map_or_else(Vec::new, |h| h.rules().to_vec());
        }
        // A resource of a file takes the place of the built-in maximum, even when it is larger.
        if let Some(resources) = &section.resources {
            let limits = &mut ceiling.limits;
            set(&mut limits.timeout, resources.timeout, origin);
            set(&mut limits.cpu, resources.cpu, origin);
            set(&mut limits.memory, resources.memory, origin);
            set(
                &mut limits.processes,
                resources.processes.map(u32::from),
                origin,
            );
            set(&mut limits.output, resources.output, origin);
        }
        ceiling.narrow_caller(section, origin);
        ceiling
    }

    /// A tier or category: what it has narrows, what it lacks changes nothing.
    pub(crate) fn narrow_by(&mut self, section: &Section, origin: &Origin) {
        self.sections.push(origin.clone());
        if let Some(isolation) = &section.isolation {
            self.isolation
                .narrow(&isolation.minimum.level(), origin, |a, b| *a.max(b));
        }
        lower(&mut self.trust, section.trust, origin);
        if let Some(audit) = &section.audit {
            if let Some(level) = audit.level {
                self.audit.narrow(&level, origin, |a, b| *a.max(b));
            }
            self.log.overrule(log_terms(audit));
        }
        if let Some(egress) = section.network.as_ref().and_then(|n| n.egress.as_ref()) {
            self.egress
                .narrow(&egress.rules().to_vec(), origin, |a, b| {
                    narrower_egress(a, b)
                });
        }
        if let Some(asked) = section.network.as_ref().and_then(|n| n.budget.as_ref()) {
            let budget = &mut self.budget;
            lower(&mut budget.bytes_out, asked.bytes_out, origin);
            lower(&mut budget.bytes_in, asked.bytes_in, origin);
            lower(&mut budget.connections, asked.connections, origin);
            lower(&mut budget.requests, asked.requests, origin);
            lower(&mut budget.hosts, asked.hosts, origin);
        }
        self.restrict_network(section, origin);
        if let Some(env) = &section.env {
            self.env
                .narrow(&env.iter().cloned().collect(), origin, |a, b| a & b);
        }
        if let Some(filesystem) = &section.filesystem {
            let write = filesystem.write.as_deref().unwrap_or_default();
            if let Some(read) = &filesystem.read {
                self.read
                    .narrow(&readable(read, write), origin, |a, b| roots::meet(a, b));
            }
            if filesystem.write.is_some() {
                self.write
                    .narrow(&paths(write), origin, |a, b| roots::meet(a, b));
            }
            lower(&mut self.limits.scratch, filesystem.scratch, origin);
        }
        if let Some(resources) = &section.resources {
            let limits = &mut self.limits;
            lower(&mut limits.timeout, resources.timeout, origin);
            lower(&mut limits.cpu, resources.cpu, origin);
            lower(&mut limits.memory, resources.memory, origin);
            lower(
                &mut limits.processes,
                resources.processes.map(u32::from),
                origin,
            );
            lower(&mut limits.output, resources.output, origin);
        }
        lower(&mut self.warm, section.warm, origin);
        if let Some(dependencies) = &section.dependencies {
            lower(&mut self.source_builds, dependencies.source_builds, origin);
            if let Some(hosts) = &dependencies.index_hosts {
                self.index_hosts
                    .narrow(&hosts.rules().to_vec(), origin, |a, b| {
                        narrower_egress(a, b)
                    });
            }
        }
        self.narrow_caller(section, origin);
    }

    /// What narrows wherever it stands: denials and bindings of secrets.
    fn restrict_network(&mut self, section: &Section, origin: &Origin) {
        if let Some(network) = &section.network {
            let deny = network.deny.iter().flat_map(|deny| deny.rules());
            self.deny
                .extend(deny.map(|rule| Bounded::new(rule.clone(), origin.clone())));
            if let Some(resolver) = network.resolver {
                self.resolver = Some(Bounded::new(resolver.address(), origin.clone()));
            }
        }
        for secret in section.secrets.iter().flatten() {
            let places = secret.places.clone();
            let bound = SecretBound {
                hosts: secret.hosts.clone(),
                places: places.unwrap_or_else(|| SecretPlace::ALL.to_vec()),
            };
            self.bind(&secret.env, Bounded::new(bound, origin.clone()));
        }
    }

    fn bind(&mut self, name: &EnvName, bound: Bounded<SecretBound>) {
        match self.secrets.get_mut(name) {
            None => {
                self.secrets.insert(name.clone(), bound);
            }
            Some(known) => known.narrow(&bound.value, &bound.origin, |a, b| SecretBound {
                hosts: egress::intersect_hosts(&a.hosts, &b.hosts),
                places: a
                    .places
                    .iter()
                    .copied()
                    .filter(|place| b.places.contains(place))
                    .collect(),
            }),
        }
    }

    fn narrow_caller(&mut self, section: &Section, origin: &Origin) {
        let caller = section.filesystem.as_ref().and_then(|f| f.caller.as_ref());
        if let Some(caller) = caller {
            let read = Bounded::new(readable(&caller.read, &caller.write), origin.clone());
            let write = Bounded::new(paths(&caller.write), origin.clone());
            narrow_optional(&mut self.caller_read, Some(read));
            narrow_optional(&mut self.caller_write, Some(write));
        }
    }

    /// Another file's ceiling: only what both allow is left.
    pub(crate) fn meet(&mut self, other: Ceiling) {
        self.sections.extend(other.sections);
        self.isolation
            .narrow(&other.isolation.value, &other.isolation.origin, |a, b| {
                *a.max(b)
            });
        lower_to(&mut self.trust, other.trust);
        self.audit
            .narrow(&other.audit.value, &other.audit.origin, |a, b| *a.max(b));
        self.log.overrule(other.log);
        self.egress
            .narrow(&other.egress.value, &other.egress.origin, |a, b| {
                narrower_egress(a, b)
            });
        self.deny.extend(other.deny);
        lower_to(&mut self.budget.bytes_out, other.budget.bytes_out);
        lower_to(&mut self.budget.bytes_in, other.budget.bytes_in);
        lower_to(&mut self.budget.connections, other.budget.connections);
        lower_to(&mut self.budget.requests, other.budget.requests);
        lower_to(&mut self.budget.hosts, other.budget.hosts);
        for (name, bound) in other.secrets {
            self.bind(&name, bound);
        }
        self.resolver = other.resolver.or(self.resolver.take());
        self.env
            .narrow(&other.env.value, &other.env.origin, |a, b| a & b);
        self.read
            .narrow(&other.read.value, &other.read.origin, |a, b| {
                roots::meet(a, b)
            });
        self.write
            .narrow(&other.write.value, &other.write.origin, |a, b| {
                roots::meet(a, b)
            });
        narrow_optional(&mut self.caller_read, other.caller_read);
        narrow_optional(&mut self.caller_write, other.caller_write);
        lower_to(&mut self.limits.timeout, other.limits.timeout);
        lower_to(&mut self.limits.cpu, other.limits.cpu);
        lower_to(&mut self.limits.memory, other.limits.memory);
        lower_to(&mut self.limits.processes, other.limits.processes);
        lower_to(&mut self.limits.output, other.limits.output);
        lower_to(&mut self.limits.scratch, other.limits.scratch);
        lower_to(&mut self.source_builds, other.source_builds);
        lower_to(&mut self.warm, other.warm);
        let hosts = other.index_hosts;
        self.index_hosts
            .narrow(&hosts.value, &hosts.origin, |a, b| narrower_egress(a, b));
    }
}

fn log_terms(audit: &AuditFloor) -> LogTerms {
    LogTerms {
        segment: audit.segment,
        segment_days: audit.segment_days.map(u32::from),
        keep: audit.keep,
        keep_days: audit.keep_days.map(u32::from),
    }
}

fn set<T>(slot: &mut Bounded<T>, value: Option<T>, origin: &Origin) {
    if let Some(value) = value {
        *slot = Bounded::new(value, origin.clone());
    }
}

fn lower<T: Ord + Copy>(slot: &mut Bounded<T>, value: Option<T>, origin: &Origin) {
    if let Some(value) = value {
        slot.narrow(&value, origin, |a, b| *a.min(b));
    }
}

fn lower_to<T: Ord + Copy>(slot: &mut Bounded<T>, other: Bounded<T>) {
    lower(slot, Some(other.value), &other.origin);
}

/// A list that the other allows whole stays as it is, and keeps its origin.
fn narrower_egress(a: &[EgressRule], b: &[EgressRule]) -> Vec<EgressRule> {
    if a.iter().all(|rule| egress::allows(b, rule)) {
        a.to_vec()
    } else {
        egress::intersect(a, b)
    }
}

fn narrow_optional(slot: &mut Option<Bounded<Vec<PathBuf>>>, other: Option<Bounded<Vec<PathBuf>>>) {
    match (slot.as_mut(), other) {
        (_, None) => {}
        (None, other) => *slot = other,
        (Some(slot), Some(other)) => {
            slot.narrow(&other.value, &other.origin, |a, b| roots::meet(a, b));
        }
    }
}

fn paths(roots: &[Root]) -> Vec<PathBuf> {
    roots.iter().map(|root| root.path().to_owned()).collect()
}

/// Who may write may read.
fn readable(read: &[Root], write: &[Root]) -> Vec<PathBuf> {
    let mut all = paths(read);
    all.extend(paths(write));
    all
}

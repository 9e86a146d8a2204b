//! How sections and files become one ceiling.
//!
//! Only `of_defaults` sets values. Everything after it goes through `narrow`, which can take the
//! smaller of two values and nothing else: a section that tries to widen changes nothing.

use crate::ceiling::{Bounded, Ceiling, Origin};
use crate::egress;
use crate::file::Section;
use crate::roots::{self, Root};
use skillcell_manifest::EgressRule;
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
        if let Some(network) = &section.network {
            ceiling.egress.value = network.egress.rules().to_vec();
        }
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
        if let Some(dependencies) = &section.dependencies {
            ceiling.source_builds.value = dependencies.source_builds;
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
        if let Some(network) = &section.network {
            self.egress
                .narrow(&network.egress.rules().to_vec(), origin, |a, b| {
                    narrower_egress(a, b)
                });
        }
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
        if let Some(dependencies) = &section.dependencies {
            lower(
                &mut self.source_builds,
                Some(dependencies.source_builds),
                origin,
            );
        }
        self.narrow_caller(section, origin);
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
        self.egress
            .narrow(&other.egress.value, &other.egress.origin, |a, b| {
                narrower_egress(a, b)
            });
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

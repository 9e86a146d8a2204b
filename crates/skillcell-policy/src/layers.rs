//! Policy files, and all of them together.

use crate::assign::{Subject, Tier};
use crate::ceiling::{Ceiling, Origin};
use crate::error::PolicyError;
use crate::file::{PolicyFile, Section};
use crate::parse::parse;

/// One policy file that was read whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorPolicy {
    name: String,
    file: PolicyFile,
}

impl OperatorPolicy {
    /// Reads a policy; `file` is its name in messages and in `explain`.
    pub fn parse(text: &str, file: &str) -> Result<Self, PolicyError> {
        Ok(OperatorPolicy {
            name: file.to_owned(),
            file: parse(text, file)?,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn file(&self) -> &PolicyFile {
        &self.file
    }

    /// The tier that this file gives to a skill; a manifest's own `tier` is never asked.
    pub fn tier_of(&self, subject: &Subject<'_>) -> Tier {
        let entry = self.file.assign.iter().find(|entry| entry.matches(subject));
        entry.map(|entry| entry.tier).unwrap_or_default()
    }

    /// What this file alone allows: `defaults`, narrowed by the tier and by every category that
    /// matches.
    pub fn ceiling_for(&self, subject: &Subject<'_>) -> Ceiling {
        let origin = |section: String| Origin::File {
            file: self.name.clone(),
            section,
        };
        let mut ceiling = Ceiling::of_defaults(&self.file.defaults, &origin("defaults".into()));
        let tier = self.tier_of(subject);
        ceiling.narrow_by(self.tier_section(tier), &origin(format!("tiers.{tier}")));
        for (pattern, section) in &self.file.categories {
            if pattern.matches(subject) {
                let name = format!("categories.\"{}\"", pattern.as_str());
                ceiling.narrow_by(section, &origin(name));
            }
        }
        ceiling
    }

    fn tier_section(&self, tier: Tier) -> &Section {
        match tier {
            Tier::Core => &self.file.tiers.core,
            Tier::Verified => &self.file.tiers.verified,
            Tier::External => &self.file.tiers.external,
        }
    }
}

/// Every policy file that applies, in the order in which they were looked up. Each is a ceiling
/// for all others, so the order decides nothing but whose name stands beside equal values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layers {
    layers: Vec<OperatorPolicy>,
}

impl Layers {
    pub fn new(layers: Vec<OperatorPolicy>) -> Self {
        Layers { layers }
    }

    pub fn files(&self) -> &[OperatorPolicy] {
        &self.layers
    }

    /// What all files together allow, or the built-in ceiling where there is none.
    pub fn ceiling_for(&self, subject: &Subject<'_>) -> Ceiling {
        let mut ceilings = self.layers.iter().map(|layer| layer.ceiling_for(subject));
        let Some(mut ceiling) = ceilings.next() else {
            return Ceiling::built_in();
        };
        ceilings.for_each(|other| ceiling.meet(other));
        ceiling
    }
}

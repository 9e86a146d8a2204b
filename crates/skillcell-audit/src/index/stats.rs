//! Calls in numbers.

use super::Index;
use super::filter::{Conditions, Filter};
use super::keys::Facet;
use crate::AuditError;
use rusqlite::params_from_iter;
use rusqlite::types::Value;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    pub calls: u64,
    pub events: u64,
    pub denials: u64,
    /// Of the first and of the last call, in microseconds since 1970.
    pub first_us: Option<u64>,
    pub last_us: Option<u64>,
    /// Calls by how they ended; `unfinished` for those that didn't.
    pub statuses: Vec<Count>,
    /// Most called first.
    pub skills: Vec<SkillStats>,
    pub durations: Durations,
    pub denials_by_reason: Vec<Count>,
    pub hosts: Vec<Count>,
    pub paths: Vec<Count>,
    /// Recorded ones: at level `full`, and denied ones.
    pub syscalls: Vec<Count>,
    /// All that the level looks at, by class.
    pub syscall_classes: Vec<Count>,
    pub kinds: Vec<Count>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Count {
    pub name: String,
    pub count: u64,
    /// In how many calls.
    pub calls: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkillStats {
    pub skill: Option<String>,
    pub calls: u64,
    pub ok: u64,
    pub denials: u64,
    pub durations: Durations,
}

/// Wall-clock milliseconds, by nearest rank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Durations {
    pub p50_ms: Option<u64>,
    pub p90_ms: Option<u64>,
    pub p99_ms: Option<u64>,
    pub max_ms: Option<u64>,
}

impl Durations {
    fn of(mut millis: Vec<u64>) -> Durations {
        millis.sort_unstable();
        let rank = |percent: usize| {
            let rank = (percent * millis.len()).div_ceil(100).max(1);
            millis.get(rank - 1).copied()
        };
        Durations {
            p50_ms: rank(50),
            p90_ms: rank(90),
            p99_ms: rank(99),
            max_ms: millis.last().copied(),
        }
    }
}

/// What one skill's calls add up to.
#[derive(Default)]
struct Sum {
    calls: u64,
    ok: u64,
    denials: u64,
    millis: Vec<u64>,
}

impl Index {
    /// Calls that fit, in numbers; at most `top` of each kind of thing.
    pub fn stats(&self, filter: &Filter, top: usize) -> Result<Stats, AuditError> {
        let conditions = filter.of_calls();
        self.sum(&conditions, top).map_err(self.failed())
    }

    fn sum(&self, conditions: &Conditions, top: usize) -> rusqlite::Result<Stats> {
        let mut stats = Stats::default();
        let mut statuses: BTreeMap<String, u64> = BTreeMap::new();
        let mut skills: BTreeMap<Option<String>, Sum> = BTreeMap::new();
        let sql = format!(
            "SELECT c.skill, c.status, c.wall_ms, c.denials, c.events, c.started_us FROM calls c {}",
            conditions.clause()
        );
        let mut statement = self.connection.prepare(&sql)?;
        let mut rows = statement.query(params_from_iter(conditions.values.clone()))?;
        while let Some(row) = rows.next()? {
            let status: Option<String> = row.get(1)?;
            let denials: u64 = row.get(3)?;
            let events: u64 = row.get(4)?;
            let started: u64 = row.get(5)?;
            stats.calls += 1;
            stats.events += events;
            stats.denials += denials;
            stats.first_us = Some(stats.first_us.map_or(started, |t| t.min(started)));
            stats.last_us = Some(stats.last_us.map_or(started, |t| t.max(started)));
            let sum = skills.entry(row.get(0)?).or_default();
            sum.calls += 1;
            sum.ok += u64::from(status.as_deref() == Some("ok"));
            sum.denials += denials;
            sum.millis.extend(row.get::<_, Option<u64>>(2)?);
            let status = status.unwrap_or_else(|| "unfinished".to_owned());
            *statuses.entry(status).or_default() += 1;
        }
        stats.statuses = statuses
            .into_iter()
            .map(|(name, calls)| Count {
                name,
                count: calls,
                calls,
            })
            .collect();
        stats.statuses.sort_by_key(|s| std::cmp::Reverse(s.calls));
        let all = skills.values().flat_map(|s| s.millis.iter().copied());
        stats.durations = Durations::of(all.collect());
        stats.skills = skills
            .into_iter()
            .map(|(skill, sum)| SkillStats {
                skill,
                calls: sum.calls,
                ok: sum.ok,
                denials: sum.denials,
                durations: Durations::of(sum.millis),
            })
            .collect();
        stats.skills.sort_by_key(|s| std::cmp::Reverse(s.calls));
        stats.skills.truncate(top);
        stats.denials_by_reason = self.top(Facet::Denial, conditions, top)?;
        stats.hosts = self.top(Facet::Host, conditions, top)?;
        stats.paths = self.top(Facet::Path, conditions, top)?;
        stats.syscalls = self.top(Facet::Syscall, conditions, top)?;
        stats.syscall_classes = self.top(Facet::Class, conditions, top)?;
        stats.kinds = self.top(Facet::Kind, conditions, usize::MAX)?;
        Ok(stats)
    }

    fn top(
        &self,
        facet: Facet,
        conditions: &Conditions,
        top: usize,
    ) -> rusqlite::Result<Vec<Count>> {
        let mut values = vec![Value::from(facet as i64)];
        let chosen = if conditions.is_empty() {
            String::new()
        } else {
            values.extend(conditions.values.iter().cloned());
            format!(
                "AND call IN (SELECT c.id FROM calls c {})",
                conditions.clause()
            )
        };
        let sql = format!(
            "SELECT value, sum(count), count(*) FROM facts WHERE facet = ? {chosen}
             GROUP BY value ORDER BY 2 DESC, 1 LIMIT {}",
            i64::try_from(top).unwrap_or(-1)
        );
        let mut statement = self.connection.prepare(&sql)?;
        let rows = statement.query_map(params_from_iter(values), |row| {
            Ok(Count {
                name: row.get(0)?,
                count: row.get(1)?,
                calls: row.get(2)?,
            })
        })?;
        rows.collect()
    }
}

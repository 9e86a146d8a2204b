//! Two lists of egress rules, and what both of them allow.
//!
//! The answer is exact or narrower, never wider. Two traps decide how it is written:
//! an empty `http` list means "any request", so an empty intersection of two HTTP lists must drop
//! the rule, not leave the list empty; and a rule by name and a rule by address don't meet at all,
//! because no single rule can say "this name, when it resolves to that network".

use ipnet::IpNet;
use skillcell_core::{HostPattern, NormalPath};
use skillcell_manifest::{EgressRule, HttpRule};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Domains, networks, ports, methods and paths in a skill's list of rules. Bounds the work of
/// comparing two lists, of which one may come from a hostile manifest.
pub const MAX_EGRESS_ENTRIES: usize = 1024;

/// The same for an operator's list: ten thousand rules with room to spare.
pub const MAX_OPERATOR_ENTRIES: usize = 1 << 16;

/// How many entries a list of rules has, to be held against [`MAX_EGRESS_ENTRIES`].
pub fn entries(rules: &[EgressRule]) -> usize {
    rules.iter().map(rule_entries).sum()
}

fn rule_entries(rule: &EgressRule) -> usize {
    let http: usize = rule
        .http
        .iter()
        .map(|h| h.methods.len() + h.paths.len() + 1)
        .sum();
    rule.domains.len() + rule.cidrs.len() + rule.ports.len() + http + 1
}

/// What both lists allow. Should the answer not fit in [`MAX_OPERATOR_ENTRIES`], the rest of it is
/// left out: less is allowed, never more.
pub fn intersect(a: &[EgressRule], b: &[EgressRule]) -> Vec<EgressRule> {
    /// Up to here also what another rule covers is left out; beyond only what is equal, because
    /// comparing all with all would take seconds.
    const TIDY: usize = 256;
    let mut both: Vec<EgressRule> = Vec::new();
    let mut seen: HashSet<EgressRule> = HashSet::new();
    let mut size = 0;
    let index = Index::of(b);
    for x in a {
        for y in index.near(x) {
            let y = &b[y];
            // First what needs no memory: two long lists about one host differ by port.
            if !x.ports.iter().any(|port| y.ports.contains(port)) {
                continue;
            }
            let Some(rule) = meet(x, y) else { continue };
            if seen.contains(&rule) || (both.len() < TIDY && allows(&both, &rule)) {
                continue;
            }
            size += rule_entries(&rule);
            if size > MAX_OPERATOR_ENTRIES {
                return both;
            }
            seen.insert(rule.clone());
            both.push(rule);
        }
    }
    both
}

/// The narrower of each pair of patterns of which one covers the other.
pub fn intersect_hosts(a: &[HostPattern], b: &[HostPattern]) -> Vec<HostPattern> {
    meet_by(a, b, HostPattern::covers)
}

/// Rules by their hosts, so that two long lists are not compared each with each.
struct Index<'a> {
    /// By the base of the pattern and every name above it.
    below: HashMap<&'a str, Vec<usize>>,
    /// By the pattern as it stands.
    patterns: HashMap<&'a str, Vec<usize>>,
    with_networks: Vec<usize>,
}

impl<'a> Index<'a> {
    fn of(rules: &'a [EgressRule]) -> Self {
        let mut index = Index {
            below: HashMap::new(),
            patterns: HashMap::new(),
            with_networks: Vec::new(),
        };
        for (place, rule) in rules.iter().enumerate() {
            if !rule.cidrs.is_empty() {
                index.with_networks.push(place);
            }
            for domain in &rule.domains {
                let patterns = index.patterns.entry(domain.as_str()).or_default();
                patterns.push(place);
                let base = domain.wildcard_base().unwrap_or(domain.as_str());
                for name in names_from(base) {
                    index.below.entry(name).or_default().push(place);
                }
            }
        }
        index
    }

    /// Places of rules that may have a host in common with this one, in order.
    fn near(&self, rule: &EgressRule) -> Vec<usize> {
        let mut found = BTreeSet::new();
        if !rule.cidrs.is_empty() {
            found.extend(&self.with_networks);
        }
        for domain in &rule.domains {
            found.extend(self.patterns.get(domain.as_str()).into_iter().flatten());
            let base = match domain.wildcard_base() {
                Some(base) => {
                    found.extend(self.below.get(base).into_iter().flatten());
                    base
                }
                None => domain.as_str(),
            };
            for name in names_from(base) {
                let wildcard = format!("*.{name}");
                found.extend(self.patterns.get(wildcard.as_str()).into_iter().flatten());
            }
        }
        found.into_iter().copied().collect()
    }
}

/// A name and every name above it.
fn names_from(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |rest| rest.split_once('.').map(|(_, r)| r))
}

/// Whether one rule of the list allows everything that `rule` allows.
pub fn allows(list: &[EgressRule], rule: &EgressRule) -> bool {
    list.iter().any(|outer| covers(outer, rule))
}

fn covers(outer: &EgressRule, inner: &EgressRule) -> bool {
    inner.ports.iter().all(|port| outer.ports.contains(port))
        && inner
            .domains
            .iter()
            .all(|d| outer.domains.iter().any(|o| o.covers(d)))
        && inner
            .cidrs
            .iter()
            .all(|c| outer.cidrs.iter().any(|o| o.contains(c)))
        && http_covers(&outer.http, &inner.http)
}

fn http_covers(outer: &[HttpRule], inner: &[HttpRule]) -> bool {
    if outer.is_empty() {
        return true;
    }
    !inner.is_empty()
        && inner.iter().all(|i| {
            outer.iter().any(|o| {
                i.methods.iter().all(|m| o.methods.contains(m))
                    && i.paths
                        .iter()
                        .all(|p| o.paths.iter().any(|q| path_covers(q, p)))
            })
        })
}

fn meet(a: &EgressRule, b: &EgressRule) -> Option<EgressRule> {
    let ports = meet_by(&a.ports, &b.ports, |x, y| x == y);
    if ports.is_empty() {
        return None;
    }
    let domains = meet_by(&a.domains, &b.domains, HostPattern::covers);
    let cidrs = meet_by(&a.cidrs, &b.cidrs, |x: &IpNet, y: &IpNet| x.contains(y));
    if domains.is_empty() && cidrs.is_empty() {
        return None;
    }
    let http = meet_http(&a.http, &b.http)?;
    Some(EgressRule {
        domains,
        cidrs,
        ports,
        http,
    })
}

/// `None` where no request is left; `Some([])` only where neither side restricts requests.
fn meet_http(a: &[HttpRule], b: &[HttpRule]) -> Option<Vec<HttpRule>> {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => return Some(b.to_vec()),
        (_, true) => return Some(a.to_vec()),
        (false, false) => {}
    }
    let mut both = Vec::new();
    for (x, y) in a.iter().flat_map(|x| b.iter().map(move |y| (x, y))) {
        let methods = meet_by(&x.methods, &y.methods, |m, n| m == n);
        let paths = meet_by(&x.paths, &y.paths, |p, q| path_covers(p, q));
        let rule = HttpRule { methods, paths };
        if !rule.methods.is_empty() && !rule.paths.is_empty() && !both.contains(&rule) {
            both.push(rule);
        }
    }
    (!both.is_empty()).then_some(both)
}

/// The narrower of each pair of which one covers the other.
fn meet_by<T: Clone + PartialEq>(a: &[T], b: &[T], covers: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let mut both: Vec<T> = Vec::new();
    for (x, y) in a.iter().flat_map(|x| b.iter().map(move |y| (x, y))) {
        let narrower = if covers(x, y) {
            y
        } else if covers(y, x) {
            x
        } else {
            continue;
        };
        if !both.contains(narrower) {
            both.push(narrower.clone());
        }
    }
    both
}

/// Whether `outer` surely matches every path that `inner` matches. A closing `*` is any rest, so a
/// plain prefix of one is all that has to be compared; patterns are in normal form, where a prefix
/// of the text is a prefix of the path.
fn path_covers(outer: &str, inner: &str) -> bool {
    if outer == inner {
        return true;
    }
    match outer.strip_suffix('*') {
        Some(prefix) if !prefix.contains('*') => {
            inner.strip_suffix('*').unwrap_or(inner).starts_with(prefix)
                && NormalPath::parse(inner).is_ok_and(|path| path.as_str() == inner)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(domains: &[&str], cidrs: &[&str], ports: &[u16]) -> EgressRule {
        EgressRule {
            domains: domains
                .iter()
                .map(|d| HostPattern::parse(d).expect("a domain"))
                .collect(),
            cidrs: cidrs
                .iter()
                .map(|c| c.parse().expect("a network"))
                .collect(),
            ports: ports.to_vec(),
            http: Vec::new(),
        }
    }

    fn with_http(mut rule: EgressRule, method: &str, path: &str) -> EgressRule {
        rule.http.push(HttpRule {
            methods: vec![method.into()],
            paths: vec![path.into()],
        });
        rule
    }

    #[test]
    fn the_narrower_host_network_and_port_win() {
        let asked = [rule(
            &["*.example.com", "other.org"],
            &["10.0.0.0/8"],
            &[80, 443],
        )];
        let ceiling = [rule(
            &["api.example.com"],
            &["10.1.0.0/16", "192.0.2.0/24"],
            &[443],
        )];
        let both = intersect(&asked, &ceiling);
        assert_eq!(both, [rule(&["api.example.com"], &["10.1.0.0/16"], &[443])]);
        assert_eq!(both, intersect(&ceiling, &asked));
    }

    #[test]
    fn an_empty_list_of_ports_allows_no_port() {
        let any = [rule(&["a.example.com"], &[], &[])];
        assert_eq!(
            intersect(&any, &[rule(&["a.example.com"], &[], &[443])]),
            []
        );
    }

    #[test]
    fn names_and_addresses_do_not_meet() {
        let by_name = [rule(&["a.example.com"], &[], &[443])];
        let by_address = [rule(&[], &["0.0.0.0/0"], &[443])];
        assert_eq!(intersect(&by_name, &by_address), []);
    }

    #[test]
    fn disjoint_http_rules_leave_nothing_instead_of_everything() {
        let host = || rule(&["a.example.com"], &[], &[443]);
        let get = [with_http(host(), "GET", "/x")];
        let post = [with_http(host(), "POST", "/x")];
        assert_eq!(intersect(&get, &post), []);
        assert_eq!(intersect(&get, &[host()]), get);
        assert_eq!(intersect(&[host()], &get), get);
    }

    #[test]
    fn path_patterns_cover_only_what_is_certain() {
        for (outer, inner) in [
            ("/repos/*", "/repos/x"),
            ("/repos/*", "/repos/x*"),
            ("/x", "/x"),
            ("/repos/*", "/repos/a/b"),
            ("/repos/*", "/repos/"),
            ("/repos/*", "/repos/*/issues"),
            ("/*", "/repos/*"),
        ] {
            assert!(path_covers(outer, inner), "{outer} {inner}");
        }
        for (outer, inner) in [
            ("/repos/*", "/repos/.."),
            ("/repos/*", "/repos/%2e%2e"),
            ("/repos/*", "/repos*"),
            ("/repos/*", "/repos"),
            ("/a/*/b*", "/a/*/bc"),
            ("/x", "/*"),
        ] {
            assert!(!path_covers(outer, inner), "{outer} {inner}");
        }
    }

    #[test]
    fn a_list_is_its_own_intersection_and_stays_within_the_bound() {
        let many: Vec<_> = (0..300u16)
            .map(|port| rule(&["a.example.com"], &[], &[port]))
            .collect();
        assert_eq!(intersect(&many, &many), many);
        let huge: Vec<_> = (0..2000u16)
            .map(|port| rule(&["a.example.com"], &[], &[port]))
            .collect();
        assert!(entries(&intersect(&huge, &huge)) <= MAX_OPERATOR_ENTRIES);
    }
}

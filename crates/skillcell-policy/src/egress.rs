//! Two lists of egress rules, and what both of them allow.
//!
//! The answer is exact or narrower, never wider. Two traps decide how it is written:
//! an empty `http` list means "any request", so an empty intersection of two HTTP lists must drop
//! the rule, not leave the list empty; and a rule by name and a rule by address don't meet at all,
//! because no single rule can say "this name, when it resolves to that network".

use ipnet::IpNet;
use skillcell_core::HostPattern;
use skillcell_manifest::{EgressRule, HttpRule};

/// Domains, networks, ports, methods and paths in one list of rules. Bounds the work of comparing
/// two lists, of which one may come from a hostile manifest.
pub const MAX_EGRESS_ENTRIES: usize = 1024;

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

/// What both lists allow. Should the answer not fit in [`MAX_EGRESS_ENTRIES`], the rest of it is
/// left out: less is allowed, never more.
pub fn intersect(a: &[EgressRule], b: &[EgressRule]) -> Vec<EgressRule> {
    let mut both: Vec<EgressRule> = Vec::new();
    let mut size = 0;
    for (x, y) in a.iter().flat_map(|x| b.iter().map(move |y| (x, y))) {
        let Some(rule) = meet(x, y) else { continue };
        if allows(&both, &rule) {
            continue;
        }
        size += rule_entries(&rule);
        if size > MAX_EGRESS_ENTRIES {
            break;
        }
        both.push(rule);
    }
    both
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

/// Whether `outer` surely matches every path that `inner` matches. Says yes only where that holds
/// whether `*` stands for one segment or for any run: one closing `*`, and behind the common prefix
/// plain characters of one segment.
fn path_covers(outer: &str, inner: &str) -> bool {
    if outer == inner {
        return true;
    }
    let Some(prefix) = outer.strip_suffix('*') else {
        return false;
    };
    let Some(rest) = inner.strip_prefix(prefix) else {
        return false;
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~' | b'*');
    let segment = inner.rsplit('/').next().unwrap_or(inner);
    !prefix.contains('*')
        && !rest.is_empty()
        && rest.bytes().all(plain)
        && segment.bytes().any(|b| b != b'.' && b != b'*')
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
        ] {
            assert!(path_covers(outer, inner), "{outer} {inner}");
        }
        for (outer, inner) in [
            ("/repos/*", "/repos/a/b"),
            ("/repos/*", "/repos/.."),
            ("/repos/*", "/repos/%2e%2e"),
            ("/repos/*", "/repos/"),
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
        let huge: Vec<_> = (0..9000u16)
            .map(|port| rule(&["a.example.com"], &[], &[port]))
            .collect();
        assert!(entries(&intersect(&huge, &huge)) <= MAX_EGRESS_ENTRIES);
    }
}

use super::*;
use skillcell_core::{DenyPattern, HostPattern};

fn rule(hosts: &[&str], ports: &[u16]) -> EgressRule {
    let (cidrs, domains): (Vec<&str>, Vec<&str>) = hosts.iter().partition(|h| h.contains('/'));
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

fn http(mut rule: EgressRule, method: &str, path: &str) -> EgressRule {
    rule.http.push(HttpRule {
        methods: vec![method.into()],
        paths: vec![path.into()],
    });
    rule
}

fn deny(hosts: &[&str], ports: &[u16]) -> DenyRule {
    let (cidrs, domains): (Vec<&str>, Vec<&str>) = hosts.iter().partition(|h| h.contains('/'));
    DenyRule {
        domains: domains
            .iter()
            .map(|d| DenyPattern::parse(d).expect("a domain"))
            .collect(),
        cidrs: cidrs
            .iter()
            .map(|c| c.parse().expect("a network"))
            .collect(),
        ports: ports.to_vec(),
    }
}

fn ask(egress: &Egress, host: &str, ask: Ask<'_>) -> Decision {
    let host = Host::parse(host).expect("a host");
    egress.decide(&Intent { host: &host, ask })
}

fn connect(egress: &Egress, host: &str, port: u16) -> Result<(usize, bool), Reason> {
    outcome(ask(egress, host, Ask::Connect { port }))
}

fn dial(egress: &Egress, host: &str, address: &str, own: bool) -> Result<(usize, bool), Reason> {
    let address = address.parse().expect("an address");
    let port = 443;
    outcome(ask(egress, host, Ask::Dial { address, port, own }))
}

fn request(egress: &Egress, host: &str, method: &str, path: &str) -> Result<(usize, bool), Reason> {
    let path = &NormalPath::parse(path).expect("a path");
    let port = 443;
    outcome(ask(egress, host, Ask::Request { port, method, path }))
}

fn outcome(decision: Decision) -> Result<(usize, bool), Reason> {
    match decision {
        Decision::Allow { rule, inspect } => Ok((rule, inspect)),
        Decision::Deny { reason, .. } => Err(reason),
    }
}

#[test]
fn without_rules_nothing_is_allowed() {
    let none = Egress::compile(&[], &[]);
    assert_eq!(connect(&none, "a.com", 443), Err(Reason::NetworkNotAllowed));
    assert_eq!(
        outcome(ask(&none, "a.com", Ask::Resolve)),
        Err(Reason::NetworkNotAllowed)
    );
    assert!(none.ports().is_empty() && !none.needs_inspection());
}

#[test]
fn names_suffixes_and_networks_are_allowed_on_their_ports_only() {
    let egress = Egress::compile(
        &[
            rule(&["api.example.com"], &[443]),
            rule(&["*.example.org"], &[443, 8443]),
            rule(&["203.0.113.0/24", "2001:db8::/32"], &[5432]),
            rule(&["plain.example.net"], &[]),
        ],
        &[],
    );
    assert_eq!(connect(&egress, "API.example.com.", 443), Ok((0, false)));
    assert_eq!(
        connect(&egress, "api.example.com", 80),
        Err(Reason::PortNotAllowed)
    );
    assert_eq!(
        connect(&egress, "x.api.example.com", 443),
        Err(Reason::HostNotAllowed)
    );
    assert_eq!(connect(&egress, "a.b.example.org", 8443), Ok((1, false)));
    assert_eq!(
        connect(&egress, "example.org", 443),
        Err(Reason::HostNotAllowed)
    );
    assert_eq!(
        connect(&egress, "badexample.org", 443),
        Err(Reason::HostNotAllowed)
    );
    assert_eq!(connect(&egress, "203.0.113.9", 5432), Ok((2, false)));
    assert_eq!(connect(&egress, "[2001:db8::9]", 5432), Ok((2, false)));
    assert_eq!(
        connect(&egress, "[::ffff:203.0.113.9]", 5432),
        Ok((2, false))
    );
    assert_eq!(
        connect(&egress, "203.0.114.1", 5432),
        Err(Reason::HostNotAllowed)
    );
    assert_eq!(connect(&egress, "plain.example.net", 80), Ok((3, false)));
    assert_eq!(
        connect(&egress, "plain.example.net", 22),
        Err(Reason::PortNotAllowed)
    );
    assert_eq!(egress.ports(), [80, 443, 5432, 8443]);
}

#[test]
fn a_wildcard_does_not_reach_a_public_suffix() {
    let egress = Egress::compile(&[rule(&["*.amazonaws.com"], &[443])], &[]);
    assert!(connect(&egress, "sts.amazonaws.com", 443).is_ok());
    assert_eq!(
        connect(&egress, "s3.amazonaws.com", 443),
        Err(Reason::HostNotAllowed)
    );
}

#[test]
fn a_deny_entry_wins_over_every_rule() {
    let egress = Egress::compile(
        &[rule(
            &[
                "*.example.com",
                "203.0.113.0/24",
                "*.amazonaws.com",
                "s3.amazonaws.com",
            ],
            &[443, 80],
        )],
        &[
            deny(&["bad.example.com", "*.evil.example.com"], &[]),
            deny(&["half.example.com"], &[80]),
            deny(&["203.0.113.7/32"], &[]),
            deny(&["*.com.cn", "*.amazonaws.com"], &[]),
        ],
    );
    let denied = Err(Reason::DeniedByRule);
    assert!(connect(&egress, "evil.example.com", 443).is_ok());
    assert_eq!(connect(&egress, "x.evil.example.com", 443), denied);
    assert_eq!(connect(&egress, "bad.example.com", 443), denied);
    assert_eq!(connect(&egress, "half.example.com", 80), denied);
    assert!(connect(&egress, "half.example.com", 443).is_ok());
    assert_eq!(connect(&egress, "203.0.113.7", 443), denied);
    assert!(connect(&egress, "203.0.113.8", 443).is_ok());
    assert_eq!(connect(&egress, "s3.amazonaws.com", 443), denied);
    assert_eq!(
        outcome(ask(&egress, "bad.example.com", Ask::Resolve)),
        denied
    );
    assert!(ask(&egress, "half.example.com", Ask::Resolve).is_allowed());
    assert_eq!(dial(&egress, "a.example.com", "203.0.113.7", false), denied);
    assert_eq!(
        dial(&egress, "a.example.com", "::ffff:203.0.113.7", false),
        denied
    );
    assert_eq!(
        ask(&egress, "bad.example.com", Ask::Connect { port: 443 }),
        Decision::Deny {
            reason: Reason::DeniedByRule,
            rule: Some("deny bad.example.com".into())
        }
    );
}

#[test]
fn an_allowed_name_is_not_dialled_at_a_special_address() {
    let egress = Egress::compile(
        &[
            rule(&["*.example.com"], &[443]),
            rule(&["10.0.0.0/8"], &[443]),
            rule(&["192.168.0.0/16"], &[80]),
        ],
        &[],
    );
    assert!(dial(&egress, "a.example.com", "203.0.113.5", false).is_ok());
    for special in [
        "127.0.0.1",
        "169.254.169.254",
        "192.168.1.1",
        "::1",
        "fd00:ec2::254",
        "fe80::1",
        "::ffff:10.0.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "224.0.0.1",
        "0.0.0.0",
        "198.18.0.1",
    ] {
        assert_eq!(
            dial(&egress, "a.example.com", special, false),
            Err(Reason::AddressNotPublic),
            "{special}"
        );
    }
    assert_eq!(
        dial(&egress, "a.example.com", "203.0.113.5", true),
        Err(Reason::AddressNotPublic)
    );
    assert!(dial(&egress, "a.example.com", "10.1.2.3", false).is_ok());
    assert_eq!(
        dial(&egress, "a.example.com", "10.1.2.3", true),
        Err(Reason::AddressNotPublic)
    );
    assert_eq!(
        dial(&egress, "b.example.org", "203.0.113.5", false),
        Err(Reason::HostNotAllowed)
    );
}

#[test]
fn a_rule_for_the_whole_internet_names_no_special_address() {
    let egress = Egress::compile(&[rule(&["0.0.0.0/0", "::/0", "fc00::/7"], &[443])], &[]);
    assert!(connect(&egress, "203.0.113.5", 443).is_ok());
    assert!(dial(&egress, "203.0.113.5", "203.0.113.5", false).is_ok());
    assert_eq!(
        dial(&egress, "203.0.113.5", "203.0.113.5", true),
        Err(Reason::AddressNotPublic)
    );
    assert_eq!(
        dial(&egress, "203.0.113.5", "203.0.113.6", false),
        Err(Reason::HostNotAllowed)
    );
    for special in [
        "127.0.0.1",
        "169.254.169.254",
        "10.0.0.1",
        "[::1]",
        "[64:ff9b::a00:1]",
    ] {
        assert_eq!(
            connect(&egress, special, 443),
            Err(Reason::AddressNotPublic),
            "{special}"
        );
    }
    assert!(connect(&egress, "[fd12::1]", 443).is_ok());
}

/// `network` is all that is allowed; whether it names `address`.
fn names(network: &str, address: &str, own: bool) -> bool {
    let egress = Egress::compile(&[rule(&[network], &[443])], &[]);
    let host = match address.contains(':') {
        true => format!("[{address}]"),
        false => address.to_owned(),
    };
    assert_ne!(
        dial(&egress, &host, address, own),
        Err(Reason::HostNotAllowed),
        "{network} is around {address}"
    );
    dial(&egress, &host, address, own).is_ok()
}

#[test]
fn a_network_names_special_addresses_only_when_it_has_no_others() {
    for (network, address) in [
        ("10.0.0.0/8", "10.1.2.3"),
        ("10.1.0.0/16", "10.1.2.3"),
        ("127.0.0.0/8", "127.0.0.1"),
        ("169.254.0.0/16", "169.254.1.1"),
        ("169.254.169.254/32", "169.254.169.254"),
        ("168.63.129.16/32", "168.63.129.16"),
        ("100.64.0.0/10", "100.64.0.1"),
        ("fc00::/7", "fd12::1"),
        ("fd12::/16", "fd12::1"),
        ("::1/128", "::1"),
    ] {
        assert!(names(network, address, false), "{network} {address}");
    }
    for (network, address) in [
        ("168.0.0.0/5", "169.254.169.254"),
        ("168.0.0.0/8", "168.63.129.16"),
        ("169.0.0.0/8", "169.254.1.1"),
        ("169.254.0.0/16", "169.254.169.254"),
        ("192.0.0.0/8", "192.168.1.1"),
        ("172.0.0.0/8", "172.16.0.1"),
        ("8.0.0.0/5", "10.1.2.3"),
        ("100.0.0.0/8", "100.64.0.1"),
        ("100.64.0.0/10", "100.100.100.200"),
        ("0.0.0.0/0", "127.0.0.1"),
        ("f000::/4", "fd12::1"),
        ("fc00::/7", "fd00:ec2::254"),
        ("::/8", "::1"),
        ("::/0", "64:ff9b::808:808"),
    ] {
        assert!(!names(network, address, false), "{network} {address}");
    }
}

#[test]
fn an_address_of_this_host_is_named_by_itself_alone() {
    assert!(names("203.0.113.5/32", "203.0.113.5", true));
    assert!(!names("203.0.113.0/24", "203.0.113.5", true));
    assert!(names("10.1.2.3/32", "10.1.2.3", true));
    assert!(!names("10.1.2.0/24", "10.1.2.3", true));
    assert!(names("127.0.0.0/8", "127.0.0.1", true));
}

#[test]
fn what_stands_for_an_ipv4_address_is_held_to_the_rules_for_that() {
    let translated = |rules: &[&str], address: &str| {
        let egress = Egress::compile(&[rule(rules, &[443])], &[]);
        dial(&egress, &format!("[{address}]"), address, false)
    };
    let (public, private) = ("64:ff9b::cb00:7105", "64:ff9b::a00:5");
    let metadata = ["64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"];
    assert!(translated(&["64:ff9b::/96"], public).is_ok());
    assert!(translated(&["64:ff9b::/96", "10.0.0.0/8"], private).is_ok());
    let refused = Err(Reason::AddressNotPublic);
    assert_eq!(translated(&["64::/16"], public), refused);
    assert_eq!(translated(&["64:ff9b::/96"], private), refused);
    assert_eq!(translated(&["64:ff9b::a00:5/128"], private), refused);
    assert_eq!(translated(&["64:ff9b::/96", "0.0.0.0/0"], private), refused);
    for address in metadata {
        let wide = ["64:ff9b::/96", "2002::/16", "169.254.0.0/16"];
        assert_eq!(translated(&wide, address), refused, "{address}");
    }
}

#[test]
fn requests_are_asked_for_unless_a_rule_allows_them_all() {
    let host = || rule(&["api.example.com"], &[443]);
    let rules = [http(host(), "GET", "/repos/*"), http(host(), "POST", "/x")];
    let egress = Egress::compile(&rules, &[]);
    assert!(egress.needs_inspection());
    assert_eq!(connect(&egress, "api.example.com", 443), Ok((0, true)));
    assert_eq!(
        request(&egress, "api.example.com", "GET", "/repos/a/b"),
        Ok((0, true))
    );
    assert_eq!(
        request(&egress, "api.example.com", "POST", "/x"),
        Ok((1, true))
    );
    for (method, path) in [
        ("POST", "/repos/a"),
        ("get", "/repos/a"),
        ("GET", "/repos/../x"),
        ("GET", "/x"),
    ] {
        assert_eq!(
            request(&egress, "api.example.com", method, path),
            Err(Reason::HttpRequestNotAllowed),
            "{method} {path}"
        );
    }
    let wide = [http(host(), "GET", "/x"), rule(&["*.example.com"], &[443])];
    let egress = Egress::compile(&wide, &[]);
    assert_eq!(connect(&egress, "api.example.com", 443), Ok((1, false)));
    assert_eq!(
        request(&egress, "api.example.com", "PUT", "/y"),
        Ok((1, false))
    );
    assert_eq!(
        request(&egress, "b.example.org", "PUT", "/y"),
        Err(Reason::HostNotAllowed)
    );
}

#[test]
fn a_denied_network_in_ipv6_clothes_is_denied_without_them() {
    let egress = Egress::compile(
        &[rule(&["10.0.0.0/8"], &[80])],
        &[deny(&["::ffff:10.0.0.0/104"], &[])],
    );
    let decision = ask(&egress, "10.0.0.5", Ask::Connect { port: 80 });
    assert!(!decision.is_allowed());
}

#[test]
fn a_rule_about_some_requests_to_an_address_opens_it_to_no_name() {
    let egress = Egress::compile(
        &[
            http(rule(&["10.0.0.5/32"], &[80]), "GET", "/public/*"),
            rule(&["evil.example.com"], &[80]),
        ],
        &[],
    );
    let dial = Ask::Dial {
        address: "10.0.0.5".parse().expect("an address"),
        port: 80,
        own: false,
    };
    assert!(!ask(&egress, "evil.example.com", dial).is_allowed());
}

#[test]
fn a_name_of_the_caller_s_own_may_lead_home_but_never_to_a_control_plane() {
    let rules = [rule(&["index.example.com", "other.example.com"], &[443])];
    let name = DomainName::parse("index.example.com").expect("a name");
    let plain = Egress::compile(&rules, &[]);
    let egress = Egress::compile(&rules, &[]).trusting([name.clone()]);
    let home = ["127.0.0.1", "::1", "10.0.0.5", "192.168.1.1", "fd12::1"];
    for address in home {
        assert!(dial(&egress, "index.example.com", address, true).is_ok());
        for (egress, host) in [
            (&plain, "index.example.com"),
            (&egress, "other.example.com"),
        ] {
            assert_eq!(
                dial(egress, host, address, false),
                Err(Reason::AddressNotPublic)
            );
        }
    }
    // An address of this host that the world can see as well.
    assert!(dial(&egress, "index.example.com", "192.0.2.1", true).is_ok());
    for address in [
        "169.254.169.254",
        "169.254.1.1",
        "0.0.0.0",
        "224.0.0.1",
        "64:ff9b::a00:5",
        "::ffff:10.0.0.5",
        "198.18.0.1",
    ] {
        assert_eq!(
            dial(&egress, "index.example.com", address, false),
            Err(Reason::AddressNotPublic),
            "{address}"
        );
    }
    // Trust is no rule, and a denial wins.
    let denied = Egress::compile(&rules, &[deny(&["10.0.0.0/8"], &[])]).trusting([name.clone()]);
    assert_eq!(
        dial(&denied, "index.example.com", "10.0.0.5", false),
        Err(Reason::DeniedByRule)
    );
    let none = Egress::compile(&[], &[]).trusting([name]);
    assert!(dial(&none, "index.example.com", "127.0.0.1", true).is_err());
}

//! Rules: what is named is reached, what isn't named isn't, and the envelope says so.

use crate::claim;
use crate::network::{cell_at, network};
use crate::trial::{Grants, Trial, assert_nothing_arrived, one_at_a_time};
use serde_json::json;
use skillcell_tests::{Level, User};

fn url(host: &str, tag: &str) -> String {
    format!("https://{host}/hello?tag={tag}")
}

claim! {
    fn an_allowed_domain_is_reached_and_others_are_not(cell) {
        let tag = cell.mark();
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("allowed", "urllib", json!({"url": url("api.example.com", &format!("{tag}-a"))}))
            .step("plain", "urllib", json!({"url": format!("http://api.example.com/hello?tag={tag}-p")}))
            .step("other", "urllib", json!({"url": url("other.example.com", &format!("{tag}-o"))}))
            .step("evil", "urllib", json!({"url": url("evil.example.net", &format!("{tag}-e"))}));
        trial.prove();
        let before = network().arrived(tag).len();
        let report = trial.inside();
        assert_eq!(report.body("allowed"), "hello from api.example.com");
        assert_eq!(report.body("plain"), "hello from api.example.com");
        report.failed("other");
        report.failed("evil");
        report.denied("other.example.com", "host_not_allowed");
        let denial = report.denied("evil.example.net", "host_not_allowed");
        assert!(
            denial["hint"].as_str().is_some_and(|h| h.contains("domains: [evil.example.net]")),
            "the hint has the line that would allow it\n{}", report.show()
        );
        assert_eq!(network().arrived(tag).len(), before + 2, "only what is allowed arrives");
    }
}

claim! {
    /// The counter-proof is the call outside: there the same names are asked.
    fn a_denied_name_never_leaves_the_host(cell) {
        let name = format!("{}.tunnel.example.net", cell.mark());
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("denied", "resolve", json!({"host": name}));
        let report = trial.inside();
        report.failed("denied");
        report.denied(&name, "host_not_allowed");
        assert_nothing_arrived(&name);
        trial.prove();
        assert!(!network().asked(&name).is_empty(), "the log has what is asked");
    }
}

claim! {
    fn the_bundle_can_t_have_more_than_the_operator_allows(cell) {
        let rules = "{domains: [api.example.com, other.example.com], ports: [443]}";
        let mut grants = Grants::egress(rules);
        grants.operator = Grants::domain("api.example.com").operator;
        let trial = Trial::new(cell, grants)
            .step("both", "urllib", json!({"url": "https://api.example.com/hello"}))
            .step("asked", "urllib", json!({"url": "https://other.example.com/hello"}));
        trial.prove();
        let report = trial.inside();
        report.ok("both");
        report.failed("asked");
        report.denied("other.example.com", "host_not_allowed");
    }
}

claim! {
    fn the_operator_s_grant_is_nothing_that_the_bundle_has_not_asked_for(cell) {
        let mut grants = Grants::domain("api.example.com");
        grants.bundle.clear();
        let trial = Trial::new(cell, grants)
            .step("granted", "urllib", json!({"url": "https://api.example.com/hello"}));
        trial.prove();
        trial.inside().failed("granted");
    }
}

claim! {
    fn a_wildcard_is_for_names_below_it_only(cell) {
        let trial = Trial::new(cell, Grants::domain("*.wild.example.org"))
            .step("one below", "urllib", json!({"url": "https://a.wild.example.org/hello"}))
            .step("two below", "resolve", json!({"host": "b.a.wild.example.org"}))
            .step("itself", "resolve", json!({"host": "wild.example.org"}))
            .step("beside", "resolve", json!({"host": "evilwild.example.org"}));
        let report = trial.inside();
        report.ok("one below");
        report.ok("two below");
        report.failed("itself");
        report.failed("beside");
        report.denied("wild.example.org", "host_not_allowed");
    }
}

claim! {
    fn only_the_named_ports_are_open(cell) {
        let trial = Trial::new(cell, Grants::egress("{domains: [api.example.com], ports: [443]}"))
            .step("named", "urllib", json!({"url": "https://api.example.com/hello"}))
            .step("80", "urllib", json!({"url": "http://api.example.com/hello"}))
            .step("8443", "urllib", json!({"url": "https://api.example.com:8443/hello"}))
            .step("22", "connect", json!({"host": "api.example.com", "port": 22, "listen": true}));
        trial.prove();
        let report = trial.inside();
        report.ok("named");
        for port in ["80", "8443", "22"] {
            report.failed(port);
            report.denied(&format!("api.example.com:{port}"), "port_not_allowed");
        }
    }
}

claim! {
    fn an_address_rule_opens_addresses_and_no_names(cell) {
        let trial = Trial::new(cell, Grants::egress("{cidrs: [198.51.100.0/28], ports: [5432, 2525]}"))
            .step("echo", "connect", json!({"host": "198.51.100.10", "port": 5432, "send": ["ping"]}))
            .step("server first", "connect", json!({"host": "198.51.100.11", "port": 2525, "listen": true}))
            .step("outside of it", "connect", json!({"host": "198.51.100.20", "port": 5432, "send": ["ping"]}))
            .step("name", "resolve", json!({"host": "api.example.com"}));
        trial.prove();
        let report = trial.inside();
        assert_eq!(report.ok("echo")["answers"][0], "ping");
        assert_eq!(report.ok("server first")["answers"][0], "220 ready\r\n");
        report.failed("outside of it");
        report.failed("name");
        report.denied("198.51.100.20:5432", "host_not_allowed");
        report.denied("api.example.com", "host_not_allowed");
    }
}

claim! {
    fn a_private_address_is_reached_when_a_rule_names_it(cell) {
        let trial = Trial::new(cell, Grants::egress("{cidrs: [10.0.0.5/32], ports: [80]}"))
            .step("private", "urllib", json!({"url": "http://10.0.0.5/hello"}));
        trial.prove();
        trial.inside().ok("private");
    }
}

claim! {
    /// The counter-proof is twofold: outside every address answers, and inside a rule that names it opens it.
    fn a_wide_address_rule_opens_no_special_address(cell) {
        fn step<'a>(trial: Trial<'a>, address: &str) -> Trial<'a> {
            trial.step(address, "urllib", json!({"url": format!("http://{address}/hello")}))
        }
        let special = ["169.254.169.254", "10.0.0.5"];
        for wide in ["0.0.0.0/0", "168.0.0.0/5, 8.0.0.0/5", "169.254.0.0/16, 0.0.0.0/1"] {
            let mut trial = Trial::new(cell, Grants::egress(&format!("{{cidrs: [{wide}, 198.51.100.0/24], ports: [80]}}")));
            for address in special.iter().chain(&["198.51.100.10"]) {
                trial = step(trial, address);
            }
            trial.prove();
            let report = trial.inside();
            report.ok("198.51.100.10");
            for address in special {
                report.failed(address);
                let denial = report.denied(&format!("{address}:80"), "address_not_public");
                assert!(
                    denial["hint"].as_str().is_some_and(|h| h.contains(&format!("cidrs: [{address}/32]"))),
                    "the hint has the line that would allow it\n{}", report.show()
                );
            }
        }
        let named = Trial::new(cell, Grants::egress("{cidrs: [169.254.169.254/32, 10.0.0.0/8], ports: [80]}"));
        let report = special.iter().fold(named, |trial, address| step(trial, address)).inside();
        for address in special {
            report.ok(address);
        }
    }
}

claim! {
    fn protocols_that_are_not_the_web_s_pass_to_a_named_domain_on_other_ports(cell) {
        let trial = Trial::new(cell, Grants::egress("{domains: [api.example.com], ports: [5432, 2525]}"))
            .step("client first", "connect", json!({"host": "api.example.com", "port": 5432, "send": ["ping", "pong"]}))
            .step("server first", "connect", json!({"host": "api.example.com", "port": 2525, "listen": true, "send": ["EHLO\r\n"]}));
        trial.prove();
        let report = trial.inside();
        assert_eq!(report.ok("client first")["answers"], json!(["ping", "pong"]));
        assert_eq!(report.ok("server first")["answers"][1], "250 EHLO\r\n");
    }
}

claim! {
    /// The name server's, and the proxies': a rule for the same port of somebody else takes nothing away.
    fn the_door_s_own_ports_can_be_named_too(cell) {
        let question = json!({"host": "api.example.com", "type": 1, "over": "tcp"});
        let mut elsewhere = question.clone();
        elsewhere["server"] = "192.0.2.53".into();
        let tunnel = json!({"target": "198.51.100.10:5432", "send": ["ping"], "expect": "ping"});
        let mut far = tunnel.clone();
        far["proxy"] = "198.51.100.10".into();
        let rules = "{domains: [api.example.com], ports: [443]}, {cidrs: [192.0.2.53/32], ports: [53]}, \
             {cidrs: [198.51.100.10/32], ports: [3128, 1080, 5432]}";
        let trial = Trial::new(cell, Grants::egress(rules))
            .step("another name server", "dns", elsewhere)
            .step("another proxy", "proxy_connect", far)
            .step("name server", "dns", question);
        let _turn = one_at_a_time(); // its tunnels are counted by another test
        trial.prove();
        let report = trial
            .step("proxy", "proxy_connect", tunnel)
            .step("socks", "socks", json!({"address": "198.51.100.10", "port": 5432, "send": ["ping"], "expect": "ping"}))
            .step("by name", "urllib", json!({"url": "https://api.example.com/hello"}))
            .inside();
        for step in ["another name server", "another proxy", "name server", "proxy", "socks", "by name"] {
            report.ok(step);
        }
        report.nothing_denied();
    }
}

claim! {
    fn deny_entries_win(cell) {
        let rules = "egress: [{domains: [\"*.example.com\"], ports: [443]}], deny: [{domains: [other.example.com]}]";
        let mut grants = Grants::egress("{domains: [\"*.example.com\"], ports: [443]}");
        grants.operator = format!("network: {{{rules}}}\n");
        let trial = Trial::new(cell, grants)
            .step("allowed", "urllib", json!({"url": "https://api.example.com/hello"}))
            .step("denied", "urllib", json!({"url": "https://other.example.com/hello"}));
        trial.prove();
        let report = trial.inside();
        report.ok("allowed");
        report.failed("denied");
        report.denied("other.example.com", "denied_by_rule");
    }
}

claim! {
    fn a_call_without_grants_has_no_proxies_and_no_routes(cell) {
        let trial = Trial::new(cell, Grants::none())
            .step("direct", "urllib", json!({"url": "https://api.example.com/hello"}))
            .step("http proxy", "connect", json!({"host": "127.0.0.1", "port": 3128}))
            .step("socks proxy", "connect", json!({"host": "127.0.0.1", "port": 1080}));
        let report = trial.inside();
        for step in ["direct", "http proxy", "socks proxy"] {
            report.failed(step);
        }
    }
}

claim! {
    /// Servers in tests: loopback works, and is the call's own.
    fn loopback_inside_works_and_is_private_to_the_call(cell) {
        let code = "
import socket, threading
server = socket.create_server(('127.0.0.1', 7777))
threading.Thread(target=lambda: server.accept()[0].sendall(b'mine'), daemon=True).start()
with socket.create_connection(('127.0.0.1', 7777), timeout=5) as client:
    value = client.recv(4).decode()
";
        let grants = Grants::domain("api.example.com");
        let trial = Trial::new(cell, grants.clone()).step("own server", "python", json!({"code": code}));
        // Outside of cells the port is there once.
        let _turn = one_at_a_time();
        trial.prove();
        assert_eq!(trial.inside().ok("own server"), "mine");
    }
}

claim! {
    /// The first address leads nowhere; the second is tried before the first has timed out.
    fn a_dead_address_does_not_hide_a_living_one(cell) {
        let trial = Trial::new(cell, Grants::domain("dual.example.com"))
            .step("dual", "urllib", json!({"url": "https://dual.example.com/hello"}));
        trial.prove();
        let report = trial.inside();
        report.ok("dual");
        report.quick(std::time::Duration::from_secs(8));
    }
}

/// Without a network namespace there is no door, and no pretence of one.
#[test]
fn at_the_process_level_a_call_with_grants_is_refused() {
    let _shared = skillcell_tests::shared();
    for user in [User::Caller, User::Ordinary] {
        let cell = cell_at(Level::Process, user);
        let mut grants = Grants::domain("api.example.com");
        grants
            .operator
            .push_str("trust: allow\nisolation: {minimum: process}\n");
        let outcome = Trial::new(&cell, grants)
            .step(
                "allowed",
                "urllib",
                json!({"url": "https://api.example.com/hello"}),
            )
            .call()
            .run();
        outcome.assert_status("refused", 5);
    }
}

//! Addresses instead of names, and names of addresses that nobody meant.

use super::{over_tcp, over_tls};
use crate::claim;
use crate::network::network;
use crate::trial::{Grants, Trial};
use serde_json::json;
use skillcell_tests::User;

/// Spellings of 198.51.100.10 that C libraries take for it.
const SPELLINGS: [&str; 6] = [
    "198.51.100.10",
    "3325256714",
    "0xC633640A",
    "0306.063.0144.012",
    "198.51.25610",
    "0xC6.0x33.100.10",
];

claim! {
    /// Also with the server name of a host that is allowed, at that host's own address.
    fn an_address_is_no_way_to_a_name_however_it_is_spelled(cell) {
        let mut trial = Trial::new(cell, Grants::domain("api.example.com"));
        for spelling in SPELLINGS {
            let path = format!("/hello?tag={}-spelling", cell.mark());
            trial = trial.step(spelling, "tls", over_tls(spelling, Some("api.example.com"), "api.example.com", &path));
        }
        trial.prove();
        let tag = format!("{}-spelling", cell.mark());
        let before = network().arrived(&tag).len();
        let report = trial.inside();
        for spelling in SPELLINGS {
            report.failed(spelling);
        }
        report.denied("198.51.100.10", "host_not_allowed");
        assert_eq!(network().arrived(&tag).len(), before, "nothing arrived from the cell");
    }
}

claim! {
    fn a_permitted_name_that_means_metadata_is_not_dialled(cell) {
        let trial = Trial::new(cell, Grants::domain("meta.example.com"))
            .step("plain", "connect", over_tcp("meta.example.com", "meta.example.com", "/hello"))
            .step("tls", "tls", over_tls("meta.example.com", Some("meta.example.com"), "meta.example.com", "/hello"));
        trial.prove();
        let report = trial.inside();
        report.failed("plain");
        report.failed("tls");
        report.denied("meta.example.com", "address_not_public");
    }
}

claim! {
    fn a_permitted_name_that_means_a_private_address_is_not_dialled(cell) {
        let trial = Trial::new(cell, Grants::domain("private.example.com"))
            .step("private", "connect", over_tcp("private.example.com", "private.example.com", "/hello"));
        trial.prove();
        let report = trial.inside();
        report.failed("private");
        report.denied("private.example.com", "address_not_public");
    }
}

claim! {
    /// The listener is the host's: in the client's network, where the supervisor dials from.
    fn a_permitted_name_that_means_loopback_or_the_host_is_not_dialled(cell) {
        let serve = "
import socket, threading
with socket.create_server(('0.0.0.0', args['port'])) as server:
    def answer():
        stream, _ = server.accept()
        stream.recv(4096)
        stream.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 10\\r\\n\\r\\nhello from')
    threading.Thread(target=answer, daemon=True).start()
    value = wire.connect({'host': args['host'], 'port': args['port'], 'send': ['GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n'], 'expect': 'hello from'})
";
        for (index, host) in ["loop.example.com", "own.example.com"].into_iter().enumerate() {
            // Both users' tests run in one network at the same time.
            let port = 20000 + 10 * index as u16 + u16::from(cell.user == User::Caller);
            // That the name leads to the host at all.
            Trial::new(cell, Grants::none())
                .step("own", "python", json!({"code": serve, "args": {"host": host, "port": port}}))
                .prove();
            let rules = format!("{{domains: [{host}], ports: [{port}, 80]}}");
            let report = Trial::new(cell, Grants::egress(&rules))
                .step("80", "connect", over_tcp(host, host, "/hello"))
                .step("port", "connect", json!({"host": host, "port": port, "send": ["x"]}))
                .inside();
            report.failed("80");
            report.failed("port");
            report.denied(host, "address_not_public");
        }
    }
}

claim! {
    /// Translated forms: outside, the test network's gateway leads to metadata.
    fn a_permitted_name_that_means_a_translated_address_is_not_dialled(cell) {
        for host in ["mapped.example.com", "translated.example.com"] {
            let trial = Trial::new(cell, Grants::domain(host))
                .step("translated", "connect", over_tcp(host, host, "/hello"));
            trial.prove();
            let report = trial.inside();
            report.failed("translated");
            report.denied(host, "address_not_public");
        }
    }
}

claim! {
    /// Whoever names all that a gateway translates has not named what is special behind it.
    fn a_translated_address_is_held_to_the_rules_for_what_it_means(cell) {
        let trial = |rules: &str| {
            Trial::new(cell, Grants::egress(rules))
                .step("translated", "connect", over_tcp("64:ff9b::a9fe:a9fe", "metadata", "/hello"))
        };
        let wide = trial("{cidrs: [\"64:ff9b::/96\", 0.0.0.0/0], ports: [80]}");
        wide.prove();
        let report = wide.inside();
        report.failed("translated");
        report.denied("[64:ff9b::a9fe:a9fe]:80", "address_not_public");
        trial("{cidrs: [\"64:ff9b::/96\", 169.254.169.254/32], ports: [80]}").inside().ok("translated");
    }
}

claim! {
    fn of_a_name_with_public_and_private_addresses_only_the_public_are_dialled(cell) {
        let trial = Trial::new(cell, Grants::domain("mixed.example.com"));
        let mut trial = trial;
        for attempt in 0..8 {
            let path = format!("/hello?tag={}-mixed", cell.mark());
            trial = trial.step(&attempt.to_string(), "connect", over_tcp("mixed.example.com", "mixed.example.com", &path));
        }
        trial.prove();
        let tag = format!("{}-mixed", cell.mark());
        let before = network().arrived(&tag).len();
        trial.inside();
        let arrived = network().arrived(&tag);
        let of_cell = &arrived[before..];
        assert!(!of_cell.is_empty(), "the public one works");
        assert!(of_cell.iter().all(|a| a["address"] == "198.51.100.10"), "{of_cell:#?}");
    }
}

claim! {
    /// First public, then private: the address that was checked is the one that is dialled, and a
    /// later connection checks anew.
    fn a_name_that_changes_its_meaning_leads_nowhere_private(cell) {
        let steps = |kind: &str| {
            let host = format!("{}-{kind}.rebind.example.com", cell.mark());
            let path = format!("/hello?tag={}-rebind", cell.mark());
            Trial::new(cell, Grants::domain("*.rebind.example.com"))
                .step("first", "connect", over_tcp(&host, &host, &path))
                .step("second", "connect", over_tcp(&host, &host, &path))
                .step("third", "connect", over_tcp(&host, &host, &path))
        };
        steps("outside").prove();
        let tag = format!("{}-inside", cell.mark());
        let asked_outside = network().arrived(&format!("{}-rebind", cell.mark()));
        assert!(asked_outside.iter().any(|a| a["address"] == "10.0.0.5"), "the counter-proof is rebound");
        let report = steps("inside").inside();
        report.ok("first");
        let arrived = network().arrived(&tag);
        let requests: Vec<_> = arrived.iter().filter(|a| a["event"] == "request").collect();
        assert!(requests.iter().all(|a| a["address"] == "198.51.100.10"), "{requests:#?}");
    }
}

claim! {
    fn a_redirect_to_a_denied_host_ends_there(cell) {
        let tag = cell.mark();
        let to = |target: &str| json!({"url": format!("https://api.example.com/redirect?to={target}")});
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("name", "urllib", to(&format!("https://evil.example.net/hello?tag={tag}")))
            .step("metadata", "urllib", to(&format!("http://169.254.169.254/hello?tag={tag}")))
            .step("private", "curl", to(&format!("http://10.0.0.5/hello?tag={tag}")));
        trial.prove();
        let reached = |list: Vec<serde_json::Value>| {
            list.iter().filter(|a| a["event"] == "request" && a["address"] != "198.51.100.10").count()
        };
        let before = reached(network().arrived(tag));
        let report = trial.inside();
        for step in ["name", "metadata", "private"] {
            report.failed(step);
        }
        report.denied("evil.example.net", "host_not_allowed");
        report.denied_for_one_of("169.254.169.254", &["host_not_allowed", "address_not_public", "port_not_allowed"]);
        assert_eq!(reached(network().arrived(tag)), before);
    }
}

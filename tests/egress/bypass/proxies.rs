//! The proxies that are offered are the same door.

use super::get;
use crate::claim;
use crate::network::network;
use crate::trial::{Grants, Trial, one_at_a_time};
use serde_json::json;

/// The world's own proxy, which tunnels for everybody: for counter-proofs.
const OPEN_PROXY: &str = "198.51.100.10";

claim! {
    fn connect_opens_only_what_the_rules_name(cell) {
        let targets = [
            ("other port", "api.example.com:22"),
            ("other host", "evil.example.net:22"),
            ("address", "198.51.100.10:22"),
            ("decimal", "3325256714:22"),
            ("hexadecimal", "0xC633640A:22"),
            ("metadata", "169.254.169.254:22"),
        ];
        let mut outside = Trial::new(cell, Grants::none());
        let mut inside = Trial::new(cell, Grants::egress("{domains: [api.example.com], ports: [2525]}"))
            .step("permitted", "proxy_connect", json!({"target": "api.example.com:2525", "listen": true}));
        for (name, target) in targets {
            let fields = json!({"target": target, "listen": true});
            inside = inside.step(name, "proxy_connect", fields.clone());
            let mut fields = fields;
            fields["proxy"] = OPEN_PROXY.into();
            outside = outside.step(name, "proxy_connect", fields);
        }
        {
            let _turn = one_at_a_time(); // its tunnels are counted by another test
            outside.prove();
        }
        let report = inside.inside();
        report.ok("permitted");
        for (name, _) in targets {
            report.failed(name);
        }
        report.denied("api.example.com:22", "port_not_allowed");
        report.denied("evil.example.net", "host_not_allowed");
    }
}

claim! {
    fn names_with_two_readings_are_refused_by_connect(cell) {
        let targets = [
            "api.example.com@evil.example.net:443", "evil.example.net#api.example.com:443",
            "api.example.com\0.evil.example.net:443", "api.example.com\t:443", "evil.example.net\\@api.example.com:443",
            "api.example.com:443:22", "[::ffff:169.254.169.254]:443", "api.example.com:0443x", ":443", "api.example.com",
        ];
        let mut outside = Trial::new(cell, Grants::none());
        let mut trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("permitted", "proxy_connect", json!({
                "target": "api.example.com:443", "sni": "api.example.com", "send": [get("api.example.com", "/hello")],
            }));
        for target in targets {
            outside = outside.step(target, "proxy_connect", json!({"target": target, "proxy": OPEN_PROXY}));
            trial = trial.step(target, "proxy_connect", json!({"target": target}));
        }
        {
            let _turn = one_at_a_time(); // its tunnels are counted by another test
            outside.prove();
        }
        let report = trial.inside();
        report.ok("permitted");
        for target in targets {
            report.failed(target);
        }
    }
}

claim! {
    /// One intent, one decision, one event: also where the intent can't be read.
    fn a_target_that_can_t_be_read_is_one_denial_and_one_event(cell) {
        let report = Trial::new(cell, Grants::domain("api.example.com"))
            .step("connect", "proxy_connect", json!({"target": "api.example.com:443:22"}))
            .step("forward", "proxy_get", json!({"send": [get("api.example.com", "http://u@api.example.com/")]}))
            .step("head", "proxy_get", json!({"send": ["GET http://api.example.com/ HTTP/1.1\r\n folded\r\n\r\n"]}))
            .step("socks", "socks", json!({"host": "user@api.example.com", "port": 80}))
            .step("bind", "socks", json!({"host": "api.example.com", "port": 80, "command": 2}))
            .inside();
        let denied: Vec<_> = report.events().into_iter().filter(|e| e["denied"].is_string()).collect();
        for (step, adapter, shown, reason) in [
            ("connect", "http_connect", "api.example.com:443:22", "http_malformed"),
            ("forward", "http_forward", "http://u@api.example.com/", "http_malformed"),
            ("head", "http_forward", "127.0.0.1:3128", "http_malformed"),
            ("socks", "socks5", "user@api.example.com", "host_not_allowed"),
            ("bind", "socks5", "127.0.0.1:1080", "protocol_not_allowed"),
        ] {
            report.failed(step);
            report.denied(shown, reason);
            let events = denied.iter().filter(|e| e["adapter"] == adapter && e["host"] == shown && e["denied"] == reason);
            assert_eq!(events.count(), 1, "{step}: {denied:#?}\n{}", report.show());
        }
        assert_eq!(denied.len(), 5, "{denied:#?}");
    }
}

claim! {
    fn a_tunnel_holds_its_client_to_the_name(cell) {
        let tag = format!("{}-tunnel", cell.mark());
        let fields = json!({
            "target": "api.example.com:443", "sni": "evil.example.net", "expect": "hello from",
            "send": [get("api.example.com", &format!("/hello?tag={tag}"))],
        });
        let mut outside = fields.clone();
        outside["proxy"] = OPEN_PROXY.into();
        Trial::new(cell, Grants::none()).step("fronted", "proxy_connect", outside).prove();
        let before = network().arrived(&tag).len();
        let report = Trial::new(cell, Grants::domain("api.example.com")).step("fronted", "proxy_connect", fields).inside();
        report.failed("fronted");
        report.denied("api.example.com", "tls_server_name_mismatch");
        assert_eq!(network().arrived(&tag).len(), before);
    }
}

claim! {
    fn a_forwarded_request_is_for_the_host_that_it_names_twice(cell) {
        let tag = format!("{}-forward", cell.mark());
        let ask = |target: &str, host: &str| json!([format!("GET {target}?tag={tag} HTTP/1.1\r\nHost: {host}\r\n\r\n")]);
        let steps = [
            ("host differs", ask("http://api.example.com/hello", "evil.example.net")),
            ("target differs", ask("http://evil.example.net/hello", "api.example.com")),
            ("user information", ask("http://api.example.com@evil.example.net/hello", "api.example.com")),
            ("metadata", ask("http://169.254.169.254/hello", "169.254.169.254")),
            ("second differs", json!([
                get("api.example.com", "http://api.example.com/hello"),
                get("evil.example.net", &format!("http://evil.example.net/hello?tag={tag}")),
            ])),
        ];
        let mut outside = Trial::new(cell, Grants::none());
        let mut inside = Trial::new(cell, Grants::domain("api.example.com"))
            .step("permitted", "proxy_get", json!({"send": [get("api.example.com", "http://api.example.com/hello")]}))
            // Elsewhere it would turn in circles.
            .step("the proxy itself", "proxy_get", json!({"send": ask("http://127.0.0.1:3128/hello", "127.0.0.1:3128")}));
        for (name, send) in &steps {
            outside = outside.step(name, "proxy_get", json!({"send": send, "proxy": OPEN_PROXY}));
            inside = inside.step(name, "proxy_get", json!({"send": send}));
        }
        let requests = || {
            let mut arrived = network().arrived(&tag);
            arrived.retain(|a| a["event"] == "request");
            arrived
        };
        outside.prove();
        let before = requests().len();
        assert_eq!(before, steps.len(), "the counter-proof arrives: {:#?}", requests());
        let report = inside.inside();
        report.ok("permitted");
        report.failed("the proxy itself");
        for (name, _) in &steps {
            report.failed(name);
        }
        report.denied_for_one_of("api.example.com", &["http_host_mismatch", "http_malformed"]);
        assert_eq!(requests().len(), before, "{:#?}", requests());
    }
}

claim! {
    /// A host that is allowed and tunnels for whoever asks: the request names another host.
    fn a_permitted_proxy_is_no_way_to_others(cell) {
        let trial = Trial::new(cell, Grants::egress("{domains: [api.example.com], ports: [3128, 80]}"))
            .step("tunnel", "proxy_connect", json!({
                "proxy": "api.example.com", "target": "evil.example.net:22", "listen": true,
            }));
        let _turn = one_at_a_time();
        trial.prove();
        let asked = || network().arrived("evil.example.net:22").iter().filter(|a| a["event"] == "proxy").count();
        let before = asked();
        assert!(before > 0, "the counter-proof arrives");
        let report = trial.inside();
        report.failed("tunnel");
        report.denied_for_one_of("api.example.com", &["http_host_mismatch", "http_malformed", "protocol_not_allowed", "http_request_not_allowed"]);
        assert_eq!(asked(), before);
    }
}

claim! {
    /// Where one library ends a string another goes on.
    fn socks_names_with_two_readings_are_refused(cell) {
        let names = [
            "api.example.com\0.evil.example.net", "evil.example.net\0.api.example.com", "api.example.com\0",
            "api.example.com\n", "api.example.com ", "", "3325256714", "0xC633640A", "user@api.example.com",
            "[::ffff:169.254.169.254]", "evil.example.net", "localhost", "127.0.0.1",
        ];
        let send = json!([get("api.example.com", "/hello")]);
        let mut steps = vec![
            ("other port".to_owned(), json!({"host": "api.example.com", "port": 22, "listen": true})),
            ("address".to_owned(), json!({"address": "198.51.100.10", "port": 80, "send": send})),
            ("bind".to_owned(), json!({"host": "api.example.com", "port": 80, "command": 2, "send": send})),
            ("udp".to_owned(), json!({"host": "api.example.com", "port": 80, "command": 3, "send": send})),
        ];
        for name in names {
            steps.push((format!("name {name:?}"), json!({"host": name, "port": 80, "send": send})));
        }
        let mut outside = Trial::new(cell, Grants::none());
        let mut inside = Trial::new(cell, Grants::domain("api.example.com"))
            .step("permitted", "socks", json!({"host": "api.example.com", "port": 80, "send": send}));
        for (name, fields) in &steps {
            inside = inside.step(name, "socks", fields.clone());
            let mut fields = fields.clone();
            fields["proxy"] = OPEN_PROXY.into();
            outside = outside.step(name, "socks", fields);
        }
        outside.prove();
        let report = inside.inside();
        report.ok("permitted");
        for (name, _) in &steps {
            report.failed(name);
        }
        report.denied("api.example.com:22", "port_not_allowed");
        report.denied("evil.example.net", "host_not_allowed");
    }
}

claim! {
    /// A client of a proxy may use its connection for somebody else: that must not go to the first one.
    fn a_request_behind_one_to_an_address_does_not_go_to_that_address(cell) {
        let code = "
import socket
with socket.create_connection(('127.0.0.1', 3128), timeout=5) as stream:
    one = lambda host, path: f'GET http://{host}{path} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n'.encode()
    stream.sendall(one('198.51.100.11', '/hello?tag=' + args['tag'] + '-first'))
    first = stream.recv(65536)
    if b' 200 ' not in first.split(b'\\r\\n')[0]:
        raise ConnectionError(first)
    try:
        stream.sendall(one('api.example.com', '/hello?tag=' + args['tag'] + '-second'))
        value = stream.recv(65536).decode('latin-1')
    except ConnectionError:
        value = ''
";
        let tag = cell.mark();
        let rules = "{domains: [api.example.com], ports: [80]}, {cidrs: [198.51.100.11/32], ports: [80]}";
        let report = Trial::new(cell, Grants::egress(rules))
            .step("both", "python", json!({"code": code, "args": {"tag": tag}}))
            .inside();
        report.ok("both");
        assert_eq!(network().arrived(&format!("{tag}-first")).len(), 1);
        let second = network().arrived(&format!("{tag}-second"));
        assert!(second.is_empty(), "it went to whom it wasn't for: {second:#?}");
    }
}

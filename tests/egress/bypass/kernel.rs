//! Below TCP, beside it, and into other calls.

use super::over_tls;
use crate::claim;
use crate::network::{cell as new_cell, network};
use crate::trial::{Grants, Trial};
use serde_json::json;
use skillcell_tests::User;
use std::time::Duration;

claim! {
    fn datagrams_do_not_leave_the_cell(cell) {
        let mut trial = Trial::new(cell, Grants::domain("api.example.com"));
        // 443 is where QUIC would go; `wire` waits for the echo.
        for (port, host) in [(443, "api.example.com"), (9999, "198.51.100.10"), (9999, "203.0.113.5")] {
            let fields = json!({"host": host, "port": port, "send": format!("{}-datagram", cell.mark())});
            trial = trial.step(&format!("{host}:{port}"), "udp", fields);
        }
        trial.prove();
        let tag = format!("{}-datagram", cell.mark());
        let before = network().arrived(&tag).len();
        assert_eq!(before, 3, "the counter-proof arrives");
        let report = trial.inside();
        for step in ["api.example.com:443", "198.51.100.10:9999", "203.0.113.5:9999"] {
            report.failed(step);
            report.denied(step, "protocol_not_allowed");
        }
        assert_eq!(network().arrived(&tag).len(), before);
    }
}

claim! {
    /// Told by the kernel, and not recorded: `getaddrinfo` connects datagram sockets too.
    fn datagrams_on_a_connected_socket_go_nowhere(cell) {
        let code = "
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stream:
    stream.settimeout(3)
    stream.connect((args['host'], 443))
    stream.send(args['data'].encode())
    value = stream.recv(4096).decode()
";
        let tag = format!("{}-connected", cell.mark());
        // The world's own end of the wire, which is where its answers come from.
        let trial = Trial::new(cell, Grants::egress("{cidrs: [192.0.2.1/32], ports: [443]}"))
            .step("connected", "python", json!({"code": code, "args": {"host": "192.0.2.1", "data": tag}}));
        trial.prove();
        let before = network().arrived(&tag).len();
        assert_eq!(before, 1, "the counter-proof arrives");
        assert_eq!(trial.inside().failed("connected")["error"], "ConnectionRefusedError");
        assert_eq!(network().arrived(&tag).len(), before);
    }
}

claim! {
    /// Root can outside; an ordinary user never could.
    fn raw_and_packet_sockets_can_t_be_had(cell) {
        let open = |family: &str, kind: &str, protocol: &str| json!({
            "code": format!("import socket; socket.socket(socket.{family}, socket.{kind}, {protocol}).close()"),
        });
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("icmp", "python", open("AF_INET", "SOCK_RAW", "1"))
            .step("tcp", "python", open("AF_INET", "SOCK_RAW", "6"))
            .step("any", "python", open("AF_INET", "SOCK_RAW", "255"))
            .step("packet", "python", open("AF_PACKET", "SOCK_RAW", "0x0300"));
        if cell.user == User::Caller {
            trial.prove();
        }
        let report = trial.inside();
        for step in ["icmp", "tcp", "any", "packet"] {
            report.failed(step);
        }
    }
}

/// Asks the kernel for another address on loopback; the answer is an error number.
const ADD_ADDRESS: &str = "
import os, random, socket, struct
address = bytes([127, random.randrange(1, 255), random.randrange(1, 255), 9])
body = struct.pack('BBBBI', 2, 32, 0, 254, 1) + struct.pack('HH', 8, 2) + address
head = struct.pack('IHHII', 16 + len(body), 20, 0x405, 1, 0)
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as stream:
    stream.settimeout(2)
    stream.send(head + body)
    code = struct.unpack('i', stream.recv(4096)[16:20])[0]
if code:
    raise OSError(-code, os.strerror(-code))
value = 'done'
";

/// The same for the route that makes every address the cell's own.
const DROP_ROUTE: &str = "
import os, socket, struct
body = struct.pack('BBBBBBBBI', 2, 0, 0, 0, 254, 0, 0, 0, 0)
head = struct.pack('IHHII', 16 + len(body), 25, 0x5, 1, 0)
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as stream:
    stream.settimeout(2)
    stream.send(head + body)
    code = struct.unpack('i', stream.recv(4096)[16:20])[0]
if code:
    raise OSError(-code, os.strerror(-code))
";

claim! {
    fn routes_and_addresses_of_the_cell_can_t_be_changed(cell) {
        if cell.user == User::Caller {
            Trial::new(cell, Grants::none()).step("address", "python", json!({"code": ADD_ADDRESS})).prove();
        }
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("address", "python", json!({"code": ADD_ADDRESS}))
            .step("route", "python", json!({"code": DROP_ROUTE}))
            .step("still held", "urllib", json!({"url": "https://other.example.com/hello"}))
            .step("still works", "urllib", json!({"url": "https://api.example.com/hello"}));
        let report = trial.inside();
        report.failed("address");
        report.failed("route");
        report.failed("still held");
        report.ok("still works");
    }
}

claim! {
    fn the_listeners_of_another_call_can_t_be_reached(cell) {
        let serve = "
import socket
with socket.create_server(('0.0.0.0', 7788)) as server:
    server.settimeout(args['wait'])
    server.accept()
";
        let other = new_cell(cell.user);
        let running = Trial::new(&other, Grants::domain("api.example.com"))
            .step("served", "python", json!({"code": serve, "args": {"wait": 4}}))
            .call()
            .start();
        running.skill_processes(1);
        std::thread::sleep(Duration::from_millis(500));
        let report = Trial::new(cell, Grants::domain("api.example.com"))
            .step("neighbour", "connect", json!({"host": "127.0.0.1", "port": 7788}))
            .step("any address", "connect", json!({"host": "198.51.100.10", "port": 7788}))
            .inside();
        report.failed("neighbour");
        report.failed("any address");
        let finished = running.finish();
        assert!(finished.stdout.contains("TimeoutError"), "nobody came: {}", finished.stdout);
        // That the server serves: the same two outside.
        let both = format!("
import threading
def serve():
    exec({serve:?}, {{'args': {{'wait': 4}}}})
threading.Thread(target=serve, daemon=True).start()
import time; time.sleep(0.3)
value = wire.connect({{'host': '127.0.0.1', 'port': 7788}})
");
        Trial::new(cell, Grants::domain("api.example.com")).step("both", "python", json!({"code": both})).inside().ok("both");
    }
}

claim! {
    /// Inside there are the listeners of the door, which all ask the policy, and nothing else.
    fn the_supervisor_offers_nothing_but_the_door(cell) {
        let listeners = "
def listening(path):
    for line in open(path).readlines()[1:]:
        fields = line.split()
        if fields[3] == '0A':
            yield int(fields[1].rsplit(':', 1)[1], 16)
import os
value = sorted({port for path in ('/proc/net/tcp', '/proc/net/tcp6') if os.path.exists(path) for port in listening(path)})
";
        let unix = "value = [line.split()[-1] for line in open('/proc/net/unix').readlines()[1:] if len(line.split()) > 7]";
        let sockets = "
import os
value = []
for name in os.listdir('/proc/self/fd'):
    try:
        target = os.readlink('/proc/self/fd/' + name)
    except OSError:
        continue
    if target.startswith('socket:'):
        value.append(name)
";
        let hello = |to: &str| over_tls(to, Some("api.example.com"), "api.example.com", "/hello");
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("listeners", "python", json!({"code": listeners}))
            .step("unix", "python", json!({"code": unix}))
            .step("inherited", "python", json!({"code": sockets}))
            .step("loopback", "tls", hello("127.0.0.1"))
            .step("host", "tls", hello("192.0.2.2"))
            .step("any", "tls", hello("0.0.0.0"));
        let report = trial.inside();
        let known = [53, 80, 443, 1080, 3128];
        let open = report.ok("listeners").as_array().expect("a list");
        assert!(open.iter().all(|port| known.iter().any(|k| port == k)), "{open:?}");
        assert_eq!(report.ok("unix"), &json!([]), "no socket has a name");
        assert_eq!(report.ok("inherited"), &json!([]), "no socket is handed down");
        for step in ["loopback", "host", "any"] {
            report.failed(step);
        }
    }
}

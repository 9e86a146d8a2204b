//! No network at all, until a policy grants some.

use serde_json::json;
use skillcell_tests::{Outcome, Probe, claim};
use std::net::{TcpListener, UdpSocket};

/// A skill without network may answer, and answer wrongly: the envelope has to say so.
#[track_caller]
fn assert_told(outcome: &Outcome) {
    assert!(
        outcome.denials().iter().any(|d| d["kind"] == "network"),
        "not told\n{}",
        outcome.show()
    );
}

claim! {
    fn tcp_listeners_of_the_host_are_unreachable(cell) {
        for address in ["127.0.0.1", "::1"] {
            let listener = TcpListener::bind((address, 0)).unwrap_or_else(|e| panic!("{address}: {e}"));
            listener.set_nonblocking(true).expect("a listener can be");
            let port = listener.local_addr().expect("it is bound").port();
            let probe = Probe::new("
import socket
socket.create_connection((args['address'], args['port']), timeout=5).close()
").args(json!({"address": address, "port": port}));
            probe.prove(cell);
            listener.accept().expect("the counter-proof connected");
            let outcome = cell.assert_stops(&probe);
            listener.accept().expect("the second counter-proof too");
            listener.accept().expect_err("nothing came out of the cell");
            assert_told(&outcome);
        }
    }
}

claim! {
    fn udp_does_not_leave_the_cell(cell) {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        receiver.set_nonblocking(true).expect("a socket can be");
        let port = receiver.local_addr().expect("it is bound").port();
        let probe = Probe::new("
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b'x', ('127.0.0.1', args['port']))
").args(json!({"port": port}));
        probe.prove(cell);
        std::thread::sleep(std::time::Duration::from_millis(50));
        receiver.recv(&mut [0; 8]).expect("the counter-proof arrived");
        cell.call(skillcell_tests::Stage::get().fixture("probe")).params(&probe.params(cell)).run().assert_ok();
        std::thread::sleep(std::time::Duration::from_millis(50));
        receiver.recv(&mut [0; 8]).expect_err("nothing came out of the cell");
    }
}

claim! {
    /// A listener in the cell is not a way in, either.
    fn the_host_can_t_reach_into_the_cell(cell) {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("loopback").port();
        let probe = Probe::new("
import socket, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('127.0.0.1', args['port'])); s.listen()
s.settimeout(args['wait'])
s.accept()
");
        let code = probe.code().to_owned();
        let connect = move || {
            for _ in 0..300 {
                if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return true;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            false
        };
        let thread = std::thread::spawn(connect);
        Probe::new(&code).args(json!({"port": port, "wait": 10})).prove(cell);
        assert!(thread.join().expect("no panic"), "the counter-proof: the host connects");
        let probe = Probe::new(&code).args(json!({"port": port, "wait": 2}));
        let thread = std::thread::spawn(connect);
        let call = cell.call(skillcell_tests::Stage::get().fixture("probe")).params(&probe.params(cell));
        let outcome = call.run();
        assert_eq!(outcome.assert_ok()["reached"], false, "{}", outcome.show());
        assert!(!thread.join().expect("no panic"), "the host reached into the cell");
    }
}

claim! {
    /// Documentation addresses: nothing could answer, so an answer other than an error is a hole.
    fn addresses_outside_are_unreachable_and_reported(cell) {
        for (address, port) in [("192.0.2.1", 443), ("2001:db8::1", 443), ("169.254.169.254", 80)] {
            let probe = Probe::new("
import socket
socket.create_connection((args['address'], args['port']), timeout=5)
").args(json!({"address": address, "port": port}));
            let call = cell.call(skillcell_tests::Stage::get().fixture("probe")).params(&probe.params(cell));
            let outcome = call.run();
            assert_eq!(outcome.assert_ok()["reached"], false, "{}", outcome.show());
            assert!(outcome.elapsed.as_secs() < 5, "denied, not timed out\n{}", outcome.show());
            assert_told(&outcome);
        }
    }
}

claim! {
    /// A name is data: asking a name server for `SECRET.example.com` would carry it out.
    fn names_are_not_resolved_and_are_reported(cell) {
        let probe = Probe::new("import socket; value = socket.getaddrinfo('secret.example.com', 443)");
        let call = cell.call(skillcell_tests::Stage::get().fixture("probe")).params(&probe.params(cell));
        let outcome = call.run();
        assert_eq!(outcome.assert_ok()["reached"], false, "{}", outcome.show());
        assert!(outcome.elapsed.as_secs() < 5, "denied, not timed out\n{}", outcome.show());
        assert_told(&outcome);
        if cell.level == skillcell_tests::Level::Sandbox {
            outcome.assert_denial("network", "secret.example.com");
        }
    }
}

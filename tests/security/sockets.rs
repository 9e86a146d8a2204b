//! Kinds of sockets: families that reach into the kernel or around the network are denied.

use serde_json::json;
use skillcell_tests::{Cell, Plain, Probe, claim};

const OPEN: &str =
    "import socket; socket.socket(args['family'], args['type'], args['protocol']).close()";

fn assert_no_socket(cell: &Cell, plain: Plain, family: i32, kind: i32, protocol: i32) {
    let args = json!({"family": family, "type": kind, "protocol": protocol});
    cell.assert_stops(&Probe::new(OPEN).args(args).plain(plain));
}

const STREAM: i32 = 1;
const DATAGRAM: i32 = 2;
const RAW: i32 = 3;

claim! {
    fn raw_sockets_are_denied(cell) {
        assert_no_socket(cell, Plain::OwnNamespaces, 2, RAW, 1);
        assert_no_socket(cell, Plain::OwnNamespaces, 10, RAW, 58);
    }
}

claim! {
    fn packet_sockets_are_denied(cell) {
        assert_no_socket(cell, Plain::OwnNamespaces, 17, RAW, 0x0300);
        assert_no_socket(cell, Plain::OwnNamespaces, 17, DATAGRAM, 0x0300);
    }
}

claim! {
    /// vsock goes past network namespaces, straight to the hypervisor.
    fn vsock_sockets_are_denied(cell) {
        let args = json!({"family": 40, "type": STREAM, "protocol": 0});
        let probe = Probe::new(OPEN).args(args);
        // A kernel without vsock says so: address family not supported.
        let outside = probe.run_plain(cell);
        let absent = outside["why"].as_str().is_some_and(|why| why.contains("[Errno 97]"));
        assert!(absent || outside["reached"] == true, "{outside}");
        let call = cell.call(skillcell_tests::Stage::get().fixture("probe")).params(&probe.params(cell));
        let outcome = call.run();
        assert_eq!(outcome.assert_ok()["reached"], false, "{}", outcome.show());
    }
}

claim! {
    /// Everything but the routing family, which resolvers use to list addresses.
    fn netlink_families_of_the_kernel_are_denied(cell) {
        for (name, protocol) in [("sock_diag", 4), ("connector", 11), ("netfilter", 12), ("uevent", 15), ("generic", 16)] {
            let args = json!({"family": 16, "type": RAW, "protocol": protocol});
            let probe = Probe::new(OPEN).args(args).plain(Plain::OwnNamespaces);
            let outside = probe.run_plain(cell);
            let absent = outside["why"].as_str().is_some_and(|why| why.contains("[Errno 93]"));
            assert!(absent || outside["reached"] == true, "{name}: {outside}");
            let call = cell.call(skillcell_tests::Stage::get().fixture("probe")).params(&probe.params(cell));
            let outcome = call.run();
            assert_eq!(outcome.assert_ok()["reached"], false, "{name}\n{}", outcome.show());
        }
    }
}

claim! {
    /// Puts loopback up, by hand: a length, RTM_NEWLINK, request and ack, index 1. Where it is up
    /// already this changes nothing, and still takes the right to change.
    fn network_interfaces_can_t_be_changed(cell) {
        let probe = Probe::new("
import os, socket, struct
link = socket.socket(16, socket.SOCK_RAW, 0)
UP = 1
body = struct.pack('BxHiII', 0, 0, 1, UP, UP)
link.send(struct.pack('IHHII', 16 + len(body), 16, 5, 1, 0) + body)
code = struct.unpack_from('i', link.recv(4096), 16)[0]
if code:
    raise OSError(-code, os.strerror(-code))
").plain(Plain::OwnNamespaces);
        cell.assert_stops(&probe);
    }
}

claim! {
    fn other_families_are_denied(cell) {
        // Alive in many kernels and a rich source of bugs: crypto, bluetooth, CAN, TIPC, XDP, SMC.
        for family in [38, 31, 29, 30, 44, 43] {
            let probe = Probe::new("
import socket
for kind in (1, 2, 3, 5):
    try:
        socket.socket(args['family'], kind, 0).close()
        break
    except OSError as error:
        last = error
else:
    raise last
").args(json!({"family": family}));
            let call = cell.call(skillcell_tests::Stage::get().fixture("probe")).params(&probe.params(cell));
            let outcome = call.run();
            assert_eq!(outcome.assert_ok()["reached"], false, "family {family}\n{}", outcome.show());
        }
        // Which of them a kernel has differs; that sockets as such can be had outside does not.
        Probe::new(OPEN).args(json!({"family": 2, "type": STREAM, "protocol": 0})).prove(cell);
    }
}

claim! {
    /// What programs use between their own threads and children goes on working.
    fn socket_pairs_and_pipes_work(cell) {
        let value = cell.probe_value(&Probe::new("
import os, socket
a, b = socket.socketpair()
a.sendall(b'through'); value = b.recv(7).decode()
r, w = os.pipe(); os.write(w, b'x'); os.read(r, 1)
"));
        assert_eq!(value, "through");
    }
}

//! Unix sockets of the host: a container engine's socket is root by another name.

use serde_json::json;
use skillcell_tests::{Probe, claim};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

const CONNECT: &str = "
import socket
s = socket.socket(socket.AF_UNIX, getattr(socket, args['type']))
s.settimeout(5)
s.connect(args['path'].replace('@', '\\0', 1) if args['path'].startswith('@') else args['path'])
s.send(b'x')
";

fn everybody(path: &std::path::Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("own socket");
}

claim! {
    fn unix_sockets_of_the_host_are_unreachable(cell) {
        let path = cell.path("work/s.sock");
        let _listener = UnixListener::bind(&path).expect("own folder");
        everybody(&path);
        cell.assert_stops(&Probe::new(CONNECT).args(json!({"path": path, "type": "SOCK_STREAM"})));
    }
}

claim! {
    /// Reading a folder is not talking to what listens in it. A read-only mount alone doesn't stop it.
    fn unix_sockets_in_a_granted_folder_are_unreachable(cell) {
        let folder = cell.folder("work/data");
        let path = folder.join("s.sock");
        let _listener = UnixListener::bind(&path).expect("own folder");
        everybody(&path);
        let probe = Probe::new(CONNECT).args(json!({"path": path, "type": "SOCK_STREAM"}));
        cell.assert_stops_with(&probe, |call| call.read(&folder));
    }
}

claim! {
    fn unix_datagram_sockets_in_a_granted_folder_are_unreachable(cell) {
        let folder = cell.folder("work/data");
        let path = folder.join("d.sock");
        let receiver = UnixDatagram::bind(&path).expect("own folder");
        everybody(&path);
        receiver.set_nonblocking(true).expect("a socket can be");
        let probe = Probe::new(CONNECT).args(json!({"path": path, "type": "SOCK_DGRAM"}));
        probe.prove(cell);
        receiver.recv(&mut [0; 8]).expect("the counter-proof sent a byte");
        cell.assert_stops_with(&probe, |call| call.read(&folder));
        receiver.recv(&mut [0; 8]).expect("the second counter-proof too");
        receiver.recv(&mut [0; 8]).expect_err("nothing came out of the cell");
    }
}

claim! {
    fn abstract_sockets_of_the_host_are_unreachable(cell) {
        let name = format!("{}-abstract", cell.mark());
        let address = SocketAddr::from_abstract_name(&name).expect("a short name");
        let _listener = UnixListener::bind_addr(&address).expect("a new name");
        let path = format!("@{name}");
        cell.assert_stops(&Probe::new(CONNECT).args(json!({"path": path, "type": "SOCK_STREAM"})));
    }
}

//! What a skill doesn't take must not pile up in the supervisor, which no limit of the cell holds.

use crate::network::cell;
use crate::trial::{Grants, Trial};
use serde_json::json;
use skillcell_tests::{User, shared};
use std::time::{Duration, Instant};

/// Asks for a lot on many streams with windows as wide as they get, and reads nothing of it.
const CODE: &str = "
import socket, ssl, time
import h2.config, h2.connection, h2.settings
held = []
for _ in range(args['connections']):
    context = ssl.create_default_context()
    context.set_alpn_protocols(['h2'])
    stream = context.wrap_socket(socket.create_connection(('api.example.com', 443), timeout=10), server_hostname='api.example.com')
    talk = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding='utf-8'))
    talk.initiate_connection()
    talk.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 2**31 - 1})
    talk.increment_flow_control_window(2**31 - 1 - 65535)
    stream.sendall(talk.data_to_send())
    for number in range(100):
        talk.send_headers(1 + 2 * number, [(':method', 'GET'), (':scheme', 'https'), (':authority', 'api.example.com'),
                                           (':path', f'/big?bytes={args[\"bytes\"]}')], end_stream=True)
    stream.sendall(talk.data_to_send())
    held.append(stream)
time.sleep(args['wait'])
value = len(held)
";

#[test]
fn answers_that_a_skill_does_not_read_don_t_fill_the_supervisor() {
    const MOST: u64 = 150 << 20;
    let _shared = shared();
    let cell = cell(User::Caller);
    let rule =
        "{domains: [api.example.com], ports: [443], http: [{methods: [GET], paths: [\"/*\"]}]}";
    let args = json!({"connections": 8, "bytes": 400_000, "wait": 6});
    let asked = 8 * 100 * 400_000_u64;
    assert!(asked > 2 * MOST, "all of it would show");
    let running = Trial::new(&cell, Grants::egress(rule))
        .with_libraries()
        .step("hoard", "python", json!({"code": CODE, "args": args}))
        .call()
        .start();
    let supervisor = running.supervisor.id();
    let (mut most, deadline) = (0, Instant::now() + Duration::from_secs(60));
    // Until it has ended: then it has no size any more.
    while let Some(size) = peak(supervisor) {
        most = size;
        assert!(Instant::now() < deadline, "the call doesn't end");
        std::thread::sleep(Duration::from_millis(50));
    }
    let outcome = skillcell_tests::Outcome::new(running.finish());
    assert_eq!(
        outcome.assert_ok()["hoard"]["value"],
        8,
        "{}",
        outcome.show()
    );
    let taken = outcome.envelope()["usage"]["bytes_in"].as_u64();
    assert!(
        taken.is_some_and(|bytes| bytes > 1 << 20),
        "nothing came: {taken:?}"
    );
    assert!(most > 0 && most < MOST, "{} MiB at its peak", most >> 20);
}

fn peak(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib << 10)
}

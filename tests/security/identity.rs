//! Ids and privileges: nobody is privileged inside, least of all root.

use serde_json::json;
use skillcell_tests::{Level, Probe, Stage, User, claim, sandbox_claim, status_field};
use std::os::unix::fs::PermissionsExt;

claim! {
    /// Seen from the host, where it counts.
    fn the_skill_runs_as_an_unprivileged_host_user(cell) {
        let probe = Probe::new("import time; time.sleep(30)");
        let running = cell.call(Stage::get().fixture("probe")).params(&probe.params(cell)).start();
        for pid in running.skill_processes(1) {
            let ids = status_field(pid, "Uid") + "\t" + &status_field(pid, "Gid");
            assert!(!ids.split_whitespace().any(|id| id == "0"), "host ids {ids}");
            let groups = status_field(pid, "Groups");
            assert!(!groups.split_whitespace().any(|id| id == "0"), "host groups {groups}");
            for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
                assert_eq!(status_field(pid, set).trim_start_matches('0'), "", "{set}");
            }
            assert_eq!(status_field(pid, "NoNewPrivs"), "1");
            assert_eq!(status_field(pid, "Seccomp"), "2");
        }
        running.supervisor.signal(rustix_kill());
        running.assert_skill_ends(std::time::Duration::from_secs(5));
    }
}

fn rustix_kill() -> rustix::process::Signal {
    rustix::process::Signal::KILL
}

sandbox_claim! {
    because crate::not_promised::OWN_ROOT;
    fn root_of_the_host_has_no_id_inside(cell) {
        let value = cell.probe_value(&Probe::new("
import os
value = {'map': open('/proc/self/uid_map').read().split(), 'uid': os.getuid(), 'gids': os.getgroups() + [os.getgid()]}
"));
        let map: Vec<u64> = value["map"].as_array().expect("a list").iter()
            .map(|n| n.as_str().and_then(|n| n.parse().ok()).expect("a number")).collect();
        assert_eq!(map.len(), 3, "one range: {value}");
        assert_eq!(map[2], 1, "one id: {value}");
        assert!(map[0] != 0 && map[1] != 0, "{value}");
        assert_ne!(value["uid"], 0);
        assert!(!value["gids"].as_array().expect("a list").contains(&json!(0)), "{value}");
    }
}

claim! {
    fn privileges_can_t_be_regained(cell) {
        let plain = Probe::new("
status = open('/proc/self/status').read()
assert 'NoNewPrivs:\\t0' in status, status
");
        plain.prove(cell);
        let value = cell.probe_value(&Probe::new("
import ctypes
PR_GET_NO_NEW_PRIVS, PR_CAPBSET_READ = 39, 23
libc = ctypes.CDLL(None)
value = {'no_new_privs': libc.prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
         'bounding': [cap for cap in range(41) if libc.prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1]}
"));
        assert_eq!(value["no_new_privs"], 1);
        // Only who has capabilities can take them out of the bounding set.
        if cell.level == Level::Sandbox || cell.user.uid() == 0 {
            assert_eq!(value["bounding"], json!([]), "capabilities in the bounding set");
        }
    }
}

claim! {
    fn setuid_files_give_nothing(cell) {
        let program = std::fs::read(Stage::get().program("whoami")).expect("compiled");
        let tool = cell.file("work/tools/whoami", program);
        let suite_is_root = User::Caller.uid() == 0;
        if suite_is_root {
            std::os::unix::fs::lchown(&tool, Some(0), Some(0)).expect("root may");
        }
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o4755)).expect("own file");
        let probe = Probe::new("
import os, subprocess
done = subprocess.run([args['tool']], capture_output=True, text=True)
value = {'became': done.stdout.strip(), 'was': str(os.geteuid())}
").args(json!({"tool": tool}));
        if suite_is_root {
            assert_eq!(probe.prove(cell)["became"], "0", "the counter-proof: the file is setuid root");
        }
        let value = cell.probe_value_with(&probe, |call| call.read(cell.path("work/tools")));
        assert_eq!(value["became"], value["was"], "{value}");
        assert_ne!(value["became"], "0", "{value}");
    }
}

claim! {
    fn ids_can_t_be_changed(cell) {
        for code in ["import os; os.setuid(0)", "import os; os.setgid(0)", "import os; os.setgroups([0])",
                     "import os; os.setresuid(0, 0, 0)"] {
            let probe = Probe::new(code).plain(skillcell_tests::Plain::Root);
            cell.assert_stops(&probe);
        }
    }
}

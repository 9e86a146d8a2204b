//! Who may use whose daemon.

use crate::daemon::{Daemon, spawn};
use crate::{cell, execute};
use serde_json::json;
use skillcell_tests::{Cell, Level, Outcome, User, shared};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

fn of(user: User) -> Cell {
    Cell::new(Level::Sandbox, user)
}

/// Opens everything that the daemon has closed, so that only the peer's credentials are left to
/// keep others out.
fn open_doors(daemon: &Daemon) {
    let folder = daemon.socket.parent().unwrap();
    for (path, mode) in [(folder, 0o755), (daemon.socket.as_path(), 0o666)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// As another user: the calls of `cell` go to `daemon`.
fn call(cell: &Cell, daemon: &Daemon) -> Outcome {
    let skill = execute(cell, "return 'done'");
    cell.call(skill).flag(daemon.flag()).run()
}

#[test]
fn the_socket_is_for_its_user_alone() {
    let _shared = shared();
    let cell = cell();
    let daemon = Daemon::start(&cell, &[]);
    let folder = fs::metadata(daemon.socket.parent().unwrap()).unwrap();
    assert_eq!(folder.mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(&daemon.socket).unwrap().mode() & 0o777, 0o600);
    call(&cell, &daemon).assert_ok();
}

#[test]
fn an_ordinary_user_cannot_use_roots_daemon_even_when_the_socket_can_be_reached() {
    let _shared = shared();
    if !User::Ordinary.is_switched() {
        return only_as_root();
    }
    let (root, ordinary) = (of(User::Caller), of(User::Ordinary));
    let daemon = Daemon::start(&root, &[]);
    // Closed doors first: not even a connection.
    call(&ordinary, &daemon).assert_error("refused", 5, &["daemon_unavailable"]);
    open_doors(&daemon);
    let outcome = call(&ordinary, &daemon);
    outcome.assert_error("denied", 3, &["caller_not_allowed"]);
    assert!(outcome.stdout.contains("--allow-uid"), "{}", outcome.show());
    // The counter-proof: the same socket, with its own user.
    call(&root, &daemon).assert_ok();
}

#[test]
fn roots_calls_do_not_go_to_a_daemon_of_somebody_else() {
    let _shared = shared();
    if !User::Ordinary.is_switched() {
        return only_as_root();
    }
    let (root, ordinary) = (of(User::Caller), of(User::Ordinary));
    let daemon = Daemon::start(&ordinary, &[]);
    let outcome = call(&root, &daemon);
    outcome.assert_error("refused", 5, &["caller_not_allowed"]);
    call(&ordinary, &daemon).assert_ok();
}

#[test]
fn a_guest_by_uid_may_call_by_id_and_say_nothing_else() {
    let _shared = shared();
    if !User::Ordinary.is_switched() {
        return only_as_root();
    }
    let (root, ordinary) = (of(User::Caller), of(User::Ordinary));
    let library = root.path("work/skills/tools/greet");
    fs::create_dir_all(&library).unwrap();
    fs::write(
        library.join("manifest.yaml"),
        "name: greet\nversion: 1.0.0\n",
    )
    .unwrap();
    let code = "class S:\n    def execute(self, p):\n        return 'hello ' + p['name']\n";
    fs::write(library.join("skill.py"), code).unwrap();
    let uid = User::Ordinary.uid().to_string();
    let daemon = Daemon::start(&root, &["--allow-uid", &uid]);
    let ask = |body: &serde_json::Value| curl(&ordinary, &daemon, body);
    let envelope = ask(&json!({"skill": "tools/greet", "params": {"name": "guest"}}));
    assert_eq!(envelope["result"], "hello guest", "{envelope}");
    let log = fs::read_to_string(root.path("home/.local/state/skillcell/audit/00000001.jsonl"));
    assert!(
        log.unwrap().contains(&format!("uid {uid}")),
        "the record names the guest"
    );
    for (what, said) in [
        ("trust", json!(true)),
        ("read", json!(["/etc/shadow"])),
        ("policy", json!(["/tmp/mine.yaml"])),
        ("environment", json!({})),
        ("actor", json!("root")),
        ("env", json!([{"name": "HOME_TOKEN"}])),
    ] {
        let mut body = json!({"skill": "tools/greet", "params": {"name": "x"}});
        body[what] = said;
        let answer = ask(&body);
        assert_eq!(answer["error"]["code"], "forbidden", "{what}: {answer}");
    }
    // The command line says nothing that a guest may not say, unless it is typed.
    let call = |flag: &str| {
        let call = ordinary.call("tools/greet").flag(daemon.flag());
        call.flags(["--params", r#"{"name": "guest"}"#, flag]).run()
    };
    assert_eq!(call("--show-output").assert_ok(), "hello guest");
    call("--trust").assert_error("denied", 3, &["caller_not_allowed"]);
    let own = execute(&ordinary, "return 1");
    assert_eq!(ask(&json!({"skill": own}))["error"]["code"], "not_found");
}

/// A request by another user; the suite itself can't change who it is.
fn curl(cell: &Cell, daemon: &Daemon, body: &serde_json::Value) -> serde_json::Value {
    let mut command = cell.command("curl");
    command
        .args(["-s", "--unix-socket"])
        .arg(&daemon.socket)
        .args(["-H", "Content-Type: application/json", "-d"])
        .arg(body.to_string())
        .arg("http://daemon/v1/run");
    let said = skillcell_tests::Child::spawn(command, None).finish().stdout;
    serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"))
}

#[test]
fn a_second_daemon_does_not_take_the_place_of_a_living_one() {
    let _shared = shared();
    let cell = cell();
    let daemon = Daemon::start(&cell, &[]);
    let second = spawn(&cell, &daemon.socket, &[]).finish();
    assert_eq!(second.code(), 5, "{}", second.stderr);
    let words = format!("process {}", daemon.child.id());
    assert!(second.stderr.contains(&words), "{}", second.stderr);
    call(&cell, &daemon).assert_ok();
}

#[test]
fn a_socket_in_a_folder_of_others_is_refused() {
    let _shared = shared();
    let cell = cell();
    let open = cell.folder("open");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let ended = spawn(&cell, &open.join("s.sock"), &[]).finish();
    assert_eq!(ended.code(), 5, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("others can write"),
        "{}",
        ended.stderr
    );

    let real = cell.folder("real");
    symlink(&real, cell.path("link")).unwrap();
    let ended = spawn(&cell, &cell.path("link/s.sock"), &[]).finish();
    assert_eq!(ended.code(), 5, "{}", ended.stderr);

    // What stands there and is no socket of a dead daemon stays.
    let taken = cell.file("taken/s.sock", "precious");
    fs::set_permissions(taken.parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
    let ended = spawn(&cell, &taken, &[]).finish();
    assert_eq!(ended.code(), 5, "{}", ended.stderr);
    assert_eq!(fs::read_to_string(&taken).unwrap(), "precious");

    let secret = cell.file("secret", "precious");
    symlink(&secret, cell.folder("planted").join("s.sock.lock")).unwrap();
    fs::set_permissions(cell.path("planted"), fs::Permissions::from_mode(0o700)).unwrap();
    let ended = spawn(&cell, &cell.path("planted/s.sock"), &[]).finish();
    assert_eq!(ended.code(), 5, "{}", ended.stderr);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "precious");
}

/// Two users are needed. An ordinary user's run can't have them; root's run has, and is part of
/// what `scripts/test` does.
fn only_as_root() {
    assert!(
        !rustix::process::geteuid().is_root(),
        "root has a second user"
    );
}

//! What a skill needs is installed from the package index that the user names, and the build cell
//! reaches nobody else. The counter-proof is the same installer, outside of a cell.

use crate::claim;
use crate::network::{cell_at, network, venv};
use crate::trial::assert_nothing_arrived;
use serde_json::{Value, json};
use skillcell_tests::{Call, Cell, Child, Level, Outcome, Running, Stage, User};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const TOOLS: [&str; 2] = ["uv", "pip"];

/// One skill that needs one package, and who installs it how.
struct Install<'a> {
    cell: &'a Cell,
    tool: &'a str,
    package: &'a str,
    /// `tests/fixtures/egress/world/index.py` has them.
    wishes: Value,
    host: String,
    operator: String,
    env: Vec<(&'a str, String)>,
}

impl<'a> Install<'a> {
    fn new(cell: &'a Cell, tool: &'a str, package: &'a str) -> Install<'a> {
        Install {
            cell,
            tool,
            package,
            wishes: json!({}),
            host: "index.example.com".to_owned(),
            operator: String::new(),
            env: Vec::new(),
        }
    }

    /// YAML below `defaults` of the operator's policy.
    fn operator(mut self, yaml: &str) -> Self {
        self.operator.push_str(&format!("  {yaml}\n"));
        self
    }

    fn wishing(mut self, wishes: Value) -> Self {
        self.wishes = wishes;
        self
    }

    fn at(mut self, host: &str) -> Self {
        self.host = host.to_owned();
        self
    }

    fn env(mut self, name: &'a str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// Who asks, so that tests beside this one are told apart. A part of a name, too.
    fn mark(&self) -> String {
        format!("{}-{}", self.cell.mark(), self.tool)
    }

    /// Where some of the packages keep their files.
    fn far(&self) -> String {
        format!("{}.wild.example.org", self.mark())
    }

    fn index(&self) -> String {
        let wishes = base64(self.wishes.to_string().as_bytes());
        format!("https://{}/{}~{wishes}/simple", self.host, self.mark())
    }

    fn settings(&self) -> Vec<(&str, String)> {
        let authority = network().authority().display().to_string();
        let mut settings = vec![
            ("PIP_INDEX_URL", self.index()),
            ("PIP_CERT", authority.clone()),
            ("SSL_CERT_FILE", authority),
            ("PIP_RETRIES", "1".to_owned()),
        ];
        settings.extend(self.env.iter().cloned());
        settings
    }

    fn call(&self) -> Call<'a> {
        let (cell, name) = (self.cell, format!("needs_{}", self.package));
        let bundle = cell.bundle(
            &name,
            &[
                (
                    "manifest.yaml",
                    &format!(
                        "name: {name}\nversion: 1.0.0\ndescription: Needs a package.\nrequirements: [{}]\n",
                        self.package
                    ),
                ),
                (
                    "skill.py",
                    &format!(
                        "import {0}\n\nclass Needs:\n    def execute(self, params):\n        return {{'value': {0}.VALUE}}\n",
                        self.package
                    ),
                ),
            ],
        );
        let policy = match self.operator.as_str() {
            "" => "version: 1\ndefaults: {trust: allow}\n".to_owned(),
            yaml => format!("version: 1\ndefaults:\n  trust: allow\n{yaml}"),
        };
        let policy = cell.file("work/operator.yaml", policy);
        let path = match self.tool {
            "uv" => format!("/usr/bin:/bin:{}", venv().join("bin").display()),
            _ => "/usr/bin:/bin".to_owned(),
        };
        let cache = cell.folder(&format!("cache-{}", self.tool));
        let mut call = cell
            .call(bundle)
            .params(&json!({}))
            .flag("--policy")
            .flag(policy)
            .host_env("PATH", path)
            .host_env("SKILLCELL_CACHE_DIR", cache);
        for (name, value) in self.settings() {
            call = call.host_env(name, value);
        }
        call
    }

    fn run(&self) -> Outcome {
        let outcome = self.call().run();
        let cache = self.cell.path(&format!("cache-{}", self.tool));
        for folder in ["tmp", "locks"] {
            let left = std::fs::read_dir(cache.join(folder)).map_or(0, Iterator::count);
            assert_eq!(left, 0, "{folder} of the cache\n{}", outcome.show());
        }
        outcome
    }

    /// The same outside of a cell, in the same network, by the same user: works. Gives the value.
    #[track_caller]
    fn prove(&self) -> Value {
        let target = self.cell.folder(&format!("outside-{}", self.mark()));
        let python = venv().join("bin/python");
        let mut command = self.cell.command(&python);
        command.args(["-m", "pip", "install", "--quiet", "--no-cache-dir"]);
        command.args(["--disable-pip-version-check", "--target"]);
        command.arg(&target).arg(self.package).envs(self.settings());
        let what = format!("{} outside of a cell", self.package);
        Child::spawn(command, None).finish().expect_success(&what);
        let mut command = self.cell.command(&python);
        command.env("PYTHONPATH", &target).args(["-B", "-c"]);
        command.arg(format!(
            "import json, {0}; print(json.dumps({0}.VALUE))",
            self.package
        ));
        let shown = Child::spawn(command, None).finish().expect_success(&what);
        serde_json::from_str(&shown.stdout).expect("the package prints JSON")
    }
}

/// A file server with `tiny` on loopback of the network that `skillcell` runs in.
struct Local {
    _server: Child,
    port: u16,
}

impl Local {
    fn start(cell: &Cell) -> Local {
        let folder = cell.folder("local-index");
        let mut command = cell.command("/usr/bin/python3");
        let script = Stage::get().fixture("egress").join("world/index.py");
        command.arg("-B").arg(script).arg(&folder);
        let server = Child::spawn(command, None);
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Ok(port) = std::fs::read_to_string(folder.join("port")) {
                return Local {
                    port: port.parse().expect("a port"),
                    _server: server,
                };
            }
            assert!(Instant::now() < deadline, "{}", server.complaints());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The install failed because of this target, and every place where that is told tells it.
#[track_caller]
fn assert_denied(outcome: &Outcome, target: &str, reason: &str, line: &str) {
    outcome.assert_error("denied", 3, &["dependency_install"]);
    let denial = outcome.assert_denial("network", target);
    assert_eq!(denial["reason"], reason, "{}", outcome.show());
    let error = &outcome.envelope()["error"];
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|m| m.contains(target)),
        "the message doesn't name it\n{}",
        outcome.show()
    );
    for hint in [&error["hint"], &denial["hint"]] {
        assert!(
            hint.as_str().is_some_and(|h| h.contains(line)),
            "no hint with `{line}`\n{}",
            outcome.show()
        );
    }
    outcome.assert_readable();
}

claim! {
    fn an_install_comes_from_the_index_that_the_user_names(cell) {
        for tool in TOOLS {
            let install = Install::new(cell, tool, "tiny");
            let outcome = install.run();
            assert_eq!(outcome.assert_ok(), &json!({"value": "tiny is here"}));
            assert!(outcome.denials().is_empty(), "{}", outcome.show());
            assert!(!network().arrived(&install.mark()).is_empty(), "{tool}");
        }
    }
}

claim! {
    fn files_on_another_host_are_denied_unless_the_operator_lists_it(cell) {
        for tool in TOOLS {
            let install = || Install::new(cell, tool, "far");
            let far = install().far();
            let outcome = install().run();
            let line = format!("dependencies: {{index_hosts: [{{domains: [{far}]}}]}}");
            assert_denied(&outcome, &format!("{far}:443"), "host_not_allowed", &line);
            assert_nothing_arrived(&far);
            // The very line of the hint.
            let allowed = install().operator(&line).run();
            assert_eq!(allowed.assert_ok(), &json!({"value": "far is here"}));
            assert!(!network().asked(&far).is_empty(), "the log has what is asked");
            assert_eq!(install().prove(), "far is here");
        }
    }
}

claim! {
    fn a_redirect_to_another_host_is_denied_unless_the_operator_lists_it(cell) {
        for tool in TOOLS {
            let install = || Install::new(cell, tool, "moved");
            let far = install().far();
            let outcome = install().run();
            let line = format!("dependencies: {{index_hosts: [{{domains: [{far}]}}]}}");
            assert_denied(&outcome, &format!("{far}:443"), "host_not_allowed", &line);
            assert_nothing_arrived(&far);
            let wildcard = "dependencies: {index_hosts: [{domains: [\"*.wild.example.org\"], ports: [443]}]}";
            let allowed = install().operator(wildcard).run();
            assert_eq!(allowed.assert_ok(), &json!({"value": "moved is here"}));
            assert_eq!(install().prove(), "moved is here");
        }
    }
}

claim! {
    /// With proxy variables and without: the code may do as it likes.
    fn build_code_reaches_the_index_and_nobody_else(cell) {
        let local = Local::start(cell);
        for tool in TOOLS {
            let far = Install::new(cell, tool, "builder").far();
            let elsewhere = [
                format!("https://{far}/hello"),
                format!("http://{far}/hello"),
                "http://203.0.113.5/hello".to_owned(),
                format!("http://127.0.0.1:{}/simple/tiny/", local.port),
            ];
            let index = "https://index.example.com/hello".to_owned();
            let attempts: Vec<&String> = elsewhere.iter().chain([&index]).collect();
            let install = Install::new(cell, tool, "builder")
                .wishing(json!({"attempts": attempts}))
                .operator("dependencies: {source_builds: true}");
            let outcome = install.run();
            let found = outcome.assert_ok()["value"].clone();
            for url in &elsewhere {
                for how in [0, 1] {
                    let result = found[url][how].as_str().unwrap_or_default();
                    assert!(result.starts_with("denied"), "{url}: {found:#}");
                }
            }
            assert_eq!(found[&index], json!(["reached 200", "reached 200"]));
            assert_nothing_arrived(&far);
            // The install succeeded, and what was denied is told all the same.
            for target in [&far, "203.0.113.5"] {
                assert!(outcome.stderr.contains(target), "{}", outcome.show());
            }
            let proof = install.prove();
            for url in attempts {
                assert_eq!(proof[url], json!(["reached 200", "reached 200"]), "{url}");
            }
        }
    }
}

claim! {
    fn build_code_that_needs_another_host_fails_with_the_line_that_would_allow_it(cell) {
        for tool in TOOLS {
            // A wheel that isn't there after the build: the address is taken for granted.
            let install = Install::new(cell, tool, "builder").operator("dependencies: {source_builds: true}");
            let far = install.far();
            let install = install.wishing(json!({"needs": format!("https://{far}:8443/hello")}));
            let outcome = install.run();
            let line = format!("dependencies: {{index_hosts: [{{domains: [{far}], ports: [8443]}}]}}");
            assert_denied(&outcome, &format!("{far}:8443"), "host_not_allowed", &line);
            assert_eq!(install.prove(), json!({}));
        }
    }
}

claim! {
    fn an_index_on_loopback_is_reached_because_the_user_names_it(cell) {
        let local = Local::start(cell);
        for tool in TOOLS {
            for host in ["127.0.0.1", "localhost"] {
                let index = format!("http://{host}:{}/simple", local.port);
                let cache = cell.folder(&format!("cache-{tool}-{host}"));
                let outcome = Install::new(cell, tool, "tiny")
                    .env("PIP_INDEX_URL", index)
                    .env("SKILLCELL_CACHE_DIR", cache.display().to_string())
                    .run();
                assert_eq!(outcome.assert_ok(), &json!({"value": "tiny is here"}), "{host}");
            }
        }
    }
}

claim! {
    /// A host that only the operator lists has to be public, or named by its address as well.
    fn an_index_in_a_private_network_is_reached_because_the_user_names_it(cell) {
        for tool in TOOLS {
            let install = Install::new(cell, tool, "tiny").at("private.example.com");
            assert_eq!(install.run().assert_ok(), &json!({"value": "tiny is here"}));

            let far = || Install::new(cell, tool, "far").wishing(json!({"far": "private.example.com"}));
            let listed = "{domains: [private.example.com]}";
            let outcome = far().operator(&format!("dependencies: {{index_hosts: [{listed}]}}")).run();
            let line = "dependencies: {index_hosts: [{cidrs: [10.0.0.5/32]}]}";
            assert_denied(&outcome, "private.example.com:443", "address_not_public", line);
            let both = format!("dependencies: {{index_hosts: [{listed}, {{cidrs: [10.0.0.5/32]}}]}}");
            assert_eq!(far().operator(&both).run().assert_ok(), &json!({"value": "far is here"}));
        }
    }
}

claim! {
    fn the_operator_s_deny_wins_over_the_user_s_index(cell) {
        for tool in TOOLS {
            let install = || Install::new(cell, tool, "tiny");
            let before = network().arrived(&install().mark()).len();
            let outcome = install().operator("network: {deny: [{domains: [index.example.com]}]}").run();
            assert_denied(&outcome, "index.example.com", "denied_by_rule", "deny");
            assert_eq!(network().arrived(&install().mark()).len(), before);
            install().run().assert_ok();
        }
    }
}

claim! {
    fn behind_a_proxy_of_the_user_s_own_the_proxy_is_reached_and_nobody_else(cell) {
        for tool in TOOLS {
            let install = || {
                let install = Install::new(cell, tool, "builder");
                let far = install.far();
                install
                    .at(&far)
                    .operator("dependencies: {source_builds: true}")
                    .wishing(json!({"attempts": ["https://index.example.com/hello"]}))
            };
            let far = install().far();
            let proxied = install().env("HTTPS_PROXY", "http://api.example.com:3128").run();
            let found = &proxied.assert_ok()["value"]["https://index.example.com/hello"];
            assert!(found[1].as_str().is_some_and(|f| f.starts_with("denied")), "{found}");
            let arrived = network().arrived(&far);
            let through = arrived.iter().any(|e| e["event"] == "proxy" && e["target"] == format!("{far}:443"));
            assert!(through, "{arrived:#?}");
            assert!(network().asked(&far).is_empty(), "the proxy looks names up");
        }
    }
}

claim! {
    fn an_interrupted_install_leaves_nothing(cell) {
        for tool in TOOLS {
            let install = Install::new(cell, tool, "builder").operator("dependencies: {source_builds: true}");
            let awake = format!("https://index.example.com/hello?awake={}", install.mark());
            let install = install.wishing(json!({"sleep": 50, "awake": awake}));
            let running: Running = install.call().start();
            let deadline = Instant::now() + Duration::from_secs(40);
            while network().arrived(&format!("awake={}", install.mark())).is_empty() {
                assert!(Instant::now() < deadline, "the build doesn't start");
                std::thread::sleep(Duration::from_millis(50));
            }
            running.supervisor.signal(rustix::process::Signal::TERM);
            let finished = running.finish();
            assert_ne!(finished.code(), 0);
            assert!(finished.elapsed < Duration::from_secs(45), "{}", finished.stderr);
            let cache = cell.path(&format!("cache-{tool}"));
            for folder in ["envs", "tmp", "locks"] {
                let left = std::fs::read_dir(cache.join(folder)).map_or(0, Iterator::count);
                assert_eq!(left, 0, "{folder}");
            }
        }
    }
}

/// Nothing there could hold the network to the index; wheels on disk need none.
#[test]
fn at_the_process_level_an_install_from_an_index_is_refused() {
    let _shared = skillcell_tests::shared();
    for user in [User::Caller, User::Ordinary] {
        let cell = cell_at(Level::Process, user);
        for tool in TOOLS {
            let install =
                || Install::new(&cell, tool, "tiny").operator("isolation: {minimum: process}");
            let outcome = install().run();
            outcome.assert_error("refused", 5, &["dependency_install"]);
            let hint = outcome.envelope()["error"]["hint"]
                .as_str()
                .unwrap_or_default();
            assert!(
                hint.contains("sandbox") && hint.contains("--deps"),
                "{hint}"
            );
            assert_nothing_arrived(&install().mark());
            let wheels = wheels(&cell);
            let local = install()
                .env("PIP_NO_INDEX", "1")
                .env("PIP_FIND_LINKS", wheels.display().to_string())
                .run();
            assert_eq!(local.assert_ok(), &json!({"value": "tiny is here"}));
            assert_nothing_arrived(&install().mark());
        }
    }
}

/// A folder with a wheel of `tiny`.
fn wheels(cell: &Cell) -> PathBuf {
    let folder = cell.path("local-index/simple/tiny");
    if !folder.exists() {
        drop(Local::start(cell));
    }
    folder
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let padded = [
            chunk[0],
            *chunk.get(1).unwrap_or(&0),
            *chunk.get(2).unwrap_or(&0),
        ];
        let bits = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
        for digit in 0..=chunk.len() {
            text.push(DIGITS[(bits >> (18 - 6 * digit)) as usize & 63] as char);
        }
    }
    text
}

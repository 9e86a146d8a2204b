//! One list of attempts, made in a cell under a policy, and outside of one as the counter-proof.

use crate::network::{network, venv};
use serde_json::{Value, json};
use skillcell_tests::{Call, Cell, Child, Outcome, Stage};
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a denied skill waits at most, in milliseconds: less than any client's own time limit, so that
/// a denial that is not told but timed out is seen.
pub const QUICK: u64 = 5000;

/// What the bundle asks for and the operator allows.
#[derive(Clone, Default)]
pub struct Grants {
    /// YAML below `security_policy`.
    pub bundle: String,
    /// YAML below `defaults` of the operator's policy.
    pub operator: String,
}

impl Grants {
    /// Egress rules, in YAML's flow style, that both sides agree on.
    pub fn egress(rules: &str) -> Grants {
        Grants::network(&format!("egress: [{rules}]"))
    }

    /// All of `network`, in YAML's flow style, that both sides agree on.
    pub fn network(fields: &str) -> Grants {
        let network = format!("network: {{{fields}}}\n");
        Grants {
            bundle: network.clone(),
            operator: network,
        }
    }

    /// Ports 443 and 80 of one domain.
    pub fn domain(name: &str) -> Grants {
        Grants::egress(&format!("{{domains: [\"{name}\"], ports: [443, 80]}}"))
    }

    pub fn none() -> Grants {
        Grants::default()
    }

    /// More for the bundle, which the operator leaves alone.
    pub fn asking(mut self, yaml: &str) -> Grants {
        self.bundle.push_str(yaml);
        self.bundle.push('\n');
        self
    }
}

/// For what bears no mark of who asked: one of the callers at a time.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct Trial<'a> {
    cell: &'a Cell,
    grants: Grants,
    steps: Vec<Value>,
    libraries: bool,
    flags: Vec<String>,
}

impl<'a> Trial<'a> {
    pub fn new(cell: &'a Cell, grants: Grants) -> Trial<'a> {
        Trial {
            cell,
            grants,
            steps: Vec::new(),
            libraries: false,
            flags: Vec::new(),
        }
    }

    /// An attempt: an act of `tests/fixtures/egress/client`, and its fields.
    pub fn step(mut self, name: &str, act: &str, mut fields: Value) -> Self {
        fields["name"] = name.into();
        fields["act"] = act.into();
        self.steps.push(fields);
        self
    }

    /// With requests, httpx and the others from the tests' virtualenv.
    pub fn with_libraries(mut self) -> Self {
        self.libraries = true;
        self
    }

    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|f| (*f).to_owned()));
        self
    }

    /// The same attempts outside of a cell, in the same network, as the same user.
    pub fn outside(&self) -> Report {
        let mut command = if self.libraries {
            self.cell.command(venv().join("bin/python"))
        } else {
            self.cell.command("/usr/bin/python3")
        };
        command.arg("-B").arg(self.bundle().join("skill.py"));
        // A step that believes what a cell offers believes the test authority here.
        for variable in ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"] {
            command.env(variable, network().authority());
        }
        let finished = Child::spawn(command, Some(self.params().to_string().as_bytes())).finish();
        let results = serde_json::from_str(&finished.stdout).unwrap_or_else(|e| {
            panic!(
                "the client outside a cell: {e}\n{}\n{}",
                finished.stdout, finished.stderr
            )
        });
        Report {
            results,
            outcome: None,
        }
    }

    /// The counter-proof: outside of a cell every attempt gets what it wants.
    #[track_caller]
    pub fn prove(&self) -> Report {
        let report = self.outside();
        for step in &self.steps {
            report.ok(step["name"].as_str().expect("steps have names"));
        }
        report
    }

    /// In a cell. The client itself always ends well: it reports how each attempt ended.
    #[track_caller]
    pub fn inside(&self) -> Report {
        let outcome = self.call().run();
        let results = outcome.assert_ok().clone();
        Report {
            results,
            outcome: Some(outcome),
        }
    }

    pub fn call(&self) -> Call<'a> {
        let policy = self
            .cell
            .file("work/operator.yaml", operator_policy(&self.grants.operator));
        let mut call = self
            .cell
            .call(self.bundle())
            .params(&self.params())
            .flag("--policy")
            .flag(policy)
            .flags(&self.flags)
            // Whom the supervisor believes when it looks into a connection.
            .host_env("SSL_CERT_FILE", network().authority());
        if self.libraries {
            call = call.flag("--deps").flag(venv());
        }
        call
    }

    fn params(&self) -> Value {
        json!({"steps": self.steps, "mark": self.cell.mark()})
    }

    /// The client's bundle with this trial's policy, and the test authority for who asks for it.
    pub fn bundle(&self) -> PathBuf {
        let client = Stage::get().fixture("egress").join("client");
        for entry in fs::read_dir(&client).expect("the client is staged") {
            let entry = entry.expect("a folder can be read");
            let name = entry.file_name().to_string_lossy().into_owned();
            let mut text = fs::read_to_string(entry.path()).expect("the client is text");
            if name == "manifest.yaml" {
                text.push_str(&format!(
                    "security_policy:\n  version: 1\n  resources: {{timeout: 150s, memory: 1GiB, processes: 256}}\n{}",
                    indented(&self.grants.bundle)
                ));
            }
            self.cell.file(&format!("bundles/client/{name}"), text);
        }
        let authority = fs::read(network().authority()).expect("the world has an authority");
        self.cell.file("bundles/client/ca.pem", authority);
        self.cell.path("bundles/client")
    }
}

fn operator_policy(yaml: &str) -> String {
    if yaml.is_empty() {
        return "version: 1\n".to_owned();
    }
    format!("version: 1\ndefaults:\n{}", indented(yaml))
}

fn indented(yaml: &str) -> String {
    yaml.lines().map(|line| format!("  {line}\n")).collect()
}

/// How the attempts ended.
pub struct Report {
    results: Value,
    outcome: Option<Outcome>,
}

impl Report {
    pub fn outcome(&self) -> &Outcome {
        self.outcome.as_ref().expect("only calls have an outcome")
    }

    /// Everything, for messages.
    pub fn show(&self) -> String {
        match &self.outcome {
            Some(outcome) => format!("in the cell: {:#}\n{}", self.results, outcome.show()),
            None => format!("outside of a cell: {:#}", self.results),
        }
    }

    /// However the attempt ended.
    pub fn result(&self, name: &str) -> &Value {
        &self.results[name]
    }

    /// The attempt got what it wanted; gives it.
    #[track_caller]
    pub fn ok(&self, name: &str) -> &Value {
        assert!(
            self.results[name]["ok"] == true,
            "`{name}` failed\n{}",
            self.show()
        );
        &self.results[name]["value"]
    }

    /// The attempt failed, and at once.
    #[track_caller]
    pub fn failed(&self, name: &str) -> &Value {
        let result = &self.results[name];
        assert!(
            result["ok"] == false,
            "`{name}` got what it wanted\n{}",
            self.show()
        );
        assert!(
            result["ms"].as_u64().is_some_and(|ms| ms < QUICK),
            "`{name}` hung instead of being denied\n{}",
            self.show()
        );
        result
    }

    /// What the audit log has of the call's names and connections.
    pub fn events(&self) -> Vec<Value> {
        self.recorded(&["name_asked", "connection_decided", "connection_ended"])
    }

    /// The data of the call's events of these kinds, in the order of the log.
    pub fn recorded(&self, kinds: &[&str]) -> Vec<Value> {
        let envelope = self.outcome().envelope();
        let log = envelope["audit"]["log"].as_str().expect("a log");
        let run = envelope["run_id"].as_str().expect("a run");
        fs::read_to_string(log)
            .expect("the log can be read")
            .lines()
            .filter(|line| line.contains(run))
            .map(|line| serde_json::from_str(line).expect("the log is JSON lines"))
            .filter(|line: &Value| kinds.iter().any(|kind| line["event"] == *kind))
            .map(|line| line["data"].clone())
            .collect()
    }

    /// The body of an HTTP answer with status 200.
    #[track_caller]
    pub fn body(&self, name: &str) -> &str {
        let value = self.ok(name);
        assert!(value["status"] == 200, "`{name}`\n{}", self.show());
        value["body"].as_str().expect("bodies are text")
    }

    /// A network denial of this target with this reason, which names the policy line for it.
    #[track_caller]
    pub fn denied(&self, target: &str, reason: &str) -> &Value {
        let fits = |d: &&Value| {
            d["kind"] == "network"
                && d["reason"] == reason
                && d["target"].as_str().is_some_and(|t| t.contains(target))
        };
        let found = self.outcome().denials().iter().find(fits);
        let denial = found
            .unwrap_or_else(|| panic!("no denial of `{target}` with {reason}\n{}", self.show()));
        assert!(
            denial["hint"].as_str().is_some_and(|hint| !hint.is_empty()),
            "a denial without a hint\n{}",
            self.show()
        );
        denial
    }

    /// One of the reasons, where two checks may both be the first to see it.
    #[track_caller]
    pub fn denied_for_one_of(&self, target: &str, reasons: &[&str]) {
        let found = self.outcome().denials().iter().any(|d| {
            d["kind"] == "network"
                && d["reason"].as_str().is_some_and(|r| reasons.contains(&r))
                && d["target"].as_str().is_some_and(|t| t.contains(target))
        });
        assert!(
            found,
            "no denial of `{target}` with one of {reasons:?}\n{}",
            self.show()
        );
    }

    #[track_caller]
    pub fn nothing_denied(&self) {
        let any = self
            .outcome()
            .denials()
            .iter()
            .any(|d| d["kind"] == "network");
        assert!(!any, "a denial for what is allowed\n{}", self.show());
    }

    #[track_caller]
    pub fn quick(&self, limit: Duration) {
        assert!(self.outcome().elapsed < limit, "{}", self.show());
    }
}

/// Nothing with this tag reached a server, nor the name server.
#[track_caller]
pub fn assert_nothing_arrived(tag: &str) {
    let arrived = network().arrived(tag);
    assert!(arrived.is_empty(), "this left the cell: {arrived:#?}");
    let asked = network().asked(tag);
    assert!(asked.is_empty(), "this was asked outside: {asked:#?}");
}

//! A hostile act in a few lines of Python, and its counter-proof: the same lines outside a cell.

use crate::{Cell, Child, Outcome, Stage, User, caller};
use serde_json::{Value, json};

/// Where the counter-proof runs. Always without Skillcell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plain {
    /// As the same user as the call.
    SameUser,
    /// As the same user, who is root of namespaces of its own: for what needs a capability.
    OwnNamespaces,
    /// As the same user, as the first process of a pid namespace: for what is asked of PID 1, which on
    /// the host may be anybody's.
    FirstProcess,
    /// As whoever runs the suite: for what the kernel leaves to the real root. An ordinary user can't
    /// do it anywhere, so where nobody is root the record of the denial has to do.
    Root,
}

pub struct Probe {
    code: String,
    args: Value,
    plain: Plain,
}

impl Probe {
    /// `code` sets `value`, or raises. It sees `args`.
    pub fn new(code: &str) -> Probe {
        Probe {
            code: code.to_owned(),
            args: json!({}),
            plain: Plain::SameUser,
        }
    }

    pub fn args(mut self, args: Value) -> Probe {
        self.args = args;
        self
    }

    pub fn plain(mut self, plain: Plain) -> Probe {
        self.plain = plain;
        self
    }

    pub fn code(&self) -> &str {
        &self.code
    }

    /// Params for the probe skill. Its result is `{"reached": true, "value": …}` or
    /// `{"reached": false, "why": …}`.
    pub fn params(&self, cell: &Cell) -> Value {
        json!({"code": self.code, "args": self.args, "mark": cell.mark()})
    }

    /// Params for a probe whose value is the result and whose exceptions are the skill's.
    pub fn raw_params(&self, cell: &Cell) -> Value {
        json!({"code": self.code, "args": self.args, "mark": cell.mark(), "raw": true})
    }

    /// The probe outside a cell: it must reach what it wants, else it proves nothing.
    #[track_caller]
    pub fn prove(&self, cell: &Cell) -> Value {
        let seen = self.run_plain(cell);
        assert!(
            seen["reached"] == true,
            "the counter-proof fails: outside a cell the probe gets {seen}"
        );
        seen["value"].clone()
    }

    pub fn run_plain(&self, cell: &Cell) -> Value {
        let skill = Stage::get().fixture("probe").join("skill.py");
        let mut command = match self.plain {
            Plain::SameUser => cell.command("python3"),
            Plain::Root => cell.command_as(User::Caller, "python3"),
            Plain::OwnNamespaces => {
                let mut command = cell.command("unshare");
                command.args([
                    "--user",
                    "--map-root-user",
                    "--mount",
                    "--net",
                    "--ipc",
                    "python3",
                ]);
                command
            }
            Plain::FirstProcess => {
                let mut command = cell.command("unshare");
                command.args([
                    "--user",
                    "--map-root-user",
                    "--pid",
                    "--fork",
                    "--kill-child",
                    "--mount-proc",
                    "python3",
                ]);
                command
            }
        };
        command.arg("-B").arg(skill);
        let finished =
            Child::spawn(command, Some(self.params(cell).to_string().as_bytes())).finish();
        serde_json::from_str(&finished.stdout).unwrap_or_else(|e| {
            panic!(
                "the probe outside a cell: {e}\n{}\n{}",
                finished.stdout, finished.stderr
            )
        })
    }

    /// A real root is needed for the counter-proof, and there is none.
    fn unprovable(&self) -> bool {
        self.plain == Plain::Root && !caller::suite_is_root()
    }
}

impl Cell {
    /// The claim of most tests: outside a cell the probe reaches what it wants, in the cell it doesn't.
    #[track_caller]
    pub fn assert_stops(&self, probe: &Probe) -> Outcome {
        self.assert_stops_with(probe, |call| call)
    }

    /// The same with flags for the call.
    #[track_caller]
    pub fn assert_stops_with<'a>(
        &'a self,
        probe: &Probe,
        flags: impl FnOnce(crate::Call<'a>) -> crate::Call<'a>,
    ) -> Outcome {
        if !probe.unprovable() {
            probe.prove(self);
        }
        let call = self
            .call(Stage::get().fixture("probe"))
            .params(&probe.params(self));
        let outcome = flags(call).run();
        let seen = outcome.assert_ok();
        assert!(
            seen["reached"] == false,
            "in the cell the probe reached {seen}\n{}",
            outcome.show()
        );
        outcome
    }

    /// Runs the probe skill for its value; the probe must work in the cell.
    #[track_caller]
    pub fn probe_value(&self, probe: &Probe) -> Value {
        self.probe_value_with(probe, |call| call)
    }

    #[track_caller]
    pub fn probe_value_with<'a>(
        &'a self,
        probe: &Probe,
        flags: impl FnOnce(crate::Call<'a>) -> crate::Call<'a>,
    ) -> Value {
        let call = self
            .call(Stage::get().fixture("probe"))
            .params(&probe.params(self));
        let outcome = flags(call).run();
        let seen = outcome.assert_ok();
        assert!(
            seen["reached"] == true,
            "the probe failed in the cell\n{}",
            outcome.show()
        );
        seen["value"].clone()
    }
}

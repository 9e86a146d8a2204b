//! The cases, each run in a process of its own.

mod hostile;

use skillcell_core::{Denial, HostFacts, Isolation};
use skillcell_deps::{
    BuildLimits, Cache, Cause, DepsError, DepsRequest, Environment, NetworkTerms, Progress,
    PythonFacts,
};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

pub(crate) const NAMES: &[&str] = &[
    "installs_a_wheel_once_and_finds_it_again",
    "installs_local_wheels_without_a_network",
    "says_which_requirement_failed_and_leaves_nothing",
    "never_runs_code_of_a_package_unless_source_builds_are_allowed",
    "build_code_sees_no_secrets_and_writes_nothing_outside",
    "an_environment_with_a_way_out_is_refused",
    "an_install_that_takes_too_long_is_ended",
];

/// Those that bring their own package.
pub(crate) const OFFLINE: &[&str] = &[
    "installs_local_wheels_without_a_network",
    "never_runs_code_of_a_package_unless_source_builds_are_allowed",
    "build_code_sees_no_secrets_and_writes_nothing_outside",
    "an_environment_with_a_way_out_is_refused",
    "an_install_that_takes_too_long_is_ended",
];

pub(crate) fn run(case: &str) {
    let setup = Setup::new();
    match case {
        "installs_a_wheel_once_and_finds_it_again" => setup.installs(),
        "installs_local_wheels_without_a_network" => hostile::local_wheels(&setup),
        "says_which_requirement_failed_and_leaves_nothing" => setup.names_the_culprit(),
        "never_runs_code_of_a_package_unless_source_builds_are_allowed" => {
            hostile::wheels_only(&setup)
        }
        "build_code_sees_no_secrets_and_writes_nothing_outside" => hostile::probes(&setup),
        "an_environment_with_a_way_out_is_refused" => hostile::ways_out(&setup),
        "an_install_that_takes_too_long_is_ended" => hostile::endless(&setup),
        other => panic!("no case `{other}`"),
    }
}

pub(crate) struct Setup {
    pub(crate) home: PathBuf,
    pub(crate) tool: String,
    pub(crate) isolation: Isolation,
    host: HostFacts,
    python: PythonFacts,
    pub(crate) cache: Cache,
}

#[derive(Default)]
pub(crate) struct Seen(RefCell<Vec<String>>);

impl Progress for Seen {
    fn stage(&self, text: &str) {
        self.0.borrow_mut().push(format!("== {text}"));
    }
    fn line(&self, text: &str) {
        self.0.borrow_mut().push(text.to_owned());
    }
    fn denied(&self, denial: &Denial) {
        self.0
            .borrow_mut()
            .push(format!("denied {}", denial.target));
    }
}

impl Setup {
    fn new() -> Setup {
        let variable = |name: &str| std::env::var(name).unwrap();
        // One outside the system shows that its own tree is all that it needs.
        let python = std::env::var("SKILLCELL_TEST_PYTHON").unwrap_or("/usr/bin/python3".into());
        let executable = Path::new(&python).canonicalize().unwrap();
        let prefix = executable.parent().unwrap().parent().unwrap().to_owned();
        let minor = executable.to_str().unwrap().rsplit('.').next().unwrap();
        let minor = minor.parse().unwrap();
        Setup {
            home: variable("HOME").into(),
            tool: variable("TOOL"),
            isolation: variable("LEVEL").parse().unwrap(),
            host: skillcell_linux::probe::quick(),
            python: PythonFacts {
                executable,
                prefix,
                version: (3, minor),
            },
            cache: Cache::default_location().unwrap(),
        }
    }

    pub(crate) fn ensure(
        &self,
        requirements: &[&str],
        change: impl FnOnce(&mut DepsRequest<'_>),
    ) -> Result<Environment, DepsError> {
        let requirements: Vec<String> = requirements.iter().map(|r| (*r).to_owned()).collect();
        let mut request = DepsRequest {
            requirements: &requirements,
            python: &self.python,
            source_builds: false,
            isolation: self.isolation,
            host: &self.host,
            limits: BuildLimits::default(),
            interrupt: None,
            network: NetworkTerms::default(),
        };
        change(&mut request);
        let seen = Seen::default();
        let result = skillcell_deps::ensure(&self.cache, &request, &seen);
        for line in seen.0.borrow().iter() {
            println!("{line}");
        }
        if let Err(error) = &result {
            println!(
                "error: {error}\nhint: {}\n{}",
                error.hint().unwrap_or_default(),
                error.output().unwrap_or_default()
            );
        }
        result
    }

    pub(crate) fn nothing_is_left(&self) {
        for folder in ["envs", "tmp", "locks"] {
            let count =
                std::fs::read_dir(self.cache.path().join(folder)).map_or(0, Iterator::count);
            assert_eq!(count, 0, "{folder}");
        }
    }

    /// Without a network namespace nothing would hold the network to the index.
    fn refused(&self, requirements: &[&str]) {
        let refused = self.ensure(requirements, |_| {}).unwrap_err();
        assert!(
            matches!(&refused, DepsError::NetworkNotHeld { hosts } if !hosts.is_empty()),
            "{refused}"
        );
        assert!(refused.hint().unwrap().contains("--deps"));
        self.nothing_is_left();
    }

    fn installs(&self) {
        if self.isolation == Isolation::Process {
            return self.refused(&["six"]);
        }
        let first = self.ensure(&["six"], |_| {}).unwrap();
        assert!(first.fresh);
        assert!(first.site.join("six.py").is_file());
        assert!(first.site.join("__pycache__").is_dir(), "compiled");
        let owner = std::os::unix::fs::MetadataExt::uid(
            &std::fs::metadata(first.site.join("six.py")).unwrap(),
        );
        assert_eq!(owner, rustix::process::geteuid().as_raw());
        assert!(!self.ensure(&["Six"], |_| {}).unwrap().fresh);
        let listed = self.cache.list().unwrap();
        assert_eq!(
            (listed.len(), listed[0].installer.as_str()),
            (1, self.tool.as_str())
        );
    }

    fn names_the_culprit(&self) {
        let name = "no-such-package-xyz-123";
        if self.isolation == Isolation::Process {
            return self.refused(&["six", name]);
        }
        match self.ensure(&["six", name], |_| {}) {
            Err(DepsError::Requirement {
                requirement,
                cause: Cause::NotFound,
                ..
            }) => assert_eq!(requirement, name),
            _ => panic!("another result"),
        }
        self.nothing_is_left();
    }
}

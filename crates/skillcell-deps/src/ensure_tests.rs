use super::*;
use crate::{BuildLimits, Prune, PythonFacts, Silent};
use skillcell_core::{CgroupFacts, HostFacts, Isolation};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Writes one package, slowly, and counts.
struct Fake {
    runs: AtomicUsize,
    make: fn(&Workspace) -> Result<(), DepsError>,
}

impl Fake {
    fn new(make: fn(&Workspace) -> Result<(), DepsError>) -> Fake {
        Fake {
            runs: AtomicUsize::new(0),
            make,
        }
    }
}

impl Installer for Fake {
    fn install(
        &self,
        _: &DepsRequest<'_>,
        to: &Workspace,
        _: &dyn Progress,
    ) -> Result<&'static str, DepsError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(100));
        fs::write(to.work().join("download"), "x").unwrap();
        (self.make)(to).map(|()| "fake")
    }
}

fn good(to: &Workspace) -> Result<(), DepsError> {
    fs::write(to.site().join("six.py"), "x = 1\n").unwrap();
    fs::write(to.env().join("meta.json"), "planted").unwrap();
    Ok(())
}

fn host() -> HostFacts {
    HostFacts {
        kernel: String::new(),
        root: false,
        privileged: false,
        namespaces: Ok(()),
        landlock_abi: 6,
        seccomp: true,
        seccomp_notify: true,
        cgroup: CgroupFacts::default(),
        cpus: 1,
        container: None,
    }
}

struct World {
    folder: tempfile::TempDir,
    cache: Cache,
    host: HostFacts,
    python: PythonFacts,
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(&folder.path().join("cache"));
    let python = PythonFacts {
        executable: "/usr/bin/python3".into(),
        prefix: "/usr".into(),
        version: (3, 11),
    };
    World {
        folder,
        cache,
        host: host(),
        python,
    }
}

impl World {
    fn with<T>(&self, requirements: &[&str], then: impl FnOnce(&DepsRequest<'_>) -> T) -> T {
        let requirements: Vec<String> = requirements.iter().map(|r| (*r).to_owned()).collect();
        then(&DepsRequest {
            requirements: &requirements,
            python: &self.python,
            source_builds: false,
            isolation: Isolation::Sandbox,
            host: &self.host,
            limits: BuildLimits::default(),
            interrupt: None,
            network: crate::NetworkTerms::default(),
        })
    }

    fn ensure(&self, installer: &Fake, requirements: &[&str]) -> Result<Environment, DepsError> {
        self.with(requirements, |request| {
            ensure_with(installer, &self.cache, request, &Silent)
        })
    }

    fn count(&self, folder: &str) -> usize {
        fs::read_dir(self.folder.path().join("cache").join(folder)).map_or(0, Iterator::count)
    }
}

#[test]
fn the_second_request_for_a_set_finds_the_first_ones_environment() {
    let (world, fake) = (world(), Fake::new(good));
    assert!(
        world
            .with(&["six"], |r| world.cache.lookup(r))
            .unwrap()
            .is_none()
    );
    assert!(
        !world.folder.path().join("cache").exists(),
        "a lookup makes nothing"
    );
    let first = world.ensure(&fake, &["six"]).unwrap();
    let second = world.ensure(&fake, &["Six"]).unwrap();
    assert!(first.fresh && !second.fresh);
    assert_eq!(
        (first.site.clone(), fake.runs.load(Ordering::SeqCst)),
        (second.site, 1)
    );
    let names: Vec<_> = fs::read_dir(first.site.parent().unwrap())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!((world.count("tmp"), world.count("locks")), (0, 0));
}

#[test]
fn eight_requests_at_once_install_once() {
    let (world, fake) = (world(), Fake::new(good));
    let fresh = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| world.ensure(&fake, &["six"]).unwrap().fresh))
            .collect();
        all.into_iter()
            .map(|t| t.join().unwrap())
            .filter(|fresh| *fresh)
            .count()
    });
    assert_eq!((fresh, fake.runs.load(Ordering::SeqCst)), (1, 1));
    assert_eq!(
        (
            world.count("envs"),
            world.count("tmp"),
            world.count("locks")
        ),
        (1, 0, 0)
    );
}

#[test]
fn different_sets_do_not_wait_for_each_other_and_do_not_mix() {
    let (world, fake) = (world(), Fake::new(good));
    std::thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let (world, fake) = (&world, &fake);
            scope.spawn(move || world.ensure(fake, &[name]).unwrap());
        }
    });
    assert_eq!(
        (world.count("envs"), fake.runs.load(Ordering::SeqCst)),
        (4, 4)
    );
}

#[test]
fn a_failed_or_refused_install_leaves_nothing() {
    let world = world();
    let failing = Fake::new(|_| Err(DepsError::Interrupted));
    assert!(matches!(
        world.ensure(&failing, &["six"]),
        Err(DepsError::Interrupted)
    ));
    let hostile = Fake::new(|to| {
        std::os::unix::fs::symlink("/etc/passwd", to.site().join("x")).unwrap();
        Ok(())
    });
    assert!(matches!(
        world.ensure(&hostile, &["six"]),
        Err(DepsError::Hostile { .. })
    ));
    assert_eq!(
        (
            world.count("envs"),
            world.count("tmp"),
            world.count("locks")
        ),
        (0, 0, 0)
    );
    assert!(world.ensure(&Fake::new(good), &["six"]).unwrap().fresh);
}

#[test]
fn an_environment_without_its_marker_is_made_again() {
    let (world, fake) = (world(), Fake::new(good));
    let first = world.ensure(&fake, &["six"]).unwrap();
    fs::remove_file(first.site.parent().unwrap().join("meta.json")).unwrap();
    assert!(world.ensure(&fake, &["six"]).unwrap().fresh);
    assert_eq!((world.count("envs"), world.count("tmp")), (1, 0));
}

#[test]
fn a_cache_that_others_may_write_is_not_used() {
    let (world, fake) = (world(), Fake::new(good));
    drop(world.ensure(&fake, &["six"]).unwrap());
    fs::set_permissions(
        world.folder.path().join("cache"),
        Permissions::from_mode(0o777),
    )
    .unwrap();
    assert!(matches!(
        world.ensure(&fake, &["six"]),
        Err(DepsError::Untrusted { .. })
    ));
}

#[test]
fn pruning_spares_what_is_in_use() {
    let (world, fake) = (world(), Fake::new(good));
    let used = world.ensure(&fake, &["a"]).unwrap();
    drop(world.ensure(&fake, &["b==1"]).unwrap());
    let listed = world.cache.list().unwrap();
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().any(|e| e.requirements == ["b==1"]
        && e.python == "3.11"
        && e.size == 6
        && e.installer == "fake"));
    assert!(
        world
            .cache
            .prune(Prune::UnusedFor(Duration::from_secs(60)))
            .unwrap()
            .is_empty()
    );
    let removed = world.cache.prune(Prune::All).unwrap();
    assert_eq!(removed.len(), 1);
    assert_eq!(removed[0].requirements, ["b==1"]);
    assert!(used.site.join("six.py").exists());
    drop(used);
    assert_eq!(world.cache.prune(Prune::All).unwrap().len(), 1);
    assert_eq!(world.count("envs"), 0);
}

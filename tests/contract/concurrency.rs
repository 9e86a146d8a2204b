//! Many calls at once.

use serde_json::json;
use skillcell_tests::{Cell, Level, User, alone, cgroups_named, example};
use std::sync::atomic::{AtomicUsize, Ordering};

const RUNS: usize = 200;
const AT_ONCE: usize = 16;

/// 200 cold runs, 16 at a time: all succeed, and each checks that it left nothing behind.
fn two_hundred_runs(level: Level, user: User) {
    let _alone = alone();
    let before = cgroups_named("skillcell");
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let cell = Cell::new(level, user);
                while next.fetch_add(1, Ordering::Relaxed) < RUNS {
                    let name = format!("{:?}", std::thread::current().id());
                    let skill = if user.is_switched() {
                        staged_hello(&cell)
                    } else {
                        example("hello")
                    };
                    let outcome = cell.call(skill).params(&json!({"name": name})).run();
                    assert_eq!(outcome.assert_ok()["greeting"], format!("Hello, {name}!"));
                }
            });
        }
    });
    let after = cgroups_named("skillcell");
    // A parent for the cells of this user may stay; cells may not.
    let left: Vec<_> = after
        .iter()
        .filter(|c| !before.contains(c) && has_parent_named(c, "skillcell"))
        .collect();
    assert!(left.is_empty(), "cgroups left behind: {left:?}");
}

fn has_parent_named(path: &std::path::Path, name: &str) -> bool {
    path.parent()
        .is_some_and(|p| p.to_string_lossy().contains(name))
}

/// The repository may be in a folder that an ordinary user can't enter.
fn staged_hello(cell: &Cell) -> std::path::PathBuf {
    let read = |name: &str| {
        std::fs::read_to_string(example("hello").join(name)).expect("the example is there")
    };
    cell.bundle(
        "hello",
        &[
            ("manifest.yaml", &read("manifest.yaml")),
            ("skill.py", &read("skill.py")),
        ],
    )
}

#[test]
fn two_hundred_cold_runs_at_sixteen_at_once_succeed_in_a_sandbox() {
    two_hundred_runs(Level::Sandbox, User::Caller);
}

#[test]
fn two_hundred_cold_runs_at_sixteen_at_once_succeed_as_an_ordinary_user() {
    two_hundred_runs(Level::Sandbox, User::Ordinary);
}

#[test]
fn two_hundred_cold_runs_at_sixteen_at_once_succeed_as_processes() {
    two_hundred_runs(Level::Process, User::Caller);
}

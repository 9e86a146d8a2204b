//! The digest changes with what the skill is, and with nothing else.
#![allow(clippy::unwrap_used, reason = "tests")]

use skillcell_bundle::{Bundle, BundleError};
use std::fs::{self, Permissions, create_dir, create_dir_all, write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use tempfile::TempDir;

fn bundle() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path().join("manifest.yaml"), "name: a\n").unwrap();
    write(dir.path().join("skill.py"), "class A: pass\n").unwrap();
    write(dir.path().join("data.txt"), "data").unwrap();
    symlink("data.txt", dir.path().join("link")).unwrap();
    dir
}

fn digest(dir: &Path) -> String {
    Bundle::open(dir)
        .unwrap()
        .fingerprint()
        .unwrap()
        .digest
        .to_string()
}

/// Whether the change makes another digest.
fn changes(change: impl FnOnce(&Path)) -> bool {
    let dir = bundle();
    let before = digest(dir.path());
    change(dir.path());
    before != digest(dir.path())
}

#[test]
fn equal_trees_have_equal_digests_wherever_they_lie() {
    assert_eq!(digest(bundle().path()), digest(bundle().path()));
    assert!(digest(bundle().path()).starts_with("sha256:"));
}

#[test]
fn names_content_types_links_and_executable_bits_change_it() {
    assert!(changes(|dir| fs::rename(
        dir.join("data.txt"),
        dir.join("data2.txt")
    )
    .unwrap()));
    assert!(changes(|dir| write(dir.join("data.txt"), "dato").unwrap()));
    assert!(changes(|dir| fs::set_permissions(
        dir.join("data.txt"),
        Permissions::from_mode(0o755)
    )
    .unwrap()));
    assert!(changes(|dir| {
        fs::remove_file(dir.join("link")).unwrap();
        symlink("skill.py", dir.join("link")).unwrap();
    }));
    assert!(changes(|dir| {
        fs::remove_file(dir.join("link")).unwrap();
        write(dir.join("link"), "data.txt").unwrap();
    }));
    assert!(changes(|dir| create_dir(dir.join("empty")).unwrap()));
    assert!(changes(|dir| write(dir.join("new.txt"), "").unwrap()));
    assert!(changes(|dir| write(dir.join(".hidden"), "").unwrap()));
}

#[test]
fn bytecode_caches_and_times_do_not_change_it() {
    assert!(!changes(|dir| {
        create_dir_all(dir.join("__pycache__")).unwrap();
        write(dir.join("__pycache__/skill.cpython-311.pyc"), "x").unwrap();
        write(dir.join("skill.pyc"), "x").unwrap();
    }));
    assert!(!changes(|dir| write(dir.join("data.txt"), "data").unwrap()));
    assert!(!changes(|dir| fs::set_permissions(
        dir.join("data.txt"),
        Permissions::from_mode(0o600)
    )
    .unwrap()));
}

#[test]
fn bytecode_that_python_would_import_changes_it() {
    assert!(changes(|dir| write(dir.join("other.pyc"), "x").unwrap()));
}

#[test]
fn content_moved_across_a_boundary_changes_it() {
    let tree = |files: [(&str, &str); 2]| {
        let dir = bundle();
        for (name, content) in files {
            write(dir.path().join(name), content).unwrap();
        }
        digest(dir.path())
    };
    assert_ne!(
        tree([("a", "bc"), ("d", "")]),
        tree([("a", "b"), ("d", "c")])
    );
    assert_ne!(
        tree([("ab", "c"), ("d", "")]),
        tree([("a", "bc"), ("d", "")])
    );
}

#[test]
fn links_out_and_loops_are_fingerprinted_without_being_opened() {
    let dir = bundle();
    symlink("/dev/zero", dir.path().join("zero")).unwrap();
    symlink("loop", dir.path().join("loop")).unwrap();
    symlink(".", dir.path().join("self")).unwrap();
    let before = digest(dir.path());
    fs::remove_file(dir.path().join("self")).unwrap();
    assert_ne!(before, digest(dir.path()));
}

#[test]
fn a_bundle_with_a_pipe_or_socket_is_refused() {
    let dir = bundle();
    let pipe = dir.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        0o644.into(),
        0,
    )
    .unwrap();
    let refused = || Bundle::open(dir.path()).unwrap().fingerprint().unwrap_err();
    assert!(matches!(refused(), BundleError::NotRegular { .. }));
    fs::remove_file(pipe).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("host.sock")).unwrap();
    assert!(matches!(refused(), BundleError::NotRegular { .. }));
}

#[test]
fn a_bundle_without_bound_is_refused() {
    let dir = bundle();
    let file = fs::File::create(dir.path().join("huge")).unwrap();
    file.set_len(600 << 20).unwrap();
    let error = Bundle::open(dir.path()).unwrap().fingerprint().unwrap_err();
    assert!(matches!(error, BundleError::TooMuchData { .. }), "{error}");
    fs::remove_file(dir.path().join("huge")).unwrap();

    let deep = "d/".repeat(70);
    create_dir_all(dir.path().join(deep)).unwrap();
    let error = Bundle::open(dir.path()).unwrap().fingerprint().unwrap_err();
    assert!(matches!(error, BundleError::TooDeep { .. }), "{error}");
}

#[test]
fn too_many_files_are_refused() {
    let dir = bundle();
    let many = dir.path().join("many");
    create_dir(&many).unwrap();
    for i in 0..20_001 {
        fs::File::create(many.join(i.to_string())).unwrap();
    }
    let error = Bundle::open(dir.path()).unwrap().fingerprint().unwrap_err();
    assert!(matches!(error, BundleError::TooManyFiles { .. }), "{error}");
}

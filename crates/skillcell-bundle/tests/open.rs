//! What a hostile or broken folder does to whoever opens it: nothing but an error.
#![allow(clippy::unwrap_used, reason = "tests")]

use skillcell_bundle::{Bundle, BundleError, BundleKind};
use skillcell_core::Reason;
use skillcell_manifest::{Entry, Runtime};
use std::fs::{self, File, create_dir, create_dir_all, write};
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = dir.path().join(name);
        create_dir_all(path.parent().unwrap()).unwrap();
        write(path, content).unwrap();
    }
    dir
}

fn hello() -> TempDir {
    folder(&[
        ("manifest.yaml", "name: hello\n"),
        ("skill.py", "class Hello:\n    pass\n"),
    ])
}

fn open_error(dir: &Path) -> BundleError {
    Bundle::open(dir).unwrap_err()
}

#[test]
fn a_skillware_folder_opens() {
    let dir = hello();
    let bundle = Bundle::open(dir.path()).unwrap();
    assert_eq!(bundle.kind, BundleKind::Skillware);
    assert_eq!(bundle.manifest.id.as_str(), "hello");
    assert_eq!(bundle.manifest_path(), bundle.root.join("manifest.yaml"));
}

#[test]
fn a_manifest_error_names_file_line_and_column() {
    let dir = folder(&[
        (
            "manifest.yaml",
            "name: hello\nsecurity_policy: {version: 1, nope: 2}\n",
        ),
        ("skill.py", ""),
    ]);
    let error = open_error(dir.path());
    let want = format!(
        "{}/manifest.yaml:2:31: security_policy: unknown field `nope`",
        dir.path().canonicalize().unwrap().display()
    );
    assert!(error.to_string().starts_with(&want), "{error}");
    assert_eq!(error.reason(), Reason::InvalidManifest);
    assert_eq!(error.location().unwrap().to_string(), "2:31");
    assert!(error.hint().is_some());
}

#[test]
fn a_manifest_of_a_gigabyte_is_refused_without_reading_it() {
    let dir = hello();
    File::create(dir.path().join("manifest.yaml"))
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    assert!(
        matches!(open_error(dir.path()), BundleError::TooLarge { size, .. } if size == 1 << 30)
    );
}

#[test]
fn what_is_not_a_regular_file_is_refused_and_never_waited_for() {
    let dir = hello();
    let manifest = dir.path().join("manifest.yaml");
    fs::remove_file(&manifest).unwrap();

    create_dir(&manifest).unwrap();
    assert!(matches!(
        open_error(dir.path()),
        BundleError::NotRegular {
            kind: "a folder",
            ..
        }
    ));
    fs::remove_dir(&manifest).unwrap();

    rustix::fs::mknodat(
        rustix::fs::CWD,
        &manifest,
        rustix::fs::FileType::Fifo,
        0o644.into(),
        0,
    )
    .unwrap();
    assert!(matches!(
        open_error(dir.path()),
        BundleError::NotRegular { kind: "a pipe", .. }
    ));
    fs::remove_file(&manifest).unwrap();

    let socket = std::os::unix::net::UnixListener::bind(&manifest).unwrap();
    assert!(matches!(
        open_error(dir.path()),
        BundleError::NotRegular { .. }
    ));
    drop(socket);
    fs::remove_file(&manifest).unwrap();

    symlink("manifest.yaml", &manifest).unwrap();
    let error = open_error(dir.path());
    assert!(error.hint().unwrap().contains("back to itself"), "{error}");
}

#[test]
fn links_stay_inside_the_bundle() {
    let outside = folder(&[("secret.yaml", "name: outside\n")]);
    let secret = outside.path().join("secret.yaml");
    let dir = hello();
    let manifest = dir.path().join("manifest.yaml");
    let deep = format!(
        "{}{}",
        "../".repeat(40),
        secret.display().to_string().trim_start_matches('/')
    );
    for target in [
        secret.to_str().unwrap(),
        &deep,
        "/proc/self/root/etc/hostname",
        "/dev/zero",
    ] {
        fs::remove_file(&manifest).unwrap();
        symlink(target, &manifest).unwrap();
        let error = open_error(dir.path());
        assert!(
            error.hint().unwrap().contains("out of the bundle"),
            "{target}: {error}"
        );
    }
    fs::remove_file(&manifest).unwrap();
    write(dir.path().join("real.yaml"), "name: inside\n").unwrap();
    symlink("real.yaml", &manifest).unwrap();
    assert_eq!(
        Bundle::open(dir.path()).unwrap().manifest.id.as_str(),
        "inside"
    );
}

#[test]
fn a_folder_that_is_missing_or_a_loop_is_not_found() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(
        open_error(&dir.path().join("nope")).reason(),
        Reason::SkillNotFound
    );
    symlink("loop", dir.path().join("loop")).unwrap();
    assert_eq!(
        open_error(&dir.path().join("loop")).reason(),
        Reason::SkillNotFound
    );
}

#[test]
fn a_folder_without_manifest_says_what_to_add() {
    let dir = folder(&[("skill.py", "")]);
    let error = open_error(dir.path());
    assert_eq!(error.reason(), Reason::InvalidManifest);
    assert!(error.hint().unwrap().contains("beside skill.py"));
    assert!(
        open_error(folder(&[]).path())
            .hint()
            .unwrap()
            .contains("SKILL.md")
    );
    let error = open_error(folder(&[("manifest.yaml", "name: a\n")]).path());
    assert!(matches!(error, BundleError::NoEntry { .. }));
}

#[test]
fn a_manifest_that_is_not_utf8_has_a_place() {
    let dir = hello();
    write(
        dir.path().join("manifest.yaml"),
        b"name: hello\ndescription: \xff\n",
    )
    .unwrap();
    assert_eq!(
        open_error(dir.path()).location().unwrap().to_string(),
        "2:14"
    );
}

#[test]
fn with_two_manifests_the_one_that_can_run_wins() {
    let skill = "---\nname: agent\ndescription: d\n---\n";
    let id = |files: &[(&str, &str)]| {
        Bundle::open(folder(files).path())
            .unwrap()
            .manifest
            .id
            .to_string()
    };
    assert_eq!(
        id(&[
            ("manifest.yaml", "name: m\n"),
            ("skill.py", ""),
            ("SKILL.md", skill)
        ]),
        "m"
    );
    assert_eq!(
        id(&[
            ("manifest.yaml", "name: m\nexecution: {command: [x]}\n"),
            ("SKILL.md", skill)
        ]),
        "m"
    );
    assert_eq!(
        id(&[("manifest.yaml", "name: m\n"), ("SKILL.md", skill)]),
        "agent"
    );
    assert_eq!(
        id(&[
            ("manifest.yaml", "kind: [Deployment\n"),
            ("SKILL.md", skill)
        ]),
        "agent"
    );
}

#[test]
fn the_policy_file_of_an_agent_skill_is_read_from_inside() {
    let skill =
        "---\nname: a\ndescription: d\nmetadata: {security-policy: security_policy.yaml}\n---\n";
    let dir = folder(&[
        ("SKILL.md", skill),
        ("security_policy.yaml", "version: 1\nenv: [API_KEY]\n"),
    ]);
    let bundle = Bundle::open(dir.path()).unwrap();
    assert_eq!(bundle.manifest.security_policy.env[0].as_str(), "API_KEY");

    let policy = dir.path().join("security_policy.yaml");
    write(&policy, "version: 1\nenvs: []\n").unwrap();
    let message = open_error(dir.path()).to_string();
    assert!(message.contains("security_policy.yaml:2:1: "), "{message}");

    fs::remove_file(&policy).unwrap();
    assert!(
        open_error(dir.path())
            .to_string()
            .contains("security_policy.yaml")
    );
    symlink("/etc/hostname", &policy).unwrap();
    assert!(
        open_error(dir.path())
            .hint()
            .unwrap()
            .contains("out of the bundle")
    );
}

#[test]
fn an_entry_is_a_script_inside_the_bundle() {
    let dir = folder(&[
        ("SKILL.md", "---\nname: a\ndescription: d\n---\n"),
        ("scripts/run.py", "print(1)\n"),
        ("scripts/tool", "#!/bin/bash\n"),
        ("scripts/data.bin", "x"),
    ]);
    symlink("/bin/sh", dir.path().join("scripts/out.sh")).unwrap();
    let mut bundle = Bundle::open(dir.path()).unwrap();
    assert_eq!(bundle.manifest.entry, Entry::None);
    assert_eq!(
        bundle.scripts().unwrap(),
        ["scripts/data.bin", "scripts/run.py", "scripts/tool"]
    );

    bundle.select_entry("./scripts/run.py").unwrap();
    let want = Entry::Script {
        file: "scripts/run.py".into(),
        runtime: Runtime::Python,
    };
    assert_eq!(bundle.manifest.entry, want);
    bundle.select_entry("scripts/tool").unwrap();
    assert!(matches!(
        bundle.manifest.entry,
        Entry::Script {
            runtime: Runtime::Bash,
            ..
        }
    ));

    for bad in [
        "../x.py",
        "/bin/sh",
        "scripts",
        "scripts/nope.py",
        "scripts/data.bin",
        "scripts/out.sh",
        "",
        ".",
        "a\0b",
    ] {
        assert!(bundle.select_entry(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn requirements_join_the_manifest_and_the_script() {
    let source = "# /// script\n# dependencies = [\"rich\", \"requests\"]\n# ///\n";
    let dir = folder(&[
        ("manifest.yaml", "name: a\nrequirements: [requests]\n"),
        ("skill.py", source),
    ]);
    let bundle = Bundle::open(dir.path()).unwrap();
    assert_eq!(bundle.requirements().unwrap(), ["requests", "rich"]);

    write(dir.path().join("skill.py"), source.replace("rich", "-e .")).unwrap();
    let error = bundle.requirements().unwrap_err();
    assert!(
        error
            .to_string()
            .contains("skill.py:2:19: requirement `-e .`"),
        "{error}"
    );
}

#[test]
fn the_framework_is_needed_when_a_file_that_runs_imports_it() {
    let dir = hello();
    create_dir(dir.path().join("lib")).unwrap();
    write(dir.path().join("test_skill.py"), "import skillware\n").unwrap();
    let bundle = Bundle::open(dir.path()).unwrap();
    assert!(!bundle.needs_skillware().unwrap());
    write(
        dir.path().join("lib/base.py"),
        "from skillware.core.base_skill import BaseSkill\n",
    )
    .unwrap();
    assert!(bundle.needs_skillware().unwrap());
    assert_eq!(bundle.skillware_version(), None);
}

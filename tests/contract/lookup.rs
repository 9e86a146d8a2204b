//! A skill by path, or by id in the places that are known.

use crate::cell;
use skillcell_tests::shared;

const SKILL: &str =
    "class S:\n    def execute(self, params):\n        return params.get('x', 'found')\n";

#[test]
fn an_id_is_found_on_the_skill_path_and_in_the_skills_folder() {
    let _shared = shared();
    let cell = cell();
    cell.file(
        "shelf/office/tool/manifest.yaml",
        "name: office/tool\nversion: 1.0.0\n",
    );
    cell.file("shelf/office/tool/skill.py", SKILL);
    let path = format!(
        "{}:{}",
        cell.path("absent").display(),
        cell.path("shelf").display()
    );
    let outcome = cell
        .call("office/tool")
        .flags(["--params", "{}"])
        .host_env("SKILLCELL_SKILL_PATH", path)
        .run();
    assert_eq!(outcome.assert_ok(), "found");
    assert_eq!(outcome.envelope()["skill"]["id"], "office/tool");

    cell.file(
        "work/skills/office/near/manifest.yaml",
        "name: office/near\nversion: 1.0.0\n",
    );
    cell.file("work/skills/office/near/skill.py", SKILL);
    assert_eq!(
        cell.call("office/near")
            .flags(["--params", "{}"])
            .run()
            .assert_ok(),
        "found"
    );
}

#[test]
fn an_id_can_t_climb_out_of_the_places() {
    let _shared = shared();
    let cell = cell();
    cell.file(
        "deep/outside/tool/manifest.yaml",
        "name: tool\nversion: 1.0.0\n",
    );
    cell.file("deep/outside/tool/skill.py", SKILL);
    cell.folder("deep/shelf");
    let call = cell.call("../outside/tool").flags(["--params", "{}"]);
    let outcome = call
        .host_env("SKILLCELL_SKILL_PATH", cell.path("deep/shelf"))
        .run();
    outcome.assert_error("invalid_input", 2, &["skill_not_found", "invalid_usage"]);
}

/// Modules of the bundle come before packages of the same name, and the bundle is one process.
#[test]
fn siblings_with_generic_names_are_the_bundle_s_own() {
    let _shared = shared();
    let cell = cell();
    let skill = cell.bundle("siblings", &[
        ("manifest.yaml", "name: siblings\nversion: 1.0.0\n"),
        ("skill.py", "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\nimport utils\nclass S:\n    def execute(self, params):\n        return utils.NAME\n"),
        ("utils.py", "NAME = 'own'\n"),
    ]);
    assert_eq!(
        cell.call(skill).flags(["--params", "{}"]).run().assert_ok(),
        "own"
    );
}

#[test]
fn a_ready_virtualenv_is_mounted_with_deps() {
    let _shared = shared();
    let cell = cell();
    cell.file(
        "venv/lib/python3/site-packages/given_package.py",
        "NAME = 'given'\n",
    );
    cell.file("packages/given_package.py", "NAME = 'given'\n");
    let skill = cell.bundle("needs", &[
        ("manifest.yaml", "name: needs\nversion: 1.0.0\nrequirements: [given-package]\n"),
        ("skill.py", "import given_package\nclass S:\n    def execute(self, params):\n        return given_package.NAME\n"),
    ]);
    let outcome = cell
        .call(&skill)
        .flags(["--params", "{}", "--deps"])
        .flag(cell.path("packages"))
        .run();
    assert_eq!(outcome.assert_ok(), "given");
    let outcome = cell
        .call(&skill)
        .flags(["--params", "{}", "--deps"])
        .flag(cell.path("absent"))
        .run();
    assert_eq!(outcome.code, 2, "{}", outcome.show());
}

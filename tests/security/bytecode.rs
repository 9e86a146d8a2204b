//! Compiled files in a bundle: no digest covers them, so nothing runs them.

use serde_json::json;
use skillcell_tests::{Cell, claim};
use std::path::{Path, PathBuf};

/// Says which of the two it is, itself and from a process that it starts.
const TELL: &str = "
import json, os, subprocess, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import helper
child = subprocess.run([sys.executable, '-c', 'import sys; sys.path.insert(0, sys.argv[1]); import helper; print(helper.WHO)', sys.path[0]], capture_output=True, text=True)
value = {'who': helper.WHO, 'child': child.stdout.strip()}
";

/// A bundle whose `helper` is one thing in its source, and another in what it was compiled to.
fn poisoned(cell: &Cell, name: &str, entry: (&str, &str)) -> PathBuf {
    let bundle = cell.bundle(
        name,
        &[
            ("manifest.yaml", entry.0),
            ("helper.py", "WHO = 'source'\n"),
            ("skill.py", entry.1),
        ],
    );
    let compiled = cell
        .user
        .command("/usr/bin/python3")
        .args(["-c", "
import importlib.util, os, py_compile, sys
folder = sys.argv[1]
with open(folder + '/other.py', 'w') as file: file.write('WHO = \"cache\"\\n')
target = importlib.util.cache_from_source(folder + '/helper.py')
py_compile.compile(folder + '/other.py', target, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
os.unlink(folder + '/other.py')
"])
        .arg(&bundle)
        .env_remove("PYTHONPYCACHEPREFIX")
        .status();
    assert!(compiled.expect("python3 runs").success());
    bundle
}

/// Outside of a cell, the same files run what was compiled.
fn prove(cell: &Cell, script: &Path) {
    let output = cell
        .user
        .command("/usr/bin/python3")
        .arg(script)
        .env_remove("PYTHONPYCACHEPREFIX")
        .output()
        .expect("python3 runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected = json!({"who": "cache", "child": "cache"});
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&said).ok(),
        Some(expected),
        "{said}"
    );
}

claim! {
    fn compiled_files_of_a_bundle_are_never_run_by_a_program(cell) {
        let manifest = "name: poisoned\nversion: 1.0.0\nexecution: {command: [python3, skill.py]}\n";
        let bundle = poisoned(cell, "program", (manifest, &format!("{TELL}print(json.dumps(value))\n")));
        prove(cell, &bundle.join("skill.py"));
        let outcome = cell.call(&bundle).run();
        assert_eq!(outcome.assert_ok(), &json!({"who": "source", "child": "source"}));
    }
}

claim! {
    fn compiled_files_of_a_bundle_are_never_run_by_a_class(cell) {
        let class = "
class Poisoned:
    def execute(self, params):
        return value
if __name__ == '__main__':
    print(json.dumps(value))
";
        let bundle = poisoned(cell, "class", ("name: poisoned\nversion: 1.0.0\n", &format!("{TELL}{class}")));
        prove(cell, &bundle.join("skill.py"));
        let outcome = cell.call(&bundle).run();
        assert_eq!(outcome.assert_ok(), &json!({"who": "source", "child": "source"}));
    }
}

claim! {
    /// The way around them costs a lot, so it is taken only where there are some.
    fn python_s_own_library_is_not_compiled_anew(cell) {
        let code = "import json, os; print(json.dumps({'cached': json.__spec__.cached, 'there': os.path.exists(json.__spec__.cached)}))\n";
        let manifest = "name: clean\nversion: 1.0.0\nexecution: {command: [python3, skill.py]}\n";
        let bundle = cell.bundle("clean", &[("manifest.yaml", manifest), ("skill.py", code)]);
        let outcome = cell.call(&bundle).run();
        assert_eq!(outcome.assert_ok()["there"], true, "{}", outcome.show());
    }
}

//! Host paths in params: data of the caller's caller, which never defines policy.

use serde_json::json;
use skillcell_tests::{Cell, Outcome, Probe, claim};
use std::os::unix::fs::symlink;
use std::path::Path;

const POLICY: &str = "filesystem: {params: {input_path: read, output_path: write}}";

fn read(cell: &Cell, input: &Path, grant: Option<&Path>) -> Outcome {
    let params = json!({"code": "value = open(params['input_path']).read()", "input_path": input, "raw": true});
    let call = cell.call(cell.probe_with(POLICY)).params(&params);
    match grant {
        Some(path) => call.read(path).run(),
        None => call.run(),
    }
}

fn prove(cell: &Cell, input: &Path) {
    Probe::new("value = open(args['path']).read()")
        .args(json!({"path": input}))
        .prove(cell);
}

claim! {
    fn a_path_in_a_param_is_not_a_grant(cell) {
        let secret = cell.file("work/secret.txt", "secret");
        prove(cell, &secret);
        let outcome = read(cell, &secret, None);
        outcome.assert_status("denied", 3);
        let denial = outcome.assert_denial("filesystem", "secret.txt");
        assert_eq!(denial["reason"], "path_not_granted");
        assert!(denial["hint"].as_str().is_some_and(|h| h.contains("--read")), "{denial}");
    }
}

claim! {
    fn a_path_under_a_granted_folder_is_readable(cell) {
        let file = cell.file("work/data/file.txt", "yours");
        let outcome = read(cell, &file, Some(&cell.path("work/data")));
        assert_eq!(outcome.assert_ok(), "yours");
    }
}

claim! {
    fn dots_and_symlinks_don_t_lead_a_param_out_of_its_grant(cell) {
        let secret = cell.file("work/secret.txt", "secret");
        let folder = cell.folder("work/data");
        symlink(&secret, folder.join("link.txt")).expect("own folder");
        for input in [folder.join("../secret.txt"), folder.join("link.txt")] {
            prove(cell, &input);
            let outcome = read(cell, &input, Some(&folder));
            assert_eq!(outcome.code, 3, "{}", outcome.show());
        }
    }
}

claim! {
    /// A folder whose name begins like the granted one is another folder.
    fn a_grant_covers_whole_names(cell) {
        let folder = cell.folder("work/data");
        let file = cell.file("work/data-private/file.txt", "secret");
        prove(cell, &file);
        assert_eq!(read(cell, &file, Some(&folder)).code, 3);
    }
}

claim! {
    fn a_grant_to_read_is_not_a_grant_to_write(cell) {
        let folder = cell.folder("work/data");
        let output = folder.join("report.txt");
        let params = json!({"code": "open(params['output_path'], 'w').write('x')", "output_path": output, "raw": true});
        let outcome = cell.call(cell.probe_with(POLICY)).params(&params).read(&folder).run();
        outcome.assert_status("denied", 3);
        assert!(!output.exists());
        Probe::new("open(args['path'], 'w').write('x')").args(json!({"path": output})).prove(cell);
    }
}

//! The baseline: the bare interpreter, no isolation at all.

use std::path::Path;

use super::peer::{Contender, Expect, HELLO_LINE, Peer, first_line};

pub(super) const NAME: &str = "python3";

pub(super) fn contender(python: &Path, script: &Path) -> Contender {
    Peer {
        name: NAME,
        about: format!("{}, no isolation", first_line(python, &["--version"])),
        program: python.to_path_buf(),
        args: vec![script.display().to_string()],
        expect: Expect::Line(HELLO_LINE),
    }
    .probed()
}

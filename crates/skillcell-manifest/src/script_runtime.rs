//! What interprets a script: its shebang line, or else its extension.

use crate::error::{ManifestError, clean};
use crate::model::Runtime;

/// The kernel reads no more of a shebang line than this.
const MAX_LINE: usize = 256;

/// The runtime of a script, by its name and its first bytes. For a program that `env` would look
/// up, [`Runtime::Shebang`] holds the bare name, for the host to look up.
pub fn runtime_for_script(file_name: &str, head: &[u8]) -> Result<Runtime, ManifestError> {
    let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head);
    if let Some(line) = head.strip_prefix(b"#!") {
        return by_shebang(line);
    }
    let base = file_name.rsplit('/').next().unwrap_or(file_name);
    match base.rsplit_once('.').map(|(_, extension)| extension) {
        Some("py") => Ok(Runtime::Python),
        Some("sh") => Ok(Runtime::Sh),
        Some("bash") => Ok(Runtime::Bash),
        Some("js" | "mjs" | "cjs") => Ok(Runtime::Node),
        _ => Err(ManifestError::UnknownRuntime {
            file: clean(file_name),
        }),
    }
}

fn by_shebang(line: &[u8]) -> Result<Runtime, ManifestError> {
    let fail = |message: &str| ManifestError::Shebang {
        message: message.to_owned(),
    };
    let end = line.iter().position(|b| *b == b'\n').unwrap_or(line.len());
    if end > MAX_LINE {
        return Err(fail("the line is longer than 256 bytes"));
    }
    let line = std::str::from_utf8(&line[..end]).map_err(|_| fail("the line is not UTF-8"))?;
    let line = line.trim();
    if line.chars().any(|c| c.is_control() && c != '\t') {
        return Err(fail("the line has a control character"));
    }
    let mut words = line.split([' ', '\t']).filter(|w| !w.is_empty());
    let program = words.next().ok_or_else(|| fail("no program is named"))?;
    if !program.starts_with('/') {
        return Err(fail("the program is not an absolute path"));
    }
    if base(program) != "env" {
        let argument = line[program.len()..].trim();
        let argument = (!argument.is_empty()).then(|| argument.to_owned());
        return Ok(known(program, argument));
    }
    let mut words = words.peekable();
    let mut split = false;
    while let Some(option) = words.next_if(|w| w.starts_with('-')) {
        if !matches!(option, "-S" | "--split-string") {
            return Err(fail("of the options of env, only -S is supported"));
        }
        split = true;
    }
    let program = words.next().ok_or_else(|| fail("env names no program"))?;
    let arguments: Vec<&str> = words.collect();
    match arguments.as_slice() {
        // Scripts with inline dependencies; those are honoured for every Python script.
        ["run", ..] if base(program) == "uv" => Ok(Runtime::Python),
        _ if program.contains('=') => Err(fail("env may not set variables")),
        [] => Ok(known(program, None)),
        _ if !split => Err(fail("env takes arguments only after -S")),
        _ if is_python(base(program)) => Ok(Runtime::Python),
        [argument] => Ok(known(program, Some((*argument).to_owned()))),
        _ => Err(fail("more than one argument is not supported")),
    }
}

fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn is_python(name: &str) -> bool {
    name.strip_prefix("python")
        .is_some_and(|version| version.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

/// An argument of Python's is dropped, because the interpreter is started our way; a shell's
/// (`-e`) changes what the script means, so then the line is followed to the letter.
fn known(program: &str, argument: Option<String>) -> Runtime {
    match (base(program), &argument) {
        (name, _) if is_python(name) => Runtime::Python,
        ("sh" | "dash", None) => Runtime::Sh,
        ("bash", None) => Runtime::Bash,
        ("node" | "nodejs", None) => Runtime::Node,
        _ => Runtime::Shebang {
            program: program.to_owned(),
            argument,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shebang(program: &str, argument: Option<&str>) -> Runtime {
        Runtime::Shebang {
            program: program.into(),
            argument: argument.map(Into::into),
        }
    }

    #[test]
    fn the_shebang_line_comes_before_the_extension() {
        for (line, want) in [
            ("#!/usr/bin/env python3", Runtime::Python),
            ("#!/usr/bin/python3.11 -u\r", Runtime::Python),
            ("#! /bin/sh", Runtime::Sh),
            ("#!/bin/bash", Runtime::Bash),
            ("#!/bin/bash -e", shebang("/bin/bash", Some("-e"))),
            ("#!/usr/bin/env node", Runtime::Node),
            ("#!/usr/bin/env -S uv run --script", Runtime::Python),
            ("#!/usr/bin/env -S python3 -I -u", Runtime::Python),
            ("#!/usr/bin/env ruby", shebang("ruby", None)),
            ("#!/usr/bin/env -S deno run", shebang("deno", Some("run"))),
            ("#!/usr/bin/perl -w", shebang("/usr/bin/perl", Some("-w"))),
        ] {
            let head = format!("{line}\nrest\n");
            assert_eq!(
                runtime_for_script("x.js", head.as_bytes()),
                Ok(want),
                "{line}"
            );
        }
    }

    #[test]
    fn without_a_shebang_line_the_extension_decides() {
        for (name, want) in [
            ("scripts/x.py", Runtime::Python),
            ("x.sh", Runtime::Sh),
            ("x.bash", Runtime::Bash),
            ("x.mjs", Runtime::Node),
            ("x.cjs", Runtime::Node),
        ] {
            assert_eq!(runtime_for_script(name, b"import os"), Ok(want), "{name}");
        }
        for name in ["x", "x.rb", "a.py/x", "", "x.PY"] {
            assert!(runtime_for_script(name, b"").is_err(), "{name}");
        }
    }

    #[test]
    fn shebang_lines_that_can_not_be_followed_are_errors() {
        let long = format!("#!/{}", "x".repeat(300));
        for line in [
            "#!",
            "#!\n",
            "#!python",
            "#!/usr/bin/env",
            "#!/usr/bin/env -i sh",
            "#!/usr/bin/env A=1 sh",
            "#!/bin/\x1bsh",
            long.as_str(),
        ] {
            assert!(
                matches!(
                    runtime_for_script("x.py", line.as_bytes()),
                    Err(ManifestError::Shebang { .. })
                ),
                "{line:?}"
            );
        }
        assert!(runtime_for_script("x.py", b"#!/bin/\xff").is_err());
    }
}

//! What the Python files of a bundle need.

use crate::BundleError;
use crate::root::Root;
use crate::walk::{Kind, walk};
use skillcell_manifest::{imports_module, pep723_requirements};
use std::path::Path;

/// Source files larger than this are data, not programs.
const MAX_SOURCE: u64 = 8 << 20;
const MAX_FILES: usize = 2000;

/// The inline requirements of one script; none where it has no such block.
pub(crate) fn inline_requirements(root: &Root, file: &str) -> Result<Vec<String>, BundleError> {
    let relative = Path::new(file);
    let source = root.read(relative, root.open_file(relative)?, MAX_SOURCE)?;
    let requirements = pep723_requirements(&String::from_utf8_lossy(&source)).map_err(|error| {
        BundleError::Manifest {
            path: root.path().join(relative),
            error,
        }
    })?;
    Ok(requirements.unwrap_or_default())
}

/// Whether a Python file of the bundle, tests aside, imports `module`.
pub(crate) fn any_imports(root: &Root, module: &str) -> Result<bool, BundleError> {
    let mut files = 0;
    for entry in walk(root)?.entries {
        let name = entry
            .path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or_default();
        let python = matches!(entry.kind, Kind::File { .. }) && name.ends_with(".py");
        if !python || name.starts_with("test_") || name == "conftest.py" {
            continue;
        }
        files += 1;
        if files > MAX_FILES {
            return Err(BundleError::TooManyFiles {
                path: root.path().to_owned(),
                limit: MAX_FILES,
            });
        }
        let (file, size) = root.open_file(&entry.path)?;
        if size > MAX_SOURCE {
            continue;
        }
        let source = root.read(&entry.path, (file, size), MAX_SOURCE)?;
        if imports_module(&String::from_utf8_lossy(&source), module) {
            return Ok(true);
        }
    }
    Ok(false)
}

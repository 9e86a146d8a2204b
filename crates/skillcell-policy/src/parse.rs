//! From text to a policy file.
//!
//! The reader is bounded before it is asked: size, nodes, depth, aliases. Merge keys (`<<`) are
//! refused, because they let a section have fields that nobody sees in it, and a doubled key is an
//! error, because whichever won would surprise somebody.

use crate::error::PolicyError;
use crate::file::PolicyFile;
use serde_saphyr::UserMessageFormatter;
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use skillcell_core::Location;

const MAX_BYTES: usize = 1 << 20;
const MAX_MESSAGE: usize = 500;

pub(crate) fn parse(text: &str, file: &str) -> Result<PolicyFile, PolicyError> {
    if text.len() > MAX_BYTES {
        return Err(PolicyError::TooLarge {
            file: file.to_owned(),
            bytes: text.len(),
        });
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 32,
            max_documents: 1,
            max_nodes: 250_000,
            max_anchors: 64,
            max_aliases: 256,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let location = error.location().filter(|l| l.line() > 0).map(|l| Location {
            line: l.line(),
            column: l.column(),
        });
        PolicyError::Invalid {
            file: file.to_owned(),
            location,
            message: message(&error),
        }
    })
}

/// One line, bounded, without control characters: names in it come from the file.
fn message(error: &serde_saphyr::Error) -> String {
    let text = error
        .without_snippet()
        .render_with_formatter(&UserMessageFormatter);
    let line = text.lines().next().unwrap_or_default();
    // The place stands in front already.
    let line = line
        .rsplit_once(" at line ")
        .map_or(line, |(message, _)| message);
    let line = in_plain_words(line);
    line.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .take(MAX_MESSAGE)
        .collect()
}

/// The reader's words for what people get wrong most, in the words of this file.
fn in_plain_words(line: &str) -> String {
    let doubled = line
        .strip_prefix("duplicate mapping key: ")
        .and_then(|rest| rest.strip_suffix(" not allowed here"));
    match line {
        "unexpected end of file" => "the file ends where a value is expected".to_owned(),
        "expected mapping start" => "fields are expected here, as `name: value`".to_owned(),
        "expected sequence start" => "a list is expected here, as `[one, two]`".to_owned(),
        _ if line.contains("Documents {") => "a policy is one YAML document".to_owned(),
        _ => match doubled {
            Some(key) => format!("`{key}` is given twice"),
            None => line.to_owned(),
        },
    }
}

//! What parsers of YAML read differently, and so nobody may write.

use super::{Node, Value};
use crate::{ManifestError, error::clean};
use serde_saphyr::granit_parser::Tag;
use skillcell_core::Location;
use std::borrow::Cow;

/// The text of a key. Merge keys are none: YAML 1.1 obeys them, YAML 1.2 doesn't know them.
pub(super) fn key_text(node: &Node) -> Result<String, ManifestError> {
    let refuse = |message: &str| ManifestError::Unsupported {
        message: message.to_owned(),
        location: node.location,
    };
    match &node.value {
        Value::Scalar(scalar) if scalar.plain && scalar.text == "<<" => Err(refuse(
            "merge keys (`<<`) aren't part of YAML 1.2: write the fields out",
        )),
        Value::Scalar(scalar) if !node.is_null() => Ok(scalar.text.clone()),
        _ => Err(refuse(
            "a key must be text, not a list, a mapping or nothing",
        )),
    }
}

/// Whether the tag says that the scalar is text. There may be no other tag.
pub(super) fn is_string_tag(
    tag: Option<Cow<'_, Tag>>,
    at: Location,
) -> Result<bool, ManifestError> {
    match &tag {
        Some(tag) if tag.is_yaml_core_schema_tag("str") || tag.original() == "!" => Ok(true),
        _ => refuse_tag(tag, at).map(|()| false),
    }
}

pub(super) fn refuse_tag(tag: Option<Cow<'_, Tag>>, at: Location) -> Result<(), ManifestError> {
    match tag {
        None => Ok(()),
        Some(tag) => {
            let message = format!("the tag `{}` isn't supported", clean(&tag.original()));
            Err(ManifestError::Unsupported {
                message,
                location: at,
            })
        }
    }
}

//! Parser events to tree, within a budget.

use super::refuse::{is_string_tag, key_text, refuse_tag};
use super::{Entry, Node, Scalar, Value};
use crate::{MAX_BYTES, ManifestError, error::clean};
use serde_saphyr::granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError};
use skillcell_core::Location;
use std::collections::{HashMap, HashSet};

/// Nesting that no manifest needs, and that every recursive walk over the tree can bear.
const MAX_DEPTH: usize = 64;
/// Nodes of the whole tree, copies made by aliases included.
const MAX_NODES: usize = 100_000;
/// Bytes of scalars and keys, copies included.
const MAX_TEXT: usize = 4 * MAX_BYTES;

/// One YAML document as a tree.
pub fn parse(text: &str) -> Result<Node, ManifestError> {
    parse_from_line(text, 1)
}

/// As [`parse`], for text whose first line is line `first_line` of its file.
pub(crate) fn parse_from_line(text: &str, first_line: u64) -> Result<Node, ManifestError> {
    if text.len() > MAX_BYTES {
        return Err(ManifestError::TooLarge {
            size: text.len() as u64,
            limit: MAX_BYTES as u64,
        });
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut builder = Builder::new(first_line);
    let mut parser = Parser::new_from_str(text);
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| builder.syntax(&error))?;
        let location = builder.locate(&span.start);
        builder.event(event, location)?;
    }
    let start = Location {
        line: first_line,
        column: 1,
    };
    Ok(builder.root.unwrap_or_else(|| null(start)))
}

fn null(location: Location) -> Node {
    Node {
        value: Value::Scalar(Scalar {
            text: String::new(),
            plain: true,
        }),
        location,
    }
}

/// A collection that is still open.
struct Open {
    value: Value,
    location: Location,
    anchor: usize,
    /// Levels below this one, so far.
    height: usize,
    /// A key that waits for its value.
    key: Option<(String, Location)>,
    seen: HashSet<String>,
    /// What was spent when it was opened.
    nodes: usize,
    text: usize,
}

/// A finished node that aliases may copy, and what one copy costs.
struct Anchored {
    node: Node,
    height: usize,
    nodes: usize,
    text: usize,
}

struct Builder {
    first_line: u64,
    documents: usize,
    root: Option<Node>,
    open: Vec<Open>,
    anchors: HashMap<usize, Anchored>,
    nodes: usize,
    text: usize,
}

impl Builder {
    fn new(first_line: u64) -> Self {
        Builder {
            first_line,
            documents: 0,
            root: None,
            open: Vec::new(),
            anchors: HashMap::new(),
            nodes: 0,
            text: 0,
        }
    }

    fn locate(&self, marker: &Marker) -> Location {
        Location {
            line: self.first_line + (marker.line() as u64).saturating_sub(1),
            column: marker.col() as u64 + 1,
        }
    }

    fn syntax(&self, error: &ScanError) -> ManifestError {
        let location = self.locate(error.marker());
        ManifestError::Syntax {
            message: clean(&error.info()),
            location,
        }
    }

    fn event(&mut self, event: Event<'_>, at: Location) -> Result<(), ManifestError> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    let message = "a second document begins here, and only one is read".to_owned();
                    return Err(ManifestError::Unsupported {
                        message,
                        location: at,
                    });
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && !is_string_tag(tag, at)?;
                self.spend(1, text.len(), at)?;
                let cost = (1, text.len());
                let value = Value::Scalar(Scalar {
                    text: text.into_owned(),
                    plain,
                });
                self.finish(
                    Node {
                        value,
                        location: at,
                    },
                    0,
                    anchor,
                    cost,
                )?;
            }
            Event::SequenceStart(_, anchor, tag) => {
                refuse_tag(tag, at)?;
                self.push(Value::Sequence(Vec::new()), anchor, at)?;
            }
            Event::MappingStart(_, anchor, tag) => {
                refuse_tag(tag, at)?;
                self.push(Value::Mapping(Vec::new()), anchor, at)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.open.pop() {
                    let cost = (self.nodes - open.nodes, self.text - open.text);
                    let node = Node {
                        value: open.value,
                        location: open.location,
                    };
                    self.finish(node, open.height, open.anchor, cost)?;
                }
            }
            Event::Alias(id) => self.copy(id, at)?,
            _ => {}
        }
        Ok(())
    }

    fn spend(&mut self, nodes: usize, text: usize, at: Location) -> Result<(), ManifestError> {
        self.nodes = self.nodes.saturating_add(nodes);
        self.text = self.text.saturating_add(text);
        if self.nodes > MAX_NODES || self.text > MAX_TEXT {
            let message = format!(
                "more than {MAX_NODES} values or {MAX_TEXT} bytes once aliases are expanded"
            );
            return Err(ManifestError::Limit {
                message,
                location: at,
            });
        }
        Ok(())
    }

    fn check_depth(&self, height: usize, at: Location) -> Result<(), ManifestError> {
        if self.open.len() + height >= MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(ManifestError::Limit {
                message,
                location: at,
            });
        }
        Ok(())
    }

    fn push(&mut self, value: Value, anchor: usize, at: Location) -> Result<(), ManifestError> {
        self.check_depth(0, at)?;
        let (nodes, text) = (self.nodes, self.text);
        self.spend(1, 0, at)?;
        self.open.push(Open {
            value,
            location: at,
            anchor,
            height: 1,
            key: None,
            seen: HashSet::new(),
            nodes,
            text,
        });
        Ok(())
    }

    fn copy(&mut self, id: usize, at: Location) -> Result<(), ManifestError> {
        let Some(anchored) = self.anchors.get(&id) else {
            let message = "an alias of a value within that value never ends".to_owned();
            return Err(ManifestError::Unsupported {
                message,
                location: at,
            });
        };
        let (height, cost) = (anchored.height, (anchored.nodes, anchored.text));
        self.check_depth(height, at)?;
        self.spend(cost.0, cost.1, at)?;
        // Paid for before it is copied.
        let Some(anchored) = self.anchors.get(&id) else {
            return Ok(());
        };
        let node = Node {
            location: at,
            ..anchored.node.clone()
        };
        self.attach(node, height)
    }

    fn finish(
        &mut self,
        node: Node,
        height: usize,
        anchor: usize,
        (nodes, text): (usize, usize),
    ) -> Result<(), ManifestError> {
        if anchor != 0 {
            // The kept copy is paid for as well: anchors within anchors would multiply it.
            self.spend(nodes, text, node.location)?;
            self.anchors.insert(
                anchor,
                Anchored {
                    node: node.clone(),
                    height,
                    nodes,
                    text,
                },
            );
        }
        self.attach(node, height)
    }

    fn attach(&mut self, node: Node, height: usize) -> Result<(), ManifestError> {
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        parent.height = parent.height.max(height + 1);
        match &mut parent.value {
            Value::Sequence(items) => items.push(node),
            Value::Mapping(entries) => match parent.key.take() {
                Some((key, key_location)) => entries.push(Entry {
                    key,
                    key_location,
                    value: node,
                }),
                None => {
                    let key = key_text(&node)?;
                    if !parent.seen.insert(key.clone()) {
                        return Err(ManifestError::DuplicateKey {
                            key: clean(&key),
                            location: node.location,
                        });
                    }
                    parent.key = Some((key, node.location));
                }
            },
            Value::Scalar(_) => {}
        }
        Ok(())
    }
}

//! Lines of a streamed answer, as they are written and read.

use crate::api::{ApiError, Event, OutputStream};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use skillcell_supervisor::{Interaction, Printed};

/// A line as it is read. Flat, so that the envelope stays as it was written.
#[derive(Debug, Deserialize)]
pub struct Line<'a> {
    pub event: &'a str,
    #[serde(default)]
    pub text: String,
    pub stream: Option<OutputStream>,
    #[serde(borrow)]
    pub envelope: Option<&'a RawValue>,
    #[serde(default)]
    pub dropped: u64,
    pub error: Option<ApiError>,
}

impl Line<'_> {
    /// Tells `ui` what this line says, unless it is the last one.
    pub fn tell(&self, ui: &dyn Interaction) {
        match (self.event, self.stream) {
            ("stage", _) => ui.stage(&self.text),
            ("line", _) => ui.line(&self.text),
            ("warn", _) => ui.warn(&self.text),
            ("output", Some(OutputStream::Stdout)) => {
                ui.output(Printed::Stdout, self.text.as_bytes());
            }
            ("output", Some(OutputStream::Stderr)) => {
                ui.output(Printed::Stderr, self.text.as_bytes());
            }
            _ => {}
        }
    }
}

/// An event as a line.
pub fn line<E: Serialize>(event: &Event<E>) -> Vec<u8> {
    // Types that serialise always: maps with text for keys.
    let mut line = serde_json::to_vec(event).unwrap_or_default();
    line.push(b'\n');
    line
}

/// What a skill printed, as text: pieces end anywhere, also within a character.
#[derive(Debug, Default)]
pub struct Decoder {
    rest: Vec<u8>,
}

impl Decoder {
    pub fn text(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.rest);
        all.extend_from_slice(bytes);
        if let Some(cut) = unfinished(&all) {
            self.rest = all.split_off(cut);
        }
        String::from_utf8_lossy(&all).into_owned()
    }
}

/// Where a character begins that the end cuts off.
fn unfinished(bytes: &[u8]) -> Option<usize> {
    let from = bytes.len().saturating_sub(3);
    (from..bytes.len()).find(|&at| {
        let length = match bytes[at] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => return false,
        };
        at + length > bytes.len() && bytes[at + 1..].iter().all(|b| b & 0xc0 == 0x80)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_whole_however_the_pieces_are_cut() {
        let text = "aé€𝄞z";
        for size in 1..=4 {
            let mut decoder = Decoder::default();
            let out: String = text
                .as_bytes()
                .chunks(size)
                .map(|p| decoder.text(p))
                .collect();
            assert_eq!(out, text, "in pieces of {size}");
        }
        let mut decoder = Decoder::default();
        assert_eq!(decoder.text(b"\xffa\xe2\x82"), "\u{fffd}a");
        assert_eq!(decoder.text(b"\xac"), "€");
    }

    #[test]
    fn an_envelope_is_read_as_it_was_written() {
        let raw = RawValue::from_string(r#"{"result":1.000,  "x":[]}"#.to_owned()).unwrap();
        let bytes = line(&Event::End {
            envelope: raw,
            dropped: 3,
        });
        let read: Line<'_> = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(read.event, "end");
        assert_eq!(read.envelope.unwrap().get(), r#"{"result":1.000,  "x":[]}"#);
        assert_eq!(read.dropped, 3);
    }
}

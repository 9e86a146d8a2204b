//! The installer's output: the end of it is kept, lines go to whoever watches.

use crate::Progress;

const KEPT: usize = 64 << 10;
const LONGEST_LINE: usize = 2000;

/// Both streams, as they came.
#[derive(Debug, Default)]
pub(crate) struct Output {
    kept: Vec<u8>,
}

/// One stream, cut into lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    pub(crate) fn take(&mut self, bytes: &[u8], output: &mut Output, progress: &dyn Progress) {
        for part in bytes.split_inclusive(|b| *b == b'\n') {
            let room = LONGEST_LINE.saturating_sub(self.partial.len());
            self.partial.extend(part.iter().take(room));
            if part.ends_with(b"\n") {
                self.finish(output, progress);
            }
        }
    }

    /// Passes on what stands in the current line.
    pub(crate) fn finish(&mut self, output: &mut Output, progress: &dyn Progress) {
        let line = printable(&without_credentials(&String::from_utf8_lossy(
            &self.partial,
        )));
        self.partial.clear();
        let line = line.trim_end();
        if line.trim_start().is_empty() {
            return;
        }
        output.keep(line);
        progress.line(line);
    }
}

impl Output {
    fn keep(&mut self, line: &str) {
        self.kept.extend_from_slice(line.as_bytes());
        self.kept.push(b'\n');
        if self.kept.len() > 2 * KEPT {
            self.kept.drain(..self.kept.len() - KEPT);
        }
    }

    pub(crate) fn into_text(self) -> String {
        let start = self.kept.len().saturating_sub(KEPT);
        String::from_utf8_lossy(&self.kept[start..]).into_owned()
    }
}

/// Without what a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\t' => out.push(' '),
            '\u{1b}' if chars.peek() == Some(&'[') => {
                chars.next();
                while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
            }
            c if c.is_control() => {}
            // Marks that turn the direction of text can make a line read as another.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c => out.push(c),
        }
    }
    out
}

/// `https://user:secret@host` as `https://***@host`.
pub(crate) fn without_credentials(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after
            .find(|c: char| c == '/' || c.is_whitespace() || matches!(c, '\'' | '"' | '`'))
            .unwrap_or(after.len());
        let (authority, tail) = after.split_at(end);
        match authority.rsplit_once('@') {
            Some((_, host)) => {
                out.push_str("***@");
                out.push_str(host);
            }
            None => out.push_str(authority),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[derive(Default)]
    struct Seen(RefCell<Vec<String>>);
    impl Progress for Seen {
        fn stage(&self, _: &str) {}
        fn line(&self, text: &str) {
            self.0.borrow_mut().push(text.to_owned());
        }
        fn denied(&self, _: &skillcell_core::Denial) {}
    }

    #[test]
    fn lines_arrive_whole_and_without_control_characters() {
        let (seen, mut output, mut lines) = (Seen::default(), Output::default(), Lines::default());
        lines.take(b"one\ntw", &mut output, &seen);
        lines.take(b"o\x1b[31m red\x07\n\n", &mut output, &seen);
        lines.finish(&mut output, &seen);
        assert_eq!(*seen.0.borrow(), ["one", "two red"]);
        assert_eq!(output.into_text(), "one\ntwo red\n");
    }

    #[test]
    fn credentials_in_addresses_are_not_shown() {
        assert_eq!(
            without_credentials("at https://me:pw@index.example/simple, see"),
            "at https://***@index.example/simple, see"
        );
        assert_eq!(without_credentials("http://a/b@c"), "http://a/b@c");
    }

    #[test]
    fn only_the_end_of_a_flood_is_kept() {
        let (mut output, mut lines) = (Output::default(), Lines::default());
        for n in 0..100_000 {
            lines.take(
                format!("line {n}\n").as_bytes(),
                &mut output,
                &crate::Silent,
            );
        }
        let text = output.into_text();
        assert!(text.len() <= KEPT && text.ends_with("line 99999\n"));
    }
}

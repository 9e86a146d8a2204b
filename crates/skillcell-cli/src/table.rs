//! Columns for people. Cells are escaped: what is in them may come from a bundle.

use crate::output::printable;
use anstyle::{Effects, Style};
use std::fmt::Write;

const HEAD: Style = Style::new().effects(Effects::BOLD);

/// A bold line over a part of the output.
pub(crate) fn heading(text: &str) -> String {
    format!("{HEAD}{text}{HEAD:#}\n")
}

/// What stands in a column, and how.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn new(text: &str, style: Style) -> Cell {
        Cell {
            text: cell(text),
            style,
        }
    }
}

/// As [`table`], with styles.
pub(crate) fn styled<const N: usize>(head: [&str; N], rows: &[[Cell; N]]) -> String {
    let mut widths = head.map(|h| h.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.text.chars().count());
        }
    }
    let head = line(&head.map(str::to_owned), &widths);
    let mut out = format!("  {HEAD}{head}{HEAD:#}\n");
    for row in rows {
        let mut line = String::new();
        for (at, (Cell { text, style }, width)) in row.iter().zip(widths).enumerate() {
            let gap = if at + 1 < N {
                " ".repeat(width - text.chars().count() + 2)
            } else {
                String::new()
            };
            // Writing to a string can't fail.
            write!(line, "{style}{text}{style:#}{gap}").unwrap_or(());
        }
        writeln!(out, "  {}", line.trim_end()).unwrap_or(());
    }
    out
}

/// Rows under a bold head; a head of empty words is left out. The last column is as wide as it is.
pub(crate) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let rows: Vec<[String; N]> = rows
        .iter()
        .map(|row| row.each_ref().map(|c| cell(c)))
        .collect();
    let mut widths = head.map(|h| h.chars().count());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    if head.iter().any(|h| !h.is_empty()) {
        let line = line(&head.map(str::to_owned), &widths);
        // Writing to a string can't fail.
        writeln!(out, "  {HEAD}{line}{HEAD:#}").unwrap_or(());
    }
    for row in &rows {
        writeln!(out, "  {}", line(row, &widths)).unwrap_or(());
    }
    out
}

fn line<const N: usize>(cells: &[String; N], widths: &[usize; N]) -> String {
    let padded: Vec<String> = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell:width$}"))
        .collect();
    padded.join("  ").trim_end().to_owned()
}

fn cell(text: &str) -> String {
    printable(text).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_can_not_break_its_row_or_drive_the_terminal() {
        let row = ["a\nb\x1b[2J".to_owned(), "é".to_owned()];
        let text = table(["", ""], &[row, ["x".into(), "y".into()]]);
        assert_eq!(text, "  a b\\u{1b}[2J  é\n  x             y\n");
    }
}

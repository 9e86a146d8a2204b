//! Moments and sizes for people.

use crate::export::rfc3339;

pub(super) fn moment(us: u64) -> String {
    let text = rfc3339(us);
    let shown = text.get(..19).unwrap_or(&text).replace('T', " ");
    format!("<time datetime=\"{text}\">{shown} UTC</time>")
}

pub(super) fn millis(ms: u64) -> String {
    match ms {
        0..=9_999 => format!("{ms} ms"),
        _ => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
    }
}

pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A number of which none is nothing to look at.
pub(super) fn count(number: u64) -> String {
    match number {
        0 => NONE.to_owned(),
        number => number.to_string(),
    }
}

/// The same for texts with a unit.
pub(super) fn some(number: u64, text: fn(u64) -> String) -> String {
    match number {
        0 => NONE.to_owned(),
        number => text(number),
    }
}

const NONE: &str = "<span class=dim>–</span>";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_for_people() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(u64::MAX), "16384.0 PiB");
        assert_eq!(millis(1234), "1234 ms");
        assert_eq!(millis(61_250), "61.2 s");
    }
}

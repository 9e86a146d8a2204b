use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    #[error("`{0}` is not a size: write a number and a unit, such as 64MiB, 512KiB or 1GiB")]
    Size(String),
    #[error("`{0}` is not a duration: write a number and a unit, such as 500ms, 30s or 2m")]
    Duration(String),
    #[error(
        "`{0}` is not a number of CPUs: write a number above 0 and at most 1024, such as 1 or 0.5"
    )]
    Cpu(String),
}

/// What YAML and JSON may hold where a quantity is meant.
#[derive(Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a number, or text with a number and a unit"
)]
enum Raw {
    Integer(u64),
    Float(f64),
    Text(String),
}

impl Raw {
    fn text(self) -> String {
        match self {
            Raw::Integer(n) => n.to_string(),
            Raw::Float(n) => n.to_string(),
            Raw::Text(s) => s,
        }
    }
}

/// Splits `12.5 MiB` into its number and its unit.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let split = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let number: f64 = text[..split].parse().ok()?;
    number.is_finite().then_some((number, text[split..].trim()))
}

/// A number of bytes, above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(try_from = "Raw")]
#[schemars(with = "Raw")]
pub struct ByteSize(u64);

impl ByteSize {
    pub const fn mib(n: u64) -> Self {
        ByteSize(n << 20)
    }

    pub const fn bytes(self) -> u64 {
        self.0
    }

    pub fn parse(text: &str) -> Result<Self, SizeError> {
        let error = || SizeError::Size(text.chars().take(100).collect());
        let (number, unit) = number_and_unit(text).ok_or_else(error)?;
        let factor: u64 = match unit {
            "" | "B" => 1,
            "KiB" | "Ki" | "K" | "k" => 1 << 10,
            "MiB" | "Mi" | "M" => 1 << 20,
            "GiB" | "Gi" | "G" => 1 << 30,
            "KB" | "kB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            _ => return Err(error()),
        };
        let bytes = number * factor as f64;
        // Above 2^53 a float no longer counts single bytes; no quota is that large.
        if (1.0..9.0e15).contains(&bytes) {
            Ok(ByteSize(bytes as u64))
        } else {
            Err(error())
        }
    }
}

impl TryFrom<Raw> for ByteSize {
    type Error = SizeError;
    fn try_from(raw: Raw) -> Result<Self, SizeError> {
        ByteSize::parse(&raw.text())
    }
}

impl std::str::FromStr for ByteSize {
    type Err = SizeError;
    fn from_str(s: &str) -> Result<Self, SizeError> {
        ByteSize::parse(s)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
            if self.0 >= 1 << shift && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}B", self.0)
    }
}

impl Serialize for ByteSize {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// A wall-clock limit, above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(try_from = "Raw")]
#[schemars(with = "Raw")]
pub struct Timeout(u64);

impl Timeout {
    pub const fn secs(n: u64) -> Self {
        Timeout(n * 1000)
    }

    pub const fn millis(self) -> u64 {
        self.0
    }

    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// A bare number is seconds.
    pub fn parse(text: &str) -> Result<Self, SizeError> {
        let error = || SizeError::Duration(text.chars().take(100).collect());
        let (number, unit) = number_and_unit(text).ok_or_else(error)?;
        let factor = match unit {
            "ms" => 1.0,
            "" | "s" => 1_000.0,
            "m" | "min" => 60_000.0,
            "h" => 3_600_000.0,
            _ => return Err(error()),
        };
        let millis = number * factor;
        if (1.0..=7.0 * 86_400_000.0).contains(&millis) {
            Ok(Timeout(millis as u64))
        } else {
            Err(error())
        }
    }
}

impl TryFrom<Raw> for Timeout {
    type Error = SizeError;
    fn try_from(raw: Raw) -> Result<Self, SizeError> {
        Timeout::parse(&raw.text())
    }
}

impl std::str::FromStr for Timeout {
    type Err = SizeError;
    fn from_str(s: &str) -> Result<Self, SizeError> {
        Timeout::parse(s)
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(1000) {
            write!(f, "{}s", self.0 / 1000)
        } else {
            write!(f, "{}ms", self.0)
        }
    }
}

impl Serialize for Timeout {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// CPU bandwidth in thousandths of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(try_from = "Raw")]
#[schemars(with = "Raw")]
pub struct CpuCount(u32);

impl CpuCount {
    pub const fn whole(n: u32) -> Self {
        CpuCount(n * 1000)
    }

    pub const fn millis(self) -> u32 {
        self.0
    }

    pub fn parse(text: &str) -> Result<Self, SizeError> {
        let error = || SizeError::Cpu(text.chars().take(100).collect());
        match number_and_unit(text) {
            Some((n, "")) if (0.01..=1024.0).contains(&n) => {
                Ok(CpuCount((n * 1000.0).round() as u32))
            }
            _ => Err(error()),
        }
    }
}

impl TryFrom<Raw> for CpuCount {
    type Error = SizeError;
    fn try_from(raw: Raw) -> Result<Self, SizeError> {
        CpuCount::parse(&raw.text())
    }
}

impl fmt::Display for CpuCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.0) / 1000.0)
    }
}

impl Serialize for CpuCount {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(f64::from(self.0) / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_with_units_and_print_the_shortest_exact_form() {
        assert_eq!(ByteSize::parse("64MiB"), Ok(ByteSize::mib(64)));
        assert_eq!(
            ByteSize::parse("1.5GiB").map(|s| s.to_string()),
            Ok("1536MiB".into())
        );
        assert_eq!(
            ByteSize::parse("1000").map(|s| s.to_string()),
            Ok("1000B".into())
        );
        for bad in [
            "",
            "0",
            "-1",
            "MiB",
            "1XB",
            "1e9",
            "nan",
            "inf",
            "999999999999999GiB",
        ] {
            assert!(ByteSize::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_have_a_unit_or_are_seconds() {
        assert_eq!(Timeout::parse("30"), Ok(Timeout::secs(30)));
        assert_eq!(Timeout::parse("500ms").map(Timeout::millis), Ok(500));
        assert_eq!(Timeout::parse("2m"), Ok(Timeout::secs(120)));
        for bad in ["", "0", "-1s", "1d", "999h"] {
            assert!(Timeout::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn cpus_are_positive_and_bounded() {
        assert_eq!(CpuCount::parse("0.5").map(CpuCount::millis), Ok(500));
        for bad in ["0", "-1", "2000", "1s", ""] {
            assert!(CpuCount::parse(bad).is_err(), "{bad}");
        }
    }
}

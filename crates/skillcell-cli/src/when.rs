//! Points in time as people write and read them; always in UTC.

const MICROS: u64 = 1_000_000;

/// `2026-11-18T13:46:24.123Z`.
pub(crate) fn rfc3339(unix_us: u64) -> String {
    let (date, time) = parts(unix_us);
    format!("{date}T{time}Z")
}

/// `2026-11-18 13:46:24.123`.
pub(crate) fn readable(unix_us: u64) -> String {
    let (date, time) = parts(unix_us);
    format!("{date} {time}")
}

fn parts(unix_us: u64) -> (String, String) {
    let seconds = unix_us / MICROS;
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let millis = unix_us % MICROS / 1000;
    (
        format!("{year:04}-{month:02}-{day:02}"),
        format!("{hour:02}:{minute:02}:{second:02}.{millis:03}"),
    )
}

/// Microseconds since 1970 of what is written: RFC 3339, a date, or so long before `now`.
pub(crate) fn parse(text: &str, now: u64) -> Result<u64, String> {
    if let Ok(age) = crate::args_deps::parse_age(text) {
        return Ok(now.saturating_sub(age.as_micros().try_into().unwrap_or(u64::MAX)));
    }
    absolute(text).ok_or_else(|| {
        format!(
            "`{}` is no time: write 2026-03-01, 2026-03-01T12:30:00Z, or how long ago, such as 2h or 7d",
            text.chars().take(100).collect::<String>()
        )
    })
}

fn absolute(text: &str) -> Option<u64> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year < 1970 || day == 0 || day > length {
        return None;
    }
    let midnight = i64::try_from(days(year, month, day) * 86_400).ok()?;
    let (seconds, micros) = match time {
        None => (0, 0),
        Some(time) => seconds(time)?,
    };
    let seconds = u64::try_from(midnight + seconds).ok()?;
    Some(seconds * MICROS + micros)
}

/// `12:30:00.5+02:00` in seconds of the day in UTC, and the microseconds of it.
fn seconds(time: &str) -> Option<(i64, u64)> {
    let at = time.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = time.split_at(at);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    if hour > 23 || minute > 59 || second > 60 || fraction.is_empty() {
        return None;
    }
    let digits = fraction.bytes().all(|b| b.is_ascii_digit());
    let micros: u64 = format!("{fraction:0<6.6}")
        .parse()
        .ok()
        .filter(|_| digits)?;
    let offset = match zone {
        "Z" | "z" => 0,
        _ => {
            let [hours, minutes] = numbers(&zone[1..], ':', [2, 2])?;
            if hours > 23 || minutes > 59 {
                return None;
            }
            let offset = i64::try_from(hours * 3600 + minutes * 60).ok()?;
            if zone.starts_with('-') {
                -offset
            } else {
                offset
            }
        }
    };
    let seconds = i64::try_from(hour * 3600 + minute * 60 + second).ok()?;
    Some((seconds - offset, micros))
}

/// Numbers of fixed widths between separators.
fn numbers<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[u64; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, width) in numbers.iter_mut().zip(widths) {
        let part = parts.next()?;
        if part.len() != width || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

/// Days from 1970 to a date of the Gregorian calendar; years begin in March, so that the leap day is
/// their last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

pub(crate) fn now() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_back_as_they_are_written() {
        for us in [
            0,
            951_782_400_000_000,
            1_795_009_584_123_000,
            4_102_444_799_999_000,
        ] {
            assert_eq!(parse(&rfc3339(us), 0), Ok(us), "{}", rfc3339(us));
        }
        assert_eq!(rfc3339(951_782_400_000_000), "2000-02-29T00:00:00.000Z");
    }

    #[test]
    fn every_day_has_its_date() {
        let mut last = String::new();
        for day in 0..60_000 {
            let date = parts(day * 86_400 * MICROS).0;
            assert!(date > last, "{date} after {last}");
            assert_eq!(absolute(&date), Some(day * 86_400 * MICROS), "{date}");
            last = date;
        }
    }

    #[test]
    fn dates_offsets_and_ages_are_understood() {
        let hour = 3_600 * MICROS;
        assert_eq!(parse("2h", 10 * hour), Ok(8 * hour));
        assert_eq!(parse("1970-01-01T02:30:00+02:00", 0), Ok(hour / 2));
        assert_eq!(
            parse("1970-01-01 00:00:00.5-00:30", 0),
            Ok(hour / 2 + 500_000)
        );
        for bad in [
            "",
            "h",
            "yesterday",
            "2026-02-30",
            "2026-13-01",
            "26-01-01",
            "2026-01-01T25:00:00Z",
            "2026-01-01T10:00:00",
            "2026-01-01T10:00:00.Z",
            "1970-01-01T00:00:00+01:00",
            "é",
            "2026-01-01T10:00:00+é1:00",
        ] {
            assert!(parse(bad, 0).is_err(), "{bad}");
        }
    }
}

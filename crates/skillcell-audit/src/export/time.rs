//! Moments, to and from RFC 3339.

/// Microseconds since 1970 as `2026-11-18T13:30:16.000123Z`.
pub fn rfc3339(unix_us: u64) -> String {
    let (seconds, micros) = (unix_us / 1_000_000, unix_us % 1_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days as i64);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{micros:06}Z",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// Microseconds since 1970. A date alone is its first moment, in UTC. `None` for anything else.
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        let plain = digits.bytes().all(|b| b.is_ascii_digit());
        digits.parse().ok().filter(|_| plain)
    };
    let at = |index: usize| text.as_bytes().get(index).copied();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    if at(4)? != b'-' || at(7)? != b'-' {
        return None;
    }
    let days = days(year, month, day);
    if civil(days) != (year, month, day) {
        return None;
    }
    let midnight = days.checked_mul(86_400)?;
    if text.len() == 10 {
        return u64::try_from(midnight).ok()?.checked_mul(1_000_000);
    }
    if !matches!(at(10)?, b'T' | b't' | b' ') || at(13)? != b':' || at(16)? != b':' {
        return None;
    }
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut rest = text.get(19..)?;
    let mut micros = 0;
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = fraction.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, after) = fraction.split_at(length);
        micros = format!("{:0<6}", digits.get(..6).unwrap_or(digits))
            .parse::<u64>()
            .ok()
            .filter(|_| length > 0)?;
        rest = after;
    }
    let offset = match rest.as_bytes() {
        [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let digit = |b: u8| i64::from(b.wrapping_sub(b'0'));
            let all = [*h1, *h2, *m1, *m2];
            let (hours, minutes) = (digit(*h1) * 10 + digit(*h2), digit(*m1) * 10 + digit(*m2));
            if !all.iter().all(u8::is_ascii_digit) || hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 3600 + minutes * 60) * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    let seconds = midnight + hour * 3600 + minute * 60 + second - offset;
    u64::try_from(seconds)
        .ok()?
        .checked_mul(1_000_000)?
        .checked_add(micros)
}

// Both after Howard Hinnant's "chrono-compatible low-level date algorithms": years begin in March,
// so that the odd day is at their end.

fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    (year, month, doy - (153 * mp + 2) / 5 + 1)
}

fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, yoe) = (year.div_euclid(400), year.rem_euclid(400));
    let mp = if month > 2 { month - 3 } else { month + 9 };
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + (153 * mp + 2) / 5 + day - 1;
    era * 146_097 + doe - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_moments() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(rfc3339(951_868_799_000_001), "2000-02-29T23:59:59.000001Z");
        assert_eq!(
            parse_rfc3339("2026-11-18T13:30:16+02:30"),
            parse_rfc3339("2026-11-18T11:00:16Z")
        );
        assert_eq!(parse_rfc3339("1970-01-02"), Some(86_400_000_000));
        assert_eq!(parse_rfc3339("1970-01-01T00:00:00.5Z"), Some(500_000));
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for bad in [
            "",
            "2026",
            "2026-02-30",
            "2026-13-01",
            "2026-11-18T24:00:00Z",
            "2026-11-18T13:30:16",
            "2026-11-18T13:30:16.Z",
            "2026-11-18T13:30:16+2",
            "+026-11-18",
            "2026-11-18x13:30:16Z",
            "1969-12-31",
            "2026-11-1é",
        ] {
            assert_eq!(parse_rfc3339(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn there_and_back(us in 0..253_402_300_800_000_000_u64) {
            prop_assert_eq!(parse_rfc3339(&rfc3339(us)), Some(us));
        }
    }
}

//! Moments, as people type and read them: all in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds in a day.
const DAY: u64 = 86_400;

/// Seconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// A moment as RFC 3339 writes it, with a blank between date and time.
pub fn moment(unix: u64) -> String {
    let (year, month, day) = date(unix / DAY);
    let second = unix % DAY;
    let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}Z")
}

/// Reads a moment: RFC 3339 (`2026-11-22T07:15:00Z`, with an offset, or without seconds or zone: UTC), a time of the last 24
/// hours (`07:15`), or how long ago (`-2h`, `-30m`, `-1d`, `-90s`). `now`: seconds since 1970.
///
/// # Errors
/// The text is no moment; it says what is expected.
pub fn read(text: &str, now: u64) -> Result<u64, String> {
    let read = match text.strip_prefix('-') {
        Some(ago) => span(ago).and_then(|ago| now.checked_sub(ago)),
        None if text.len() <= 8 => time(text).map(|time| {
            let today = now - now % DAY + time;
            if today <= now {
                today
            } else {
                today.saturating_sub(DAY)
            }
        }),
        None => rfc3339(text),
    };
    read.ok_or_else(|| {
        format!(
            "`{text}` is no time: expected `2026-11-22T07:15:00Z`, `07:15` (UTC, in the last 24 hours), or `-2h`"
        )
    })
}

/// Seconds of a span: `2h`, `30m`, `1d`, `90s`, `1w`. `None`: the text is no span.
pub fn span(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => DAY,
        "w" => 7 * DAY,
        _ => return None,
    };
    digits(number)?.checked_mul(unit)
}

/// `07:15` or `07:15:30`.
fn time(text: &str) -> Option<u64> {
    let mut parts = text.split(':').map(two);
    let (hours, minutes) = (parts.next()??, parts.next()??);
    let seconds = parts.next().unwrap_or(Some(0))?;
    let fits = hours < 24 && minutes < 60 && seconds <= 60 && parts.next().is_none();
    fits.then_some(hours * 3600 + minutes * 60 + seconds.min(59))
}

fn two(text: &str) -> Option<u64> {
    digits(text).filter(|_| text.len() == 2)
}

fn digits(text: &str) -> Option<u64> {
    let all = text.bytes().all(|b| b.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

fn rfc3339(text: &str) -> Option<u64> {
    let (day, rest) = text.split_at_checked(10)?;
    let mut parts = day.split('-');
    let (year, month, day) = (
        digits(parts.next()?).filter(|y| (1970..=2105).contains(y))?,
        two(parts.next()?).filter(|m| (1..=12).contains(m))?,
        two(parts.next()?).filter(|d| (1..=31).contains(d))?,
    );
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let zone = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(zone);
    let clock = clock.split_once('.').map_or(clock, |(whole, _)| whole);
    let unix = days(year, month, day) * DAY + time(clock)?;
    match zone.split_at_checked(1) {
        None | Some(("Z" | "z", "")) => Some(unix),
        Some(("+", offset)) => unix.checked_sub(time(offset)?),
        Some(("-", offset)) => unix.checked_add(time(offset)?),
        Some(_) => None,
    }
}

/// Days since 1970 of a day of the Gregorian calendar.
fn days(year: u64, month: u64, day: u64) -> u64 {
    // years that begin in March end with the day that is there every four years
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap = year / 4 - year / 100 + year / 400;
    year * 365 + leap + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// Year, month and day of a day since 1970.
fn date(days_since: u64) -> (u64, u64, u64) {
    let mut year = 1970 + days_since / 366;
    while days(year + 1, 1, 1) <= days_since {
        year += 1;
    }
    let month = (1..=12).rfind(|month| days(year, *month, 1) <= days_since);
    let month = month.unwrap_or(1);
    (year, month, days_since - days(year, month, 1) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_795_331_730; // 2026-11-22 07:15:30Z

    #[test]
    fn moments_are_written_and_read_back() {
        assert_eq!(moment(0), "1970-01-01 00:00:00Z");
        assert_eq!(moment(NOW), "2026-11-22 07:15:30Z");
        assert_eq!(moment(951_782_400), "2000-02-29 00:00:00Z");
        for unix in (0..4_200_000_000).step_by(40_000_003) {
            assert_eq!(read(&moment(unix), NOW), Ok(unix));
        }
    }

    #[test]
    fn times_are_read_as_people_type_them() {
        for (text, unix) in [
            ("2026-11-22T07:15:30Z", NOW),
            ("2026-11-22T08:15:30+01:00", NOW),
            ("2026-11-22T02:15:30.25-05:00", NOW),
            ("2026-11-22 07:15", NOW - 30),
            ("07:15", NOW - 30),
            ("07:15:31", NOW + 1 - DAY),
            ("-30s", NOW - 30),
            ("-2h", NOW - 7200),
            ("-1w", NOW - 7 * DAY),
        ] {
            assert_eq!(read(text, NOW), Ok(unix), "{text}");
        }
        for text in [
            "",
            "-",
            "-5",
            "-h",
            "25:00",
            "7:15",
            "2026-13-01T00:00:00Z",
            "tomorrow",
            "-9999999w",
            "+1h",
            "2026-11-22T07:15:30Zulu",
            "2026-11-22X07:15",
        ] {
            let why = read(text, NOW).unwrap_err();
            assert!(why.contains("expected"), "{why}");
        }
    }
}

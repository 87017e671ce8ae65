//! Numbers for people.

/// Octets: `999 B`, `1.2 MB`.
pub fn octets(count: u64) -> String {
    scaled(count, "B")
}

/// Octets a second, in bits: `999 bit/s`, `1.2 Mbit/s`.
pub fn bits_per_second(octets: f64) -> String {
    rate((octets * 8.0) as u64)
}

/// Bits a second: `999 bit/s`, `1.2 Mbit/s`.
pub fn rate(bits: u64) -> String {
    scaled(bits, "bit/s")
}

/// A count: `999`, `1.2 M`.
pub fn count(count: u64) -> String {
    scaled(count, "").trim_end().to_owned()
}

/// So many of something: `1 session`, `60 sessions`.
pub fn counted<N: std::fmt::Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {what}{ending}")
}

/// Seconds: `59s`, `2m 05s`, `3h 04m`, `12d 07h`.
pub fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {:02}s", seconds % 60),
        (0, _, _) => format!("{hours}h {:02}m", minutes % 60),
        _ => format!("{days}d {:02}h", hours % 24),
    }
}

fn scaled(count: u64, unit: &str) -> String {
    const PREFIXES: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
    if count < 1000 {
        return format!("{count} {unit}");
    }
    let (mut value, mut power) = (count as f64 / 1000.0, 0);
    // 999.95 would be printed as 1000.0.
    while value >= 999.95 && power + 1 < PREFIXES.len() {
        value /= 1000.0;
        power += 1;
    }
    format!("{value:.1} {}{unit}", PREFIXES[power])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_have_one_decimal_and_never_four_digits() {
        let shown = [0, 999, 1000, 999_949, 999_950, 1_234_567, u64::MAX].map(octets);
        assert_eq!(
            shown,
            [
                "0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "1.2 MB", "18.4 EB"
            ]
        );
        assert_eq!([7, 1500].map(count), ["7", "1.5 k"]);
        assert_eq!(bits_per_second(187_500.0), "1.5 Mbit/s");
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!(
            [0u64, 1, 60].map(|n| counted(n, "session")),
            ["0 sessions", "1 session", "60 sessions"]
        );
    }

    #[test]
    fn durations_show_their_two_largest_units() {
        let shown = [0, 59, 65, 3600 * 3 + 240, 86_400 * 12 + 3600 * 7].map(duration);
        assert_eq!(shown, ["0s", "59s", "1m 05s", "3h 04m", "12d 07h"]);
    }
}

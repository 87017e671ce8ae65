//! Messages as a ladder: a column for each who speaks, a line for each message.

use northbound::{TracedPacket, TracedPath};
use trace::describe;

/// Where the columns of home, gateway, RADIUS server and user plane are.
const HOME: usize = 0;
const GATEWAY: usize = 7;
const RADIUS: usize = 14;
const USER_PLANE: usize = 21;
const COLUMNS: [usize; 4] = [HOME, GATEWAY, RADIUS, USER_PLANE];

/// What stands above the ladder.
pub const HEADING: &str = "    TIME  home   gw     radius user plane";

/// The lines of a ladder, whose time begins with the first message.
#[derive(Debug, Default)]
pub struct Ladder {
    began: Option<u64>,
}

impl Ladder {
    /// A message, with the seconds since the first.
    pub fn line(&mut self, packet: &TracedPacket) -> String {
        let began = *self.began.get_or_insert(packet.at_nanoseconds);
        // what a user plane saw earlier may come later
        let since = packet.at_nanoseconds as f64 - began as f64;
        let (arrow, text) = (arrow(packet), describe(packet));
        format!("{:8.3}  {arrow}  {text}", since / 1e9)
    }
}

fn arrow(packet: &TracedPacket) -> String {
    let mut arrow = [' '; USER_PLANE + 1];
    COLUMNS.iter().for_each(|column| arrow[*column] = '|');
    let (from, to) = match packet.path() {
        TracedPath::Access => (HOME, GATEWAY),
        TracedPath::Radius => (RADIUS, GATEWAY),
        TracedPath::Pfcp => (USER_PLANE, GATEWAY),
        TracedPath::Sample => (HOME, USER_PLANE),
        TracedPath::Unspecified => return arrow.iter().collect(),
    };
    let (from, to) = if packet.sent { (to, from) } else { (from, to) };
    let (left, right) = (from.min(to), from.max(to));
    arrow[left + 1..right].fill('-');
    match from < to {
        true => arrow[to - 1] = '>',
        false => arrow[to + 1] = '<',
    }
    arrow.iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_goes_from_one_column_to_another() {
        let mut ladder = Ladder::default();
        let mut line = |at_nanoseconds, path: TracedPath, sent| {
            ladder.line(&TracedPacket {
                at_nanoseconds,
                path: path.into(),
                sent,
                ..TracedPacket::default()
            })
        };
        let lines = [
            line(1_000_000_000, TracedPath::Access, false),
            line(1_001_000_000, TracedPath::Access, true),
            line(1_002_000_000, TracedPath::Radius, true),
            line(1_010_000_000, TracedPath::Radius, false),
            line(2_000_000_000, TracedPath::Pfcp, true),
            line(61_000_000_000, TracedPath::Pfcp, false),
            line(999_000_000, TracedPath::Sample, false),
            line(1_000_000_000, TracedPath::Sample, true),
        ];
        let arrows: Vec<&str> = lines.iter().map(|line| &line[..32]).collect();
        assert_eq!(
            arrows,
            [
                "   0.000  |----->|      |      |",
                "   0.001  |<-----|      |      |",
                "   0.002  |      |----->|      |",
                "   0.010  |      |<-----|      |",
                "   1.000  |      |------------>|",
                "  60.000  |      |<------------|",
                "  -0.001  |------------------->|",
                "   0.000  |<-------------------|",
            ]
        );
    }
}

//! The far side of verified traffic that goes there and back.

use crate::Family;
use crate::traffic::{Label, Party, Verdict, Window};
use std::collections::HashMap;

/// Sends each verified packet back to its home, with how many of its stream have come so far.
///
/// The home can tell by that on which of the two ways packets were lost, as with the sequence numbers of a stateful reflector of
/// STAMP (RFC 8762 §4.3).
///
/// ```
/// use cpe::{Family, Label, Party, Reflector, Stamp};
///
/// let stamp = Stamp { sent: 5, reflected: 0 };
/// let label = Label { run: 1, from: Party::Home(7), to: Party::Internet, family: Family::V4, sequence: 3, stamp };
/// let (mut sent, mut back) = (Vec::new(), Vec::new());
/// label.emit(100, &mut sent);
/// assert!(Reflector::new(10).reflect(&sent, &mut back));
/// let label = Label::parse(&back).unwrap();
/// assert_eq!((label.from, label.to), (Party::Internet, Party::Home(7)));
/// assert_eq!(label.stamp, Stamp { sent: 5, reflected: 1 });
/// ```
#[derive(Debug)]
pub struct Reflector {
    /// Streams of each run, by home and family.
    runs: HashMap<u64, HashMap<(u32, Family), Window>>,
    /// Number of streams of all runs.
    streams: usize,
    /// The most streams that it keeps.
    limit: usize,
    reflected: u64,
    refused: u64,
}

impl Reflector {
    /// A reflector for at most `limit` streams: two for each dual-stack home of a run.
    pub fn new(limit: usize) -> Self {
        Reflector {
            runs: HashMap::new(),
            streams: 0,
            limit,
            reflected: 0,
            refused: 0,
        }
    }

    /// Answers the payload of a datagram: what to send back goes to `out`; false if there is no answer.
    ///
    /// Only a whole verified packet of a home is answered. At the limit the streams of other runs are forgotten first; with none
    /// left, packets of further streams are not answered.
    pub fn reflect(&mut self, payload: &[u8], out: &mut Vec<u8>) -> bool {
        let answer = self.answer(payload);
        match answer {
            Some(label) => {
                label.emit(payload.len(), out);
                self.reflected += 1;
            }
            None => self.refused += 1,
        }
        answer.is_some()
    }

    /// Packets that were sent back.
    pub fn reflected(&self) -> u64 {
        self.reflected
    }

    /// Packets that were not: no verified packets, damaged, or of too many streams.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn answer(&mut self, payload: &[u8]) -> Option<Label> {
        let label = Label::parse(payload)?;
        let (Party::Home(home), Party::Internet) = (label.from, label.to) else {
            return None;
        };
        let stream = self.stream(label.run, (home, label.family))?;
        // A packet that came twice goes back twice, and the home sees it.
        let _: Verdict = stream.arrived(label.sequence);
        let mut answer = Label {
            from: label.to,
            to: label.from,
            ..label
        };
        answer.stamp.reflected = stream.received() as u32;
        Some(answer)
    }

    fn stream(&mut self, run: u64, key: (u32, Family)) -> Option<&mut Window> {
        let known = self.runs.get(&run);
        if known.is_none_or(|streams| !streams.contains_key(&key)) {
            if self.streams >= self.limit {
                self.forget_others(run);
            }
            if self.streams >= self.limit {
                return None;
            }
            self.streams += 1;
        }
        Some(self.runs.entry(run).or_default().entry(key).or_default())
    }

    /// Forgets the streams of other runs. Each is looked at once in its life, so a flood of further streams costs no scans.
    fn forget_others(&mut self, run: u64) {
        let own = self.runs.remove(&run).unwrap_or_default();
        self.streams = own.len();
        self.runs = HashMap::from([(run, own)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Stamp;
    use std::time::Instant;

    fn packet(run: u64, home: u32, sequence: u64) -> Vec<u8> {
        let mut payload = Vec::new();
        Label {
            run,
            from: Party::Home(home),
            to: Party::Internet,
            family: Family::V6,
            sequence,
            stamp: Stamp::default(),
        }
        .emit(80, &mut payload);
        payload
    }

    fn reflected(reflector: &mut Reflector, payload: &[u8]) -> Option<u32> {
        let mut out = Vec::new();
        reflector.reflect(payload, &mut out).then(|| {
            assert_eq!(out.len(), payload.len());
            Label::parse(&out).unwrap().stamp.reflected
        })
    }

    #[test]
    fn each_stream_is_counted_without_gaps_and_repetitions() {
        let mut reflector = Reflector::new(10);
        let mut of = |home, sequence| reflected(&mut reflector, &packet(1, home, sequence));
        // Packet 1 of home 0 is lost on its way, and packet 2 comes twice.
        assert_eq!(
            [of(0, 0), of(0, 2), of(0, 2), of(0, 3)],
            [Some(1), Some(2), Some(2), Some(3)]
        );
        assert_eq!(of(5, 0), Some(1));
    }

    #[test]
    fn nothing_but_verified_packets_of_homes_is_answered() {
        let mut reflector = Reflector::new(10);
        let mut damaged = packet(1, 0, 0);
        damaged[20] ^= 1;
        let answer = {
            let mut out = Vec::new();
            assert!(reflector.reflect(&packet(1, 0, 0), &mut out));
            out
        };
        for payload in [&damaged[..], &answer, b"hello", b""] {
            assert_eq!(reflected(&mut reflector, payload), None);
        }
        assert_eq!((reflector.reflected(), reflector.refused()), (1, 4));
    }

    #[test]
    fn at_the_limit_other_runs_are_forgotten_and_further_streams_refused() {
        let mut reflector = Reflector::new(2);
        let mut of = |run, home| reflected(&mut reflector, &packet(run, home, 9));
        assert_eq!([of(1, 0), of(1, 1)], [Some(1); 2]);
        assert_eq!([of(2, 0), of(2, 1)], [Some(1); 2]);
        assert_eq!([of(2, 2), of(2, 1)], [None, Some(1)]);
        assert_eq!([of(3, 0), of(2, 0), of(4, 0)], [Some(1); 3]);
    }

    /// A scan of all streams for each of these packets takes a hundred times as long as what it takes to accept one.
    #[test]
    fn packets_of_too_many_streams_cost_no_scan() {
        let limit = 30_000;
        let mut reflector = Reflector::new(limit as usize);
        let mut answers = |homes: core::ops::Range<u32>| {
            let start = Instant::now();
            let of = |home| reflected(&mut reflector, &packet(1, home, 0));
            (homes.filter_map(of).count(), start.elapsed())
        };
        let (accepted, accepting) = answers(0..limit);
        let (others, refusing) = answers(limit..2 * limit);
        assert_eq!((accepted, others), (limit as usize, 0));
        assert!(refusing < 20 * accepting, "{refusing:?}, {accepting:?}");
    }
}

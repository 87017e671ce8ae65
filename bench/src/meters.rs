//! Meters of three colours in random order, beside DPDK's.
use crate::report::{Entry, Samples};
use crate::whole::SESSIONS;
use anyhow::{Result, ensure};
use dataplane::{Colour, Meter, MeterSettings, Rate};
use dpdk::peers::{MeterRates, Meters};
use dpdk::{BURST, Eal, Lines, Table, prefetch, prefetch_early, tsc, tsc_hz};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// An algorithm, ours and DPDK's. All meters together get about twice as much as their peak rates, so that each colour is frequent.
struct Law {
    id: &'static str,
    name: &'static str,
    peer_name: &'static str,
    settings: MeterSettings,
    rates: MeterRates,
    /// Cycles a packet that are aimed at.
    most: Option<f64>,
}

const LAWS: [Law; 2] = [
    Law {
        id: "meter",
        name: "meter of RFC 2698, colour-aware, random sessions and sizes",
        peer_name: "rte_meter_trtcm",
        settings: MeterSettings::TwoRate {
            pir: Rate::kbps(500),
            pbs: 20_000,
            cir: Rate::kbps(200),
            cbs: 10_000,
        },
        rates: MeterRates::TrTcm {
            cir: 200 * 125,
            cbs: 10_000,
            pir: 500 * 125,
            pbs: 20_000,
        },
        most: Some(18.0),
    },
    Law {
        id: "meter-srtcm",
        name: "meter of RFC 2697, the same",
        peer_name: "rte_meter_srtcm",
        settings: MeterSettings::SingleRate {
            cir: Rate::kbps(400),
            cbs: 10_000,
            ebs: 10_000,
        },
        rates: MeterRates::SrTcm {
            cir: 400 * 125,
            cbs: 10_000,
            ebs: 10_000,
        },
        most: None,
    },
];

/// Packets between a line that is asked for and the one that is needed.
const AHEAD: usize = 8;
/// Each meter gets so many packets in a round.
const PASSES: usize = 40;

/// A meter and room for what else a session's policy has, in a cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(Meter);

/// Packets in their order: which meters they are for, octets, and colours with which they come.
struct Packets {
    places: Vec<u32>,
    octets: Vec<u32>,
    colours: Vec<u8>,
}

impl Packets {
    /// One for each session.
    fn random() -> Self {
        let mut random = SmallRng::seed_from_u64(7);
        let mut places: Vec<u32> = (0..SESSIONS).collect();
        places.shuffle(&mut random);
        let octets = places.iter().map(|_| random.random_range(40..=1500));
        let octets = octets.collect();
        let colours = places.iter().map(|_| u8::from(random.random_ratio(1, 8)));
        let colours = colours.collect();
        Packets {
            places,
            octets,
            colours,
        }
    }

    /// Cycles a packet of what is done with each burst: places, octets, and colours, which it replaces. Counts the colours.
    fn each_burst(
        &self,
        seen: &mut [u64; 3],
        mut meter: impl FnMut(&[u32], &[u32], &mut [u8; BURST], u64),
    ) -> f64 {
        let mut took = 0;
        let bursts = self.places.chunks_exact(BURST);
        let bursts = bursts.zip(self.octets.chunks_exact(BURST));
        for ((places, octets), incoming) in bursts.zip(self.colours.chunks_exact(BURST)) {
            let mut colours = [0; BURST];
            colours.copy_from_slice(incoming);
            let begin = tsc();
            meter(places, octets, &mut colours, begin);
            took += tsc() - begin;
            colours.iter().for_each(|c| seen[usize::from(*c)] += 1);
        }
        took as f64 / self.places.len() as f64
    }
}

/// Cycles for the colour of a packet, its meter's cache line included.
pub fn measure(eal: &Eal, rounds: usize) -> Result<Vec<Entry>> {
    let packets = Packets::random();
    let laws = LAWS.iter();
    laws.map(|law| law.measure(eal, &packets, rounds)).collect()
}

impl Law {
    fn measure(&self, eal: &Eal, packets: &Packets, rounds: usize) -> Result<Entry> {
        let mut own_lines = Table::new(SESSIONS as usize)?;
        let line = Line(Meter::new(self.settings, tsc_hz(eal)));
        own_lines.resize(SESSIONS as usize, line);
        let mut peers = Meters::new(eal, SESSIONS, self.rates)?;
        let (mut own, mut peer) = (Samples::default(), Samples::default());
        let mut seen = [[0; 3]; 2];
        for _ in 0..rounds {
            let (mut ours, mut theirs) = (Samples::default(), Samples::default());
            for _ in 0..PASSES {
                let cycles = packets.each_burst(&mut seen[0], |places, octets, colours, now| {
                    colour(&mut own_lines, places, octets, colours, now);
                });
                ours.0.push(cycles);
                let cycles = packets.each_burst(&mut seen[1], |places, octets, colours, now| {
                    peers.colour(places, octets, colours, now);
                });
                theirs.0.push(cycles);
            }
            own.0.push(ours.median());
            peer.0.push(theirs.median());
        }
        let is_frequent = |count: &u64| *count > u64::from(SESSIONS);
        let frequent = seen.iter().flatten().all(is_frequent);
        ensure!(frequent, "a colour is missing: {seen:?}");
        let mut entry = Entry::new(self.id, self.name, "cycles", &own);
        entry.sessions = Some(SESSIONS);
        let entry = entry.beside(self.peer_name, &peer, |own, peer| own / peer);
        Ok(match self.most {
            Some(most) => entry.at_most(most),
            None => entry,
        })
    }
}

/// Gives a burst its colours.
fn colour(
    lines: &mut Table<Line>,
    places: &[u32],
    octets: &[u32],
    colours: &mut [u8; BURST],
    now: u64,
) {
    let at = Lines::of(lines);
    places.iter().for_each(|n| prefetch_early(at.at(*n)));
    places[..AHEAD].iter().for_each(|n| prefetch(at.at(*n)));
    let ahead = places[AHEAD..].iter().chain(&places[..AHEAD]);
    let packets = places.iter().zip(octets).zip(colours);
    for (((place, octets), colour), ahead) in packets.zip(ahead) {
        prefetch(at.at(*ahead));
        let incoming = match *colour {
            0 => Colour::Green,
            1 => Colour::Yellow,
            _ => Colour::Red,
        };
        let meter = &mut lines[*place as usize].0;
        *colour = meter.colour(*octets, incoming, now) as u8;
    }
}

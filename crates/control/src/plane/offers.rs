//! PADIs that wait for their answer: for the delay of the access profile, by which subscribers choose one of several gateways, or until the
//! gateway can serve one subscriber more. After a power cut homes send their PADIs at once and repeat them at once: here each has a time of
//! its own.

use super::tunnel::Refused;
use super::{ControlPlane, Now};
use crate::counters::Counter;
use crate::topology::SegmentId;
use config::model::AccessProfile;
use core::time::Duration;
use rand::Rng;
use session::Circuit;
use session::discovery::Answer;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Maximum number of PADIs that wait, and of their octets: most have fewer than 100, and may have 1,484 (RFC 2516 §5.1).
const MOST_PADIS: usize = 65_536;
const MOST_OCTETS: usize = 16 << 20;
/// Time that control packets may wait before no further session begins: its set-up would make the others wait longer.
const MOST_WAITING: Duration = Duration::from_millis(100);
/// Longest time after which a PADI that cannot be answered yet is looked at again.
const SPREAD: Duration = Duration::from_millis(2500);
/// Time after which a home that has not repeated its PADI has given up. Homes repeat it after 3 to 5 s, then each time after twice as long
/// (RFC 2516 §8).
const GIVES_UP: Duration = Duration::from_secs(12);

/// PADIs that wait.
#[derive(Default)]
pub(super) struct Offers {
    /// By the time at which they are looked at, and by their number.
    waiting: BTreeMap<(Duration, u64), Arc<Padi>>,
    /// When the home of each will have given up.
    gives_up: HashMap<Arc<Padi>, Duration>,
    /// Their octets.
    octets: usize,
    /// Number of the next one.
    next: u64,
    /// When a control packet came last, and how long it had waited for its turn.
    waited: (Duration, Duration),
}

/// A PADI. A home repeats it as it was.
#[derive(PartialEq, Eq, Hash)]
struct Padi {
    segment: SegmentId,
    circuit: Circuit,
    payload: Box<[u8]>,
}

impl Offers {
    /// A PADI waits until then. One that waits already goes on waiting.
    fn wait(&mut self, now: Duration, until: Duration, padi: Padi) -> Result<(), Refused> {
        if let Some(gives_up) = self.gives_up.get_mut(&padi) {
            *gives_up = now + GIVES_UP;
            return Ok(());
        }
        let octets = self.octets + padi.payload.len();
        if self.waiting.len() >= MOST_PADIS || octets > MOST_OCTETS {
            return Err(Counter::OffersFull);
        }
        self.octets = octets;
        let padi = Arc::new(padi);
        self.gives_up.insert(padi.clone(), now + GIVES_UP);
        self.put(until, padi);
        Ok(())
    }

    /// A PADI does not wait any more.
    fn forget(&mut self, padi: &Padi) {
        if self.gives_up.remove(padi).is_some() {
            self.octets -= padi.payload.len();
        }
    }

    fn put(&mut self, until: Duration, padi: Arc<Padi>) {
        self.waiting.insert((until, self.next), padi);
        self.next += 1;
    }

    fn pop_due(&mut self, now: Duration) -> Option<Arc<Padi>> {
        let first = self.waiting.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

impl ControlPlane {
    /// How long a control packet has waited that came just now. Those that come next have waited as long.
    pub(super) fn note_wait(&mut self, now: Now, waited: Duration) {
        self.offers.waited = (now.at, waited);
    }

    /// Whether the control plane has too little CPU time for what is under way. Where no packet came for as long as the last one had
    /// waited, none waits.
    fn is_busy(&self, now: Now) -> bool {
        let (at, waited) = self.offers.waited;
        waited > MOST_WAITING && now.at <= at + waited
    }

    /// Answers a PADI with this PADO: now, after the delay of the access profile, or when it can.
    pub(super) fn on_padi(
        &mut self,
        now: Now,
        segment: SegmentId,
        circuit: Circuit,
        payload: &[u8],
        offer: &[u8],
    ) -> Result<(), Refused> {
        let (sessions, most) = (self.sessions.len(), self.configuration.limits.sessions);
        let delay = delay(self.view().access_profile(segment), sessions, most);
        let until = match self.may_offer(now, segment, &circuit, payload) {
            Ok(()) if delay.is_zero() => {
                self.send_offer(segment, &circuit, offer);
                return Ok(());
            }
            Ok(()) => now.at + delay,
            Err(why) if is_momentary(why) => now.at + delay + self.pause(),
            Err(why) => return Err(why),
        };
        let padi = Padi {
            segment,
            circuit,
            payload: payload.into(),
        };
        self.offers.wait(now.at, until, padi)
    }

    /// Whether a PADI can be answered now.
    fn may_offer(
        &mut self,
        now: Now,
        segment: SegmentId,
        circuit: &Circuit,
        payload: &[u8],
    ) -> Result<(), Refused> {
        if self.is_busy(now) {
            return Err(Counter::ControlPlaneBusy);
        }
        self.check_offer(now, segment, circuit, payload)
    }

    /// A time of its own for each PADI that cannot be answered yet.
    fn pause(&mut self) -> Duration {
        self.random.random_range(Duration::ZERO..SPREAD)
    }

    fn send_offer(&mut self, segment: SegmentId, circuit: &Circuit, offer: &[u8]) {
        let port = self.topology.segment(segment).port;
        self.send_by_default(port, circuit, offer);
    }

    /// Answers the PADIs whose time has come. Those that cannot be answered yet wait on, until their homes have given up.
    pub(super) fn send_offers(&mut self, now: Now) {
        while let Some(padi) = self.offers.pop_due(now.at) {
            if let Err(counter) = self.look_at_padi(now, padi) {
                self.counters.count(counter);
            }
        }
    }

    fn look_at_padi(&mut self, now: Now, padi: Arc<Padi>) -> Result<(), Refused> {
        let Padi {
            segment,
            circuit,
            payload,
        } = &*padi;
        let may = match self.topology.has_segment(*segment) {
            true => self.may_offer(now, *segment, circuit, payload),
            false => Err(Counter::UnknownSegment),
        };
        let gives_up = self.offers.gives_up.get(&padi).copied();
        if let Err(why) = may
            && is_momentary(why)
            && gives_up.is_some_and(|at| now.at < at)
        {
            let until = now.at + self.pause();
            self.offers.put(until, padi);
            return Ok(());
        }
        self.offers.forget(&padi);
        may?;
        // a PADO of now, whose cookie has all of its time before it
        let discovery = &self.access(*segment).discovery;
        if let Answer::Offer(offer) = discovery.on_frame(now.at, circuit, payload) {
            self.send_offer(*segment, circuit, &offer);
        }
        Ok(())
    }

    /// Time at which the next PADI is looked at.
    pub(super) fn offer_at(&self) -> Option<Duration> {
        let first = self.offers.waiting.first_key_value();
        first.map(|((at, _), _)| *at)
    }
}

/// Whether a reason for which a PADI is not answered will be over soon.
fn is_momentary(why: Refused) -> bool {
    matches!(why, Counter::ControlPlaneBusy | Counter::AaaCongested)
}

/// Delay of PADO with so many sessions of at most so many.
fn delay(profile: &AccessProfile, sessions: usize, most: u32) -> Duration {
    let empty = u64::from(profile.pado_delay);
    let full = profile.pado_delay_full.map_or(empty, u64::from);
    let (sessions, most) = (sessions as u64, u64::from(most).max(1));
    let load = sessions.min(most);
    Duration::from_millis((empty * (most - load) + full * load) / most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::eth::{MacAddr, Tags};

    #[test]
    fn as_many_padis_and_octets_wait_as_may_and_one_that_is_repeated_once() {
        let padi = |n: u32, octets: usize| {
            let [a, b, c, d] = n.to_be_bytes();
            Padi {
                segment: SegmentId(1),
                circuit: Circuit {
                    logical_port: (*b"access0").into(),
                    tags: Tags::default(),
                    mac: MacAddr([2, 0, a, b, c, d]),
                },
                payload: vec![0; octets].into(),
            }
        };
        let (now, until) = (Duration::ZERO, Duration::from_secs(1));
        let mut offers = Offers::default();
        let most = MOST_PADIS as u32;
        for _ in 0..2 {
            for n in 0..most {
                offers.wait(now, until, padi(n, 60)).unwrap();
            }
        }
        assert_eq!(offers.waiting.len(), MOST_PADIS);
        assert_eq!(
            offers.wait(now, until, padi(most, 60)),
            Err(Counter::OffersFull)
        );
        assert!(offers.pop_due(now).is_none());
        while let Some(padi) = offers.pop_due(until) {
            offers.forget(&padi);
        }
        assert_eq!((offers.octets, offers.gives_up.len()), (0, 0));
        let waits = |n: &u32| offers.wait(now, until, padi(*n, 1484)).is_ok();
        let large = (0..most).take_while(waits).count();
        assert_eq!(large, MOST_OCTETS / 1484);
    }

    #[test]
    fn the_delay_grows_with_the_load() {
        let profile = |pado_delay, pado_delay_full| AccessProfile {
            pado_delay,
            pado_delay_full,
            ..AccessProfile::default()
        };
        let delays = |profile: &AccessProfile| {
            [0, 500, 1000, 2000].map(|n| delay(profile, n, 1000).as_millis())
        };
        assert_eq!(delays(&AccessProfile::default()), [0; 4]);
        assert_eq!(delays(&profile(100, None)), [100; 4]);
        assert_eq!(delays(&profile(100, Some(300))), [100, 200, 300, 300]);
        assert_eq!(delays(&profile(300, Some(100))), [300, 200, 100, 100]);
    }
}

//! Delayed PADOs: where several gateways are on an access network, the delay decides which of them subscribers choose. After a power cut,
//! homes send their PADIs at once and repeat them at once; the delay gives each a time of its own.

use super::tunnel::Refused;
use super::{ControlPlane, Now};
use crate::counters::Counter;
use crate::topology::SegmentId;
use config::model::AccessProfile;
use core::time::Duration;
use rand::Rng;
use session::Circuit;
use std::collections::BTreeMap;

/// Maximum number of delayed PADOs.
const MOST_OFFERS: usize = 32_768;
/// Time that control packets may wait before no further session begins: its set-up would make the others wait longer.
const MOST_WAITING: Duration = Duration::from_millis(100);
/// Longest delay of a PADO while control packets wait for so long. Subscribers repeat a PADI after 3 s at the earliest.
const SPREAD: Duration = Duration::from_millis(2500);

/// Delayed PADOs.
#[derive(Default)]
pub(super) struct Offers {
    /// PADOs by the time at which they are sent, and by their number.
    waiting: BTreeMap<(Duration, u64), Offer>,
    /// Number of the next one.
    next: u64,
}

/// A delayed PADO.
struct Offer {
    segment: SegmentId,
    circuit: Circuit,
    payload: Vec<u8>,
}

impl ControlPlane {
    /// Whether the control plane has too little CPU time for what is under way.
    fn is_busy(&self) -> bool {
        self.waited > MOST_WAITING
    }

    /// Sends a PADO, after the delay of the access profile; later while the control plane is busy.
    pub(super) fn offer(
        &mut self,
        now: Now,
        segment: SegmentId,
        circuit: Circuit,
        payload: Vec<u8>,
    ) -> Result<(), Refused> {
        let (sessions, most) = (self.sessions.len(), self.configuration.limits.sessions);
        let mut delay = delay(self.view().access_profile(segment), sessions, most);
        if self.is_busy() {
            delay += self.random.random_range(Duration::ZERO..SPREAD);
        }
        if delay.is_zero() {
            let port = self.topology.segment(segment).port;
            self.send_by_default(port, &circuit, &payload);
            return Ok(());
        }
        let Offers { waiting, next } = &mut self.offers;
        if waiting.len() >= MOST_OFFERS {
            return Err(Counter::OffersFull);
        }
        let offer = Offer {
            segment,
            circuit,
            payload,
        };
        waiting.insert((now.at + delay, *next), offer);
        *next += 1;
        Ok(())
    }

    /// Sends the PADOs whose time has come, unless the control plane is busy now.
    pub(super) fn send_offers(&mut self, now: Now) {
        while let Some(first) = self.offers.waiting.first_entry()
            && first.key().0 <= now.at
        {
            let Offer {
                segment,
                circuit,
                payload,
            } = first.remove();
            if self.is_busy() {
                self.counters.count(Counter::ControlPlaneBusy);
            } else if self.topology.has_segment(segment) {
                let port = self.topology.segment(segment).port;
                self.send_by_default(port, &circuit, &payload);
            }
        }
    }

    /// Time of the next delayed PADO.
    pub(super) fn offer_at(&self) -> Option<Duration> {
        let first = self.offers.waiting.first_key_value();
        first.map(|((at, _), _)| *at)
    }
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

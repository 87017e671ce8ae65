//! Node `punt`: what leaves the path goes to the control thread, as far as its rate and its queue allow, or is freed;
//! it is counted either way.
//!
//! Drops: punt-policed, session-policed, punt-queue-full, and whatever other nodes named.
use super::{Leave, Part};
use crate::api::*;
use crate::counters::Shared;
use crate::drops::DropReason;
use crate::police::{Bucket, Rate};
use crate::tables::sessions::Sessions;
use dpdk::{Mbuf, Producer};

/// The rates, one for each kind and one for each session.
struct Rates {
    discovery: (Bucket, Rate),
    sessions: (Bucket, Rate),
    core: (Bucket, Rate),
    local: (Bucket, Rate),
    ttl: (Bucket, Rate),
    too_big: (Bucket, Rate),
    per_session: Rate,
}

/// The way to the control thread.
pub(crate) struct Punter {
    rates: Rates,
    queue: Producer,
}

impl Punter {
    pub fn new(limits: &PuntLimits, queue: Producer, hz: u64) -> Self {
        let bucket = |rate| (Bucket::FULL, Rate::new(rate, hz));
        let rates = Rates {
            discovery: bucket(limits.discovery),
            sessions: bucket(limits.sessions),
            core: bucket(limits.core),
            local: bucket(limits.local),
            ttl: bucket(limits.ttl),
            too_big: bucket(limits.too_big),
            per_session: Rate::new(limits.per_session, hz),
        };
        Punter { rates, queue }
    }

    /// Settles what becomes of a packet that left the path on `port`.
    pub fn settle(
        &mut self,
        leave: Leave,
        mbuf: Mbuf,
        port: u16,
        now: u64,
        sessions: &mut Sessions,
        shared: &Shared,
    ) {
        let dropped = match leave {
            Leave::Drop(reason) => Err(reason),
            // the graph has taken care of it
            Leave::Sampled => Err(DropReason::UnsupportedBuffer),
            Leave::Punt(kind, part) => self.punt(kind, part, mbuf, port, now, sessions, shared),
            Leave::Fragmented(fragments) => {
                shared.count_fragments(fragments.into());
                Ok(())
            }
            Leave::Told(kind, part) => {
                // The packet is a drop, whether or not the control thread sees what is left of it.
                let _ = self.punt(kind, part, mbuf, port, now, sessions, shared);
                Err(match kind {
                    PuntKind::TtlExpired(_) => DropReason::TtlExpired,
                    _ => DropReason::TooBig,
                })
            }
        };
        if let Err(reason) = dropped {
            shared.count_drop(reason, 1);
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn punt(
        &mut self,
        kind: PuntKind,
        part: Part,
        mut mbuf: Mbuf,
        port: u16,
        now: u64,
        sessions: &mut Sessions,
        shared: &Shared,
    ) -> Result<(), DropReason> {
        // The session's own rate first, so that one that sends too much does not use up what is there for all.
        if let PuntKind::Session(index) = kind
            && sessions
                .punts(index)
                .is_some_and(|bucket| !bucket.take(now, self.rates.per_session))
        {
            return Err(DropReason::SessionPoliced);
        }
        let (bucket, rate) = match kind {
            PuntKind::Discovery => &mut self.rates.discovery,
            PuntKind::Session(_) => &mut self.rates.sessions,
            PuntKind::Core(_) => &mut self.rates.core,
            PuntKind::Local(_) => &mut self.rates.local,
            PuntKind::TtlExpired(_) => &mut self.rates.ttl,
            PuntKind::TooBig { .. } => &mut self.rates.too_big,
            // these have been counted by their own rate
            PuntKind::SampledUp(_) | PuntKind::SampledDown(_) => return Ok(()),
        };
        if !bucket.take(now, *rate) {
            return Err(DropReason::PuntPoliced);
        }
        mbuf.advance(part.strip as u16);
        mbuf.truncate(part.len);
        mbuf.set_meta(crate::punt::pack(kind, PortIndex(port)));
        self.queue
            .send(mbuf)
            .map_err(|_| DropReason::PuntQueueFull)?;
        shared.count_punt(kind);
        Ok(())
    }

    /// Shows copies of packets to the control thread. Those that find no room are missed.
    #[cold]
    pub fn show(&mut self, copies: &mut Vec<Mbuf>) {
        for copy in copies.drain(..) {
            let _ = self.queue.send(copy);
        }
    }

    /// Does something wait for the control thread?
    pub fn waiting(&self) -> bool {
        !self.queue.is_empty()
    }
}

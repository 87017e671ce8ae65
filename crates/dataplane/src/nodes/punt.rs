//! Node `punt`: what leaves the path goes to the control thread, as far as its rate and its queue allow, or is freed;
//! it is counted either way.
//!
//! Drops: `punt-policed`, `line-policed`, `held-down`, `session-policed`, `punt-queue-full`, and whatever other nodes named.
use super::classify::ETHERNET;
use super::{Exit, Part};
use crate::api::PortIndex;
use crate::counters::{Shared, add};
use crate::drops::DropReason;
use crate::police::{Bucket, Rate};
use crate::protection::{Guard, Offence, Punted, Untrusted};
use crate::punt::{EachKind, PuntKind, PuntLimits};
use crate::tables::sessions::Sessions;
use core::sync::atomic::Ordering::Relaxed;
use dpdk::{HEAD, Mbuf, Producer, Window};
use std::sync::Arc;
use wire::eth::{ARP, IPV4, IPV6, SLOW_PROTOCOLS};

/// The way to the control thread.
pub(crate) struct Punter {
    /// As the control thread has set them.
    pub limits: PuntLimits,
    /// By the kinds' numbers.
    rates: EachKind<(Bucket, Rate)>,
    per_session: Rate,
    guard: Guard,
    queue: Producer,
    /// Half of the packets that the queue takes.
    half: usize,
    hz: u64,
}

impl Punter {
    /// The queue holds up to `size` packets.
    pub fn new(limits: &PuntLimits, queue: Producer, size: u32, hz: u64) -> Self {
        let bucket = |rate| (Bucket::FULL, Rate::new(rate, hz));
        Punter {
            limits: *limits,
            rates: limits.rates().map(bucket),
            per_session: Rate::new(limits.per_session, hz),
            guard: Guard::new(limits, hz),
            queue,
            half: (size as usize / 2).max(1),
            hz,
        }
    }

    /// Changes the rates. The queue stays as it is.
    pub fn set(&mut self, limits: &PuntLimits) {
        self.limits = *limits;
        for ((_, rate), wanted) in self.rates.iter_mut().zip(limits.rates()) {
            *rate = Rate::new(wanted, self.hz);
        }
        self.per_session = Rate::new(limits.per_session, self.hz);
        self.guard.set(limits);
    }

    /// Changes on which VLANs ids do not name lines.
    pub fn set_untrusted(&mut self, vlans: Arc<Untrusted>) {
        self.guard.untrusted = vlans;
    }

    /// Whether ids name lines on a VLAN of a port.
    pub fn trusts_ids(&self, port: PortIndex, vlan: u16) -> bool {
        !self.guard.untrusted.contains(&(port, vlan))
    }

    /// Gives news of those who exceed their rates to `tell`, as long as it takes them.
    pub fn report_offences(
        &mut self,
        now: u64,
        shared: &Shared,
        tell: impl FnMut(Offence) -> bool,
    ) {
        let offenders = &mut self.guard.offenders;
        offenders.report(now, tell);
        shared.unnamed.store(offenders.unnamed, Relaxed);
    }

    /// Settles what becomes of a packet that left the path on `port`. What is dropped comes back, to be freed with others.
    pub fn settle(
        &mut self,
        leave: Exit,
        mbuf: Mbuf,
        port: u16,
        now: u64,
        sessions: &mut Sessions,
        shared: &Shared,
    ) -> Option<Mbuf> {
        let (reason, mbuf) = match leave {
            Exit::Drop(reason) => (reason, Some(mbuf)),
            // the graph has taken care of it
            Exit::Sampled | Exit::Full => (DropReason::UnsupportedBuffer, Some(mbuf)),
            Exit::Punt(kind, part) => {
                match self.punt(kind, part, mbuf, port, now, sessions, shared) {
                    Ok(()) => return None,
                    Err((reason, mbuf)) => (reason, Some(mbuf)),
                }
            }
            Exit::Fragmented(fragments) => {
                shared.count_fragments(fragments.into());
                return Some(mbuf);
            }
            Exit::DropAndNotify(reason, kind, part) => {
                // The packet is a drop, whether or not the control thread sees what is left of it.
                let shown = self.punt(kind, part, mbuf, port, now, sessions, shared);
                (reason, shown.err().map(|(_, mbuf)| mbuf))
            }
        };
        shared.count_drop(reason, 1);
        mbuf
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
    ) -> Result<(), (DropReason, Mbuf)> {
        let from = PortIndex(port);
        let packet = Punted {
            kind,
            part,
            port: from,
            frame: mbuf.data(),
        };
        // The sender's own rates first, so that one that sends too much does not use up what is there for all.
        if let PuntKind::Session(index) | PuntKind::Echo(index) = kind
            && let Some(own) = sessions.punts(index)
        {
            let bucket = match kind {
                PuntKind::Echo(_) => &mut own.echoes,
                _ => &mut own.control,
            };
            if !bucket.take(now, self.per_session) {
                self.guard.note_session(&packet, index, now);
                return Err((DropReason::SessionPoliced, mbuf));
            }
        }
        if let Err(reason) = self.guard.admit(&packet, now) {
            return Err((reason, mbuf));
        }
        let (bucket, rate) = &mut self.rates[kind.number()];
        if !bucket.take(now, *rate) {
            add(&shared.policed[kind.number()], 1);
            return Err((DropReason::PuntPoliced, mbuf));
        }
        // Half of the queue is for those who have a session already: new ones would only wait behind them.
        if kind == PuntKind::Discovery && self.queue.len() >= self.half {
            return Err((DropReason::PuntQueueFull, mbuf));
        }
        mbuf.advance(part.strip as u16);
        mbuf.truncate(part.len);
        mbuf.set_meta(crate::punt::pack(kind, from));
        self.queue
            .send(mbuf)
            .map_err(|mbuf| (DropReason::PuntQueueFull, mbuf))?;
        add(&shared.punts[kind.number()], 1);
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

/// Punts a frame of a core port or subinterface, most of them to the kernel: what is in the window from its Ethernet header at `at` to `end`. The
/// kinds have rates of their own, so that a flood of one does not take down what the others keep up: neighbours, routing,
/// management.
#[cold]
#[inline(never)]
pub(crate) fn for_kernel(w: &Window, at: usize, end: usize, interface: PortIndex) -> Exit {
    // What a frame is too short for, it has not.
    let word = |at: usize| if at + 2 <= end { w.u16(at) } else { 0 };
    let ip = at + ETHERNET;
    let kind = match word(ip - 2) {
        SLOW_PROTOCOLS if at == HEAD => PuntKind::SlowProtocol,
        ARP => PuntKind::Resolution(interface),
        IPV6 if is_neighbour_discovery(word, ip) => PuntKind::Resolution(interface),
        // A length instead of a type (IEEE 802.3 §3.2.6): LLC, which carries IS-IS.
        0..0x600 => PuntKind::Routing(interface),
        IPV4 if is_routing(word, word(ip + 8) as u8, ports_v4(word, ip)) => {
            PuntKind::Routing(interface)
        }
        IPV6 if is_routing(word, (word(ip + 6) >> 8) as u8, Some(ip + 40)) => {
            PuntKind::Routing(interface)
        }
        _ if w.u8(at) & 1 != 0 => PuntKind::Multicast(interface),
        _ => PuntKind::ForUs(interface),
    };
    let part = Part {
        strip: (at - HEAD) as u8,
        ..Part::WHOLE
    };
    Exit::Punt(kind, part)
}

/// ICMPv6 133 to 137 (RFC 4861 §4).
fn is_neighbour_discovery(word: impl Fn(usize) -> u16, ip: usize) -> bool {
    word(ip + 6) >> 8 == 58 && (133..=137).contains(&(word(ip + 40) >> 8))
}

/// Where the ports are, unless it is a later fragment or a first one.
fn ports_v4(word: impl Fn(usize) -> u16, ip: usize) -> Option<usize> {
    let whole = word(ip + 6) & 0x3fff == 0;
    let header = (word(ip) >> 8 & 0xf) as usize * 4;
    whole.then_some(ip + header)
}

/// Is it a packet of a routing protocol?
fn is_routing(word: impl Fn(usize) -> u16, protocol: u8, ports: Option<usize>) -> bool {
    const OSPF: u8 = 89;
    const PIM: u8 = 103;
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    let has =
        |of: &[u16]| ports.is_some_and(|at| of.contains(&word(at)) || of.contains(&word(at + 2)));
    match protocol {
        OSPF | PIM => true,
        // BGP (RFC 4271 §8.2.1), LDP (RFC 5036 §3.10).
        TCP => has(&[179, 646]),
        // BFD (RFC 5881 §4, 5883 §5), LDP, RIP and RIPng.
        UDP => has(&[3784, 3785, 4784, 646, 520, 521]),
        _ => false,
    }
}

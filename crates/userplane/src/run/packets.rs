//! Packets between the worker, the control planes' tunnels and the kernel's devices.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use dataplane::{Inject, NextHop, PortIndex, PuntKind};
use tokio::net::UdpSocket;

use super::{Counters, Now, PORTION, Port, UserPlane};
use crate::cpri::Verdict;
use crate::device::Device;
use crate::engine::FromSubscriber;
use crate::lag::Lag;

/// Packets that one datagram or device may bring for the worker.
const MOST_INJECTS: usize = 128;
/// How long frames for subscribers wait in their socket for the workers. A worker that is only behind has taken what it has by then.
const PATIENCE: Duration = Duration::from_millis(300);

/// Room in the workers' queues for packets.
#[derive(Debug, Default)]
pub(super) struct Room {
    full_since: Option<Duration>,
}

impl Room {
    /// Whether frames for subscribers are read, given that the queues have room for them or not.
    fn takes(&mut self, has_room: bool, now: Duration) -> bool {
        if has_room {
            self.full_since = None;
            return true;
        }
        now - *self.full_since.get_or_insert(now) >= PATIENCE
    }
}

impl UserPlane {
    /// Whether frames for subscribers are read. They stay in their socket while the workers are behind, but not for long: what a worker
    /// that stands still does not take is dropped and counted (`inject-busy`), and the others get theirs.
    pub(super) fn takes_frames(&mut self) -> bool {
        let has_room = self.controller.takes_injects(MOST_INJECTS);
        self.room.takes(has_room, self.clock.now().monotonic)
    }

    /// Handles a GTP-U datagram in the buffer.
    pub(super) fn redirect(&mut self, length: usize, from: SocketAddr) {
        let now = self.clock.now().monotonic;
        for bytes in udp::messages(&self.buffer[..length], wire::gtpu::split) {
            let verdict = self
                .redirection
                .receive(&self.engine, now, from.ip(), bytes);
            match verdict {
                Verdict::Send(port, frame) => {
                    let sent = self.controller.inject(Inject::Port(port, frame));
                    self.counters.inject_busy += u64::from(sent.is_err());
                }
                Verdict::Reply(reply) => {
                    let sent = self.gtpu.try_send_to(&reply, from);
                    self.counters.send_failed += u64::from(sent.is_err());
                }
                Verdict::Done => {}
            }
        }
    }

    /// Reads frames from the kernel. Frames from a core port's TAP are sent unchanged; packets from a TUN are routed.
    pub(super) fn read_device(&mut self, index: usize) {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.read_frames(index, &mut buffer);
        self.buffer = buffer;
    }

    fn read_frames(&mut self, index: usize, buffer: &mut [u8]) {
        for _ in 0..PORTION {
            let Some((device, to)) = self.devices().nth(index) else {
                return;
            };
            let Ok(length) = device.try_read(buffer) else {
                return;
            };
            let frame = &buffer[..length];
            let packet = match to {
                Ok(port) => Inject::Port(port, frame),
                Err(_) if is_multicast(frame) => continue,
                Err(instance) => Inject::Route(instance, frame),
            };
            let sent = self.controller.inject(packet);
            self.counters.inject_busy += u64::from(sent.is_err());
        }
    }

    /// Handles a portion of the worker's events and punts. Returns whether none are left.
    pub(crate) fn drain_worker(&mut self) -> bool {
        let now = self.clock.now();
        for _ in 0..PORTION {
            match self.controller.poll_event() {
                Some(event) => self.worker_event(now, event),
                None => break,
            }
        }
        self.note_offences();
        self.carry_punts(now) < PORTION
    }

    /// Passes a portion of the worker's punts to the control plane or the kernel. Returns their number.
    fn carry_punts(&mut self, now: Now) -> usize {
        let Self {
            controller,
            engine,
            node,
            gtpu,
            redirection,
            frames,
            ports,
            instances,
            counters,
            samples,
            policies,
            responder,
            ..
        } = self;
        let (mut errors, mut replies, mut of_links) = (Vec::new(), Vec::new(), Vec::new());
        let mut pass_on = |wrapped: Option<(IpAddr, Vec<u8>)>, counters: &mut Counters| {
            let Some((to, bytes)) = wrapped else { return };
            let peer = node.peer_info(SocketAddr::new(to, wire::pfcp::PORT));
            let joins = peer.is_some_and(|peer| peer.features.bundles_frames());
            let full = frames.push(SocketAddr::new(to, wire::gtpu::PORT), bytes, joins);
            send_gtpu(gtpu, full, counters);
        };
        let taken = controller.recv_punts(PORTION, |punt| match punt.kind {
            PuntKind::Discovery => {
                let tunnel = engine.discovery_tunnel(punt.port);
                let frame = redirection.wrap_discovery(tunnel, punt.port, punt.frame);
                pass_on(frame, counters);
            }
            PuntKind::Session(index) | PuntKind::Echo(index) => {
                match engine.from_subscriber(index, punt.frame) {
                    FromSubscriber::Answer(reply) => replies.push((punt.port, reply)),
                    FromSubscriber::Taken => {}
                    FromSubscriber::Pass => {
                        let tunnel = engine.control_tunnel(index);
                        let frame = redirection.wrap_control(tunnel, punt.frame);
                        pass_on(frame, counters);
                    }
                }
            }
            PuntKind::SlowProtocol => {
                of_links.push((punt.port, punt.member, punt.frame.to_vec()));
            }
            PuntKind::Redirect(index) => {
                let answer = engine.redirected(index, punt.frame, |entry, packet| {
                    let policy = policies.in_force(entry.policies.up?)?;
                    responder.answer(packet, policy.portal()?)
                });
                replies.extend(answer.map(|reply| (punt.port, reply)));
            }
            PuntKind::Resolution(interface)
            | PuntKind::Routing(interface)
            | PuntKind::Multicast(interface)
            | PuntKind::ForUs(interface) => {
                let mut taps = ports.values().flat_map(Port::interfaces);
                let tap = taps.find(|(index, _)| *index == interface);
                write_device(tap.map(|(_, tap)| tap), punt.frame, counters);
            }
            PuntKind::Local(instance) => {
                let instance = instances.get(&instance);
                write_device(instance.map(|i| &i.tun), punt.frame, counters);
            }
            PuntKind::TtlExpired(index) => {
                let instance = instances.get_mut(&index);
                let error =
                    instance.and_then(|i| i.errors.time_exceeded(now.monotonic, punt.frame));
                errors.extend(error.map(|packet| (index, packet)));
            }
            PuntKind::TooBig(to) | PuntKind::OwnTooBig(to) => {
                let NextHop {
                    instance: index,
                    mtu,
                } = to;
                let own = matches!(punt.kind, PuntKind::OwnTooBig(_));
                let Some(instance) = instances.get_mut(&index) else {
                    return;
                };
                match instance.errors.too_big(now.monotonic, punt.frame, mtu, own) {
                    // The kernel itself sent a packet that is too large, so it gets the error.
                    Some(error) if own => write_device(Some(&instance.tun), &error, counters),
                    error => errors.extend(error.map(|packet| (index, packet))),
                }
            }
            PuntKind::SampledUp(index) => {
                samples.show(index, port_name(ports, punt.port), punt.frame, false);
            }
            PuntKind::SampledDown(index) => {
                samples.show(index, port_name(ports, punt.port), punt.frame, true);
            }
        });
        while let Some(datagram) = frames.pop() {
            send_gtpu(gtpu, Some(datagram), counters);
        }
        let errors = errors.iter();
        let errors = errors.map(|(instance, packet)| Inject::Route(*instance, packet));
        let replies = replies.iter();
        let replies = replies.map(|(port, frame)| Inject::Port(*port, frame));
        for packet in errors.chain(replies) {
            let sent = self.controller.inject(packet);
            self.counters.inject_busy += u64::from(sent.is_err());
        }
        for (port, member, frame) in of_links {
            let mut ports = self.ports.values_mut();
            let port = ports.find(|of| of.index == port);
            if let Some(lag) = port.and_then(|port| port.lag.as_mut()) {
                lag.receive(now.monotonic, member, &frame);
            }
        }
        taken
    }

    /// When [`UserPlane::drive_lags`] has something to do.
    pub(super) fn lags_at(&self) -> Option<Duration> {
        let lags = self.ports.values().filter_map(|port| port.lag.as_ref());
        lags.map(Lag::poll_at).min()
    }

    /// Decides which members of ports are used, and sends what LACP has to say.
    pub(crate) fn drive_lags(&mut self) {
        let now = self.clock.now().monotonic;
        for (name, port) in &mut self.ports {
            let index = port.index;
            let (Some(lag), Ok(device)) = (&mut port.lag, self.controller.device(index)) else {
                continue;
            };
            for (member, frame) in lag.drive(now, name, device) {
                let sent = self
                    .controller
                    .inject(Inject::Member(index, member, &frame));
                self.counters.inject_busy += u64::from(sent.is_err());
            }
        }
    }
}

/// Name of the port with this index.
pub(super) fn port_name(ports: &BTreeMap<String, Port>, index: PortIndex) -> &str {
    let mut ports = ports.iter();
    let found = ports.find(|(_, port)| port.index == index);
    found.map_or("?", |(name, _)| name)
}

/// Whether a packet is for a group. The kernel's group packets on a TUN (RS, MLD, IGMP) are for no subscriber.
fn is_multicast(packet: &[u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) => packet.get(16).is_some_and(|first| *first >= 224),
        Some(6) => packet.get(24).is_some_and(|first| *first == 0xff),
        _ => true,
    }
}

fn send_gtpu(socket: &UdpSocket, datagram: Option<(SocketAddr, Vec<u8>)>, counters: &mut Counters) {
    let Some((to, bytes)) = datagram else { return };
    let sent = socket.try_send_to(&bytes, to);
    counters.send_failed += u64::from(sent.is_err());
}

fn write_device(device: Option<&Device>, frame: &[u8], counters: &mut Counters) {
    let written = device.is_some_and(|device| device.try_write(frame).is_ok());
    counters.device_full += u64::from(!written);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_wait_for_workers_that_are_behind_and_not_for_one_that_stands_still() {
        let mut room = Room::default();
        let at = Duration::from_millis;
        assert!(room.takes(true, at(0)));
        assert!(!room.takes(false, at(10)));
        assert!(!room.takes(false, at(309)));
        assert!(room.takes(false, at(310)));
        assert!(room.takes(false, at(5_000)), "it stands still");
        assert!(room.takes(true, at(5_001)));
        assert!(!room.takes(false, at(5_002)), "it is behind again");
    }

    #[test]
    fn what_no_device_takes_is_counted() {
        let mut counters = Counters::default();
        for _ in 0..2 {
            write_device(None, &[0x45], &mut counters);
        }
        assert_eq!(counters.device_full, 2);
    }
}

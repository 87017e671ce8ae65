//! Control packet redirection (TR-459 CPRi): punted packets go to the control plane in GTP-U; packets of the control plane leave
//! at an access port.

use std::net::IpAddr;
use std::time::Duration;

use dataplane::PortIndex;
use pfcp::bng::Tunnel;
use wire::gtpu;
use wire::nsh;

use crate::bucket::Bucket;
use crate::engine::{Downlink, Engine, NoDownlink};

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that violate GTP-U or CPR-NSH.
    pub malformed: u64,
    /// Packets for tunnels that no session has or had.
    pub unknown_teid: u64,
    /// Packets for tunnels of ended sessions, or of sessions that the control plane has yet to establish again.
    pub stale_teid: u64,
    /// Packets from another address than the session's control plane, and echo requests and Error Indications from no control plane's.
    pub wrong_peer: u64,
    /// Packets for access ports that do not exist.
    pub unknown_port: u64,
    /// Punted packets for which no tunnel exists.
    pub no_tunnel: u64,
    /// Error Indications received: the control plane does not know a tunnel.
    pub error_indications: u64,
    /// Error Indications that were due but exceeded the limit.
    pub indications_limited: u64,
}

/// Error Indications in a second, and at once. They go to a source address that may be forged, and to a peer that sends to many lost
/// tunnels one after the other tells nothing more.
const MOST_INDICATIONS: u32 = 100;

/// What to do with a received datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// Send this frame at this access port.
    Send(PortIndex, &'a [u8]),
    /// Send this answer to the sender.
    Reply(Vec<u8>),
    /// Nothing. An invalid datagram has been counted.
    Done,
}

/// This user plane's end of the tunnels.
#[derive(Clone, Debug)]
pub struct Redirection {
    address: IpAddr,
    /// Access ports with their logical names.
    ports: Vec<(PortIndex, Vec<u8>)>,
    indications: Bucket,
    /// Counters since the start.
    pub counters: Counters,
}

impl Redirection {
    /// Tunnels end at `address`; `ports` are the access ports with their logical names.
    pub fn new(address: IpAddr, ports: Vec<(PortIndex, Vec<u8>)>) -> Self {
        Self {
            address,
            ports,
            indications: Bucket::full(MOST_INDICATIONS, MOST_INDICATIONS),
            counters: Counters::default(),
        }
    }

    /// Replaces the access ports and their names.
    pub fn set_ports(&mut self, ports: Vec<(PortIndex, Vec<u8>)>) {
        self.ports = ports;
    }

    /// Wraps a discovery packet. CPR-NSH names the port, because there is no session yet.
    pub fn wrap_discovery(
        &mut self,
        tunnel: Option<Tunnel>,
        port: PortIndex,
        frame: &[u8],
    ) -> Option<(IpAddr, Vec<u8>)> {
        let name = self
            .ports
            .iter()
            .find(|(index, _)| *index == port)
            .map(|(_, name)| name);
        let (Some(tunnel), Some(logical_port)) = (tunnel, name) else {
            self.counters.no_tunnel += 1;
            return None;
        };
        let mut inner = Vec::with_capacity(frame.len() + logical_port.len() + 16);
        nsh::Packet {
            logical_port,
            frame,
        }
        .emit(&mut inner)
        .ok()?;
        wrap(tunnel, &inner)
    }

    /// Wraps a control packet of a session.
    pub fn wrap_control(
        &mut self,
        tunnel: Option<Tunnel>,
        frame: &[u8],
    ) -> Option<(IpAddr, Vec<u8>)> {
        if tunnel.is_none() {
            self.counters.no_tunnel += 1;
        }
        wrap(tunnel?, frame)
    }

    /// Decides about a datagram received at `now`.
    pub fn receive<'a, T: Copy>(
        &mut self,
        engine: &Engine<T>,
        now: Duration,
        from: IpAddr,
        bytes: &'a [u8],
    ) -> Verdict<'a> {
        match gtpu::Packet::parse(bytes) {
            Ok(gtpu::Packet::Gpdu { teid, payload }) => {
                self.downlink(engine, now, from, teid, payload)
            }
            Ok(gtpu::Packet::EchoRequest { sequence }) if engine.is_peer(from) => {
                reply(gtpu::Packet::EchoResponse { sequence })
            }
            Ok(gtpu::Packet::ErrorIndication { .. }) if engine.is_peer(from) => {
                self.counters.error_indications += 1;
                Verdict::Done
            }
            Ok(gtpu::Packet::EchoRequest { .. } | gtpu::Packet::ErrorIndication { .. }) => {
                self.counters.wrong_peer += 1;
                Verdict::Done
            }
            Ok(_) => Verdict::Done,
            Err(_) => {
                self.counters.malformed += 1;
                Verdict::Done
            }
        }
    }

    fn downlink<'a, T: Copy>(
        &mut self,
        engine: &Engine<T>,
        now: Duration,
        from: IpAddr,
        teid: u32,
        payload: &'a [u8],
    ) -> Verdict<'a> {
        match engine.downlink(now, teid, from) {
            Ok(Downlink::Session(_, port)) => Verdict::Send(port, payload),
            Ok(Downlink::Default) => {
                let Ok(packet) = nsh::Packet::parse(payload) else {
                    self.counters.malformed += 1;
                    return Verdict::Done;
                };
                let port = self
                    .ports
                    .iter()
                    .find(|(_, name)| name == packet.logical_port);
                match port {
                    Some((port, _)) => Verdict::Send(*port, packet.frame),
                    None => {
                        self.counters.unknown_port += 1;
                        Verdict::Done
                    }
                }
            }
            Err(NoDownlink::Unknown) => {
                self.counters.unknown_teid += 1;
                self.indicate(engine, now, from, teid)
            }
            Err(NoDownlink::Stale) => {
                self.counters.stale_teid += 1;
                self.indicate(engine, now, from, teid)
            }
            Err(NoDownlink::WrongPeer) => {
                self.counters.wrong_peer += 1;
                Verdict::Done
            }
        }
    }

    /// Error Indication for an unknown tunnel (TS 29.281 §7.3.1). Only our control planes get one, so that a stranger's address draws
    /// no answer, and only so many, in case it is forged.
    fn indicate<'a, T: Copy>(
        &mut self,
        engine: &Engine<T>,
        now: Duration,
        from: IpAddr,
        teid: u32,
    ) -> Verdict<'a> {
        if !engine.is_peer(from) {
            return Verdict::Done;
        }
        if !self.indications.take(now) {
            self.counters.indications_limited += 1;
            return Verdict::Done;
        }
        reply(gtpu::Packet::ErrorIndication {
            teid,
            peer: self.address,
        })
    }
}

fn wrap(tunnel: Tunnel, payload: &[u8]) -> Option<(IpAddr, Vec<u8>)> {
    let mut out = Vec::with_capacity(payload.len() + 8);
    gtpu::emit_gpdu(tunnel.teid, payload, &mut out).ok()?;
    Some((tunnel.address, out))
}

fn reply<'a>(packet: gtpu::Packet<'_>) -> Verdict<'a> {
    let mut out = Vec::new();
    match packet.emit(&mut out) {
        Ok(()) => Verdict::Reply(out),
        Err(_) => Verdict::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Config, Now};
    use pfcp::bng::DefaultSpec;
    use wire::pfcp::{FSeid, NodeId};

    const ACCESS: PortIndex = PortIndex(4);
    const TEID: u32 = 7;
    /// A time at which the control plane has established all of its sessions again.
    const LATER: Duration = Duration::from_secs(60);

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// A user plane with one port and a default session of the control plane 192.0.2.1.
    fn bench() -> (Redirection, Engine<u32>) {
        let (own, peer) = (address("192.0.2.2"), address("192.0.2.1"));
        let node_id = NodeId::Fqdn("cp1".into());
        let mut engine = Engine::new(Config::new(node_id.clone(), own));
        let cp = (peer, wire::pfcp::PORT).into();
        engine.peer_up(Now::default(), cp);
        let spec = DefaultSpec {
            node_id,
            cp_f_seid: FSeid::new(1, peer),
            logical_port: None,
            uplink: Tunnel {
                teid: 9,
                address: peer,
            },
            downlink: Some(Tunnel {
                teid: TEID,
                address: own,
            }),
            nets: vec![],
        };
        engine.request(Default::default(), 1, cp, 0, spec.establish().0.into());
        (
            Redirection::new(own, vec![(ACCESS, b"access0".to_vec())]),
            engine,
        )
    }

    fn gpdu(teid: u32, logical_port: &[u8], frame: &[u8]) -> Vec<u8> {
        let (mut inner, mut out) = (Vec::new(), Vec::new());
        nsh::Packet {
            logical_port,
            frame,
        }
        .emit(&mut inner)
        .unwrap();
        gtpu::emit_gpdu(teid, &inner, &mut out).unwrap();
        out
    }

    #[test]
    fn discovery_names_its_port_and_the_answer_finds_it() {
        let (mut redirection, engine) = bench();
        let tunnel = engine.discovery_tunnel(ACCESS);
        let (to, bytes) = redirection
            .wrap_discovery(tunnel, ACCESS, b"frame")
            .unwrap();
        assert_eq!(
            (to, bytes),
            (address("192.0.2.1"), gpdu(9, b"access0", b"frame"))
        );
        let answer = gpdu(TEID, b"access0", b"answer");
        let verdict = redirection.receive(&engine, LATER, to, &answer);
        assert_eq!(verdict, Verdict::Send(ACCESS, b"answer"));
        assert_eq!(redirection.counters, Counters::default());
    }

    #[test]
    fn what_is_wrong_is_counted_and_dropped() {
        let (mut redirection, engine) = bench();
        let (cp, unknown_peer) = (address("192.0.2.1"), address("192.0.2.66"));
        let mut done = |from, bytes: &[u8]| {
            assert_eq!(
                redirection.receive(&engine, LATER, from, bytes),
                Verdict::Done
            );
            redirection.counters
        };
        assert_eq!(done(cp, b"?").malformed, 1);
        let mut plain = Vec::new();
        gtpu::emit_gpdu(TEID, b"no NSH", &mut plain).unwrap();
        assert_eq!(done(cp, &plain).malformed, 2);
        assert_eq!(done(cp, &gpdu(TEID, b"access9", b"frame")).unknown_port, 1);
        assert_eq!(
            done(unknown_peer, &gpdu(TEID, b"access0", b"frame")).wrong_peer,
            1
        );
        // Unknown peers learn nothing about tunnels.
        assert_eq!(
            done(unknown_peer, &gpdu(99, b"access0", b"frame")).unknown_teid,
            1
        );
        assert_eq!(redirection.wrap_discovery(None, ACCESS, b"frame"), None);
        assert_eq!(redirection.wrap_control(None, b"frame"), None);
        assert_eq!(redirection.counters.no_tunnel, 2);
    }

    #[test]
    fn echoes_are_answered_and_unknown_tunnels_indicated() {
        let (mut redirection, engine) = bench();
        let cp = address("192.0.2.1");
        let mut echo = Vec::new();
        gtpu::Packet::EchoRequest { sequence: 5 }
            .emit(&mut echo)
            .unwrap();
        let Verdict::Reply(reply) = redirection.receive(&engine, LATER, cp, &echo) else {
            panic!()
        };
        assert_eq!(
            gtpu::Packet::parse(&reply),
            Ok(gtpu::Packet::EchoResponse { sequence: 5 })
        );
        let stray = gpdu(99, b"access0", b"frame");
        let Verdict::Reply(reply) = redirection.receive(&engine, LATER, cp, &stray) else {
            panic!()
        };
        let peer = address("192.0.2.2");
        assert_eq!(
            gtpu::Packet::parse(&reply),
            Ok(gtpu::Packet::ErrorIndication { teid: 99, peer })
        );
    }

    /// Somebody tries one TEID after the other, by its own address and by the control plane's.
    #[test]
    fn guesses_are_dropped_and_draw_few_answers() {
        let (mut redirection, engine) = bench();
        let (cp, stranger) = (address("192.0.2.1"), address("192.0.2.66"));
        let mut answers = 0;
        for n in 0..10_000u32 {
            let guess = gpdu(1000 + n, b"access0", b"frame");
            let now = LATER + Duration::from_micros(n.into()) * 199;
            for from in [stranger, cp] {
                match redirection.receive(&engine, now, from, &guess) {
                    Verdict::Done => {}
                    Verdict::Reply(_) => answers += 1,
                    Verdict::Send(..) => panic!("TEID {n} is nobody's"),
                }
            }
        }
        // at once, and in 1.99 seconds
        assert!((2 * MOST_INDICATIONS..3 * MOST_INDICATIONS).contains(&answers));
        let counters = redirection.counters;
        assert_eq!(counters.unknown_teid, 20_000);
        assert_eq!(counters.indications_limited, 10_000 - u64::from(answers));
    }

    #[test]
    fn a_stranger_s_echo_is_not_answered() {
        let (mut redirection, engine) = bench();
        let (stranger, peer) = (address("192.0.2.66"), address("192.0.2.1"));
        for packet in [
            gtpu::Packet::EchoRequest { sequence: 5 },
            gtpu::Packet::ErrorIndication { teid: TEID, peer },
        ] {
            let mut bytes = Vec::new();
            packet.emit(&mut bytes).unwrap();
            let verdict = redirection.receive(&engine, LATER, stranger, &bytes);
            assert_eq!(verdict, Verdict::Done);
        }
        assert_eq!(redirection.counters.wrong_peer, 2);
        assert_eq!(redirection.counters.error_indications, 0);
    }

    #[test]
    fn what_restarts_and_ends_explain_is_counted_apart() {
        let (mut redirection, mut engine) = bench();
        let (cp, unknown_peer) = (address("192.0.2.1"), address("192.0.2.66"));
        let mut counted = |engine: &Engine<u32>, at: u64, from, teid| {
            let bytes = gpdu(teid, b"access0", b"frame");
            redirection.receive(engine, Duration::from_secs(at), from, &bytes);
            let Counters {
                unknown_teid,
                stale_teid,
                ..
            } = std::mem::take(&mut redirection.counters);
            (unknown_teid, stale_teid)
        };
        assert_eq!(counted(&engine, 59, cp, 99), (0, 1), "it is not told yet");
        assert_eq!(counted(&engine, 59, unknown_peer, 99), (1, 0));
        assert_eq!(counted(&engine, 60, cp, 99), (1, 0));
        engine.forget_peer((cp, wire::pfcp::PORT).into());
        engine.peer_up(Now::default(), (cp, wire::pfcp::PORT).into());
        assert_eq!(counted(&engine, 60, cp, TEID), (0, 1), "it has ended");
        assert_eq!(counted(&engine, 60, cp, 99), (1, 0));

        let mut config = Config::new(NodeId::Fqdn("up1".into()), address("192.0.2.2"));
        config.control_planes = vec![cp];
        let engine = Engine::new(config);
        assert_eq!(counted(&engine, 60, cp, 99), (0, 1), "not associated yet");
        assert_eq!(counted(&engine, 60, unknown_peer, 99), (1, 0));
    }
}

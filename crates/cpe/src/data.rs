//! IP packets of a home: its own datagrams, and the pings that it answers.

use crate::home::{Datagram, Home, Received};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use wire::dhcpv6::CLIENT_PORT;
use wire::eth::{self, Header};
use wire::icmp::{self, Message};
use wire::{ipv4, ipv6, nd, ppp, pppoe, udp};

impl Home {
    /// The largest IP packet that it may send.
    pub fn mtu(&self) -> u16 {
        self.link.terms.peer_mru
    }

    /// The Ethernet frame of a UDP datagram from the home's address, or from a host on its own network if a prefix is delegated;
    /// `None` while it has none of that family.
    pub fn datagram(
        &self,
        to: IpAddr,
        source_port: u16,
        destination_port: u16,
        payload: &[u8],
    ) -> Option<Vec<u8>> {
        let datagram = udp::Datagram {
            source_port,
            destination_port,
            payload,
        };
        let mut packet = Vec::with_capacity(payload.len() + 48);
        let protocol = match to {
            IpAddr::V4(to) => {
                let from = self.ipv4()?;
                let mut segment = Vec::with_capacity(payload.len() + 8);
                datagram.emit_v4(from, to, &mut segment);
                let header = ipv4::Header {
                    dont_fragment: true,
                    ..ipv4::Header::new(ipv4::UDP, from, to)
                };
                ipv4::Packet {
                    header,
                    options: &[],
                    payload: &segment,
                }
                .emit(&mut packet);
                ppp::IPV4
            }
            IpAddr::V6(to) => {
                datagram.emit_packet_v6(self.source_v6()?, to, &mut packet);
                ppp::IPV6
            }
        };
        let mut frame = Vec::with_capacity(packet.len() + 30);
        self.frame(protocol, &packet, &mut frame);
        Some(frame)
    }

    /// The address that the home's datagrams come from: of a host on its own network if a prefix is delegated, or else its own.
    pub fn source_v6(&self) -> Option<Ipv6Addr> {
        let network = self.delegated().first();
        let host = network.map(|net| Ipv6Addr::from_bits(net.network().to_bits() | 1));
        host.or(self.ipv6())
    }

    fn frame(&self, protocol: u16, packet: &[u8], out: &mut Vec<u8>) {
        let header = Header {
            destination: self.concentrator,
            source: self.config.mac,
            tags: self.config.tags,
            ethertype: eth::PPPOE_SESSION,
        };
        header.emit(out);
        let mut payload = Vec::with_capacity(packet.len() + 2);
        ppp::Frame {
            protocol,
            payload: packet,
        }
        .emit(&mut payload);
        pppoe::Packet {
            code: pppoe::SESSION,
            session_id: self.session_id,
            payload: &payload,
        }
        .emit(out);
    }

    pub(crate) fn send_packet(&mut self, protocol: u16, packet: &[u8]) {
        let mut payload = Vec::with_capacity(packet.len() + 2);
        ppp::Frame {
            protocol,
            payload: packet,
        }
        .emit(&mut payload);
        self.send_ppp(&payload);
    }

    pub(crate) fn handle_ipv4<'f>(&mut self, bytes: &'f [u8]) -> Received<'f> {
        if !self.ipv4.is_open() {
            return Received::Quiet;
        }
        let Ok(packet) = ipv4::Packet::parse(bytes) else {
            return Received::Stray("not an IPv4 packet");
        };
        let (from, to) = (packet.header.source, packet.header.destination);
        if self.ipv4() != Some(to) {
            return Received::Stray("an IPv4 packet for another address");
        }
        match packet.header.protocol {
            ipv4::UDP => match udp::Datagram::parse_v4(packet.payload, from, to) {
                Ok(datagram) => received(from.into(), datagram),
                Err(_) => Received::Stray("a wrong UDP checksum or length"),
            },
            ipv4::ICMP => {
                if let Ok(Message {
                    kind: icmp::V4_ECHO_REQUEST,
                    rest,
                    payload,
                    ..
                }) = Message::parse_v4(packet.payload)
                {
                    self.answer_ping_v4(
                        to,
                        from,
                        Message {
                            kind: icmp::V4_ECHO_REPLY,
                            code: 0,
                            rest,
                            payload,
                        },
                    );
                }
                Received::Quiet
            }
            _ => Received::Quiet,
        }
    }

    fn answer_ping_v4(&mut self, from: Ipv4Addr, to: Ipv4Addr, reply: Message) {
        let (mut message, mut packet) = (Vec::new(), Vec::new());
        reply.emit_v4(&mut message);
        let header = ipv4::Header::new(ipv4::ICMP, from, to);
        ipv4::Packet {
            header,
            options: &[],
            payload: &message,
        }
        .emit(&mut packet);
        self.send_packet(ppp::IPV4, &packet);
    }

    pub(crate) fn handle_ipv6<'f>(&mut self, now: Duration, bytes: &'f [u8]) -> Received<'f> {
        if !self.ipv6.is_open() {
            // Our peer may be a lost Ack ahead of us; what is too early is discarded in silence (RFC 5072 §2).
            return Received::Quiet;
        }
        let Ok(packet) = ipv6::Packet::parse(bytes) else {
            return Received::Stray("not an IPv6 packet");
        };
        let (from, to) = (packet.header.source, packet.header.destination);
        let discovery = nd::ROUTER_SOLICITATION..=nd::NEIGHBOR_ADVERTISEMENT;
        match packet.header.next_header {
            ipv6::ICMPV6
                if packet
                    .payload
                    .first()
                    .is_some_and(|kind| discovery.contains(kind)) =>
            {
                match nd::Packet::parse(bytes) {
                    Ok(message) => self.handle_nd(now, message),
                    Err(_) => return Received::Stray("a wrong ND packet"),
                }
                Received::Quiet
            }
            // Other multicast of the link is not for us.
            _ if to.is_multicast() => Received::Quiet,
            _ if self.former_link_local == Some(to) => Received::Quiet,
            _ if !self.has_address(to) => Received::Stray("an IPv6 packet for another address"),
            ipv6::UDP => match udp::Datagram::parse_v6(packet.payload, from, to) {
                Ok(datagram) if to == self.link_local() => match datagram.destination_port {
                    CLIENT_PORT => self.handle_dhcpv6(now, datagram.payload),
                    _ => Received::Quiet,
                },
                Ok(datagram) => received(from.into(), datagram),
                Err(_) => Received::Stray("a wrong UDP checksum or length"),
            },
            ipv6::ICMPV6 => {
                if let Ok(Message {
                    kind: icmp::V6_ECHO_REQUEST,
                    rest,
                    payload,
                    ..
                }) = Message::parse_v6(packet.payload, from, to)
                {
                    self.answer_ping_v6(
                        to,
                        from,
                        Message {
                            kind: icmp::V6_ECHO_REPLY,
                            code: 0,
                            rest,
                            payload,
                        },
                    );
                }
                Received::Quiet
            }
            _ => Received::Quiet,
        }
    }

    /// Its link-local address, that of the prefix of the link, or one of its leases: it stands for its own network, too.
    fn has_address(&self, address: Ipv6Addr) -> bool {
        address == self.link_local() || Some(address) == self.slaac || self.leases.cover(address)
    }

    fn answer_ping_v6(&mut self, from: Ipv6Addr, to: Ipv6Addr, reply: Message) {
        let (mut message, mut packet) = (Vec::new(), Vec::new());
        reply.emit_v6(from, to, &mut message);
        ipv6::Packet {
            header: ipv6::Header::new(ipv6::ICMPV6, from, to),
            payload: &message,
        }
        .emit(&mut packet);
        self.send_packet(ppp::IPV6, &packet);
    }
}

fn received(source: IpAddr, datagram: udp::Datagram<'_>) -> Received<'_> {
    let udp::Datagram {
        source_port,
        destination_port,
        payload,
    } = datagram;
    Received::Datagram(Datagram {
        source,
        source_port,
        destination_port,
        payload,
    })
}

//! Frames as a cheat would make them, octet by octet and without the codecs under test.

use anyhow::{Context, Result};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Where a frame claims to come from.
#[derive(Clone, Debug)]
pub struct Line {
    /// The gateway's MAC address.
    pub gateway: [u8; 6],
    /// The sender's MAC address.
    pub mac: [u8; 6],
    /// Outer and inner VLAN id.
    pub tags: [u16; 2],
    /// The PPPoE session id.
    pub session: u16,
}

/// The octets of a MAC address.
pub fn mac(text: &str) -> Result<[u8; 6]> {
    let octets: Option<Vec<u8>> = text
        .split(':')
        .map(|part| u8::from_str_radix(part, 16).ok())
        .collect();
    octets
        .and_then(|octets| octets.try_into().ok())
        .with_context(|| format!("{text} is not a MAC address"))
}

impl Line {
    /// UDP over IPv4 in PPPoE.
    pub fn udp4(&self, from: Ipv4Addr, to: Ipv4Addr, port: u16, text: &str) -> Vec<u8> {
        let udp = udp(&[&from.octets()[..], &to.octets()].concat(), port, text);
        let mut ip = vec![0x45, 0];
        ip.extend((20 + udp.len() as u16).to_be_bytes());
        ip.extend([0, 1, 0, 0, 64, 17, 0, 0]);
        ip.extend(from.octets());
        ip.extend(to.octets());
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        ip.extend(udp);
        self.frame(0x0021, &ip)
    }

    /// UDP over IPv6 in PPPoE.
    pub fn udp6(&self, from: Ipv6Addr, to: Ipv6Addr, port: u16, text: &str) -> Vec<u8> {
        let udp = udp(&[&from.octets()[..], &to.octets()].concat(), port, text);
        let mut ip = vec![0x60, 0, 0, 0];
        ip.extend((udp.len() as u16).to_be_bytes());
        ip.extend([17, 64]);
        ip.extend(from.octets());
        ip.extend(to.octets());
        ip.extend(udp);
        self.frame(0x0057, &ip)
    }

    /// LCP that nobody answers (Discard-Request, RFC 1661 section 5.9).
    pub fn lcp_discard(&self) -> Vec<u8> {
        self.frame(0xc021, &[11, 1, 0, 8, 0, 0, 0, 0])
    }

    /// Is there a router (RFC 4861 section 4.1)?
    pub fn router_solicitation(&self) -> Vec<u8> {
        let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x66);
        let all_routers = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
        let packet = icmp6(link_local, all_routers, &[133, 0, 0, 0, 0, 0, 0, 0]);
        self.frame(0x0057, &packet)
    }

    /// Ethernet, two tags, PPPoE session, PPP.
    fn frame(&self, protocol: u16, packet: &[u8]) -> Vec<u8> {
        let mut frame = [self.gateway, self.mac].concat();
        for tag in self.tags {
            frame.extend([0x81, 0x00]);
            frame.extend(tag.to_be_bytes());
        }
        frame.extend([0x88, 0x64, 0x11, 0]);
        frame.extend(self.session.to_be_bytes());
        frame.extend((packet.len() as u16 + 2).to_be_bytes());
        frame.extend(protocol.to_be_bytes());
        frame.extend(packet);
        frame
    }
}

/// The MAC address that a frame comes from.
pub fn source(frame: &[u8]) -> Result<[u8; 6]> {
    let source = frame.get(6..12).context("the frame is too short")?;
    Ok(source.try_into()?)
}

/// A home asks who is there (PADI, RFC 2516 section 5.1), for any service.
pub fn padi(mac: [u8; 6], tags: &[u16]) -> Vec<u8> {
    let mut frame = [[0xff; 6], mac].concat();
    for tag in tags {
        frame.extend([0x81, 0x00]);
        frame.extend(tag.to_be_bytes());
    }
    frame.extend([0x88, 0x63, 0x11, 0x09, 0, 0, 0, 4, 0x01, 0x01, 0, 0]);
    frame
}

/// Who has an address (ARP, RFC 826)?
pub fn arp_request(mac: [u8; 6], from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let mut frame = [[0xff; 6], mac].concat();
    frame.extend([0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1]);
    frame.extend(mac);
    frame.extend(from.octets());
    frame.extend([0; 6]);
    frame.extend(to.octets());
    frame
}

/// An ICMP echo request (RFC 792) with this sequence number, without tags.
pub fn icmp_echo(macs: [[u8; 6]; 2], from: Ipv4Addr, to: Ipv4Addr, number: u16) -> Vec<u8> {
    let mut echo = vec![8, 0, 0, 0, 0, 7];
    echo.extend(number.to_be_bytes());
    let sum = checksum(&echo);
    echo[2..4].copy_from_slice(&sum.to_be_bytes());
    ipv4(macs, from, to, 1, &echo)
}

/// Who has an IPv6 address (RFC 4861 section 4.3)? Sent to the MAC address of who is asked.
pub fn neighbour_solicitation(macs: [[u8; 6]; 2], from: Ipv6Addr, of: Ipv6Addr) -> Vec<u8> {
    let mut asked = vec![135, 0, 0, 0, 0, 0, 0, 0];
    asked.extend(of.octets());
    asked.extend([1, 1]);
    asked.extend(macs[1]);
    ipv6(macs, &icmp6(from, of, &asked))
}

/// An ICMPv6 echo request (RFC 4443 section 4.1), without tags.
pub fn icmp6_echo(macs: [[u8; 6]; 2], from: Ipv6Addr, to: Ipv6Addr) -> Vec<u8> {
    ipv6(macs, &icmp6(from, to, &[128, 0, 0, 0, 0, 7, 0, 1]))
}

/// The first segment of a TCP connection (RFC 9293) from this port, without tags.
pub fn tcp_syn(macs: [[u8; 6]; 2], from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Vec<u8> {
    let mut segment = [from.1.to_be_bytes(), to.1.to_be_bytes()].concat();
    segment.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0]);
    let addresses = [from.0.octets(), to.0.octets()].concat();
    let pseudo = [&addresses[..], &[0, 6, 0, segment.len() as u8], &segment].concat();
    let sum = checksum(&pseudo);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    ipv4(macs, from.0, to.0, 6, &segment)
}

/// An IPv6 packet with this ICMPv6 message, whose checksum is 0, from a neighbour.
fn icmp6(from: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> Vec<u8> {
    let addresses = [from.octets(), to.octets()].concat();
    let length = message.len() as u8;
    let pseudo = [&addresses[..], &[0, 0, 0, length, 0, 0, 0, 58], message].concat();
    let mut message = message.to_vec();
    message[2..4].copy_from_slice(&checksum(&pseudo).to_be_bytes());
    [
        &[0x60, 0, 0, 0, 0, length, 58, 255],
        &addresses[..],
        &message,
    ]
    .concat()
}

/// A frame from the second of two MAC addresses to the first.
fn ipv6([to_mac, from_mac]: [[u8; 6]; 2], packet: &[u8]) -> Vec<u8> {
    [&to_mac[..], &from_mac, &[0x86, 0xdd], packet].concat()
}

/// A packet from the second of two MAC addresses to the first.
fn ipv4(
    [to_mac, from_mac]: [[u8; 6]; 2],
    from: Ipv4Addr,
    to: Ipv4Addr,
    protocol: u8,
    payload: &[u8],
) -> Vec<u8> {
    let mut ip = vec![0x45, 0];
    ip.extend((20 + payload.len() as u16).to_be_bytes());
    ip.extend([0, 1, 0, 0, 64, protocol, 0, 0]);
    ip.extend(from.octets());
    ip.extend(to.octets());
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    [&to_mac[..], &from_mac, &[0x08, 0x00], &ip, payload].concat()
}

/// The same frame, of an IPv4 packet without options, with an option of a multiple of four octets.
pub fn with_option(frame: &[u8], option: &[u8]) -> Vec<u8> {
    let (header, behind) = frame.split_at(34);
    let mut frame = [header, option, behind].concat();
    frame[14] += (option.len() / 4) as u8;
    let total = u16::from_be_bytes([frame[16], frame[17]]) + option.len() as u16;
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    frame[24..26].fill(0);
    let sum = checksum(&frame[14..34 + option.len()]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// What the sender of an offer to this home calls itself (PADO, RFC 2516 section 5.2); of another frame nothing.
pub fn ac_name(frame: &[u8], mac: [u8; 6]) -> Option<String> {
    let offer = [0x88, 0x63, 0x11, 0x07];
    let at = frame.windows(4).position(|part| part == offer)?;
    let mut tags = frame.get(at + 8..).filter(|_| frame.starts_with(&mac))?;
    loop {
        let [kind @ .., high, low] = tags.first_chunk::<4>()?;
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let value = tags.get(4..4 + length)?;
        if *kind == [0x01, 0x02] {
            return String::from_utf8(value.into()).ok();
        }
        tags = &tags[4 + length..];
    }
}

fn udp(addresses: &[u8], port: u16, text: &str) -> Vec<u8> {
    let length = 8 + text.len() as u16;
    let mut datagram = Vec::new();
    datagram.extend(port.to_be_bytes());
    datagram.extend(port.to_be_bytes());
    datagram.extend(length.to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(text.as_bytes());
    let pseudo = [addresses, &length.to_be_bytes(), &[0, 17], &datagram].concat();
    let sum = checksum(&pseudo);
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    datagram
}

/// RFC 1071.
fn checksum(octets: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    let mut sum: u32 = octets.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_rfc_1071_and_the_layout_of_a_frame() {
        assert_eq!(
            checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            !0xddf2
        );
        let line = Line {
            gateway: [2; 6],
            mac: mac("02:00:00:00:00:07").unwrap(),
            tags: [100, 7],
            session: 9,
        };
        let frame = line.udp4(
            Ipv4Addr::new(100, 64, 0, 2),
            Ipv4Addr::new(198, 51, 100, 2),
            9,
            "text",
        );
        assert_eq!(frame[12..22], [0x81, 0, 0, 100, 0x81, 0, 0, 7, 0x88, 0x64]);
        assert_eq!(frame.len(), 22 + 6 + 2 + 20 + 8 + 4);
        assert_eq!(checksum(&frame[30..50]), 0);
        assert!(mac("02:00").is_err());
    }

    #[test]
    fn an_offer_is_told_from_a_question_and_read() {
        let home = [2, 0, 0, 0, 0, 7];
        let question = padi(home, &[100, 7]);
        assert_eq!(question[20..26], [0x88, 0x63, 0x11, 0x09, 0, 0]);
        assert_eq!(ac_name(&question, home), None);
        let mut offer = [home, [2; 6]].concat();
        offer.extend([0x88, 0x63, 0x11, 0x07, 0, 0, 0, 13, 0x01, 0x01, 0, 0]);
        offer.extend([0x01, 0x02, 0, 5]);
        offer.extend(b"bras1");
        assert_eq!(ac_name(&offer, home).as_deref(), Some("bras1"));
        assert_eq!(ac_name(&offer, [3; 6]), None);
    }
}

//! Secrets are taken out of what is shown: passwords, and the answers to challenges, from which a password can be guessed.
//! Whatever cannot be read as it should be is not shown at all: it may be a secret in another place.

use wire::dhcpv6::{CLIENT_PORT, Opt, SERVER_PORT};
use wire::eth::{IPV4, IPV6, PPPOE_DISCOVERY, PPPOE_SESSION, TPID_8021AD, TPID_8021Q};
use wire::{ipv6, lcp, ppp, pppoe};

/// What stands for each octet of a secret.
const HIDDEN: u8 = b'*';
/// Octets of code, identifier and length (RFC 1661 §5).
const CONTROL: usize = 4;

/// PAP's Authenticate-Request, Ack and Nak (RFC 1334 §2.2).
const PAP_REQUEST: u8 = 1;
const PAP_ANSWERS: std::ops::RangeInclusive<u8> = 2..=3;
/// CHAP's Challenge, Response, and the results (RFC 1994 §4).
const CHAP_RESPONSE: u8 = 2;
const CHAP_SUCCESS: u8 = 3;
const CHAP_OTHERS: [u8; 2] = [1, 4];
/// What comes before the proof in a Success of MS-CHAPv2, and how many digits the proof has (RFC 2759 §5).
const PROOF_FOLLOWS: &[u8] = b"S=";
const PROOF_DIGITS: usize = 40;

/// Where an IPv6 header has its next header, and how long the headers of IPv6 and UDP are, and those of DHCPv6's message and
/// options. What an Authentication option has in front of its key (RFC 8415 §21.11).
const IPV6_NEXT_HEADER: usize = 6;
const IPV6_LEN: usize = 40;
const UDP_LEN: usize = 8;
const OPTION_HEADER: usize = 4;
const AUTH_FIXED: usize = 11;

/// RADIUS: User-Password, CHAP-Password (RFC 2865), Tunnel-Password (RFC 2868), EAP-Message and Message-Authenticator
/// (RFC 3579). The last one is made with the shared secret, which can be guessed from it if it is weak.
const SECRETS: [u8; 5] = [2, 3, 69, 79, 80];
/// So can it be from the authenticators of packets other than these, in which they are random: Access-Request (RFC 2865
/// §3) and Status-Server (RFC 5997 §3).
const RANDOM_AUTHENTICATORS: [u8; 2] = [1, 12];
/// Where the authenticator is, up to the header's end.
const AUTHENTICATOR: usize = 4;
/// Vendor-Specific, and the vendor whose attributes are MS-CHAP's (RFC 2548).
const VENDOR_SPECIFIC: u8 = 26;
const MICROSOFT: [u8; 4] = [0, 0, 1, 0x37];

fn hide(octets: &mut [u8]) {
    octets.fill(HIDDEN);
}

/// The octets from `at` on, or none.
fn from(octets: &mut [u8], at: usize) -> &mut [u8] {
    let at = at.min(octets.len());
    &mut octets[at..]
}

fn word(octets: &[u8], at: usize) -> Option<u16> {
    let bytes = octets.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// Hides the secrets of an Ethernet frame of a subscriber.
pub fn frame(octets: &mut [u8]) {
    let mut at = 12;
    while matches!(word(octets, at), Some(TPID_8021Q | TPID_8021AD)) {
        at += 4;
    }
    let payload = at + 2;
    match word(octets, at) {
        Some(PPPOE_SESSION) => session(from(octets, payload)),
        Some(PPPOE_DISCOVERY) => trailer(from(octets, payload)),
        Some(IPV4 | IPV6) => {}
        _ => hide(from(octets, payload)),
    }
}

/// What lies behind a PPPoE packet in its frame is nobody's: it may be anything that was in a buffer.
fn trailer(packet: &mut [u8]) {
    let length = word(packet, 4).map_or(0, usize::from);
    hide(from(packet, pppoe::HEADER_LEN + length));
}

fn session(packet: &mut [u8]) {
    trailer(packet);
    let length = word(packet, 4).map_or(0, usize::from);
    let frame = from(packet, pppoe::HEADER_LEN);
    let length = length.min(frame.len());
    let frame = &mut frame[..length];
    let Some(protocol) = word(frame, 0) else {
        return hide(frame);
    };
    let packet = from(frame, 2);
    match protocol {
        ppp::IPV4 => {}
        ppp::IPV6 => dhcpv6(packet),
        ppp::LCP => link(packet),
        ppp::IPCP | ppp::IPV6CP | ppp::CCP => network(packet),
        ppp::PAP => pap(packet),
        ppp::CHAP => chap(packet),
        _ => hide(packet),
    }
}

/// Hides the keys and digests of DHCPv6 (RFC 8415 §20.4). Behind an option that lies about its length everything is hidden.
fn dhcpv6(packet: &mut [u8]) {
    let is_udp = packet.get(IPV6_NEXT_HEADER) == Some(&ipv6::UDP);
    let ports = [word(packet, IPV6_LEN), word(packet, IPV6_LEN + 2)];
    let theirs = [CLIENT_PORT, SERVER_PORT].map(Some);
    if !is_udp || !ports.iter().any(|port| theirs.contains(port)) {
        return;
    }
    let mut options = from(packet, IPV6_LEN + UDP_LEN + OPTION_HEADER);
    while let (Some(code), Some(length)) = (word(options, 0), word(options, 2)) {
        let end = OPTION_HEADER + usize::from(length);
        if end > options.len() {
            return hide(options);
        }
        let (option, rest) = options.split_at_mut(end);
        if code == Opt::AUTH {
            hide(from(option, OPTION_HEADER + AUTH_FIXED));
        }
        options = rest;
    }
}

/// The code and the data of a control packet whose length is that of what is there. What lies behind it is hidden.
fn control(packet: &mut [u8]) -> Option<(u8, &mut [u8])> {
    let length = word(packet, 2).map_or(0, usize::from);
    if length < CONTROL || length > packet.len() {
        hide(from(packet, CONTROL));
        return None;
    }
    hide(from(packet, length));
    let (code, data) = (packet[0], &mut packet[CONTROL..length]);
    Some((code, data))
}

/// A rejected packet may be one with a secret.
fn link(packet: &mut [u8]) {
    match control(packet) {
        Some((lcp::PROTOCOL_REJECT, data)) => hide(from(data, 2 + CONTROL)),
        Some((ppp::CONFIGURE_REQUEST..=ppp::TERMINATE_ACK, _)) => {}
        Some((lcp::ECHO_REQUEST..=lcp::TIME_REMAINING, _)) => {}
        Some((_, data)) => hide(from(data, CONTROL)),
        None => {}
    }
}

fn network(packet: &mut [u8]) {
    match control(packet) {
        Some((ppp::CONFIGURE_REQUEST..=ppp::TERMINATE_ACK, _)) | None => {}
        Some((_, data)) => hide(from(data, CONTROL)),
    }
}

fn pap(packet: &mut [u8]) {
    match control(packet) {
        Some((PAP_REQUEST, data)) => {
            let name = data.first().copied().map_or(0, usize::from);
            match data.get(1 + name).copied().map(usize::from) {
                // its length stays, so that it can be read
                Some(secret) if 2 + name + secret <= data.len() => hide(from(data, 2 + name)),
                _ => hide(data),
            }
        }
        Some((code, data)) if !PAP_ANSWERS.contains(&code) => hide(data),
        _ => {}
    }
}

fn chap(packet: &mut [u8]) {
    match control(packet) {
        Some((CHAP_RESPONSE, data)) => {
            let value = data.first().copied().map(usize::from);
            match value.filter(|value| *value < data.len()) {
                Some(value) => hide(&mut data[1..1 + value]),
                None => hide(data),
            }
        }
        // its authenticator's proof, as in RADIUS
        Some((CHAP_SUCCESS, data)) if data.starts_with(PROOF_FOLLOWS) => {
            let digits = from(data, PROOF_FOLLOWS.len());
            let end = digits.len().min(PROOF_DIGITS);
            hide(&mut digits[..end]);
        }
        Some((CHAP_SUCCESS, _)) => {}
        Some((code, data)) if !CHAP_OTHERS.contains(&code) => hide(data),
        _ => {}
    }
}

/// Hides the secrets of a RADIUS packet.
pub fn radius(octets: &mut [u8]) {
    let length = word(octets, 2).map_or(0, usize::from);
    hide(from(octets, length.max(wire::radius::HEADER_LEN)));
    let length = length.min(octets.len());
    let is_random = |code: &u8| RANDOM_AUTHENTICATORS.contains(code);
    if !octets.first().is_some_and(is_random) {
        let end = wire::radius::HEADER_LEN.min(octets.len());
        hide(from(&mut octets[..end], AUTHENTICATOR));
    }
    let mut rest = from(&mut octets[..length], wire::radius::HEADER_LEN);
    while let Some((&[kind, size], _)) = rest.split_first_chunk() {
        let size = usize::from(size);
        if size < 2 || size > rest.len() {
            return hide(from(rest, 2));
        }
        let (attribute, others) = rest.split_at_mut(size);
        let value = &mut attribute[2..];
        if SECRETS.contains(&kind) {
            hide(value);
        } else if kind == VENDOR_SPECIFIC && value.starts_with(&MICROSOFT) {
            vendor(from(value, MICROSOFT.len()));
        }
        rest = others;
    }
    hide(rest);
}

fn vendor(mut rest: &mut [u8]) {
    while let Some((&[_, size], _)) = rest.split_first_chunk() {
        let size = usize::from(size);
        if size < 2 || size > rest.len() {
            return hide(rest);
        }
        let (attribute, others) = rest.split_at_mut(size);
        hide(&mut attribute[2..]);
        rest = others;
    }
    hide(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wire::eth::{Frame, Header, MacAddr, Tags};
    use wire::{chap, mschapv2, pap};

    /// A frame of a home with so many tags around a PPP frame, and some padding.
    fn framed(tags: u8, protocol: u16, packet: &[u8], padding: &[u8]) -> Vec<u8> {
        let mut octets = Vec::new();
        let tags = match tags % 3 {
            0 => Tags::NONE,
            1 => Tags::single(100),
            _ => Tags::qinq(100, 7),
        };
        Header {
            destination: MacAddr([2; 6]),
            source: MacAddr([2, 0, 0, 0, 0, 9]),
            tags,
            ethertype: PPPOE_SESSION,
        }
        .emit(&mut octets);
        let payload = [&protocol.to_be_bytes(), packet].concat();
        pppoe::Packet {
            code: 0,
            session_id: 5,
            payload: &payload,
        }
        .emit(&mut octets);
        octets.extend(padding);
        octets
    }

    fn has(octets: &[u8], secret: &[u8]) -> bool {
        octets.windows(secret.len()).any(|part| part == secret)
    }

    /// A Reply of DHCPv6 with a key in it, in IPv6.
    fn keyed_reply(key: &[u8; 16]) -> Vec<u8> {
        use wire::dhcpv6::{Message, REPLY, reconfigure};
        let information = reconfigure::key_information(key);
        let options = vec![
            Opt::ServerId(&[0, 4, 1]),
            reconfigure::key_option(1, &information),
            Opt::Preference(9),
        ];
        let (mut message, mut packet) = (Vec::new(), Vec::new());
        Message {
            kind: REPLY,
            transaction: 1,
            options,
        }
        .emit(&mut message);
        let (source, destination) = (ipv6::link_local(1), ipv6::link_local(9));
        wire::udp::Datagram {
            source_port: SERVER_PORT,
            destination_port: CLIENT_PORT,
            payload: &message,
        }
        .emit_packet_v6(source, destination, &mut packet);
        packet
    }

    #[test]
    fn a_key_of_dhcpv6_is_hidden_and_nothing_else_of_the_message() {
        let key = [0x6b; 16];
        let packet = keyed_reply(&key);
        let mut octets = framed(2, ppp::IPV6, &packet, &[]);
        frame(&mut octets);
        assert!(!has(&octets, &key));
        assert!(has(&octets, &[0, 7, 0, 1, 9]));
        // cut short within the option, or with a length that lies: all behind it is hidden
        let mut short = framed(2, ppp::IPV6, &packet[..packet.len() - 10], &[]);
        frame(&mut short);
        assert!(!has(&short, &key[..6]));
    }

    fn secret() -> impl Strategy<Value = Vec<u8>> {
        // none that is hidden already, and none that stands in a header by chance
        prop::collection::vec(0x61u8..=0x7a, 6..40)
    }

    fn pap_request(secret: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        let request = pap::Packet::Request {
            id: 3,
            peer_id: b"ALICE",
            password: secret,
        };
        request.emit(&mut packet);
        packet[2..].to_vec() // without PPP's protocol
    }

    proptest! {
        #[test]
        fn no_password_is_left_in_a_frame(
            secret in secret(), tags in any::<u8>(), cut in 0usize..8, kind in 0u8..6, padding in any::<bool>(),
        ) {
            let mut packet = pap_request(&secret);
            let protocol = match kind {
                0 => ppp::PAP,
                // a length that is not that of what is there
                1 => { packet[3] = packet[3].wrapping_sub(cut as u8); ppp::PAP }
                // a code that nobody knows
                2 => { packet[0] = 9; ppp::PAP }
                3 => {
                    let length = (packet.len() + 6) as u16;
                    let reject = [&[lcp::PROTOCOL_REJECT, 1][..], &length.to_be_bytes(), &ppp::PAP.to_be_bytes(), &packet];
                    packet = reject.concat();
                    ppp::LCP
                }
                4 => {
                    let length = (packet.len() + 4) as u16;
                    packet = [&[ppp::CODE_REJECT, 1][..], &length.to_be_bytes(), &packet].concat();
                    ppp::IPCP
                }
                // address and control field, which PPPoE does not have
                _ => { packet = [&[0xc0, 0x23][..], &packet].concat(); 0xff03 }
            };
            let behind = if padding { &secret[..] } else { &[] };
            let mut octets = framed(tags, protocol, &packet, behind);
            prop_assert!(has(&octets, &secret));
            let before = octets.clone();
            frame(&mut octets);
            prop_assert!(!has(&octets, &secret), "{octets:x?}");
            prop_assert_eq!(octets.len(), before.len());
            prop_assert_eq!(&octets[..14], &before[..14]);
        }

        #[test]
        fn no_answer_to_a_challenge_is_left(value in prop::collection::vec(0x80u8.., 16), tags in any::<u8>()) {
            let mut packet = Vec::new();
            chap::Packet::Response { id: 1, value: &value, name: b"alice" }.emit(&mut packet);
            let mut octets = framed(tags, ppp::CHAP, &packet[2..], &[]);
            frame(&mut octets);
            prop_assert!(!has(&octets, &value) && has(&octets, b"alice"));
            let payload = Frame::parse(&octets).unwrap().payload;
            let inner = &payload[pppoe::HEADER_LEN + 2..];
            let name = match chap::Packet::parse(inner) {
                Ok(chap::Packet::Response { name, .. }) => name,
                _ => b"",
            };
            prop_assert_eq!(name, b"alice");
        }

        #[test]
        fn no_proof_of_mschapv2_is_left(
            value in prop::collection::vec(0x80u8.., 49), proof in prop::array::uniform20(0x80u8..), cut in 0usize..60,
        ) {
            let text = mschapv2::Success { proof, message: b"hello" }.to_text();
            let digits = text[2..42].to_vec();
            let mut response = Vec::new();
            chap::Packet::Response { id: 1, value: &value, name: b"alice" }.emit(&mut response);
            let mut octets = framed(2, ppp::CHAP, &response[2..], &[]);
            frame(&mut octets);
            prop_assert!(!has(&octets, &value[..16]) && !has(&octets, &value[24..]) && has(&octets, b"alice"));
            let mut success = Vec::new();
            let short = &text[..text.len().min(cut)];
            chap::Packet::Success { id: 1, message: short }.emit(&mut success);
            let mut octets = framed(2, ppp::CHAP, &success[2..], &[]);
            frame(&mut octets);
            prop_assert!(!has(&octets, &digits[..8]));
            prop_assert_eq!(has(&octets, b" M=hello"), cut >= text.len());
        }

        #[test]
        fn no_secret_is_left_in_radius(secret in secret(), kind in 0usize..7, cut in 0usize..4) {
            let value = match kind {
                0..5 => secret.clone(),
                _ => [&MICROSOFT[..], &[25, secret.len() as u8 + 2], &secret].concat(),
            };
            let number = SECRETS.get(kind).copied().unwrap_or(VENDOR_SPECIFIC);
            let name = [1, 7, b'A', b'L', b'I', b'C', b'E'];
            let attribute = [&[number, value.len() as u8 + 2][..], &value].concat();
            let length = (20 + name.len() + attribute.len() - cut) as u16;
            let header = [&[1, 7][..], &length.to_be_bytes(), &[0; 16]].concat();
            let mut octets = [header, name.to_vec(), attribute].concat();
            radius(&mut octets);
            prop_assert!(!has(&octets, &secret), "{octets:x?}");
            prop_assert!(has(&octets, b"ALICE"));
        }

        #[test]
        fn any_octets_are_taken(octets in prop::collection::vec(any::<u8>(), 0..200), pppoe in any::<bool>(), protocol in any::<u16>()) {
            let mut octets = match pppoe {
                true => framed(0, protocol, &octets, &[]),
                false => octets,
            };
            let length = octets.len();
            frame(&mut octets);
            radius(&mut octets);
            prop_assert_eq!(octets.len(), length);
        }
    }

    #[test]
    fn nothing_is_left_by_which_the_shared_secret_could_be_guessed() {
        // Access-Accept, Access-Reject, both of accounting, Disconnect and CoA (RFC 5176)
        for (code, is_hidden) in [1, 12]
            .map(|c| (c, false))
            .into_iter()
            .chain([2, 3, 4, 5, 11, 40, 41, 42, 43, 44, 45].map(|c| (c, true)))
        {
            let header = [&[code, 7, 0, 38][..], &[0x5a; 16]].concat();
            let mut octets = [header, vec![80, 18], vec![0xa5; 16]].concat();
            radius(&mut octets);
            assert_eq!(has(&octets, &[0x5a; 16]), !is_hidden, "code {code}");
            assert!(!has(&octets, &[0xa5; 16]), "code {code}");
            assert_eq!((octets[0], octets.len()), (code, 38));
        }
        for end in 0..20 {
            let mut octets = vec![4; end];
            radius(&mut octets);
            assert_eq!(octets.len(), end);
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        let packet = [1, 1, 0, 10, 5, 6, 1, 2, 3, 4]; // LCP Configure-Request with a magic number
        for protocol in [ppp::LCP, ppp::IPCP, ppp::IPV6CP] {
            let mut octets = framed(2, protocol, &packet, &[]);
            let before = octets.clone();
            frame(&mut octets);
            assert_eq!(octets, before);
        }
        let mut octets = framed(0, ppp::PAP, &pap_request(b"hunter2"), &[]);
        frame(&mut octets);
        let payload = &Frame::parse(&octets).unwrap().payload[pppoe::HEADER_LEN + 2..];
        let Ok(pap::Packet::Request {
            peer_id, password, ..
        }) = pap::Packet::parse(payload)
        else {
            panic!("it can still be read");
        };
        assert_eq!((peer_id, password), (&b"ALICE"[..], &b"*******"[..]));
    }
}

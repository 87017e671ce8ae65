//! Text ladder of an exchange, one line per frame, for the recordings and tests of this crate. `sluice trace` has its own words.
//!
//! It never shows passwords, CHAP responses or MS-CHAPv2 proofs: a weak password could be guessed from them.
use core::fmt;
use core::time::Duration;
use wire::eth::{self, Frame};
use wire::ppp::{self, Control, RawOption};
use wire::pppoe::{self, AccessLine, Discovery, Tag};
use wire::{chap, ipcp, ipv4, ipv6, ipv6cp, lcp, mschapv2, nd, pap};

/// Direction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the subscriber to the gateway.
    FromHome,
    /// From the gateway to the subscriber.
    ToHome,
}

/// Ladder under construction. It displays as its text.
#[derive(Clone, Debug, Default)]
pub struct Ladder {
    text: String,
    start: Option<Duration>,
}

impl Ladder {
    /// Creates an empty ladder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an Ethernet frame. The time is shown relative to the first frame's.
    pub fn frame(&mut self, at: Duration, direction: Direction, bytes: &[u8]) {
        self.line(at, direction, &describe_frame(bytes));
    }

    /// Adds a PPP frame (from its protocol field on).
    pub fn ppp(&mut self, at: Duration, direction: Direction, bytes: &[u8]) {
        self.line(at, direction, &describe_ppp(bytes));
    }

    /// Adds a note as a line of its own.
    pub fn note(&mut self, note: impl fmt::Display) {
        self.text.push_str(&format!("           · {note}\n"));
    }

    fn line(&mut self, at: Duration, direction: Direction, what: &str) {
        let start = *self.start.get_or_insert(at);
        let since = at.saturating_sub(start).as_secs_f64();
        let arrow = match direction {
            Direction::FromHome => "──▶",
            Direction::ToHome => "◀──",
        };
        self.text.push_str(&format!("{since:9.3} {arrow} {what}\n"));
    }
}

impl fmt::Display for Ladder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Describes an Ethernet frame with PPPoE in one line.
pub fn describe_frame(bytes: &[u8]) -> String {
    let frame = match Frame::parse(bytes) {
        Ok(frame) => frame,
        Err(malformed) => return format!("malformed: {malformed}"),
    };
    match frame.header.ethertype {
        eth::PPPOE_DISCOVERY => describe_discovery(frame.payload),
        eth::PPPOE_SESSION => match pppoe::Packet::parse(frame.payload) {
            Ok(packet) => describe_ppp(packet.payload),
            Err(malformed) => format!("malformed: {malformed}"),
        },
        other => format!("EtherType {other:#06x}, {} octets", frame.payload.len()),
    }
}

/// Describes a PPPoE discovery packet (from its header on) in one line.
pub fn describe_discovery(bytes: &[u8]) -> String {
    let packet = match Discovery::parse(bytes) {
        Ok(packet) => packet,
        Err(malformed) => return format!("malformed: {malformed}"),
    };
    let name = match packet.code {
        pppoe::PADI => "PADI".into(),
        pppoe::PADO => "PADO".into(),
        pppoe::PADR => "PADR".into(),
        pppoe::PADS => "PADS".into(),
        pppoe::PADT => "PADT".into(),
        code => format!("PPPoE code {code:#04x}"),
    };
    let mut text = format!("{name} session={}", packet.session_id);
    for tag in &packet.tags {
        text.push(' ');
        text.push_str(&describe_tag(tag));
    }
    text
}

fn describe_tag(tag: &Tag<'_>) -> String {
    let quoted = |bytes: &[u8]| format!("\"{}\"", bytes.escape_ascii());
    match *tag {
        Tag::ServiceName(v) => format!("Service-Name={}", quoted(v)),
        Tag::AcName(v) => format!("AC-Name={}", quoted(v)),
        Tag::HostUniq(v) => format!("Host-Uniq={}", hex(v)),
        // A cookie is opaque, and different each time.
        Tag::AcCookie(v) => format!("AC-Cookie({})", v.len()),
        Tag::RelaySessionId(v) => format!("Relay-Session-Id={}", hex(v)),
        Tag::MaxPayload(octets) => format!("PPP-Max-Payload={octets}"),
        Tag::Vendor(pppoe::VENDOR_BBF, v) => {
            let line = AccessLine::parse(v);
            let (circuit, remote) = (
                line.circuit_id.unwrap_or(b""),
                line.remote_id.unwrap_or(b""),
            );
            format!(
                "Circuit-Id={} Remote-Id={}",
                quoted(circuit),
                quoted(remote)
            )
        }
        Tag::Vendor(vendor, v) => format!("Vendor({vendor})={}", hex(v)),
        Tag::ServiceNameError(v) => format!("Service-Name-Error={}", quoted(v)),
        Tag::AcSystemError(v) => format!("AC-System-Error={}", quoted(v)),
        Tag::GenericError(v) => format!("Generic-Error={}", quoted(v)),
        Tag::Unknown(kind, v) => format!("Tag({kind:#06x})={}", hex(v)),
    }
}

/// Describes a PPP frame (from its protocol field on) in one line.
pub fn describe_ppp(bytes: &[u8]) -> String {
    let frame = match ppp::Frame::parse(bytes) {
        Ok(frame) => frame,
        Err(malformed) => return format!("malformed: {malformed}"),
    };
    let described = match frame.protocol {
        ppp::LCP => control("LCP", frame.payload, describe_lcp_option),
        ppp::IPCP => control("IPCP", frame.payload, describe_ipcp_option),
        ppp::IPV6CP => control("IPV6CP", frame.payload, describe_ipv6cp_option),
        ppp::PAP => describe_pap(frame.payload),
        ppp::CHAP => describe_chap(frame.payload),
        ppp::IPV6 => describe_ipv6(frame.payload),
        ppp::IPV4 => ipv4::Packet::parse(frame.payload).map(|p| {
            format!(
                "IPv4 {} > {} protocol {}",
                p.header.source, p.header.destination, p.header.protocol
            )
        }),
        other => Ok(format!(
            "PPP protocol {other:#06x}, {} octets",
            frame.payload.len()
        )),
    };
    described.unwrap_or_else(|malformed| format!("malformed: {malformed}"))
}

fn control(
    name: &str,
    payload: &[u8],
    option: fn(RawOption<'_>) -> String,
) -> wire::Result<String> {
    let Control { code, id, data } = Control::parse(payload)?;
    let kind = match code {
        ppp::CONFIGURE_REQUEST => "Configure-Request",
        ppp::CONFIGURE_ACK => "Configure-Ack",
        ppp::CONFIGURE_NAK => "Configure-Nak",
        ppp::CONFIGURE_REJECT => "Configure-Reject",
        _ => return Ok(format!("{name} {}", describe_other_code(code, id, data)?)),
    };
    let mut text = format!("{name} {kind} id={id}");
    for raw in RawOption::iter(data) {
        text.push(' ');
        text.push_str(&option(raw?));
    }
    Ok(text)
}

fn describe_other_code(code: u8, id: u8, data: &[u8]) -> wire::Result<String> {
    let echo = |name: &str| {
        lcp::Echo::parse(data).map(|e| {
            format!(
                "{name} id={id} magic={:#010x} data={}",
                e.magic,
                hex(e.data)
            )
        })
    };
    Ok(match code {
        ppp::TERMINATE_REQUEST => format!("Terminate-Request id={id} \"{}\"", data.escape_ascii()),
        ppp::TERMINATE_ACK => format!("Terminate-Ack id={id}"),
        ppp::CODE_REJECT => format!("Code-Reject id={id} rejected={}", hex(data)),
        lcp::PROTOCOL_REJECT => {
            let reject = lcp::ProtocolReject::parse(data)?;
            format!("Protocol-Reject id={id} protocol={:#06x}", reject.protocol)
        }
        lcp::ECHO_REQUEST => echo("Echo-Request")?,
        lcp::ECHO_REPLY => echo("Echo-Reply")?,
        lcp::DISCARD_REQUEST => echo("Discard-Request")?,
        code => format!("code={code} id={id} data={}", hex(data)),
    })
}

fn describe_lcp_option(raw: RawOption<'_>) -> String {
    match lcp::Opt::from(raw) {
        lcp::Opt::Mru(mru) => format!("MRU={mru}"),
        lcp::Opt::Auth(lcp::Auth::Pap) => "Auth=PAP".into(),
        lcp::Opt::Auth(lcp::Auth::ChapMd5) => "Auth=CHAP-MD5".into(),
        lcp::Opt::Auth(lcp::Auth::MsChapV2) => "Auth=MS-CHAPv2".into(),
        lcp::Opt::Auth(lcp::Auth::Other(protocol, rest)) => {
            format!("Auth={protocol:#06x}/{}", hex(rest))
        }
        lcp::Opt::Magic(magic) => format!("Magic={magic:#010x}"),
        lcp::Opt::Unknown(raw) => describe_unknown_option(raw),
    }
}

fn describe_ipcp_option(raw: RawOption<'_>) -> String {
    match ipcp::Opt::from(raw) {
        ipcp::Opt::Address(a) => format!("Address={a}"),
        ipcp::Opt::PrimaryDns(a) => format!("Primary-DNS={a}"),
        ipcp::Opt::SecondaryDns(a) => format!("Secondary-DNS={a}"),
        ipcp::Opt::PrimaryNbns(a) => format!("Primary-NBNS={a}"),
        ipcp::Opt::SecondaryNbns(a) => format!("Secondary-NBNS={a}"),
        ipcp::Opt::Unknown(raw) => describe_unknown_option(raw),
    }
}

fn describe_ipv6cp_option(raw: RawOption<'_>) -> String {
    match ipv6cp::Opt::from(raw) {
        ipv6cp::Opt::InterfaceId(id) => format!("Interface-Id={id:016x}"),
        ipv6cp::Opt::Unknown(raw) => describe_unknown_option(raw),
    }
}

fn describe_unknown_option(raw: RawOption<'_>) -> String {
    format!("Option({})={}", raw.kind, hex(raw.data))
}

fn describe_pap(payload: &[u8]) -> wire::Result<String> {
    Ok(match pap::Packet::parse(payload)? {
        pap::Packet::Request { id, peer_id, .. } => {
            format!("PAP Request id={id} name=\"{}\"", peer_id.escape_ascii())
        }
        pap::Packet::Ack { id, message } => {
            format!("PAP Ack id={id} \"{}\"", message.escape_ascii())
        }
        pap::Packet::Nak { id, message } => {
            format!("PAP Nak id={id} \"{}\"", message.escape_ascii())
        }
    })
}

fn describe_chap(payload: &[u8]) -> wire::Result<String> {
    Ok(match chap::Packet::parse(payload)? {
        chap::Packet::Challenge { id, value, name } => {
            format!(
                "CHAP Challenge id={id} name=\"{}\" value={}",
                name.escape_ascii(),
                hex(value)
            )
        }
        chap::Packet::Response { id, value, name } => {
            format!(
                "CHAP Response id={id} name=\"{}\" value({})",
                name.escape_ascii(),
                value.len()
            )
        }
        chap::Packet::Success { id, message } => {
            // RFC 2759 §5: MS-CHAPv2's has a proof, which is not shown either
            let (proof, message) = match mschapv2::Success::parse(message) {
                Ok(success) => (" proof(20)", success.message),
                Err(_) => ("", message),
            };
            format!("CHAP Success id={id}{proof} \"{}\"", message.escape_ascii())
        }
        chap::Packet::Failure { id, message } => {
            format!("CHAP Failure id={id} \"{}\"", message.escape_ascii())
        }
    })
}

fn describe_ipv6(packet: &[u8]) -> wire::Result<String> {
    let Ok(discovery) = nd::Packet::parse(packet) else {
        let ipv6::Header {
            source,
            destination,
            next_header,
            ..
        } = ipv6::Packet::parse(packet)?.header;
        return Ok(format!(
            "IPv6 {source} > {destination} next header {next_header}"
        ));
    };
    let what = match discovery.message {
        nd::Message::RouterSolicitation { .. } => "RS".into(),
        nd::Message::RouterAdvertisement(ra) => describe_advertisement(&ra),
        nd::Message::NeighborSolicitation { target, .. } => format!("NS target={target}"),
        nd::Message::NeighborAdvertisement {
            target,
            router,
            solicited,
            ..
        } => {
            format!("NA target={target} router={router} solicited={solicited}")
        }
    };
    Ok(format!(
        "ND {} > {} {what}",
        discovery.source, discovery.destination
    ))
}

fn describe_advertisement(ra: &nd::RouterAdvertisement) -> String {
    let flags = match (ra.managed, ra.other) {
        (true, true) => " flags=MO",
        (true, false) => " flags=M",
        (false, true) => " flags=O",
        (false, false) => "",
    };
    let mut text = format!("RA{flags} lifetime={}", ra.router_lifetime);
    for option in &ra.options {
        text.push_str(&match option {
            nd::Opt::Prefix(p) => {
                let (l, a) = (
                    if p.on_link { "L" } else { "" },
                    if p.autonomous { "A" } else { "" },
                );
                format!(
                    " {}/{} {l}{a} valid={} preferred={}",
                    p.prefix, p.length, p.valid_lifetime, p.preferred_lifetime
                )
            }
            nd::Opt::Rdnss { lifetime, servers } => format!(" DNS={servers:?} for {lifetime}"),
            nd::Opt::Mtu(mtu) => format!(" MTU={mtu}"),
            nd::Opt::SourceLinkLayer(mac) | nd::Opt::TargetLinkLayer(mac) => {
                format!(" link-layer={mac}")
            }
            nd::Opt::Unknown { kind, data } => format!(" option {kind}, {} octets", data.len()),
        });
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::from("0x"), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn proofs_are_not_shown() {
        let mut pap = Vec::new();
        pap::Packet::Request {
            id: 1,
            peer_id: b"alice",
            password: b"s3cret",
        }
        .emit(&mut pap);
        assert_eq!(describe_ppp(&pap), "PAP Request id=1 name=\"alice\"");
        let mut chap = Vec::new();
        chap::Packet::Response {
            id: 1,
            value: &[0xab; 16],
            name: b"alice",
        }
        .emit(&mut chap);
        assert_eq!(
            describe_ppp(&chap),
            "CHAP Response id=1 name=\"alice\" value(16)"
        );
        let success = mschapv2::Success {
            proof: [0xab; 20],
            message: b"hello",
        };
        let mut chap = Vec::new();
        chap::Packet::Success {
            id: 1,
            message: &success.to_text(),
        }
        .emit(&mut chap);
        assert_eq!(describe_ppp(&chap), "CHAP Success id=1 proof(20) \"hello\"");
    }

    proptest! {
        #[test]
        fn anything_is_described(bytes: Vec<u8>, protocol in prop::sample::select(vec![0x21u16, 0x57, 0x8021, 0x8057, 0xc021, 0xc023, 0xc223, 0x80fd]), code in 0u8..15, data: Vec<u8>) {
            describe_frame(&bytes);
            describe_discovery(&bytes);
            describe_ppp(&bytes);
            let mut framed = Vec::new();
            Control { code, id: 1, data: &data }.emit(protocol, &mut framed);
            describe_ppp(&framed);
        }
    }
}

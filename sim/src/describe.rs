//! Datagrams and frames in words, for the log of a run.

use pfcp::bng::Usage;
use wire::eth::{Frame, PPPOE_DISCOVERY};
use wire::pfcp::Message;
use wire::ppp::{self, Control};
use wire::radius::{Kind, Packet, Value};
use wire::{gtpu, nsh, pppoe};

/// A PFCP message.
pub fn pfcp(bytes: &[u8]) -> String {
    match wire::pfcp::parse(bytes) {
        Ok(parsed) => {
            let packet = parsed.packet;
            let cause = packet
                .message
                .cause()
                .map_or(String::new(), |cause| format!(" ({cause})"));
            let offending = match &packet.message {
                Message::SessionEstablishmentResponse(m) => m.offending_ie,
                Message::SessionModificationResponse(m) => m.offending_ie,
                _ => None,
            };
            let offending = offending.map_or(String::new(), |ie| format!(" by {ie:?}"));
            let seid = packet
                .seid
                .map_or(String::new(), |seid| format!(" seid {seid:x}"));
            format!(
                "PFCP #{} {}{seid}{cause}{offending}{}",
                packet.sequence,
                packet.message.name(),
                usage(&packet.message)
            )
        }
        Err(error) => format!("PFCP? {error:?}"),
    }
}

/// The usage reports in a message: their rule and number, and octets up and down.
fn usage(message: &Message) -> String {
    let reports = match message {
        Message::SessionReportRequest(m) => &m.usage_reports,
        Message::SessionModificationResponse(m) => &m.usage_reports,
        Message::SessionDeletionResponse(m) => &m.usage_reports,
        _ => return String::new(),
    };
    let told = reports.iter().map(|report| {
        let Usage { total, ipv6, .. } = Usage::of_report(report);
        let (rule, number) = (report.urr_id, report.sequence);
        format!(
            " [{rule:x}#{number}: {} {}, IPv6 {} {}]",
            total.up_octets, total.down_octets, ipv6.up_octets, ipv6.down_octets
        )
    });
    told.collect()
}

/// A GTP-U packet.
pub fn gtpu(bytes: &[u8]) -> String {
    match gtpu::Packet::parse(bytes) {
        Ok(gtpu::Packet::Gpdu { teid, payload }) => match nsh::Packet::parse(payload) {
            Ok(packet) => format!(
                "GTP-U teid {teid:x} {} {}",
                packet.logical_port.escape_ascii(),
                frame(packet.frame)
            ),
            Err(_) => format!("GTP-U teid {teid:x} {}", frame(payload)),
        },
        Ok(other) => format!("GTP-U {other:?}"),
        Err(error) => format!("GTP-U? {error}"),
    }
}

/// A frame of a subscriber's line.
pub fn frame(bytes: &[u8]) -> String {
    let parsed = Frame::parse(bytes).and_then(|f| Ok((f.header, pppoe::Packet::parse(f.payload)?)));
    let Ok((header, packet)) = parsed else {
        return "frame?".into();
    };
    let place = header.tags.vids().1.unwrap_or(0);
    if header.ethertype == PPPOE_DISCOVERY {
        let name = match packet.code {
            pppoe::PADI => "PADI",
            pppoe::PADO => "PADO",
            pppoe::PADR => "PADR",
            pppoe::PADS => "PADS",
            pppoe::PADT => "PADT",
            _ => "discovery?",
        };
        return format!("line {place} {name} id {}", packet.session_id);
    }
    let what = ppp::Frame::parse(packet.payload).map_or("PPP?".into(), |f| ppp_frame(&f));
    format!("line {place} id {} {what}", packet.session_id)
}

fn ppp_frame(frame: &ppp::Frame<'_>) -> String {
    let protocol = match frame.protocol {
        ppp::LCP => "LCP",
        ppp::PAP => "PAP",
        ppp::CHAP => "CHAP",
        ppp::IPCP => "IPCP",
        ppp::IPV6CP => "IPV6CP",
        ppp::IPV4 => return format!("IPv4 of {} octets", frame.payload.len()),
        ppp::IPV6 => return format!("IPv6 of {} octets", frame.payload.len()),
        other => return format!("PPP {other:04x}"),
    };
    match Control::parse(frame.payload) {
        Ok(control) => {
            let names = [
                "",
                "request",
                "ack",
                "nak",
                "reject",
                "terminate",
                "terminate-ack",
                "code-reject",
            ];
            let names = match protocol {
                "PAP" => &["", "request", "ack", "nak"][..],
                "CHAP" => &["", "challenge", "response", "success", "failure"][..],
                _ => &names[..],
            };
            let code = usize::from(control.code);
            let name = names
                .get(code)
                .copied()
                .unwrap_or(if code == 9 { "echo" } else { "other" });
            format!("{protocol} {name} {}", control.id)
        }
        Err(_) => format!("{protocol}?"),
    }
}

/// A RADIUS packet.
pub fn radius(bytes: &[u8]) -> String {
    let Ok(packet) = Packet::parse(bytes) else {
        return "RADIUS?".into();
    };
    let text = |kind| {
        packet
            .get(kind)
            .and_then(Value::octets)
            .map(|o| format!(" {}", o.escape_ascii()))
    };
    let status = match packet.get(Kind::ACCT_STATUS_TYPE) {
        Some(Value::Integer(1)) => " Start",
        Some(Value::Integer(2)) => " Stop",
        Some(Value::Integer(3)) => " Interim",
        _ => "",
    };
    let (user, session) = (text(Kind::USER_NAME), text(Kind::ACCT_SESSION_ID));
    format!(
        "RADIUS #{} {:?}{status}{}{}",
        packet.identifier,
        packet.code,
        user.unwrap_or_default(),
        session.unwrap_or_default()
    )
}

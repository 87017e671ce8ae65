//! Where settings take effect.

mod aaa;
mod ppp;

use crate::world::World;
use core::time::Duration;
use cpe::State;
use policy::Role;
use std::collections::BTreeSet;
use wire::eth::{Frame, PPPOE_DISCOVERY, PPPOE_SESSION};
use wire::radius::Kind;

pub use aaa::*;
pub use ppp::*;

const SECOND: Duration = Duration::from_secs(1);

/// Everybody hangs up.
pub fn quiet(w: &mut World) {
    (0..4).for_each(|n| w.hang_up(n));
    w.run(30 * SECOND);
    w.heard.clear();
    w.asked.clear();
    w.radius.records.clear();
}

/// The first home dials in anew.
pub fn dial(w: &mut World) {
    quiet(w);
    w.dial(0);
    w.run(10 * SECOND);
}

pub fn online(w: &World) -> usize {
    w.homes
        .iter()
        .filter(|home| home.state() == State::Online)
        .count()
}

pub fn comes_in(w: &mut World) -> String {
    dial(w);
    online(w).to_string()
}

pub fn come_in(w: &mut World) -> String {
    quiet(w);
    (0..4).for_each(|n| w.dial(n));
    w.run(10 * SECOND);
    online(w).to_string()
}

/// How many of four come in that share a line.
pub fn from_one_line(w: &mut World) -> String {
    quiet(w);
    for home in &mut w.homes {
        let tags = wire::eth::Tags::qinq(100, 1);
        let config = cpe::HomeConfig {
            tags,
            ..home.config().clone()
        };
        *home = cpe::Home::new(config, 1);
    }
    come_in(w)
}

/// How many of four come in with one user name, each from a line of its own.
pub fn as_one_user(w: &mut World) -> String {
    quiet(w);
    for home in &mut w.homes {
        let config = cpe::HomeConfig {
            user: "home0".into(),
            password: "secret0".into(),
            ..home.config().clone()
        };
        *home = cpe::Home::new(config, 1);
    }
    come_in(w)
}

/// How many of four come in that share a MAC address.
pub fn behind_one_mac(w: &mut World) -> String {
    quiet(w);
    let mac = w.homes[0].config().mac;
    let tags = wire::eth::Tags::qinq(100, 1);
    for (n, home) in w.homes.iter_mut().enumerate() {
        let config = cpe::HomeConfig {
            mac,
            tags,
            ..home.config().clone()
        };
        *home = cpe::Home::new(config, n as u64);
    }
    come_in(w)
}

/// After how many milliseconds three homes get a PADO, one after the other.
pub fn offered_after(w: &mut World) -> String {
    quiet(w);
    let after = |n: usize| {
        w.heard.clear();
        let begin = w.now;
        w.dial(n);
        while w.heard.is_empty() && w.now - begin < 10 * SECOND {
            w.run(Duration::from_millis(10));
        }
        let after = w.now - begin;
        w.run(2 * SECOND);
        after.as_millis()
    };
    format!("{:?}", [0, 1, 2].map(after))
}

/// MTUs of a home that asks for the services `slow` and `slower`, one after the other.
pub fn chooses(w: &mut World) -> String {
    let mtu = |w: &mut World, service: &str| {
        quiet(w);
        let mut config = w.homes[0].config().clone();
        config.service = service.into();
        w.homes[0] = cpe::Home::new(config, 1);
        dial(w);
        let rules = w.up.subscribers();
        let mtu = rules.first().and_then(|rules| rules.forwarding.packets.mtu);
        format!("{service}: {}", mtu.unwrap_or_default())
    };
    let seen = ["slow", "slower"].map(|service| mtu(w, service));
    quiet(w);
    let mut config = w.homes[0].config().clone();
    config.service.clear();
    w.homes[0] = cpe::Home::new(config, 1);
    seen.join(" ")
}

/// The first home dials in anew, from a line of which the access node says this.
fn dial_from(w: &mut World, access_line: &[u8]) {
    quiet(w);
    let mut config = w.homes[0].config().clone();
    config.access_line = access_line.to_vec();
    w.homes[0] = cpe::Home::new(config, 1);
    dial(w);
}

/// The subscriber of a home whose discovery packets name the line.
pub fn names_itself(w: &mut World) -> String {
    dial_from(w, b"\x01\x04olt1");
    let sessions = w.sessions();
    sessions
        .first()
        .map_or(String::new(), |s| s.subscriber.clone())
}

/// What a home has whose access node says that its line has 40 Mbit/s (TR-101).
pub fn on_a_line(w: &mut World) -> String {
    dial_from(w, b"\x82\x04\x00\x00\x9c\x40");
    describe(w)
}

/// How many subscribers four homes are that share a line.
pub fn subscribers(w: &mut World) -> String {
    from_one_line(w);
    let sessions = w.sessions().into_iter();
    let handles: BTreeSet<u32> = sessions.filter_map(|s| s.subscriber_handle).collect();
    handles.len().to_string()
}

/// How many of four are left after 1.2 s on a user plane that is drained.
pub fn left(w: &mut World) -> String {
    let set = |w: &mut World, state: &str| {
        let line = format!("set user-planes up1 admin-state {state}");
        w.configure(&[&line]).unwrap();
    };
    set(w, "unlocked");
    come_in(w);
    set(w, "shutting-down");
    w.run(Duration::from_millis(1200));
    online(w).to_string()
}

pub fn half_open(w: &mut World) -> String {
    quiet(w);
    w.disk_stalls = true;
    (0..4).for_each(|n| w.dial(n));
    w.run(2 * SECOND);
    let count = w.plane.session_count();
    w.disk_recovers();
    w.run(10 * SECOND);
    count.to_string()
}

pub fn owed(w: &mut World) -> String {
    quiet(w);
    w.radius.full = true;
    (0..4).for_each(|n| w.dial(n));
    w.run(10 * SECOND);
    let owed = w.stored_records();
    w.radius.full = false;
    w.run(200 * SECOND);
    owed.to_string()
}

pub fn gateway(w: &mut World) -> String {
    dial(w);
    format!("{:?}", requests(w, 0x8021))
}

pub fn plane(w: &mut World) -> String {
    w.run(10 * SECOND);
    let to = w.told.last().map(|to| to.ip());
    format!("{to:?}")
}

pub fn ports(w: &mut World) -> String {
    w.run(40 * SECOND);
    w.up.default_sessions().to_string()
}

/// What the first home gets when it dials in anew.
pub fn gets(w: &mut World) -> String {
    dial(w);
    describe(w)
}

/// What the first home has; it dials in only if it is not online.
pub fn has(w: &mut World) -> String {
    if w.homes[0].state() != State::Online {
        dial(w);
    }
    w.run(2 * SECOND);
    describe(w)
}

pub fn describe(w: &World) -> String {
    let rules = w.up.subscribers();
    let rules = rules.first();
    let packets = rules.map(|rules| rules.forwarding.packets);
    let net = |net: Option<ipnet::IpNet>| net.map(|net| net.trunc());
    let ipv4 = w.homes[0]
        .ipv4()
        .and_then(|a| ipnet::IpNet::new(a.into(), 24).ok());
    let ipv6 = w.homes[0]
        .ipv6()
        .and_then(|a| ipnet::IpNet::new(a.into(), 48).ok());
    let dns: Vec<_> = w.homes[0].dns().collect();
    format!(
        "mtu={} priority={} idle={:?} both={} up={:?} down={:?} home={{{:?} {:?}}} committed={{{:?} {:?}}} source={:?} policies={:?} mac={:?} ipv4={:?} ipv6={:?} dns={dns:?}",
        packets.and_then(|packets| packets.mtu).unwrap_or_default(),
        packets.map_or(0, |packets| packets.vlan_priority),
        packets.and_then(|packets| packets.idle_timeout),
        packets.is_some_and(|packets| packets.idle_both_ways),
        packets.and_then(|packets| packets.rate_up),
        packets.and_then(|packets| packets.rate_down),
        packets.and_then(|packets| packets.subscriber_rate_up),
        packets.and_then(|packets| packets.subscriber_rate_down),
        packets.and_then(|packets| packets.committed_rate_up),
        packets.and_then(|packets| packets.committed_rate_down),
        packets.map_or(Default::default(), |packets| packets.priority_source),
        rules.map(|rules| &rules.forwarding.policies),
        rules.map(|rules| rules.circuit.gateway_mac.to_string()),
        net(ipv4),
        net(ipv6),
    )
}

/// What the first home gets of a server that sends a vendor's attributes.
pub fn mapped(w: &mut World) -> String {
    let vendor = |number, value: Vec<u8>| {
        let kind = Kind {
            vendor: 2011, // Huawei
            number,
        };
        (kind, value.into())
    };
    let number = |number, value: u32| vendor(number, value.to_be_bytes().into());
    w.radius.accept = vec![
        number(3, 1300),
        number(6, 2),
        number(79, 5),
        vendor(188, b"slow=9000".into()),
        vendor(188, b"fast=90000".into()),
        number(2, 20_000_000), // the average rate, which a shipped mapping says
    ];
    dial(w);
    w.radius.accept.clear();
    describe(w)
}

/// How long the nets are that are announced for the first home.
pub fn nets(w: &mut World) -> String {
    dial(w);
    let length = |net: &String| net.split('/').next_back().unwrap_or_default().to_owned();
    let mut lengths: Vec<String> = w.up.nets().iter().map(length).collect();
    lengths.sort();
    lengths.join(" ")
}

/// How long the first home may keep its delegated prefix.
pub fn leases(w: &mut World) -> String {
    quiet(w);
    let config = cpe::HomeConfig {
        delegation: Some(cpe::Delegation { rapid_commit: true }),
        ..w.homes[0].config().clone()
    };
    w.homes[0] = cpe::Home::new(config, 1);
    dial(w);
    let mut frames = w.heard.iter().filter_map(|bytes| {
        let frame = Frame::parse(bytes).ok()?;
        let packet = wire::pppoe::Packet::parse(frame.payload).ok()?;
        let ppp = wire::ppp::Frame::parse(packet.payload).ok()?;
        let packet = wire::ipv6::Packet::parse(ppp.payload).ok()?;
        let datagram = wire::udp::Datagram::parse(packet.payload).ok()?;
        let message = wire::dhcpv6::Message::parse(datagram.payload).ok()?;
        message.options.iter().find_map(|option| match option {
            wire::dhcpv6::Opt::IaPd(ia) => {
                let lease = ia.prefixes().next()?;
                let (preferred, valid) = (lease.preferred_lifetime, lease.valid_lifetime);
                Some(format!("preferred {preferred}, valid {valid}"))
            }
            _ => None,
        })
    });
    frames.next_back().unwrap_or_default()
}

/// The address of the first home, when it dials in anew.
pub fn address(w: &mut World) -> String {
    dial(w);
    w.homes[0]
        .ipv4()
        .map(|own| own.to_string())
        .unwrap_or_default()
}

/// What the first home has for DHCPv6, when it dials in anew.
pub fn holds(w: &mut World) -> String {
    bindings(w, |role| role != Role::Link)
}

/// The prefix of the first home's link, when it dials in anew.
pub fn link(w: &mut World) -> String {
    bindings(w, |role| role == Role::Link)
}

fn bindings(w: &mut World, which: impl Fn(Role) -> bool) -> String {
    dial(w);
    let rules = w.up.subscribers();
    let all = rules
        .iter()
        .flat_map(|rules| rules.forwarding.bindings.iter());
    let ipv6 = all.filter(|binding| !binding.is_ipv4() && which(binding.role));
    let shown = ipv6.map(|binding| format!("{:?} {binding}", binding.role));
    shown.collect::<Vec<_>>().join(", ")
}

/// Whether the first home gets the same address again, while another one is online.
pub fn returns(w: &mut World) -> String {
    quiet(w);
    let addresses = [1, 0, 0].map(|home| {
        w.hang_up(0);
        w.run(10 * SECOND);
        w.dial(home);
        w.run(10 * SECOND);
        w.homes[0].ipv4()
    });
    match addresses[1] == addresses[2] {
        true => "the same".into(),
        false => "another".into(),
    }
}

/// The alarms that four homes raise.
pub fn alarms(w: &mut World) -> String {
    quiet(w);
    crate::history::look(w, 70);
    come_in(w);
    crate::history::look(w, 1).join(" ")
}

pub fn offer(w: &mut World) -> String {
    dial(w);
    let frames = w.heard.iter().map(|bytes| Frame::parse(bytes).unwrap());
    let mut offers = frames.filter(|frame| {
        frame.header.ethertype == PPPOE_DISCOVERY && frame.payload[1] == wire::pppoe::PADO
    });
    let offer = offers.next().expect("a PADO").payload.to_vec();
    let names: Vec<String> = wire::pppoe::Discovery::parse(&offer)
        .unwrap()
        .tags
        .iter()
        .filter_map(|tag| match tag {
            wire::pppoe::Tag::AcName(name) | wire::pppoe::Tag::ServiceName(name) => {
                Some(name.escape_ascii().to_string())
            }
            _ => None,
        })
        .collect();
    format!("{names:?}")
}

/// The options of the gateway's Configure-Requests of a protocol, the magic number left out.
pub fn requests(w: &World, protocol: u16) -> Vec<Vec<u8>> {
    let frames = w.heard.iter().map(|bytes| Frame::parse(bytes).unwrap());
    let sessions = frames.filter(|frame| frame.header.ethertype == PPPOE_SESSION);
    let ppp = sessions.map(|frame| frame.payload[6..].to_vec());
    let requests = ppp.filter(|ppp| ppp[..2] == protocol.to_be_bytes() && ppp[2] == 1);
    let mut requests: Vec<Vec<u8>> = requests.map(|ppp| options(&ppp[6..])).collect();
    requests.dedup();
    requests
}

pub fn options(mut bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    while let [kind, length, ..] = *bytes {
        let (option, rest) = bytes.split_at(usize::from(length).clamp(2, bytes.len()));
        if kind != 5 {
            kept.extend_from_slice(option);
        }
        bytes = rest;
    }
    kept
}

pub fn wants(w: &mut World) -> String {
    dial(w);
    format!("{:?}", requests(w, 0xc021))
}

/// Which proof is asked for.
pub fn authentication(w: &mut World) -> String {
    dial(w);
    format!("{:?}", requests(w, 0xc021).first())
}

/// How much of the history is kept.
pub fn kept(w: &mut World) -> String {
    w.settle();
    format!("{:?}", w.history_bounds)
}

pub fn echoes(w: &mut World) -> String {
    if w.homes[0].state() != State::Online {
        dial(w);
    }
    w.heard.clear();
    w.run(60 * SECOND);
    let echo = |bytes: &&Vec<u8>| {
        let frame = Frame::parse(bytes).unwrap();
        frame.header.ethertype == PPPOE_SESSION && frame.payload[6..9] == [0xc0, 0x21, 9]
    };
    match w.heard.iter().filter(echo).count() {
        0..6 => "seldom",
        6..30 => "often",
        _ => "always",
    }
    .into()
}

pub fn gives_up(w: &mut World) -> String {
    dial(w);
    let config = w.homes[0].config().clone();
    w.homes[0] = cpe::Home::new(config, 99); // it hears nothing of it
    let begin = w.now;
    while w.plane.session_count() > 0 && w.now - begin < 600 * SECOND {
        w.run(SECOND);
    }
    match (w.now - begin).as_secs() {
        0..80 => "soon",
        80..160 => "usual",
        _ => "late",
    }
    .into()
}

pub fn lasts(w: &mut World) -> String {
    dial(w);
    let begin = w.now - 10 * SECOND;
    while w.plane.session_count() > 0 && w.now - begin < 200 * SECOND {
        w.run(SECOND);
    }
    let tens = ((w.now - begin).as_secs_f64() / 10.0).round() * 10.0;
    tens.to_string()
}

/// A home with a wrong password tries once a second: how often it is answered at first, and after how long then.
pub fn fails_again_and_again(w: &mut World) -> String {
    quiet(w);
    let config = cpe::HomeConfig {
        password: "wrong".into(),
        ..w.homes[0].config().clone()
    };
    let mut answered = Vec::new();
    for second in 0..300 {
        w.homes[0] = cpe::Home::new(config.clone(), second);
        w.heard.clear();
        w.dial(0);
        w.run(SECOND);
        answered.push(!w.heard.is_empty());
    }
    let at_first = answered.iter().take_while(|answered| **answered).count();
    let silences = answered.split(|answered| *answered).map(<[bool]>::len);
    let waits: Vec<usize> = silences.filter(|len| *len > 0).map(|len| len + 1).collect();
    let (first, longest) = (
        waits.first().unwrap_or(&0),
        waits.iter().max().unwrap_or(&0),
    );
    format!("{at_first} answers, then after {first} s, after {longest} s at most")
}

//! Frames as text: `in.txt` of a case. Each line is a packet: by which interface it comes, then its layers from the outside
//! in. What is usual goes without saying: lengths, checksums, types.
//!
//! ```text
//! # A home, and what it sends.
//! let home = eth 02:00:00:00:01:01 > 02:00:00:00:00:fe, vlan 100, vlan 7, pppoe 0x101
//! access0: home, ipv4 100.64.0.1 > 192.0.2.7 ttl 64, udp 1000 > 53, text hello
//! access0 with: home, ...        # at the same time as the one before, not a millisecond later
//! access0 at 2.5: home, ...      # 2.5 seconds after the first
//! ```
//!
//! | layer | what may follow |
//! |---|---|
//! | `eth SOURCE > DESTINATION` | `type` |
//! | `vlan ID` | `tpid`, `pcp`, `type` |
//! | `discovery CODE ID` | |
//! | `pppoe ID` | `version` (of 8 bits, with the type), `code`, `length` |
//! | `ppp PROTOCOL` | |
//! | `arp MAC ADDRESS asks ADDRESS` | |
//! | `ipv4 SOURCE > DESTINATION` | `ttl`, `dscp`, `ecn`, `protocol`, `id`, `options` (words of no operation), `option` (hexadecimal), `df`, `mf`, `offset`, `length`, `version`, `checksum` |
//! | `ipv6 SOURCE > DESTINATION` | `hops`, `dscp`, `ecn`, `next`, `length`, `version` |
//! | `udp SOURCE > DESTINATION` | |
//! | `tcp SOURCE > DESTINATION` | `syn`, `ack`, `mss` |
//! | `icmp TYPE`, `icmpv6 TYPE` | `code` |
//! | `text WORD…`, `hex OCTETS…`, `zeros COUNT` | |
//! | `cut LENGTH`, `pad LENGTH` (the last) | the frame is made so long |

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use wire::checksum::{Sum, pseudo_v4, pseudo_v6};
use wire::eth::MacAddr;
use wire::pcap::{self, ETHERNET, RAW_IP};

type Result<T> = std::result::Result<T, String>;

/// When the first packet is.
const BEGIN: u64 = 1_700_000_000_000_000_000;
const MILLISECOND: u64 = 1_000_000;

struct Packet {
    interface: String,
    at: u64,
    octets: Vec<u8>,
}

/// The capture that a text describes.
pub fn capture(text: &str) -> Result<Vec<u8>> {
    let (mut named, mut packets) = (Vec::new(), Vec::new());
    let joined = text.replace("\\\n", " ");
    for line in joined.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let read = match line.strip_prefix("let ") {
            _ if line.is_empty() => continue,
            Some(line) => name(line, &mut named),
            None => packet(line, &named, packets.last()).map(|packet| packets.push(packet)),
        };
        read.map_err(|why| format!("{line}: {why}"))?;
    }
    Ok(written(&packets))
}

fn written(packets: &[Packet]) -> Vec<u8> {
    let mut file = Vec::new();
    pcap::begin("", &mut file);
    let mut interfaces: Vec<_> = packets.iter().map(|p| p.interface.as_str()).collect();
    interfaces.sort();
    interfaces.dedup();
    for name in &interfaces {
        // What begins with a version of IP is no frame: MAC addresses here begin with 02 or ff or 33.
        let mut own = packets.iter().filter(|p| p.interface == **name);
        let ip = own.all(|p| matches!(p.octets.first(), Some(0x40..0x70)));
        let link = if ip { RAW_IP } else { ETHERNET };
        let name = Some(*name);
        pcap::Interface { name, link }.emit(&mut file);
    }
    for (n, packet) in (1..).zip(packets) {
        let interface = interfaces.iter().position(|name| *name == packet.interface);
        let packet = pcap::Packet {
            interface: interface.expect("one of them"),
            at: packet.at,
            length: packet.octets.len() as u32,
            octets: &packet.octets,
        };
        packet.emit(&format!("{n}"), None, &mut file);
    }
    file
}

fn name<'a>(line: &'a str, named: &mut Vec<(&'a str, &'a str)>) -> Result<()> {
    let (name, layers) = line.split_once('=').ok_or("expected `let NAME = LAYERS`")?;
    named.push((name.trim(), layers.trim()));
    Ok(())
}

fn packet(line: &str, named: &[(&str, &str)], last: Option<&Packet>) -> Result<Packet> {
    let (head, layers) = line
        .split_once(": ")
        .ok_or("expected `INTERFACE: LAYERS`")?;
    let words: Vec<_> = head.split_whitespace().collect();
    let (interface, at) = match (&words[..], last) {
        ([interface], None) => (interface, BEGIN),
        ([interface], Some(last)) => (interface, last.at + MILLISECOND),
        ([interface, "with"], Some(last)) => (interface, last.at),
        ([interface, "at", seconds], _) => {
            let seconds: f64 = seconds.parse().map_err(|_| "expected seconds")?;
            (interface, BEGIN + (seconds * 1000.0) as u64 * MILLISECOND)
        }
        _ => return Err("expected `INTERFACE`, `INTERFACE with` or `INTERFACE at SECONDS`".into()),
    };
    let mut all = Vec::new();
    for layer in layers.split(',').map(str::trim) {
        match named.iter().find(|(name, _)| *name == layer) {
            Some((_, layers)) => all.extend(layers.split(',')),
            None => all.push(layer),
        }
    }
    let layers: Vec<_> = all.into_iter().map(Layer::new).collect::<Result<_>>()?;
    Ok(Packet {
        interface: (*interface).into(),
        at,
        octets: frame(&layers)?,
    })
}

/// A layer: its name, and what is said of it.
struct Layer<'a> {
    name: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Layer<'a> {
    fn new(text: &'a str) -> Result<Self> {
        let mut words = text.split_whitespace();
        let name = words.next().ok_or("a layer is empty")?;
        let words = words.collect();
        Ok(Layer { name, words })
    }

    fn word<T: FromStr>(&self, n: usize) -> Result<T> {
        let word = self.words.get(n).and_then(|word| word.parse().ok());
        word.ok_or_else(|| format!("`{}` wants something else as its word {}", self.name, n + 1))
    }

    fn number(&self, n: usize) -> Result<u64> {
        let word: String = self.word(n)?;
        number(&word)
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    /// The number behind a word, if it is there.
    fn value(&self, word: &str) -> Result<Option<u64>> {
        let found = self.words.iter().position(|w| *w == word);
        found.map(|n| self.number(n + 1)).transpose()
    }

    fn or(&self, word: &str, usual: u64) -> Result<u64> {
        Ok(self.value(word)?.unwrap_or(usual))
    }

    /// The type by which Ethernet names it.
    fn ethertype(&self) -> Result<u16> {
        Ok(match self.name {
            "vlan" => self.or("tpid", 0x8100)? as u16,
            "discovery" => 0x8863,
            "pppoe" => 0x8864,
            "ipv4" => 0x0800,
            "ipv6" => 0x86dd,
            "arp" => 0x0806,
            _ => 0x88b5, // for experiments
        })
    }

    /// The number by which IP names it.
    fn protocol(&self) -> u64 {
        match self.name {
            "icmp" => 1,
            "tcp" => 6,
            "udp" => 17,
            "icmpv6" => 58,
            _ => 253, // for experiments
        }
    }
}

fn number(word: &str) -> Result<u64> {
    let parsed = match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => word.parse(),
    };
    parsed.map_err(|_| format!("`{word}` is no number"))
}

fn frame(layers: &[Layer<'_>]) -> Result<Vec<u8>> {
    let (layers, length) = match layers.split_last() {
        Some((last, rest)) if ["cut", "pad"].contains(&last.name) => (rest, Some(last.number(0)?)),
        _ => (layers, None),
    };
    let mut octets = build(layers, None)?;
    octets.resize(length.map_or(octets.len(), |n| n as usize), 0);
    Ok(octets)
}

/// Between whom a packet goes, for checksums.
type Ends = Option<(IpAddr, IpAddr)>;

fn build(layers: &[Layer<'_>], ends: Ends) -> Result<Vec<u8>> {
    let Some((layer, inside)) = layers.split_first() else {
        return Ok(Vec::new());
    };
    let next = inside.first();
    let inner = |ends| build(inside, ends);
    let within_ethernet = || match layer.value("type")? {
        Some(ethertype) => Ok(ethertype as u16),
        None => next.map_or(Ok(0x88b5), Layer::ethertype),
    };
    Ok(match layer.name {
        "eth" => {
            let (from, to): (MacAddr, MacAddr) = (layer.word(0)?, layer.word(2)?);
            [
                &to.0[..],
                &from.0,
                &within_ethernet()?.to_be_bytes(),
                &inner(None)?,
            ]
            .concat()
        }
        "vlan" => {
            let tci = (layer.or("pcp", 0)? << 13 | layer.number(0)?) as u16;
            [
                &tci.to_be_bytes()[..],
                &within_ethernet()?.to_be_bytes(),
                &inner(None)?,
            ]
            .concat()
        }
        "discovery" => {
            let (code, [high, low]) = (
                layer.number(0)? as u8,
                (layer.number(1)? as u16).to_be_bytes(),
            );
            vec![0x11, code, high, low, 0, 4, 1, 1, 0, 0] // any service
        }
        "pppoe" => pppoe(layer, next, inner(None)?)?,
        "ppp" => [&(layer.number(0)? as u16).to_be_bytes()[..], &inner(None)?].concat(),
        "arp" => arp(layer)?,
        "ipv4" => {
            let ends: (Ipv4Addr, Ipv4Addr) = (layer.word(0)?, layer.word(2)?);
            ipv4(
                layer,
                next,
                ends,
                inner(Some((ends.0.into(), ends.1.into())))?,
            )?
        }
        "ipv6" => {
            let ends: (Ipv6Addr, Ipv6Addr) = (layer.word(0)?, layer.word(2)?);
            ipv6(
                layer,
                next,
                ends,
                inner(Some((ends.0.into(), ends.1.into())))?,
            )?
        }
        "udp" | "tcp" | "icmp" | "icmpv6" => transport(layer, inner(None)?, ends)?,
        "text" => [layer.words.join(" ").into_bytes(), inner(None)?].concat(),
        "hex" => [hex(&layer.words.concat())?, inner(None)?].concat(),
        "zeros" => [vec![0; layer.number(0)? as usize], inner(None)?].concat(),
        other => return Err(format!("`{other}` is no layer, and no name of some")),
    })
}

fn hex(text: &str) -> Result<Vec<u8>> {
    let octet = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16)
            .ok()
            .filter(|_| pair.len() == 2)
    };
    let octets = text.as_bytes().chunks(2).map(octet).collect::<Option<_>>();
    octets.ok_or_else(|| format!("`{text}` are no octets in hexadecimal"))
}

fn pppoe(layer: &Layer<'_>, next: Option<&Layer<'_>>, inner: Vec<u8>) -> Result<Vec<u8>> {
    let protocol: &[u8] = match next.map(|layer| layer.name) {
        Some("ipv4") => &[0x00, 0x21],
        Some("ipv6") => &[0x00, 0x57],
        _ => &[],
    };
    let payload = [protocol, &inner].concat();
    let (version, code) = (layer.or("version", 0x11)? as u8, layer.or("code", 0)? as u8);
    let length = layer.or("length", payload.len() as u64)? as u16;
    let id = (layer.number(0)? as u16).to_be_bytes();
    Ok([&[version, code][..], &id, &length.to_be_bytes(), &payload].concat())
}

fn arp(layer: &Layer<'_>) -> Result<Vec<u8>> {
    let (mac, own, asked): (MacAddr, Ipv4Addr, Ipv4Addr) =
        (layer.word(0)?, layer.word(1)?, layer.word(3)?);
    let request = [0, 1, 8, 0, 6, 4, 0, 1];
    Ok([
        &request[..],
        &mac.0,
        &own.octets(),
        &[0; 6],
        &asked.octets(),
    ]
    .concat())
}

fn ipv4(
    layer: &Layer<'_>,
    next: Option<&Layer<'_>>,
    (source, destination): (Ipv4Addr, Ipv4Addr),
    inner: Vec<u8>,
) -> Result<Vec<u8>> {
    let options = ipv4_options(layer)?;
    let length = layer.or("length", (20 + options.len() + inner.len()) as u64)? as u16;
    let flags = u16::from(layer.has("df")) << 14 | u16::from(layer.has("mf")) << 13;
    let fragment = flags | (layer.or("offset", 0)? / 8) as u16;
    let protocol = layer.or("protocol", next.map_or(253, Layer::protocol))? as u8;
    let mut packet = vec![
        (layer.or("version", 4)? as u8) << 4 | (5 + options.len() / 4) as u8,
        (layer.or("dscp", 0)? << 2 | layer.or("ecn", 0)?) as u8,
    ];
    packet.extend(length.to_be_bytes());
    packet.extend((layer.or("id", 0)? as u16).to_be_bytes());
    packet.extend(fragment.to_be_bytes());
    packet.extend([layer.or("ttl", 64)? as u8, protocol, 0, 0]);
    packet.extend([source.octets(), destination.octets()].concat());
    packet.extend(options);
    let sum = layer.or("checksum", wire::checksum::of(&packet).into())? as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(inner);
    Ok(packet)
}

/// So many words of no operation, or an option with zeros behind it, which end the list.
fn ipv4_options(layer: &Layer<'_>) -> Result<Vec<u8>> {
    let Some(place) = layer.words.iter().position(|word| *word == "option") else {
        return Ok(vec![1; layer.or("options", 0)? as usize * 4]);
    };
    let mut options = hex(&layer.word::<String>(place + 1)?)?;
    options.resize(options.len().next_multiple_of(4), 0);
    Ok(options)
}

fn ipv6(
    layer: &Layer<'_>,
    next: Option<&Layer<'_>>,
    (source, destination): (Ipv6Addr, Ipv6Addr),
    inner: Vec<u8>,
) -> Result<Vec<u8>> {
    let length = layer.or("length", inner.len() as u64)? as u16;
    let next = layer.or("next", next.map_or(253, Layer::protocol))? as u8;
    let class = layer.or("dscp", 0)? << 2 | layer.or("ecn", 0)?;
    let first = layer.or("version", 6)? << 4 | class >> 4;
    let mut packet = vec![first as u8, (class << 4) as u8, 0, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([next, layer.or("hops", 64)? as u8]);
    packet.extend([source.octets(), destination.octets()].concat());
    packet.extend(inner);
    Ok(packet)
}

fn transport(layer: &Layer<'_>, inner: Vec<u8>, ends: Ends) -> Result<Vec<u8>> {
    let ports = || Ok::<_, String>([layer.number(0)? as u16, layer.number(2)? as u16]);
    let (mut octets, at) = match layer.name {
        "udp" => {
            let length = (8 + inner.len()) as u16;
            let words = [ports()?, [length, 0]].concat();
            (
                words
                    .into_iter()
                    .flat_map(u16::to_be_bytes)
                    .collect::<Vec<_>>(),
                6,
            )
        }
        "tcp" => {
            let mss = layer.value("mss")?;
            let flags = u8::from(layer.has("syn")) << 1 | u8::from(layer.has("ack")) << 4;
            let words = if mss.is_some() { 6 } else { 5 };
            let mut octets: Vec<_> = ports()?.into_iter().flat_map(u16::to_be_bytes).collect();
            octets.extend([
                0,
                0,
                0,
                1,
                0,
                0,
                0,
                0,
                words << 4,
                flags,
                0xff,
                0xff,
                0,
                0,
                0,
                0,
            ]);
            if let Some(mss) = mss {
                octets.extend([2, 4]);
                octets.extend((mss as u16).to_be_bytes());
            }
            (octets, 16)
        }
        _ => (
            vec![layer.number(0)? as u8, layer.or("code", 0)? as u8, 0, 0],
            2,
        ),
    };
    octets.extend(inner);
    let (protocol, length) = (layer.protocol() as u8, octets.len());
    let pseudo = match ends {
        _ if layer.name == "icmp" => Sum::default(),
        Some((IpAddr::V4(from), IpAddr::V4(to))) => pseudo_v4(from, to, protocol, length as u16),
        Some((IpAddr::V6(from), IpAddr::V6(to))) => pseudo_v6(from, to, protocol, length as u32),
        _ => return Err(format!("`{}` is not within IP", layer.name)),
    };
    let sum = match pseudo.bytes(&octets).finish() {
        0 if layer.name == "udp" => 0xffff,
        sum => sum,
    };
    octets[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    Ok(octets)
}

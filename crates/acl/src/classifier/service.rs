//! Everything of a packet but its addresses: classes of protocol, fragment, TCP flags, ports, code point and length.

use super::pages::Pages;
use super::sets::{Cut, Row, Rows, both, row};
use crate::packet::{Fragment, Packet4, Packet6, Upper};
use crate::rule::Rule;

/// What both families' packets have besides addresses. Each field is read where it is used: a copy on the stack costs more than
/// the tables.
pub(super) trait Fields {
    fn source_port(&self) -> u16;
    fn destination_port(&self) -> u16;
    fn length(&self) -> u16;
    fn dscp(&self) -> usize;
    fn upper(&self) -> Upper;
    /// Protocol, and behind all of them those of fragments other than the first one.
    fn protocol_and_place(&self) -> usize;
    /// The six TCP flags, or [`UNREAD`].
    fn flags(&self) -> usize;
}

macro_rules! fields {
    ($packet:ty) => {
        impl Fields for $packet {
            #[inline(always)]
            fn source_port(&self) -> u16 {
                self.source_port
            }

            #[inline(always)]
            fn destination_port(&self) -> u16 {
                self.destination_port
            }

            #[inline(always)]
            fn length(&self) -> u16 {
                self.length
            }

            #[inline(always)]
            fn dscp(&self) -> usize {
                usize::from(self.dscp) % 64
            }

            #[inline(always)]
            fn upper(&self) -> Upper {
                self.upper
            }

            #[inline(always)]
            fn protocol_and_place(&self) -> usize {
                usize::from(self.fragment == Fragment::Later) << 8 | usize::from(self.protocol)
            }

            #[inline(always)]
            fn flags(&self) -> usize {
                match self.upper {
                    Upper::Flags => usize::from(self.tcp_flags) % UNREAD,
                    _ => UNREAD,
                }
            }
        }
    };
}

fields!(Packet4);
fields!(Packet6);

/// TCP flags of a packet in which they cannot be read.
const UNREAD: usize = 64;
/// Space of one class of protocols in the table of flags.
const FLAGS: usize = UNREAD + 1;

/// Maps packets to their places in a row of words: all packets with the same places have the same rules, as far as addresses
/// permit.
pub(super) struct Service {
    /// By protocol, those of fragments other than the first one behind the others: the class's place in `flags`.
    protocols: Box<[u16; 512]>,
    flags: Box<[u16]>,
    destination_ports: Pages,
    source_ports: Pages,
    /// Where the words of destination ports and of source ports begin. Those of protocols and flags are before them.
    first: [usize; 2],
    pub(super) seldom: Option<Box<Seldom>>,
}

/// Dimensions that few lists name: code points and lengths.
pub(super) struct Seldom {
    dscps: [u16; 64],
    lengths: Pages,
    /// Where their words begin.
    first: [usize; 2],
}

impl Service {
    /// Compiles the rules. Returns the rows of all classes, by place, as well. Nothing if the rules tell too many ports apart.
    pub(super) fn new(rules: &[&Rule]) -> Option<(Service, Vec<Row>)> {
        let (protocols, protocol_rows) = protocols(rules);
        let (flags, rows) = flags(rules, &protocol_rows);
        let destination = cut(rules, |rule| rule.destination_ports.iter().collect())?;
        let source = cut(rules, source_ranges)?;
        let (dscps, dscp_rows) = dscps(rules);
        let length = cut(rules, |rule| rule.length.into_iter().collect())?;
        let (destination_ports, source_ports) = (Pages::new(&destination), Pages::new(&source));
        let lengths = Pages::new(&length);
        let mut places = Vec::new();
        let mut append = |rows: Rows| {
            places.extend(rows.iter().cloned());
            places.len() - rows.len()
        };
        append(rows);
        let first = [append(destination.rows), append(source.rows)];
        let seldom = (dscp_rows.len() > 1 || length.rows.len() > 1).then(|| {
            let first = [append(dscp_rows), append(length.rows)];
            Box::new(Seldom {
                dscps,
                lengths,
                first,
            })
        });
        let service = Service {
            protocols,
            flags,
            destination_ports,
            source_ports,
            first,
            seldom,
        };
        Some((service, places))
    }

    /// Places of a packet's words but for the seldom ones. Class 0 of ports is that of packets in which they cannot be read.
    #[inline(always)]
    pub(super) fn places(&self, fields: &impl Fields) -> [usize; 3] {
        let protocol = usize::from(self.protocols[fields.protocol_and_place()]);
        let class = self.flags[protocol + fields.flags()];
        let read = u16::from(fields.upper() != Upper::Unread).wrapping_neg();
        let destination = self.destination_ports.class(fields.destination_port()) & read;
        let source = self.source_ports.class(fields.source_port()) & read;
        [
            usize::from(class),
            self.first[0] + usize::from(destination),
            self.first[1] + usize::from(source),
        ]
    }

    pub(super) fn octets(&self) -> usize {
        let seldom = |seldom: &Seldom| size_of_val(seldom) + seldom.lengths.octets();
        let ports = self.destination_ports.octets() + self.source_ports.octets();
        let seldom = self.seldom.as_deref().map_or(0, seldom);
        size_of_val(&*self.protocols) + size_of_val(&*self.flags) + ports + seldom
    }
}

impl Seldom {
    /// Places of a packet's words.
    pub(super) fn places(&self, fields: &impl Fields) -> [usize; 2] {
        let dscp = usize::from(self.dscps[fields.dscp()]);
        let length = usize::from(self.lengths.class(fields.length()));
        [self.first[0] + dscp, self.first[1] + length]
    }
}

/// The table of protocols, and the rows of their classes.
fn protocols(rules: &[&Rule]) -> (Box<[u16; 512]>, Rows) {
    let mut rows = Rows::default();
    let mut table = Box::new([0; 512]);
    for later in [false, true] {
        let of = |protocol: Option<u8>| -> Row {
            row(rules.len(), |rule| {
                let rule = rules[rule];
                (rule.protocol.is_none() || rule.protocol == protocol) && (later || !rule.frag)
            })
        };
        let mut class = |protocol| {
            let class = rows.class(&of(protocol)).expect("at most 512 classes");
            class * FLAGS as u16
        };
        let first = usize::from(later) << 8;
        table[first..first + 256].fill(class(None));
        let mut named: Vec<u8> = rules.iter().filter_map(|rule| rule.protocol).collect();
        named.sort_unstable();
        named.dedup();
        for protocol in named {
            table[first + usize::from(protocol)] = class(Some(protocol));
        }
    }
    (table, rows)
}

/// The table of TCP flags for each class of protocols, and the rows of the classes of both.
fn flags(rules: &[&Rule], protocols: &Rows) -> (Box<[u16]>, Rows) {
    let mut rows = Rows::default();
    let mut table = vec![0; protocols.len() * FLAGS];
    for flags in 0..=UNREAD {
        let by_flags = row(rules.len(), |rule| {
            let asked = rules[rule].flags;
            asked.is_any() || flags < UNREAD && asked.contains(flags as u8)
        });
        for (protocol, by_protocol) in protocols.iter().enumerate() {
            let class = rows.class(&both(by_protocol, &by_flags));
            table[protocol * FLAGS + flags] = class.expect("at most 512 times 65 classes");
        }
    }
    (table.into(), rows)
}

/// Ranges of ports, or of ICMP's type and code.
fn source_ranges(rule: &Rule) -> Vec<(u16, u16)> {
    let types = rule
        .icmp_types
        .iter()
        .map(|(low, high)| (low << 8, high << 8 | 255));
    rule.source_ports.iter().chain(types).collect()
}

/// Cuts 16-bit numbers at the rules' ranges. A rule without ranges matches everywhere.
fn cut(rules: &[&Rule], of: impl Fn(&Rule) -> Vec<(u16, u16)>) -> Option<Cut> {
    let ranges: Vec<_> = rules.iter().map(|rule| of(rule)).collect();
    let always = row(rules.len(), |rule| ranges[rule].is_empty());
    let numbered = ranges.iter().enumerate().flat_map(|(rule, ranges)| {
        ranges
            .iter()
            .map(move |(low, high)| (rule, u128::from(*low), u128::from(*high)))
    });
    Cut::new(&always, u128::from(u16::MAX), numbered)
}

/// The class of each code point.
fn dscps(rules: &[&Rule]) -> ([u16; 64], Rows) {
    let mut rows = Rows::default();
    let table = std::array::from_fn(|dscp| {
        let row = row(rules.len(), |rule| {
            rules[rule].dscp.is_none_or(|set| set >> dscp & 1 == 1)
        });
        rows.class(&row).expect("at most 64 classes")
    });
    (table, rows)
}

//! Everything of a packet but its addresses: classes of protocol, fragment, TCP flags, ports, code point and length.

use super::pages::Pages;
use super::sets::{Cut, Fold, Row, Rows, both, row, words};
use crate::packet::{Fragment, Upper};
use crate::rule::Rule;

/// What both families' packets have besides addresses.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) length: u16,
    pub(super) protocol: u8,
    pub(super) dscp: u8,
    pub(super) tcp_flags: u8,
    pub(super) fragment: Fragment,
    pub(super) upper: Upper,
}

/// TCP flags of a packet in which they cannot be read.
const UNREAD: usize = 64;
/// Space of one class of protocols in the table of flags.
const FLAGS: usize = 128;

/// Maps packets to classes of services: all packets of a class have the same rules, as far as addresses permit.
pub(super) struct Service {
    /// By protocol, those of fragments other than the first one behind the others: the class's place in `flags`.
    protocols: Box<[u32; 512]>,
    flags: Box<[u16]>,
    destination_ports: Pages,
    source_ports: Pages,
    seldom: Option<Box<Seldom>>,
    ways: Ways,
}

/// Dimensions that few lists name.
struct Seldom {
    dscps: [u16; 64],
    lengths: Pages,
}

/// From the classes of the dimensions to sets of rules.
enum Ways {
    /// By tables to one class.
    Folded(Box<Folded>),
    /// The tables would be too large: each dimension has its own rows, in the order of [`Service::classes`].
    Apart([Box<[u64]>; 5]),
}

struct Folded {
    destination: Fold,
    source: Fold,
    seldom: Option<(Fold, Fold)>,
    rows: Rows,
}

impl Service {
    /// Most octets of the rows of folded classes.
    const MOST_ROWS: usize = 8 << 20;

    pub(super) fn new(rules: &[&Rule]) -> Service {
        let (protocols, protocol_rows) = protocols(rules);
        let (flags, rows) = flags(rules, &protocol_rows);
        let destination = cut_ports(rules, |rule| {
            (rule.destination_ports.is_any(), destination_ranges(rule))
        });
        let source = cut_ports(rules, |rule| {
            (
                rule.source_ports.is_any() && rule.icmp_types.is_any(),
                source_ranges(rule),
            )
        });
        let dscp = dscps(rules);
        let length = lengths(rules);
        let seldom = dscp.1.len() > 1 || length.rows.len() > 1;
        let ways = Folded::new(
            &rows,
            &destination.rows,
            &source.rows,
            seldom.then_some((&dscp.1, &length.rows)),
            Self::MOST_ROWS / 8 / words(rules.len()),
        );
        let apart = || {
            [
                &rows,
                &destination.rows,
                &source.rows,
                &dscp.1,
                &length.rows,
            ]
            .map(Rows::concatenated)
        };
        Service {
            protocols,
            flags,
            destination_ports: Pages::new(&destination),
            source_ports: Pages::new(&source),
            ways: ways.map_or_else(|| Ways::Apart(apart()), Ways::Folded),
            seldom: seldom.then(|| {
                Box::new(Seldom {
                    dscps: dscp.0,
                    lengths: Pages::new(&length),
                })
            }),
        }
    }

    /// Classes by protocol and flags, destination port and source port. Class 0 of ports is that of packets without them.
    #[inline]
    fn common(&self, fields: &Fields) -> [u16; 3] {
        let later = usize::from(fields.fragment == Fragment::Later) << 8;
        let protocol = self.protocols[later | usize::from(fields.protocol)];
        let flags = match fields.upper {
            Upper::Flags => usize::from(fields.tcp_flags) % UNREAD,
            _ => UNREAD,
        };
        let protocol = self.flags[protocol as usize + flags];
        let destination = self.destination_ports.class(fields.destination_port);
        let source = self.source_ports.class(fields.source_port);
        let ports = fields.upper >= Upper::Ports;
        [
            protocol,
            if ports { destination } else { 0 },
            if ports { source } else { 0 },
        ]
    }

    /// Classes by code point and length.
    fn seldom(&self, fields: &Fields) -> [u16; 2] {
        self.seldom.as_ref().map_or([0, 0], |seldom| {
            [
                seldom.dscps[usize::from(fields.dscp) % 64],
                seldom.lengths.class(fields.length),
            ]
        })
    }

    /// The class of a packet, if services are folded.
    #[inline]
    pub(super) fn class(&self, fields: &Fields) -> u16 {
        let Ways::Folded(folded) = &self.ways else {
            return 0;
        };
        let [protocol, destination, source] = self.common(fields);
        let class = folded
            .source
            .class(folded.destination.class(protocol, destination), source);
        match &folded.seldom {
            None => class,
            Some((dscps, lengths)) => {
                let [dscp, length] = self.seldom(fields);
                lengths.class(dscps.class(class, dscp), length)
            }
        }
    }

    /// The rows of all classes, if services are folded.
    pub(super) fn rows(&self) -> Option<&Rows> {
        match &self.ways {
            Ways::Folded(folded) => Some(&folded.rows),
            Ways::Apart(_) => None,
        }
    }

    /// Where a packet's rows begin, if services are not folded. `words` is the number of words of a row.
    #[inline]
    pub(super) fn apart(&self, fields: &Fields, words: usize) -> Option<[&[u64]; 5]> {
        let Ways::Apart(parts) = &self.ways else {
            return None;
        };
        let [protocol, destination, source] = self.common(fields);
        let [dscp, length] = self.seldom(fields);
        let classes = [protocol, destination, source, dscp, length];
        Some(std::array::from_fn(|part| {
            let from = usize::from(classes[part]) * words;
            &parts[part][from..from + words]
        }))
    }

    pub(super) fn octets(&self) -> usize {
        let ways = match &self.ways {
            Ways::Folded(folded) => folded.octets(),
            Ways::Apart(parts) => parts.iter().map(|part| size_of_val(&**part)).sum(),
        };
        let seldom = self
            .seldom
            .as_ref()
            .map_or(0, |seldom| size_of_val(&**seldom) + seldom.lengths.octets());
        let ports = self.destination_ports.octets() + self.source_ports.octets();
        size_of_val(&*self.protocols) + size_of_val(&*self.flags) + ports + seldom + ways
    }
}

impl Folded {
    fn new(
        protocol: &Rows,
        destination: &Rows,
        source: &Rows,
        seldom: Option<(&Rows, &Rows)>,
        most_rows: usize,
    ) -> Option<Box<Folded>> {
        let (destination, rows) = Fold::new(protocol, destination, most_rows)?;
        let (source, mut rows) = Fold::new(&rows, source, most_rows)?;
        let mut folds = None;
        if let Some((dscp, length)) = seldom {
            let (by_dscp, more) = Fold::new(&rows, dscp, most_rows)?;
            let (by_length, more) = Fold::new(&more, length, most_rows)?;
            folds = Some((by_dscp, by_length));
            rows = more;
        }
        Some(Box::new(Folded {
            destination,
            source,
            seldom: folds,
            rows,
        }))
    }

    fn octets(&self) -> usize {
        let seldom = self
            .seldom
            .as_ref()
            .map_or(0, |(dscps, lengths)| dscps.octets() + lengths.octets());
        self.destination.octets() + self.source.octets() + seldom
    }
}

/// The table of protocols, and the rows of their classes.
fn protocols(rules: &[&Rule]) -> (Box<[u32; 512]>, Rows) {
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
            u32::from(class) * FLAGS as u32
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
    let mut table = vec![0; protocols.len() * FLAGS].into_boxed_slice();
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
    (table, rows)
}

fn destination_ranges(rule: &Rule) -> Vec<(u16, u16)> {
    rule.destination_ports.iter().collect()
}

/// Ranges of ports, or of ICMP's type and code.
fn source_ranges(rule: &Rule) -> Vec<(u16, u16)> {
    let types = rule
        .icmp_types
        .iter()
        .map(|(low, high)| (low << 8, high << 8 | 255));
    rule.source_ports.iter().chain(types).collect()
}

/// Cuts the ports at the ranges that `of` returns for the rules for which it does not say that any will do.
fn cut_ports<'a>(rules: &'a [&Rule], of: impl Fn(&'a Rule) -> (bool, Vec<(u16, u16)>)) -> Cut {
    let always = row(rules.len(), |rule| of(rules[rule]).0);
    let ranges = rules.iter().enumerate().flat_map(|(number, rule)| {
        let ranges = of(rule).1.into_iter();
        ranges.map(move |(low, high)| (number, u128::from(low), u128::from(high)))
    });
    Cut::new(&always, u128::from(u16::MAX), ranges)
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

fn lengths(rules: &[&Rule]) -> Cut {
    cut_ports(rules, |rule| {
        (rule.length.is_none(), rule.length.into_iter().collect())
    })
}

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
    /// Nothing: the tables would be too large.
    folded: Option<Box<Folded>>,
}

/// Dimensions that few lists name.
struct Seldom {
    dscps: [u16; 64],
    lengths: Pages,
}

struct Folded {
    destination: Fold,
    source: Fold,
    seldom: Option<(Fold, Fold)>,
}

impl Service {
    /// Most octets of the rows of folded classes.
    const MOST_ROWS: usize = 8 << 20;

    /// Compiles the rules. Returns the rows of the folded classes, or else those of each of the five dimensions as well.
    /// Nothing if the rules tell too many ports apart.
    pub(super) fn new(rules: &[&Rule]) -> Option<(Service, Vec<Rows>)> {
        let (protocols, protocol_rows) = protocols(rules);
        let (flags, rows) = flags(rules, &protocol_rows);
        let destination = cut(rules, |rule| rule.destination_ports.iter().collect())?;
        let source = cut(rules, source_ranges)?;
        let (dscps, dscp_rows) = dscps(rules);
        let length = cut(rules, |rule| rule.length.into_iter().collect())?;
        let seldom = (dscp_rows.len() > 1 || length.rows.len() > 1).then(|| {
            Box::new(Seldom {
                dscps,
                lengths: Pages::new(&length),
            })
        });
        let ports = (Pages::new(&destination), Pages::new(&source));
        let dimensions = [rows, destination.rows, source.rows, dscp_rows, length.rows];
        let folded = Folded::new(
            &dimensions,
            seldom.is_some(),
            Self::MOST_ROWS / 8 / words(rules.len()),
        );
        let (folded, rows) = match folded {
            Some((folded, rows)) => (Some(folded), vec![rows]),
            None => (None, dimensions.into()),
        };
        let (destination_ports, source_ports) = ports;
        let service = Service {
            protocols,
            flags,
            destination_ports,
            source_ports,
            seldom,
            folded,
        };
        Some((service, rows))
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
    pub(super) fn class(&self, fields: &Fields) -> Option<u16> {
        let folded = self.folded.as_ref()?;
        let [protocol, destination, source] = self.common(fields);
        let class = folded
            .source
            .class(folded.destination.class(protocol, destination), source);
        let Some((dscps, lengths)) = &folded.seldom else {
            return Some(class);
        };
        let [dscp, length] = self.seldom(fields);
        Some(lengths.class(dscps.class(class, dscp), length))
    }

    /// The classes of a packet in each dimension.
    pub(super) fn apart(&self, fields: &Fields) -> [usize; 5] {
        let [protocol, destination, source] = self.common(fields);
        let [dscp, length] = self.seldom(fields);
        [protocol, destination, source, dscp, length].map(usize::from)
    }

    pub(super) fn octets(&self) -> usize {
        let folded = self.folded.as_ref().map_or(0, |folded| folded.octets());
        let seldom = self
            .seldom
            .as_ref()
            .map_or(0, |seldom| size_of_val(&**seldom) + seldom.lengths.octets());
        let ports = self.destination_ports.octets() + self.source_ports.octets();
        size_of_val(&*self.protocols) + size_of_val(&*self.flags) + ports + seldom + folded
    }
}

impl Folded {
    /// Folds the dimensions, the last two of them only if they are named. Nothing if there would be more than `most` rows.
    fn new(dimensions: &[Rows; 5], seldom: bool, most: usize) -> Option<(Box<Folded>, Rows)> {
        let [protocol, destination, source, dscp, length] = dimensions;
        let (destination, rows) = Fold::new(protocol, destination, most)?;
        let (source, mut rows) = Fold::new(&rows, source, most)?;
        let mut folds = None;
        if seldom {
            let (by_dscp, more) = Fold::new(&rows, dscp, most)?;
            let (by_length, more) = Fold::new(&more, length, most)?;
            folds = Some((by_dscp, by_length));
            rows = more;
        }
        Some((
            Box::new(Folded {
                destination,
                source,
                seldom: folds,
            }),
            rows,
        ))
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

//! Everything of a packet but its addresses: classes of protocol, fragment, TCP flags, ports, code point and length.

use super::pages::Pages;
use super::sets::{Cut, Fold, Row, Rows, both, row, words};
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

/// Maps packets to classes of services: all packets of a class have the same rules, as far as addresses permit.
pub(super) enum Service {
    /// Folded to one class.
    Folded(Folded),
    /// The folded tables would be too large: a class in each dimension.
    Apart(Box<Apart>),
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
        let apart = Apart {
            protocols,
            flags,
            destination_ports: Pages::new(&destination),
            source_ports: Pages::new(&source),
            dscps,
            lengths: Pages::new(&length),
        };
        let dimensions = [rows, destination.rows, source.rows, dscp_rows, length.rows];
        let most_rows = Self::MOST_ROWS / 8 / words(rules.len());
        Some(match Folded::new(&apart, &dimensions, most_rows) {
            Some((folded, rows)) => (Service::Folded(folded), vec![rows]),
            None => (Service::Apart(Box::new(apart)), dimensions.into()),
        })
    }

    pub(super) fn octets(&self) -> usize {
        match self {
            Service::Folded(folded) => folded.octets(),
            Service::Apart(apart) => size_of_val(&**apart) + apart.octets(),
        }
    }
}

/// Classes of each dimension.
pub(super) struct Apart {
    /// By protocol, those of fragments other than the first one behind the others: the class's place in `flags`.
    protocols: Box<[u32; 512]>,
    flags: Box<[u16]>,
    destination_ports: Pages,
    source_ports: Pages,
    dscps: [u16; 64],
    lengths: Pages,
}

impl Apart {
    /// Class 0 of ports is that of packets in which they cannot be read.
    pub(super) fn classes(&self, fields: &impl Fields) -> [usize; 5] {
        let protocol = self.protocols[fields.protocol_and_place()] as usize + fields.flags();
        let ports = match fields.upper() {
            Upper::Unread => [0, 0],
            _ => [
                self.destination_ports.class(fields.destination_port()),
                self.source_ports.class(fields.source_port()),
            ],
        };
        let dscp = self.dscps[fields.dscp()];
        let length = self.lengths.class(fields.length());
        [self.flags[protocol], ports[0], ports[1], dscp, length].map(usize::from)
    }

    fn octets(&self) -> usize {
        let ports = self.destination_ports.octets() + self.source_ports.octets();
        size_of_val(&*self.protocols) + size_of_val(&*self.flags) + ports + self.lengths.octets()
    }
}

/// Tables that lead from one to the next, in one piece of memory: an entry is the place of the next table. Each place is
/// valid, so that no look-up has to be checked.
pub(super) struct Folded {
    places: Box<[u16; 1 << 16]>,
    seldom: Option<Box<Seldom>>,
}

/// Dimensions that few lists name.
struct Seldom {
    dscps: [u16; 64],
    lengths: Pages,
    by_dscp: Fold,
    by_length: Fold,
}

/// Places of the first tables: upper bits of ports, and protocols.
const DESTINATION_PORTS: usize = 0;
const SOURCE_PORTS: usize = 1024;
const PROTOCOLS: usize = 2048;
const OTHERS: usize = 2560;

impl Folded {
    /// Folds the dimensions. Nothing if there would be more than `most` rows, or the tables had no place.
    fn new(apart: &Apart, dimensions: &[Rows; 5], most: usize) -> Option<(Folded, Rows)> {
        let [protocol, destination, source, dscp, length] = dimensions;
        let (by_destination, rows) = Fold::new(protocol, destination, most)?;
        let (by_source, mut rows) = Fold::new(&rows, source, most)?;
        let mut seldom = None;
        if dscp.len() > 1 || length.len() > 1 {
            let (by_dscp, more) = Fold::new(&rows, dscp, most)?;
            let (by_length, more) = Fold::new(&more, length, most)?;
            let (dscps, lengths) = (apart.dscps, apart.lengths.clone());
            seldom = Some(Box::new(Seldom {
                dscps,
                lengths,
                by_dscp,
                by_length,
            }));
            rows = more;
        }
        let mut places = vec![0; OTHERS];
        for (first, ports) in [
            (DESTINATION_PORTS, &apart.destination_ports),
            (SOURCE_PORTS, &apart.source_ports),
        ] {
            let pages = places.len();
            places.extend(ports.pages());
            let top = ports.top().map(|page| pages + page);
            places.splice(first..first + 1024, top);
        }
        let flags = places.len();
        let protocols = apart.protocols.iter().map(|place| flags + *place as usize);
        places.splice(PROTOCOLS..PROTOCOLS + 512, protocols);
        let folds = flags + apart.flags.len();
        places.extend(
            apart
                .flags
                .iter()
                .map(|class| folds + by_destination.place(*class)),
        );
        let last = folds + by_destination.len();
        places.extend(
            by_destination
                .iter()
                .map(|class| last + by_source.place(class)),
        );
        places.extend(by_source.iter().map(usize::from));
        if places.len() > 1 << 16 {
            return None;
        }
        places.resize(1 << 16, 0);
        let places: Box<[u16]> = places.into_iter().map(|place| place as u16).collect();
        let places = places.try_into().ok()?;
        Some((Folded { places, seldom }, rows))
    }

    #[inline(always)]
    fn at(&self, place: usize) -> usize {
        usize::from(self.places[place % (1 << 16)])
    }

    /// Class 0 of ports is that of packets in which they cannot be read.
    #[inline(always)]
    pub(super) fn class(&self, fields: &impl Fields) -> usize {
        let flags = self.at(PROTOCOLS + fields.protocol_and_place());
        let by_destination = self.at(flags + fields.flags());
        let class = |top: usize, port: u16| {
            let page = self.at(top + usize::from(port) / 64);
            self.at(page + usize::from(port) % 64)
        };
        let destination = class(DESTINATION_PORTS, fields.destination_port());
        let source = class(SOURCE_PORTS, fields.source_port());
        let read = usize::from(fields.upper() != Upper::Unread).wrapping_neg();
        let by_source = self.at(by_destination + (destination & read));
        let class = self.at(by_source + (source & read));
        match &self.seldom {
            None => class,
            Some(seldom) => seldom.class(class, fields),
        }
    }

    fn octets(&self) -> usize {
        let seldom = |seldom: &Seldom| {
            let folds = seldom.by_dscp.octets() + seldom.by_length.octets();
            size_of_val(seldom) + seldom.lengths.octets() + folds
        };
        size_of_val(&*self.places) + self.seldom.as_ref().map_or(0, |found| seldom(found))
    }
}

impl Seldom {
    #[inline(never)]
    fn class(&self, class: usize, fields: &impl Fields) -> usize {
        let dscp = self.dscps[fields.dscp()];
        let by_length = self.by_dscp.class(class as u16, dscp);
        self.by_length
            .class(by_length, self.lengths.class(fields.length()))
            .into()
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

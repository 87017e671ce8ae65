//! Everything of a packet but its addresses: classes of protocol, fragment, TCP flags, ports, code point and length.

use super::pages::Pages;
use super::sets::{Cut, Row, Rows, row};
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
    fn protocol(&self) -> u8;
    /// Whether the packet is a fragment other than the first one.
    fn is_later(&self) -> bool;
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
            fn protocol(&self) -> u8 {
                self.protocol
            }

            #[inline(always)]
            fn is_later(&self) -> bool {
                self.fragment == Fragment::Later
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
/// Combinations of TCP flags, and [`UNREAD`].
const FLAGS: usize = UNREAD + 1;

/// Maps packets to their places in a row of words: all packets with the same places have the same rules, as far as addresses
/// permit.
pub(super) struct Service {
    protocols: [u16; 256],
    destination_ports: Ports,
    source_ports: Ports,
    pub(super) more: More,
}

/// Dimensions that not all lists name.
pub(super) enum More {
    Nothing,
    /// TCP flags and fragments.
    Flags(Box<Flags>),
    /// Those, code points and lengths.
    All(Box<Seldom>),
}

/// Places by TCP flags, those of fragments other than the first one behind the others.
pub(super) struct Flags([u16; 2 * FLAGS]);

/// Places by port.
struct Ports {
    pages: Pages,
    /// Place of packets in which ports cannot be read.
    unread: u16,
}

/// Places by what few lists name.
pub(super) struct Seldom {
    flags: Flags,
    dscps: [u16; 64],
    lengths: Pages,
}

impl Service {
    /// Compiles the rules. Returns the rows of all places as well. Nothing if the rules tell too many numbers apart.
    pub(super) fn new(rules: &[&Rule]) -> Option<(Service, Vec<Row>)> {
        let mut rows = Vec::new();
        let protocols = protocols(rules, &mut rows)?;
        let destination_ports = Ports::new(rules, &mut rows, |rule| {
            rule.destination_ports.iter().collect()
        })?;
        let source_ports = Ports::new(rules, &mut rows, source_ranges)?;
        let any = |is_named: fn(&Rule) -> bool| rules.iter().any(|rule| is_named(rule));
        let more = if any(|rule| rule.dscp.is_some() || rule.length.is_some()) {
            More::All(Box::new(Seldom::new(rules, &mut rows)?))
        } else if any(|rule| rule.frag || !rule.flags.is_any()) {
            More::Flags(Box::new(Flags::new(rules, &mut rows)?))
        } else {
            More::Nothing
        };
        let service = Service {
            protocols,
            destination_ports,
            source_ports,
            more,
        };
        Some((service, rows))
    }

    /// Places of a packet's words but for those of [`More`].
    #[inline(always)]
    pub(super) fn places(&self, fields: &impl Fields) -> [u16; 3] {
        let is_read = fields.upper() != Upper::Unread;
        [
            self.protocols[usize::from(fields.protocol())],
            self.destination_ports
                .place(fields.destination_port(), is_read),
            self.source_ports.place(fields.source_port(), is_read),
        ]
    }

    pub(super) fn octets(&self) -> usize {
        let ports = self.destination_ports.pages.octets() + self.source_ports.pages.octets();
        ports
            + match &self.more {
                More::Nothing => 0,
                More::Flags(flags) => size_of_val(&**flags),
                More::All(seldom) => size_of_val(&**seldom) + seldom.lengths.octets(),
            }
    }
}

impl Ports {
    fn new(
        rules: &[&Rule],
        rows: &mut Vec<Row>,
        of: impl Fn(&Rule) -> Vec<(u16, u16)>,
    ) -> Option<Ports> {
        let unread = rows.len() as u16;
        let pages = numbers(rules, rows, of)?;
        Some(Ports { pages, unread })
    }

    #[inline(always)]
    fn place(&self, port: u16, is_read: bool) -> u16 {
        let place = self.pages.place(port);
        if is_read { place } else { self.unread }
    }
}

impl Flags {
    fn new(rules: &[&Rule], rows: &mut Vec<Row>) -> Option<Flags> {
        let flags = table(rules, rows, |place, rule| {
            let (is_later, flags) = (place >= FLAGS, place % FLAGS);
            let is_asked = flags < UNREAD && rule.flags.contains(flags as u8);
            (rule.flags.is_any() || is_asked) && (is_later || !rule.frag)
        });
        flags.map(Flags)
    }

    /// Place of a packet's word.
    #[inline(always)]
    pub(super) fn place(&self, fields: &impl Fields) -> u16 {
        self.0[usize::from(fields.is_later()) * FLAGS + fields.flags()]
    }
}

impl Seldom {
    fn new(rules: &[&Rule], rows: &mut Vec<Row>) -> Option<Seldom> {
        let flags = Flags::new(rules, rows)?;
        let dscps = table(rules, rows, |dscp, rule| {
            rule.dscp.is_none_or(|set| set >> dscp & 1 == 1)
        })?;
        let lengths = numbers(rules, rows, |rule| rule.length.into_iter().collect())?;
        Some(Seldom {
            flags,
            dscps,
            lengths,
        })
    }

    /// Places of a packet's words.
    pub(super) fn places(&self, fields: &impl Fields) -> [u16; 3] {
        let (flags, dscp) = (self.flags.place(fields), self.dscps[fields.dscp()]);
        [flags, dscp, self.lengths.place(fields.length())]
    }
}

/// Appends rows, and returns the place of their first one. Nothing if places would not fit into 16 bits.
fn append(rows: &mut Vec<Row>, more: &Rows) -> Option<u16> {
    let first = rows.len();
    rows.extend(more.iter().cloned());
    u16::try_from(rows.len()).ok()?;
    Some(first as u16)
}

/// The place of each number below N.
fn table<const N: usize>(
    rules: &[&Rule],
    rows: &mut Vec<Row>,
    is_in: impl Fn(usize, &Rule) -> bool,
) -> Option<[u16; N]> {
    let mut known = Rows::default();
    let mut table = [0; N];
    for (number, entry) in table.iter_mut().enumerate() {
        let row = row(rules.len(), |rule| is_in(number, rules[rule]));
        *entry = known.class(&row)?;
    }
    let first = append(rows, &known)?;
    Some(table.map(|class| first + class))
}

/// The place of each protocol.
fn protocols(rules: &[&Rule], rows: &mut Vec<Row>) -> Option<[u16; 256]> {
    let mut known = Rows::default();
    let mut class = |protocol: Option<u8>| {
        known.class(&row(rules.len(), |rule| {
            let asked = rules[rule].protocol;
            asked.is_none() || asked == protocol
        }))
    };
    let mut table = [class(None)?; 256];
    let mut named: Vec<u8> = rules.iter().filter_map(|rule| rule.protocol).collect();
    named.sort_unstable();
    named.dedup();
    for protocol in named {
        table[usize::from(protocol)] = class(Some(protocol))?;
    }
    let first = append(rows, &known)?;
    Some(table.map(|class| first + class))
}

/// Ranges of ports, or of ICMP's type and code.
fn source_ranges(rule: &Rule) -> Vec<(u16, u16)> {
    let types = rule
        .icmp_types
        .iter()
        .map(|(low, high)| (low << 8, high << 8 | 255));
    rule.source_ports.iter().chain(types).collect()
}

/// The place of each 16-bit number by the rules' ranges. A rule without ranges matches everywhere. The first row is that of rules
/// without ranges.
fn numbers(
    rules: &[&Rule],
    rows: &mut Vec<Row>,
    of: impl Fn(&Rule) -> Vec<(u16, u16)>,
) -> Option<Pages> {
    let ranges: Vec<_> = rules.iter().map(|rule| of(rule)).collect();
    let always = row(rules.len(), |rule| ranges[rule].is_empty());
    let numbered = ranges.iter().enumerate().flat_map(|(rule, ranges)| {
        let ranges = ranges.iter();
        ranges.map(move |(low, high)| (rule, u32::from(*low), u32::from(*high)))
    });
    let cut = Cut::new(&always, numbered)?;
    let first = append(rows, &cut.rows)?;
    Some(Pages::new(&cut, first))
}

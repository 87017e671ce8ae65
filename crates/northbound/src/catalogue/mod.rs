//! The catalogue of the local API: each table and each action that it offers, declared once.
//!
//! The declarations are data: names, columns with types and units, arguments, and who may. They know no terminal. The server
//! lets callers in by them, and the command line makes its tables, its help and its completion of them. Messages in
//! `proto/` stay the wire format; `tests/catalogue.rs` compares the two.
//!
//! ```
//! use northbound::catalogue::{Access, PORTS, access_of};
//!
//! assert_eq!(PORTS.key, ["user_plane", "name"]);
//! assert_eq!(access_of("/sluice.v1.Tables/ListPorts"), Access::Read);
//! assert_eq!(access_of("/sluice.v1.Configuration/Commit"), Access::Change);
//! ```

mod actions;
mod filter;
// a line for each column
#[rustfmt::skip]
mod tables;

use actions::EVENT_KINDS;
pub use actions::*;
pub use filter::*;
pub use tables::*;

/// What a caller needs for a table or an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Everybody whom the socket lets in.
    Read,
    /// Root, the daemon's user, and the members of the daemon's group: something changes, or subscribers' traffic is shown.
    Change,
}

/// A table of the local API.
#[derive(Debug)]
pub struct Table {
    /// Its name, as `sluice show` knows it.
    pub name: &'static str,
    /// One line: what it shows.
    pub about: &'static str,
    /// The message of a row; `None` for rows that the client makes of other messages.
    pub message: Option<&'static str>,
    /// The columns that tell a row from all others.
    pub key: &'static [&'static str],
    /// The gRPC methods that it is read by.
    pub calls: &'static [&'static str],
    /// Who may read it.
    pub access: Access,
    /// Its rows name subscribers: users, MAC addresses, their addresses.
    pub subscribers: bool,
    /// What may be asked for.
    pub arguments: &'static [Argument],
    /// Its columns, in the order of a page.
    pub columns: &'static [Column],
}

/// An action: whatever the local API offers beside its tables.
#[derive(Debug)]
pub struct Action {
    /// Its name, as the command line knows it.
    pub name: &'static str,
    /// One line: what it does.
    pub about: &'static str,
    /// The gRPC methods that it uses.
    pub calls: &'static [&'static str],
    /// Who may.
    pub access: Access,
    /// What it is told.
    pub arguments: &'static [Argument],
}

/// A column of a table.
#[derive(Debug)]
pub struct Column {
    /// The field of the row, such as `traffic.up_octets`.
    pub field: &'static str,
    /// Its type and unit.
    pub kind: Kind,
    /// Where a page of text has it.
    pub place: Place,
    /// What is shown where the row has no value.
    pub absent: &'static str,
    /// The field is not in the row: whoever shows it makes it of others.
    pub derived: bool,
    /// What it is to who collects metrics.
    pub metric: Metric,
    /// One line: what it is.
    pub about: &'static str,
}

/// What a column is to who collects metrics.
///
/// A column's series have the label columns of its table. Rows that have the same labels are added up. A table with labels and
/// without values counts its rows by their labels. So no table has a series for each subscriber, session or line. Tables are read at
/// each scrape: one whose cost rises with the number of sessions has no metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Nothing.
    None,
    /// It tells series from each other.
    Label,
    /// A number that only rises, until its daemon starts again.
    Counter,
    /// A number that rises and falls, a flag (0 or 1), or a word: a series of value 1 that has the word as a label.
    Gauge,
}

/// The type of a column, and its unit.
#[derive(Debug)]
pub enum Kind {
    /// A text: a name, an address, a sentence.
    Text,
    /// Texts.
    Texts,
    /// A number.
    Number(Unit),
    /// One of a few words. Those named here are shown as the second of each pair.
    Word(Words),
    /// True, or there: the first word. Otherwise the second.
    Flag(&'static str, &'static str),
    /// Small rows that one cell has room for.
    Cell(&'static [Column]),
    /// Rows below this one, in the columns of the same headings.
    Rows {
        /// Their columns.
        columns: &'static [Column],
        /// Fields of this row that each of them repeats.
        repeated: &'static [&'static str],
    },
}

/// Words that are shown as others.
pub type Words = &'static [(&'static str, &'static str)];

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// It counts nothing, it names something: a VLAN id.
    Id,
    /// The length of a prefix, in bits.
    PrefixLength,
    /// Things, all of them.
    Exact,
    /// Things that are many, such as packets: three digits do.
    Count,
    /// Octets.
    Octets,
    /// Bits in a second.
    BitsPerSecond,
    /// Nanoseconds that something took.
    Nanoseconds,
    /// Microseconds that something took.
    Microseconds,
    /// Seconds that something took, or goes on for.
    Seconds,
    /// Seconds since something.
    SecondsAgo,
    /// A moment in seconds since 1970.
    Time,
    /// The same, of which the time since then matters.
    TimeAgo,
}

/// Where a page of text has a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere: it is in JSON only.
    Nowhere,
    /// Under a heading, with how soon it may go on a narrow page (0: never).
    Under(&'static str, u8),
    /// In the cell of the column before, behind this text. A name that begins with the one before and a `/` stands alone.
    Beside(&'static str),
}

impl Column {
    /// A column that is in JSON only.
    const fn new(field: &'static str, kind: Kind, about: &'static str) -> Self {
        Column {
            field,
            kind,
            place: Place::Nowhere,
            absent: "",
            derived: false,
            metric: Metric::None,
            about,
        }
    }

    /// A column that whoever shows the row makes of others.
    const fn derived(field: &'static str, kind: Kind, about: &'static str) -> Self {
        Column {
            derived: true,
            ..Column::new(field, kind, about)
        }
    }

    const fn under(self, heading: &'static str, expendable: u8) -> Self {
        let place = Place::Under(heading, expendable);
        Column { place, ..self }
    }

    const fn beside(self, between: &'static str) -> Self {
        let place = Place::Beside(between);
        Column { place, ..self }
    }

    const fn or(self, absent: &'static str) -> Self {
        Column { absent, ..self }
    }

    const fn label(self) -> Self {
        let metric = Metric::Label;
        Column { metric, ..self }
    }

    const fn counter(self) -> Self {
        let metric = Metric::Counter;
        Column { metric, ..self }
    }

    const fn gauge(self) -> Self {
        let metric = Metric::Gauge;
        Column { metric, ..self }
    }
}

/// Something that a table or an action is told.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// What may be given.
    pub takes: Takes,
    /// It has to be given.
    pub required: bool,
    /// A command line has it behind its name, whatever it takes: it is one of many.
    pub named: bool,
    /// Who may give it.
    pub access: Access,
    /// One line: what it is.
    pub about: &'static str,
}

/// What an argument may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// It is given or not.
    Nothing,
    /// A user plane's node id.
    UserPlane,
    /// Name of an ACL.
    Acl,
    /// Name of a port, segment or VLAN with queues.
    QueueAggregate,
    /// A session's id.
    Session,
    /// A user's name, a MAC address, a session's id or an address.
    Subscriber,
    /// The same, of which a MAC address need not have a session.
    Home,
    /// A name.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// An IPv4 or IPv6 address or prefix.
    Address,
    /// A moment.
    Time,
    /// A whole number, at least and at most.
    Number(u64, u64),
}

impl Argument {
    const fn new(name: &'static str, takes: Takes, about: &'static str) -> Self {
        Argument {
            name,
            takes,
            required: false,
            named: false,
            access: Access::Read,
            about,
        }
    }

    const fn required(self) -> Self {
        Argument {
            required: true,
            ..self
        }
    }

    const fn named(self) -> Self {
        Argument {
            named: true,
            ..self
        }
    }

    const fn needs(self, access: Access) -> Self {
        Argument { access, ..self }
    }
}

impl Table {
    /// Whether it has metrics. Then it is read again and again, and its cost does not rise with the number of sessions.
    pub fn has_metrics(&self) -> bool {
        self.columns.iter().any(|c| c.metric != Metric::None)
    }
}

/// What a gRPC method needs, by its path. Where several declarations use it, the least; where none does, [`Access::Change`].
pub fn access_of(path: &str) -> Access {
    let method = path.strip_prefix("/sluice.v1.").unwrap_or_default();
    let tables = TABLES.iter().map(|table| (table.calls, table.access));
    let actions = ACTIONS.iter().map(|action| (action.calls, action.access));
    let all = tables.chain(actions);
    let of_method = all.filter(|(calls, _)| calls.contains(&method));
    let least = of_method.map(|(_, access)| access).min();
    least.unwrap_or(Access::Change)
}

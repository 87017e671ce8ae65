//! Events of the history, and their encoding.

use super::bindings::{self, Others};
use super::keys::Key;
use crate::alarms::Fault;
use pfcp::bng::Volume;
use policy::Bindings;
use serde::{Deserialize, Serialize};
use session::Cause;

/// Event of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event<'a> {
    /// Time in seconds since 1970.
    pub unix: u32,
    /// What.
    #[serde(borrow)]
    pub what: What<'a>,
}

/// Content of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What<'a> {
    /// Event of a subscriber.
    Subscriber(#[serde(borrow)] Subscriber<'a>, #[serde(borrow)] Step<'a>),
    /// Event of the system.
    System {
        /// Kind of event.
        kind: Kind,
        /// User plane, server, pool or version that it concerns; empty for the control plane as a whole.
        resource: &'a str,
        /// Person who caused it, if any.
        by: Option<&'a str>,
        /// Description.
        text: &'a str,
    },
    /// An alarm was raised or cleared.
    Alarm {
        /// Whether it was raised.
        raised: bool,
        /// Kind of fault.
        fault: Fault,
        /// Resource that it concerns; empty for the control plane as a whole.
        resource: &'a str,
        /// Description.
        text: &'a str,
    },
    /// An operator acknowledged an alarm.
    Acknowledged {
        /// Kind of fault.
        fault: Fault,
        /// Resource that it concerns; empty for the control plane as a whole.
        resource: &'a str,
        /// The operator.
        by: &'a str,
        /// Comment; empty: none.
        comment: &'a str,
    },
}

impl<'a> What<'a> {
    /// The user plane that it happened to a subscriber on; empty: it happened to none.
    pub(super) fn user_plane(&self) -> &'a str {
        match self {
            What::Subscriber(who, _) => who.user_plane,
            What::System { .. } | What::Alarm { .. } | What::Acknowledged { .. } => "",
        }
    }
}

/// Subscriber with its access line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscriber<'a> {
    /// The session's SEID, also its Acct-Session-Id.
    pub session: u64,
    /// User name; empty before the subscriber sent one.
    pub user: &'a [u8],
    /// Its MAC address.
    pub mac: [u8; 6],
    /// The user plane's node id.
    pub user_plane: &'a str,
    /// The access port.
    pub port: &'a str,
    /// Outer and inner VLAN id.
    pub vlans: [Option<u16>; 2],
    /// Circuit and remote id of the line (TR-101), as far as they are known.
    pub line: [Option<&'a [u8]>; 2],
}

impl Subscriber<'_> {
    /// Access line, as NAS-Port-Id names it: `up1/access0.100.7`.
    pub fn place(&self) -> String {
        let [outer, inner] = self
            .vlans
            .map(|id| id.map_or(String::new(), |id| format!(".{id}")));
        format!("{}/{}{outer}{inner}", self.user_plane, self.port)
    }
}

/// Event of a subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step<'a> {
    /// AAA rejected it.
    Refused {
        /// Time of its PADR, in seconds since 1970.
        dialled: u32,
        /// Server group that rejected it; `None` for the local users.
        servers: Option<&'a str>,
        /// Reason.
        why: &'a str,
        /// Text for the subscriber (Reply-Message).
        reply: &'a [u8],
    },
    /// Its session ended before it was online, for another reason.
    Failed {
        /// Time of its PADR.
        dialled: u32,
        /// Reason.
        cause: Cause,
    },
    /// It came online with bindings.
    Online {
        /// Time of its PADR.
        dialled: u32,
        /// Server group that authenticated it; `None` for the local users.
        servers: Option<&'a str>,
        /// Subscriber profile from AAA, if any.
        profile: Option<&'a str>,
        /// The network instance of its bindings.
        instance: &'a str,
        /// Its bindings.
        #[serde(with = "bindings")]
        bindings: Bindings,
    },
    /// Its bindings changed.
    Changed {
        /// The network instance of its bindings.
        instance: &'a str,
        /// Previous bindings.
        #[serde(with = "bindings")]
        before: Bindings,
        /// Current bindings.
        #[serde(with = "bindings")]
        bindings: Bindings,
    },
    /// Its session ended.
    Ended {
        /// Time at which it came online.
        started: u32,
        /// Reason.
        cause: Cause,
        /// Person who ended it, if any.
        by: Option<&'a str>,
        /// The network instance of its bindings.
        instance: &'a str,
        /// Its bindings.
        #[serde(with = "bindings")]
        bindings: Bindings,
    },
    /// A RADIUS server changed its policy (RFC 5176).
    Authorized {
        /// The server.
        by: &'a str,
        /// What changed.
        text: &'a str,
    },
    /// It comes online by the fallback of its access profile, because no RADIUS server answered. [`Step::Online`] follows.
    FellBack {
        /// Server group that did not answer.
        servers: Option<&'a str>,
        /// Value of the setting `fallback`.
        fallback: &'a str,
    },
    /// All traffic of its session, which has ended, is counted. [`Step::Ended`] came before: the user plane tells the last counters when
    /// it has deleted the session.
    Counted {
        /// Time at which it came online.
        started: u32,
        /// Time at which it ended.
        ended: u32,
        /// Reason of the end.
        cause: Cause,
        /// The network instance of its bindings.
        instance: &'a str,
        /// Its bindings at the end.
        #[serde(with = "bindings")]
        bindings: Bindings,
        /// Its traffic.
        traffic: Traffic,
        /// IPv4's and IPv6's part, unless the family of some of it is not known.
        families: Option<[Traffic; 2]>,
    },
}

/// Packets and octets of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Packets from the subscriber.
    pub up_packets: u64,
    /// Their octets.
    pub up_octets: u64,
    /// Packets to the subscriber.
    pub down_packets: u64,
    /// Their octets.
    pub down_octets: u64,
}

impl From<Volume> for Traffic {
    fn from(volume: Volume) -> Self {
        Traffic {
            up_packets: volume.up_packets,
            up_octets: volume.up_octets,
            down_packets: volume.down_packets,
            down_octets: volume.down_octets,
        }
    }
}

impl Step<'_> {
    /// Its bindings, and those before a change.
    pub(super) fn bindings(&self) -> [Option<&Bindings>; 2] {
        match self {
            Step::Online { bindings, .. }
            | Step::Ended { bindings, .. }
            | Step::Counted { bindings, .. } => [Some(bindings), None],
            Step::Changed {
                before, bindings, ..
            } => [Some(bindings), Some(before)],
            Step::Refused { .. }
            | Step::Failed { .. }
            | Step::Authorized { .. }
            | Step::FellBack { .. } => [None; 2],
        }
    }
}

/// Kind of an event of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// The control plane was started.
    Started,
    /// The control plane was stopped.
    Stopped,
    /// An association with a user plane was set up.
    UserPlaneBack,
    /// The association with a user plane ended.
    UserPlaneLost,
    /// A version of the configuration came into force.
    Committed,
    /// An unconfirmed version was confirmed.
    Confirmed,
    /// An earlier version was restored.
    RolledBack,
}

impl<'a> Event<'a> {
    /// Keys with which the event is found.
    pub(crate) fn keys(&self, mut found: impl FnMut(Key<'a>)) {
        match &self.what {
            What::System { resource, .. } => found(Key::Resource(resource)),
            What::Alarm { resource, .. } | What::Acknowledged { resource, .. } => {
                found(Key::Alarms);
                found(Key::Resource(resource));
            }
            What::Subscriber(who, step) => {
                for binding in step
                    .bindings()
                    .into_iter()
                    .flatten()
                    .flat_map(Bindings::iter)
                {
                    found(Key::Prefix(binding.prefix));
                }
                found(Key::Session(who.session));
                found(Key::Mac(who.mac));
                found(Key::Place(who.place().into()));
                who.line
                    .into_iter()
                    .flatten()
                    .for_each(|id| found(Key::Line(id)));
                if !who.user.is_empty() {
                    found(Key::User(who.user));
                }
            }
        }
    }

    /// Appends the event to a block.
    pub fn emit(&self, block: &mut Vec<u8>) {
        let begins = block.len();
        block.extend([0; 2]);
        let sized = "an event has a size that serde can state";
        *block = postcard::to_extend(self, std::mem::take(block)).expect(sized);
        if let Some(others) = Others::of(self) {
            *block = postcard::to_extend(&others, std::mem::take(block)).expect(sized);
        }
        match u16::try_from(block.len() - begins - 2) {
            Ok(length) => block[begins..begins + 2].copy_from_slice(&length.to_le_bytes()),
            Err(_) => block.truncate(begins), // its texts are bounded: it cannot be
        }
    }
}

/// Records of a block, each of one event.
pub(super) fn records(mut block: &[u8]) -> impl Iterator<Item = &[u8]> {
    core::iter::from_fn(move || {
        let (length, rest) = block.split_first_chunk()?;
        let (record, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
        block = rest;
        Some(record)
    })
}

/// The event of a record; `None` if a later version wrote it.
pub(super) fn read(record: &[u8]) -> Option<Event<'_>> {
    let (mut event, others) = postcard::take_from_bytes::<Event<'_>>(record).ok()?;
    if let Ok(others) = postcard::from_bytes::<Others>(others) {
        others.add_to(&mut event);
    }
    Some(event)
}

/// Events of a block. Kinds of later versions are skipped.
pub fn events(block: &[u8]) -> impl Iterator<Item = Event<'_>> {
    records(block).filter_map(read)
}

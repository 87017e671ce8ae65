//! The elements that choose one of a few things.
use super::codec::{Cursor, Fault, Outcome, Value};

/// An octet with a closed set of meanings, in the low four bits as TS 29.244 has all of these.
macro_rules! choices {
    ($(
        $(#[$doc:meta])*
        pub enum $name:ident { $( $(#[$choice_doc:meta])* $choice:ident = $value:literal, )* }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum $name { $( $(#[$choice_doc])* $choice = $value, )* }

        impl Value for $name {
            fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
                match Cursor(payload).u8()? & 0x0f {
                    $( $value => Ok($name::$choice), )*
                    _ => Err(Fault::INCORRECT),
                }
            }

            fn write(&self, out: &mut Vec<u8>) {
                out.push(*self as u8);
            }
        }

        #[cfg(test)]
        impl super::tests::Sample for $name {
            fn sample(e: &mut super::tests::Entropy) -> Self {
                e.pick(&[$( $name::$choice ),*])
            }
        }
    )*};
}

choices! {
    /// Source Interface (§8.2.2) and Destination Interface (§8.2.24).
    pub enum Interface {
        /// Towards the subscribers.
        #[default]
        Access = 0,
        /// Towards the network.
        Core = 1,
        /// SGi-LAN or N6-LAN: service functions.
        ServiceLan = 2,
        /// The control plane.
        CpFunction = 3,
    }

    /// PDN Type (§8.2.79).
    pub enum PdnType {
        /// IPv4.
        Ipv4 = 1,
        /// IPv6.
        Ipv6 = 2,
        /// Both.
        Ipv4v6 = 3,
        /// Neither IP nor Ethernet.
        NonIp = 4,
        /// Ethernet: every session of a fixed-line subscriber.
        #[default]
        Ethernet = 5,
    }
}

/// Outer Header Removal (§8.2.64).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OuterHeaderRemoval(pub u8);

impl OuterHeaderRemoval {
    /// GTP-U/UDP/IPv4.
    pub const GTPU_IPV4: Self = OuterHeaderRemoval(0);
    /// GTP-U/UDP/IPv6.
    pub const GTPU_IPV6: Self = OuterHeaderRemoval(1);
    /// GTP-U/UDP over either.
    pub const GTPU_IP: Self = OuterHeaderRemoval(6);

    /// Is it a GTP-U header that goes?
    pub const fn is_gtpu(self) -> bool {
        matches!(self.0, 0 | 1 | 6)
    }
}

impl Value for OuterHeaderRemoval {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        Cursor(payload).u8().map(OuterHeaderRemoval)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.0);
    }
}

/// Failed Rule ID (§8.2.80).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailedRule {
    /// A PDR.
    Pdr(u16),
    /// A FAR.
    Far(u32),
    /// A QER.
    Qer(u32),
    /// A URR.
    Urr(u32),
}

impl Value for FailedRule {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        match cursor.u8()? & 0x1f {
            0 => cursor.u16().map(FailedRule::Pdr),
            1 => cursor.u32().map(FailedRule::Far),
            2 => cursor.u32().map(FailedRule::Qer),
            3 => cursor.u32().map(FailedRule::Urr),
            _ => Err(Fault::INCORRECT),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let (kind, id) = match *self {
            FailedRule::Pdr(id) => {
                out.push(0);
                return id.write(out);
            }
            FailedRule::Far(id) => (1, id),
            FailedRule::Qer(id) => (2, id),
            FailedRule::Urr(id) => (3, id),
        };
        out.push(kind);
        id.write(out);
    }
}

//! How information elements are framed, and the two macros that the tables of TS 29.244 are written in.
use super::Cause;

/// The identity of an information element: its type and, from 0x8000 on, the enterprise that defined it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IeId {
    /// The 16-bit type, with its top bit set for an enterprise's own.
    pub kind: u16,
    /// IANA private enterprise number, 0 for the types of 3GPP.
    pub enterprise: u16,
}

impl IeId {
    /// A type that TS 29.244 defines.
    pub const fn standard(kind: u16) -> Self {
        IeId {
            kind,
            enterprise: 0,
        }
    }

    /// A type that an enterprise defines; `kind` has its top bit set.
    pub const fn vendor(kind: u16, enterprise: u16) -> Self {
        IeId { kind, enterprise }
    }
}

/// Why an information element was refused. `ie` is filled in by the group that holds the element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub cause: Cause,
    pub ie: Option<IeId>,
}

impl Fault {
    /// The element has a value that its definition does not allow.
    pub const INCORRECT: Fault = Fault {
        cause: Cause::MANDATORY_IE_INCORRECT,
        ie: None,
    };
    /// The element is shorter than its definition, or runs past the end of what holds it.
    pub const SHORT: Fault = Fault {
        cause: Cause::INVALID_LENGTH,
        ie: None,
    };

    pub fn missing(ie: IeId) -> Self {
        Fault {
            cause: Cause::MANDATORY_IE_MISSING,
            ie: Some(ie),
        }
    }

    /// The innermost element that was wrong is the offending one.
    pub fn within(self, ie: IeId) -> Self {
        Fault {
            ie: self.ie.or(Some(ie)),
            ..self
        }
    }
}

pub(crate) type Outcome<T> = Result<T, Fault>;

/// The value of an information element. `ignored` counts the elements below it that were skipped.
pub(crate) trait Value: Sized {
    fn read(payload: &[u8], ignored: &mut u32) -> Outcome<Self>;
    fn write(&self, out: &mut Vec<u8>);
}

/// A cursor over the payload of one element. Octets behind what a definition knows are left alone: later releases
/// append to elements (TS 29.244 §8.1.1).
pub(crate) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    pub fn take(&mut self, length: usize) -> Outcome<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(length).ok_or(Fault::SHORT)?;
        self.0 = tail;
        Ok(head)
    }

    pub fn array<const N: usize>(&mut self) -> Outcome<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk().ok_or(Fault::SHORT)?;
        self.0 = tail;
        Ok(*head)
    }

    pub fn u8(&mut self) -> Outcome<u8> {
        self.array::<1>().map(|[octet]| octet)
    }

    pub fn u16(&mut self) -> Outcome<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u24(&mut self) -> Outcome<u32> {
        self.array()
            .map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }

    pub fn u32(&mut self) -> Outcome<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Outcome<u64> {
        self.array().map(u64::from_be_bytes)
    }
}

/// Walks the elements of a message or of a group.
pub(crate) struct Elements<'a>(pub Cursor<'a>);

impl<'a> Elements<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Elements(Cursor(bytes))
    }

    fn element(&mut self) -> Outcome<(IeId, &'a [u8])> {
        let kind = self.0.u16()?;
        let length = self.0.u16()?;
        let payload = self
            .0
            .take(usize::from(length))
            .map_err(|f| f.within(IeId::standard(kind)))?;
        if kind & 0x8000 == 0 {
            return Ok((IeId::standard(kind), payload));
        }
        let mut inner = Cursor(payload);
        let enterprise = inner.u16().map_err(|f| f.within(IeId::standard(kind)))?;
        Ok((IeId::vendor(kind, enterprise), inner.0))
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Outcome<(IeId, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.0.is_empty() {
            return None;
        }
        let element = self.element();
        if element.is_err() {
            self.0.0 = &[];
        }
        Some(element)
    }
}

/// Appends one element. A payload of more than 65,535 octets makes the message too long as well, which the message's
/// own `emit` refuses, so that the cut length written here is never sent.
pub(crate) fn put<T: Value>(id: IeId, value: &T, out: &mut Vec<u8>) {
    out.extend_from_slice(&id.kind.to_be_bytes());
    let at = out.len();
    out.extend_from_slice(&[0, 0]);
    if id.kind & 0x8000 != 0 {
        out.extend_from_slice(&id.enterprise.to_be_bytes());
    }
    value.write(out);
    let length = (out.len() - at - 2) as u16;
    out[at..at + 2].copy_from_slice(&length.to_be_bytes());
}

/// Where a group collects one kind of element while it is parsed.
pub(crate) trait Slot<T> {
    fn fill(&mut self, payload: &[u8], ignored: &mut u32) -> Outcome<()>;
}

impl<T: Value> Slot<T> for Option<T> {
    /// Of an element that may occur once only the first counts (TS 29.244 §7.6.7).
    fn fill(&mut self, payload: &[u8], ignored: &mut u32) -> Outcome<()> {
        match self {
            Some(_) => *ignored += 1,
            None => *self = Some(T::read(payload, ignored)?),
        }
        Ok(())
    }
}

impl<T: Value> Slot<T> for Vec<T> {
    fn fill(&mut self, payload: &[u8], ignored: &mut u32) -> Outcome<()> {
        // A session has six or seven rules of a kind: their list is not to grow step by step.
        if self.capacity() == 0 && size_of::<T>() >= 64 {
            self.reserve_exact(8);
        }
        self.push(T::read(payload, ignored)?);
        Ok(())
    }
}

macro_rules! field_type {
    (required $ty:ty) => { $ty };
    (optional $ty:ty) => { Option<$ty> };
    (repeated $ty:ty) => { Vec<$ty> };
    (needed $ty:ty) => { Vec<$ty> };
}

macro_rules! slot_type {
    (required $ty:ty) => { Option<$ty> };
    (optional $ty:ty) => { Option<$ty> };
    (repeated $ty:ty) => { Vec<$ty> };
    (needed $ty:ty) => { Vec<$ty> };
}

macro_rules! finish {
    (required $slot:ident $id:expr) => {
        $slot.ok_or(crate::pfcp::codec::Fault::missing($id))?
    };
    (optional $slot:ident $id:expr) => {
        $slot
    };
    (repeated $slot:ident $id:expr) => {
        $slot
    };
    (needed $slot:ident $id:expr) => {{
        if $slot.is_empty() {
            return Err(crate::pfcp::codec::Fault::missing($id));
        }
        $slot
    }};
}

macro_rules! put_field {
    (required $value:expr, $id:expr, $out:expr) => {
        crate::pfcp::codec::put($id, &$value, $out)
    };
    ($any:ident $value:expr, $id:expr, $out:expr) => {
        for value in $value.iter() {
            crate::pfcp::codec::put($id, value, $out);
        }
    };
}

#[cfg(test)]
macro_rules! sample_field {
    (required $ty:ty, $e:expr) => {
        <$ty as crate::pfcp::tests::Sample>::sample($e)
    };
    (optional $ty:ty, $e:expr) => {
        $e.option()
    };
    (repeated $ty:ty, $e:expr) => {
        $e.list()
    };
    (needed $ty:ty, $e:expr) => {{
        let mut list: Vec<$ty> = $e.list();
        list.push(<$ty as crate::pfcp::tests::Sample>::sample($e));
        list
    }};
}

/// A grouped element, or the body of a message, as TS 29.244 tabulates it: `required` (mandatory, once), `optional`
/// (at most once), `repeated` (any number), `needed` (at least one).
macro_rules! group {
    (
        $(#[$doc:meta])*
        pub struct $name:ident {
            $( $(#[$field_doc:meta])* $kind:ident $field:ident: $ty:ty = $id:expr, )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $( $(#[$field_doc])* pub $field: crate::pfcp::codec::field_type!($kind $ty), )*
        }

        impl crate::pfcp::codec::Value for $name {
            fn read(bytes: &[u8], ignored: &mut u32) -> crate::pfcp::codec::Outcome<Self> {
                $( let mut $field: crate::pfcp::codec::slot_type!($kind $ty) = Default::default(); )*
                for element in crate::pfcp::codec::Elements::new(bytes) {
                    let (_id, _payload) = element?;
                    $(
                        if _id == $id {
                            crate::pfcp::codec::Slot::<$ty>::fill(&mut $field, _payload, ignored)
                                .map_err(|fault| fault.within(_id))?;
                            continue;
                        }
                    )*
                    *ignored += 1;
                }
                Ok($name { $( $field: crate::pfcp::codec::finish!($kind $field $id), )* })
            }

            fn write(&self, _out: &mut Vec<u8>) {
                $( crate::pfcp::codec::put_field!($kind self.$field, $id, _out); )*
            }
        }

        #[cfg(test)]
        impl crate::pfcp::tests::Sample for $name {
            fn sample(_e: &mut crate::pfcp::tests::Entropy) -> Self {
                $name { $( $field: crate::pfcp::codec::sample_field!($kind $ty, _e), )* }
            }
        }
    };
}

/// A bit field. The first octet on the wire holds the low bits of the number, as TS 29.244 numbers them; `least` octets
/// are sent, more where a higher bit is set, and any number from `least` on is accepted.
macro_rules! flags {
    (
        $(#[$doc:meta])*
        pub struct $name:ident($int:ty), least $least:literal {
            $( $(#[$flag_doc:meta])* $flag:ident = $value:expr, )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub $int);

        impl $name {
            $( $(#[$flag_doc])* pub const $flag: $name = $name($value); )*

            /// Are all bits of `other` set?
            pub const fn contains(self, other: $name) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl core::ops::BitOr for $name {
            type Output = $name;

            fn bitor(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }
        }

        impl crate::pfcp::codec::Value for $name {
            fn read(payload: &[u8], _ignored: &mut u32) -> crate::pfcp::codec::Outcome<Self> {
                if payload.len() < $least {
                    return Err(crate::pfcp::codec::Fault::SHORT);
                }
                let mut octets = [0; size_of::<$int>()];
                let known = payload.len().min(octets.len());
                octets[..known].copy_from_slice(&payload[..known]);
                Ok($name(<$int>::from_le_bytes(octets)))
            }

            fn write(&self, out: &mut Vec<u8>) {
                let octets = self.0.to_le_bytes();
                let used = octets.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
                out.extend_from_slice(&octets[..used.max($least)]);
            }
        }

        #[cfg(test)]
        impl crate::pfcp::tests::Sample for $name {
            fn sample(e: &mut crate::pfcp::tests::Entropy) -> Self {
                $name(crate::pfcp::tests::Sample::sample(e))
            }
        }
    };
}

impl Value for u8 {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        Cursor(payload).u8()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }
}

impl Value for u16 {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        Cursor(payload).u16()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }
}

impl Value for u32 {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        Cursor(payload).u32()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }
}

/// Octets without a meaning of their own, possibly none.
impl Value for Vec<u8> {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        Ok(payload.to_vec())
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

/// Text, possibly empty.
impl Value for String {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        core::str::from_utf8(payload)
            .map(str::to_owned)
            .map_err(|_| Fault::INCORRECT)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
}

/// An element of an update: a new value, or (sent with length zero) the end of the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<T> {
    /// The value from now on.
    Set(T),
    /// What was set before no longer holds.
    Clear,
}

impl<T> Change<T> {
    /// The new state of what the update names.
    pub fn into_option(self) -> Option<T> {
        match self {
            Change::Set(value) => Some(value),
            Change::Clear => None,
        }
    }
}

impl<T: Value> Value for Change<T> {
    fn read(payload: &[u8], ignored: &mut u32) -> Outcome<Self> {
        if payload.is_empty() {
            return Ok(Change::Clear);
        }
        T::read(payload, ignored).map(Change::Set)
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Change::Set(value) => value.write(out),
            Change::Clear => {}
        }
    }
}

#[cfg(test)]
pub(crate) use sample_field;
pub(crate) use {field_type, finish, flags, group, put_field, slot_type};

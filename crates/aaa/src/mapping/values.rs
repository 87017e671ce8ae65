//! Reads settings from values. `None`: the value cannot be used.

use core::net::IpAddr;
use core::ops::RangeInclusive;
use core::time::Duration;

use ipnet::Ipv4Net;
use policy::Rate;

use super::Unit;
use crate::dictionary::Value;
use crate::route::{self, FramedRoute};

/// The least rate of a subscriber in bit/s. Who is to have less has this one.
const LEAST_RATE: u64 = 8_000;
/// The largest rate of a subscriber in bit/s, 400 Gbit/s. A larger one is taken for a wrong unit.
const LARGEST_RATE: u64 = 400_000_000_000;
/// Sizes of the largest packet, in octets.
const MTUS: RangeInclusive<u64> = 576..=9216;

/// Rate, rounded down to kbit/s. Zero says nothing: servers and access servers do not agree whether it is no limit or the default.
pub(super) fn rate(value: Value<'_>, unit: Unit) -> Option<Rate> {
    let (number, unit) = match value {
        Value::Number(number) => (number, unit.size()),
        Value::Text(text) => return text_rate(text.trim(), unit),
        _ => return None,
    };
    plausible(number, unit)
}

fn plausible(number: u64, bits: u64) -> Option<Rate> {
    let bits = number.checked_mul(bits)?;
    let is_rate = (1..=LARGEST_RATE).contains(&bits);
    Rate::new(bits.max(LEAST_RATE) / 1000).filter(|_| is_rate)
}

/// A number in the unit, or with k, M or G in units of its own.
fn text_rate(text: &str, unit: Unit) -> Option<Rate> {
    let (digits, bits) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1_000),
        b'm' | b'M' => (&text[..text.len() - 1], 1_000_000),
        b'g' | b'G' => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, unit.size()),
    };
    plausible(digits.parse().ok()?, bits)
}

/// The rates of a text, `A/B` or `A` for both, and whether more follows them.
pub(super) fn two_rates(value: Value<'_>, unit: Unit) -> ([Option<Rate>; 2], bool) {
    let Value::Text(text) = value else {
        return ([None; 2], false);
    };
    let mut words = text.split_whitespace();
    let word = words.next().unwrap_or_default();
    let (one, other) = word.split_once('/').unwrap_or((word, word));
    let rates = [one, other].map(|text| text_rate(text, unit));
    (rates, words.next().is_some())
}

/// Addresses: one, or those of a text, between spaces or commas.
pub(super) fn addresses(value: Value<'_>) -> Option<Vec<IpAddr>> {
    let found = match value {
        Value::Address(address) => vec![address],
        Value::Text(text) => text
            .split([' ', ','])
            .filter(|word| !word.is_empty())
            .map(|word| word.parse().ok())
            .collect::<Option<Vec<IpAddr>>>()?,
        _ => return None,
    };
    let sound = |address: &IpAddr| !address.is_unspecified() && !address.is_multicast();
    (!found.is_empty() && found.iter().all(sound)).then_some(found)
}

/// A name that is not empty.
pub(super) fn name(value: Value<'_>) -> Option<String> {
    match value {
        Value::Text(text) if !text.is_empty() => Some(text.to_owned()),
        _ => None,
    }
}

fn number(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Number(number) => Some(number),
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Priority in VLAN tags.
pub(super) fn priority(value: Value<'_>) -> Option<u8> {
    let number = number(value).filter(|number| *number <= 7)?;
    Some(number as u8)
}

/// MTU in octets.
pub(super) fn mtu(value: Value<'_>) -> Option<u32> {
    let number = number(value).filter(|number| MTUS.contains(number))?;
    Some(number as u32)
}

/// Time of whole seconds, as many as 32 bits have.
pub(super) fn time(value: Value<'_>, unit: Unit) -> Option<Duration> {
    let seconds = number(value)?.checked_mul(unit.size())?;
    let seconds = u32::try_from(seconds).ok()?;
    Some(Duration::from_secs(seconds.into()))
}

/// Route: a prefix, an IPv4 network with its mask, or the text of Framed-Route or Framed-IPv6-Route. Returns whether its metric makes
/// no sense, too.
pub(super) fn route(value: Value<'_>) -> Option<(FramedRoute, bool)> {
    let text = match value {
        Value::Prefix(net) => return (net.prefix_len() > 0).then(|| (net.into(), false)),
        Value::Text(text) => text,
        _ => return None,
    };
    if text.split_whitespace().next()?.contains(':') {
        return route::ipv6(text);
    }
    let read = with_mask(text).or_else(|| route::ipv4(text))?;
    // a default route with its mask, 0.0.0.0 0.0.0.0, cannot be a subscriber's
    (!read.0.net.network().is_unspecified()).then_some(read)
}

/// Route whose network has a mask in a word of its own.
fn with_mask(text: &str) -> Option<(FramedRoute, bool)> {
    let mut words = text.split_whitespace();
    let (net, mask) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let net = Ipv4Net::with_netmask(net, mask).ok()?.trunc();
    (net.prefix_len() > 0).then(|| FramedRoute::of(net.into(), words))
}

impl Unit {
    /// Bits per second, or seconds.
    fn size(self) -> u64 {
        match self {
            Unit::BitPerSecond | Unit::Second => 1,
            Unit::KbitPerSecond => 1_000,
            Unit::MbitPerSecond => 1_000_000,
            Unit::Minute => 60,
        }
    }
}

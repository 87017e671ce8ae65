//! Messages that share a datagram.

use std::net::SocketAddr;

/// Maximum size of a datagram of several messages, in octets. With the headers of IPv6 and UDP it passes an MTU of 1,400.
const MOST: usize = 1_352;
/// Maximum number of messages that are taken out of one datagram: more than peers put in.
const MOST_MESSAGES: usize = 128;

/// Messages that wait to be sent, in one datagram for each peer that takes several in one.
#[derive(Debug)]
pub struct Bundles {
    /// Marks a message that another one follows.
    mark: fn(&mut [u8]),
    open: Vec<Bundle>,
}

#[derive(Debug)]
struct Bundle {
    to: SocketAddr,
    octets: Vec<u8>,
    /// Where the last message begins.
    last: usize,
}

impl Bundles {
    /// `mark` marks a message that another one follows in the same datagram.
    pub fn new(mark: fn(&mut [u8])) -> Self {
        Bundles {
            mark,
            open: Vec::new(),
        }
    }

    /// Adds a message. Returns the datagram that has to be sent now, because this message does not go with it. `joins` says whether the
    /// peer takes several messages in a datagram.
    pub fn push(
        &mut self,
        to: SocketAddr,
        message: Vec<u8>,
        joins: bool,
    ) -> Option<(SocketAddr, Vec<u8>)> {
        let mut open = self.open.iter_mut();
        let Some(bundle) = open.find(|bundle| bundle.to == to) else {
            self.open.push(Bundle {
                to,
                octets: message,
                last: 0,
            });
            return None;
        };
        if joins && bundle.octets.len() + message.len() <= MOST {
            if let Some(last) = bundle.octets.get_mut(bundle.last..) {
                (self.mark)(last);
            }
            if bundle.last == 0 {
                bundle.octets.reserve_exact(MOST - bundle.octets.len());
            }
            bundle.last = bundle.octets.len();
            bundle.octets.extend_from_slice(&message);
            return None;
        }
        bundle.last = 0;
        Some((to, std::mem::replace(&mut bundle.octets, message)))
    }

    /// Next datagram to be sent when no further message is expected.
    pub fn pop(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        let bundle = self.open.pop()?;
        Some((bundle.to, bundle.octets))
    }
}

/// Divides a datagram into its first message, which is not empty unless the rest is, and the rest.
pub type Split = for<'a> fn(&'a [u8]) -> (&'a [u8], &'a [u8]);

/// Messages of a datagram.
pub fn messages(datagram: &[u8], split: Split) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(datagram);
    let messages = std::iter::from_fn(move || {
        let (first, behind) = split(rest?);
        rest = Some(behind).filter(|behind| !behind.is_empty());
        Some(first)
    });
    messages.take(MOST_MESSAGES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A message: a mark, its length, and octets.
    fn message(number: usize, length: usize) -> Vec<u8> {
        let mut message = vec![0, length as u8];
        message.resize(length, number as u8);
        message
    }

    fn split(datagram: &[u8]) -> (&[u8], &[u8]) {
        match datagram {
            [1, length, ..] => datagram.split_at(usize::from(*length)),
            _ => (datagram, &[]),
        }
    }

    fn peer(number: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, number], 8805))
    }

    proptest! {
        /// Each peer gets its messages, all of them, in order, and in few datagrams if it takes several in one.
        #[test]
        fn nothing_is_lost_or_reordered(
            lengths in prop::collection::vec((2_usize..250, 0_u8..3), 1..100),
            joins in any::<bool>(),
        ) {
            let mut bundles = Bundles::new(|message| message[0] = 1);
            let mut sent = Vec::new();
            for (number, (length, to)) in lengths.iter().enumerate() {
                sent.extend(bundles.push(peer(*to), message(number, *length), joins));
            }
            sent.extend(std::iter::from_fn(|| bundles.pop()));
            for to in 0..3 {
                let own = sent.iter().filter(|(at, _)| *at == peer(to));
                let datagrams: Vec<&[u8]> = own.map(|(_, octets)| &octets[..]).collect();
                prop_assert!(datagrams.iter().all(|octets| octets.len() <= MOST));
                let got: Vec<Vec<u8>> = datagrams.iter().flat_map(|octets| messages(octets, split)).map(|message| {
                    let mut message = message.to_vec();
                    message[0] = 0;
                    message
                }).collect();
                let said = lengths.iter().enumerate().filter(|(_, (_, at))| *at == to);
                let said: Vec<Vec<u8>> = said.map(|(number, (length, _))| message(number, *length)).collect();
                let octets: usize = said.iter().map(Vec::len).sum();
                prop_assert_eq!(&got, &said);
                let most = if joins { octets.div_ceil(MOST - 250) } else { said.len() };
                prop_assert!(datagrams.len() <= most);
                prop_assert!(joins || datagrams.len() == most);
            }
        }
    }

    #[test]
    fn a_datagram_has_a_bounded_number_of_messages() {
        let many = [1_u8, 2].repeat(1000);
        assert_eq!(messages(&many, split).count(), MOST_MESSAGES);
        assert_eq!(messages(&[], split).count(), 1);
    }
}

//! The DHCPv6 server of one session (RFC 8415). The session has its address and its prefixes before the subscriber's router asks, and
//! keeps them until it ends. So the server tells what the grant has: an answer is a function of grant and message.
use crate::layer::Core;
use crate::reconfigure::Reconfigure;
use crate::router::Ends;
use crate::types::{DhcpConfig, Discarded, Ipv6Grant};
use core::net::Ipv6Addr;
use wire::dhcpv6::{
    self, ALL_SERVERS, CLIENT_PORT, DUID_LENGTHS, Ia, IaAddress, IaPrefix, Message, Opt,
    SERVER_PORT, Status, status,
};
use wire::ipv6::{self, link_local};
use wire::ppp;
use wire::udp::Datagram;

/// Longest message that fits into one packet on every link of IPv6 (RFC 8200 §5): 1,280 octets with the headers of IPv6 and UDP.
const LONGEST_ANSWER: usize = 1280 - 48;
/// Maximum number of delegated prefixes in an answer, so that it fits. Further ones are not told.
pub const MOST_DELEGATED: usize = 16;
/// Maximum number of name servers in an answer, so that it fits.
const MOST_NAME_SERVERS: usize = 4;
/// Longest time between two Solicits or Information-requests of a router that gets nothing, in seconds: the default of RFC 8415 §7.6.
/// A router of RFC 3315 that knows the option of RFC 7083 would ask every two minutes.
const LONGEST_RETRANSMISSION: u32 = 3600;
/// Least time after which settings are asked for again, in seconds (IRT_MINIMUM, RFC 8415 §7.6).
const LEAST_REFRESH_TIME: u32 = 600;
/// The link has no other server to wait for (RFC 8415 §18.2.1).
const PREFERENCE: u8 = 255;

/// Handles a packet with next header UDP that the user plane redirected. The answer goes to its source, which the user plane has
/// verified.
pub(crate) fn on_packet(
    reconfigure: &mut Reconfigure,
    core: &mut Core,
    ends: Ends,
    grant: &Ipv6Grant,
    packet: &ipv6::Packet<'_>,
) -> Result<(), Discarded> {
    let ipv6::Header {
        source,
        destination,
        ..
    } = packet.header;
    if source.is_unspecified() || source.is_multicast() {
        return Err(Discarded("DHCPv6 from a source that gets no answer"));
    }
    let is_multicast = destination == ALL_SERVERS;
    if !is_multicast && destination != link_local(ends.ours) {
        return Err(Discarded("DHCPv6 to an address that is not ours"));
    }
    let datagram = Datagram::parse_v6(packet.payload, source, destination)?;
    if datagram.destination_port != SERVER_PORT {
        return Err(Discarded("UDP to another port than DHCPv6's"));
    }
    let server = Server {
        config: &core.config.dhcp,
        grant,
    };
    let message = Message::parse(datagram.payload)?;
    let answer = server.answer(&message, is_multicast)?;
    let mut payload = Vec::with_capacity(256);
    answer.emit(&mut payload);
    let after = match answer.kind {
        dhcpv6::REPLY if is_multicast => {
            reconfigure.after_reply(core, ends, &message, source, &mut payload)
        }
        _ => None,
    };
    if payload.len() > LONGEST_ANSWER {
        return Err(Discarded("DHCPv6 message whose answer is too long"));
    }
    if let Some(after) = after {
        *reconfigure = after;
    }
    core.send_frame(frame(ends, source, &payload));
    Ok(())
}

/// PPP frame with a message to a client.
pub(crate) fn frame(ends: Ends, client: Ipv6Addr, message: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(message.len() + 50);
    frame.extend_from_slice(&ppp::IPV6.to_be_bytes());
    let datagram = Datagram {
        source_port: SERVER_PORT,
        destination_port: CLIENT_PORT,
        payload: message,
    };
    datagram.emit_packet_v6(link_local(ends.ours), client, &mut frame);
    frame
}

/// Server of a session.
#[derive(Clone, Copy)]
struct Server<'a> {
    config: &'a DhcpConfig,
    grant: &'a Ipv6Grant,
}

/// Kind of an identity association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// IA_NA.
    Address,
    /// IA_PD.
    Prefix,
}

/// An address, or a prefix with its length, as a message has it.
type Lease = (Ipv6Addr, u8);

impl<'a> Server<'a> {
    /// Answers a message. It was sent to all servers (`is_multicast`) or to our own address.
    ///
    /// # Errors
    /// Why the message gets no answer.
    fn answer(&self, message: &Message<'a>, is_multicast: bool) -> Result<Message<'a>, Discarded> {
        self.validate(message, is_multicast)?;
        match message.kind {
            // §18.4: nobody got the Server Unicast option from us.
            dhcpv6::REQUEST | dhcpv6::RENEW | dhcpv6::RELEASE | dhcpv6::DECLINE
                if !is_multicast =>
            {
                let refused = told(status::USE_MULTICAST, "use ff02::1:2");
                Ok(self.reply(message, vec![refused]))
            }
            dhcpv6::SOLICIT => Ok(self.offer(message)),
            dhcpv6::REQUEST | dhcpv6::RENEW | dhcpv6::REBIND => Ok(self.assign(message)),
            dhcpv6::CONFIRM => self.confirm(message),
            dhcpv6::RELEASE | dhcpv6::DECLINE => Ok(self.acknowledge(message)),
            dhcpv6::INFORMATION_REQUEST => Ok(self.inform(message)),
            _ => Err(Discarded("DHCPv6 message of a server")),
        }
    }

    /// What §16 requires of a message to a server.
    fn validate(&self, message: &Message<'_>, is_multicast: bool) -> Result<(), Discarded> {
        let (client, server) = (message.client_id(), message.server_id());
        if client.is_some_and(|duid| !DUID_LENGTHS.contains(&duid.len())) {
            return Err(Discarded("DHCPv6 client with a malformed DUID"));
        }
        let is_to_us = server == Some(self.config.duid.as_bytes());
        match message.kind {
            dhcpv6::SOLICIT | dhcpv6::CONFIRM | dhcpv6::REBIND if server.is_some() => {
                Err(Discarded("DHCPv6 message to all servers that names one"))
            }
            dhcpv6::SOLICIT | dhcpv6::CONFIRM | dhcpv6::REBIND | dhcpv6::INFORMATION_REQUEST
                if !is_multicast =>
            {
                Err(Discarded("DHCPv6 message to all servers that is unicast"))
            }
            dhcpv6::REQUEST | dhcpv6::RENEW | dhcpv6::RELEASE | dhcpv6::DECLINE if !is_to_us => {
                Err(Discarded("DHCPv6 message to another server"))
            }
            dhcpv6::INFORMATION_REQUEST if server.is_some() && !is_to_us => {
                Err(Discarded("DHCPv6 message to another server"))
            }
            dhcpv6::INFORMATION_REQUEST if associations(message).next().is_some() => {
                Err(Discarded("Information-request with an association"))
            }
            dhcpv6::INFORMATION_REQUEST => Ok(()),
            _ if client.is_none() => Err(Discarded("DHCPv6 message without a client")),
            _ => Ok(()),
        }
    }

    /// Answers a Solicit (§18.3.1): with a Reply if the client takes one.
    fn offer(&self, message: &Message<'a>) -> Message<'a> {
        let mut answer = self.assign(message);
        if message.options.contains(&Opt::RapidCommit) {
            answer.options.push(Opt::RapidCommit);
        } else {
            answer.kind = dhcpv6::ADVERTISE;
            answer.options.push(Opt::Preference(PREFERENCE));
        }
        answer
    }

    /// Answers a Solicit, Request, Renew or Rebind (§18.3.1, §18.3.2, §18.3.4, §18.3.5).
    fn assign(&self, message: &Message<'a>) -> Message<'a> {
        let holders = [Kind::Address, Kind::Prefix].map(|kind| self.holder(message, kind));
        let mut options: Vec<Opt<'a>> = associations(message)
            .enumerate()
            .map(|(at, (kind, ia))| {
                let holds = holders[kind as usize] == Some(at);
                let ia = self.association(message.kind, kind, ia, holds);
                match kind {
                    Kind::Address => Opt::IaNa(ia),
                    Kind::Prefix => Opt::IaPd(ia),
                }
            })
            .collect();
        options.extend(self.settings(message));
        self.reply(message, options)
    }

    /// Which association of a kind has the session's leases: the one that names one of them, else the first. Others have none.
    fn holder(&self, message: &Message<'_>, kind: Kind) -> Option<usize> {
        let all = || {
            let numbered = associations(message).enumerate();
            numbered.filter(move |(_, (other, _))| *other == kind)
        };
        let names_ours = all().find(|(_, (_, ia))| self.names_ours(kind, ia));
        names_ours.or_else(|| all().next()).map(|(at, _)| at)
    }

    fn names_ours(&self, kind: Kind, ia: &Ia<'_>) -> bool {
        let ours = self.leases(kind);
        named(kind, ia).any(|lease| ours.contains(&lease))
    }

    /// The session's leases of a kind.
    fn leases(&self, kind: Kind) -> Vec<Lease> {
        match kind {
            Kind::Address => {
                let address = self.grant.bindings.ipv6_address();
                address.map(|address| (address, 128)).into_iter().collect()
            }
            Kind::Prefix => {
                let told = self.grant.bindings.delegated().take(MOST_DELEGATED);
                told.map(|net| (net.network(), net.prefix_len())).collect()
            }
        }
    }

    /// An association in the answer to a message of this type.
    fn association(&self, message: u8, kind: Kind, ia: &Ia<'_>, holds: bool) -> Ia<'a> {
        let mut ours = self.leases(kind);
        let others: Vec<Lease> = named(kind, ia).filter(|l| !ours.contains(l)).collect();
        if !holds {
            ours.clear();
        }
        // A client requests what it was offered; a Solicit's wishes are passed over (§18.3.1, §18.3.2).
        if (message, kind) == (dhcpv6::REQUEST, Kind::Address) && !others.is_empty() {
            return refused(ia, status::NOT_ON_LINK, "not an address of this link");
        }
        // What does not fit the link any more gets no further time (§18.3.4, §18.3.5). NoBinding would leave it to the client until
        // its lifetime ends, and makes it send a Request (§18.2.10.1).
        let stale = match message {
            dhcpv6::RENEW | dhcpv6::REBIND => others,
            _ => Vec::new(),
        };
        match (ours.is_empty() && stale.is_empty(), message, kind) {
            (false, ..) => self.leased(ia, kind, &ours, &stale),
            (true, dhcpv6::RENEW | dhcpv6::REBIND, _) => {
                refused(ia, status::NO_BINDING, "nothing for this association")
            }
            (true, _, Kind::Address) => refused(ia, status::NO_ADDRS_AVAIL, "no address"),
            (true, _, Kind::Prefix) => refused(ia, status::NO_PREFIX_AVAIL, "no prefix"),
        }
    }

    fn leased(&self, ia: &Ia<'_>, kind: Kind, ours: &[Lease], stale: &[Lease]) -> Ia<'a> {
        let (preferred, valid) = (self.config.preferred_lifetime, self.config.valid_lifetime);
        let ours_for = ours.iter().map(|lease| (lease, preferred, valid));
        let leases = ours_for.chain(stale.iter().map(|lease| (lease, 0, 0)));
        let options =
            leases.map(|(lease, preferred, valid)| lease_of(kind, *lease, preferred, valid));
        let (t1, t2) = match ours {
            [] => (0, 0),
            // §21.4 recommends half and four fifths.
            _ => (preferred / 2, preferred / 5 * 4),
        };
        Ia {
            id: ia.id,
            t1,
            t2,
            options: options.collect(),
        }
    }

    /// Answers a Confirm (§18.3.3): whether all its addresses are the session's. Without any, nobody can say.
    fn confirm(&self, message: &Message<'a>) -> Result<Message<'a>, Discarded> {
        let mut addresses = associations(message)
            .filter(|(kind, _)| *kind == Kind::Address)
            .flat_map(|(_, ia)| ia.addresses())
            .map(|address| address.address)
            .peekable();
        if addresses.peek().is_none() {
            return Err(Discarded("Confirm without an address"));
        }
        let status =
            match addresses.all(|address| Some(address) == self.grant.bindings.ipv6_address()) {
                true => told(status::SUCCESS, "the addresses fit the link"),
                false => told(status::NOT_ON_LINK, "not an address of this link"),
            };
        Ok(self.reply(message, vec![status]))
    }

    /// Answers a Release or a Decline (§18.3.7, §18.3.8). The leases stay the session's: they come and go with it.
    fn acknowledge(&self, message: &Message<'a>) -> Message<'a> {
        let foreign = associations(message).filter(|(kind, ia)| !self.names_ours(*kind, ia));
        let foreign = foreign.map(|(kind, ia)| {
            let ia = refused(ia, status::NO_BINDING, "nothing for this association");
            match kind {
                Kind::Address => Opt::IaNa(ia),
                Kind::Prefix => Opt::IaPd(ia),
            }
        });
        let mut options = vec![told(status::SUCCESS, "")];
        options.extend(foreign);
        self.reply(message, options)
    }

    /// Answers an Information-request (§18.3.6).
    fn inform(&self, message: &Message<'a>) -> Message<'a> {
        let mut options: Vec<_> = self.settings(message).collect();
        if message.requests(Opt::INFORMATION_REFRESH_TIME) {
            // as often as one with leases renews them
            let after = (self.config.preferred_lifetime / 2).max(LEAST_REFRESH_TIME);
            options.push(Opt::InformationRefreshTime(after));
        }
        self.reply(message, options)
    }

    /// The settings that a message asks for.
    fn settings(&self, message: &Message<'_>) -> impl Iterator<Item = Opt<'a>> {
        let dns: Vec<Ipv6Addr> = self
            .grant
            .dns
            .iter()
            .take(MOST_NAME_SERVERS)
            .copied()
            .collect();
        let dns = (!dns.is_empty()).then_some(Opt::DnsServers(dns));
        let all = [
            dns,
            Some(Opt::SolMaxRt(LONGEST_RETRANSMISSION)),
            Some(Opt::InfMaxRt(LONGEST_RETRANSMISSION)),
        ];
        let asked = all
            .into_iter()
            .flatten()
            .filter(|option| message.requests(option.code()));
        asked.collect::<Vec<_>>().into_iter()
    }

    /// A Reply with both identifiers in front of these options.
    fn reply(&self, message: &Message<'a>, options: Vec<Opt<'a>>) -> Message<'a> {
        let client = message.client_id().map(Opt::ClientId);
        let server = Opt::ServerId(self.config.duid.as_bytes());
        Message {
            kind: dhcpv6::REPLY,
            transaction: message.transaction,
            options: client.into_iter().chain([server]).chain(options).collect(),
        }
    }
}

fn associations<'m, 'a>(message: &'m Message<'a>) -> impl Iterator<Item = (Kind, &'m Ia<'a>)> {
    message.options.iter().filter_map(|option| match option {
        Opt::IaNa(ia) => Some((Kind::Address, ia)),
        Opt::IaPd(ia) => Some((Kind::Prefix, ia)),
        _ => None,
    })
}

/// Leases of a kind in an association.
fn named(kind: Kind, ia: &Ia<'_>) -> impl Iterator<Item = Lease> {
    ia.options
        .iter()
        .filter_map(move |option| match (kind, option) {
            (Kind::Address, Opt::Address(address)) => Some((address.address, 128)),
            (Kind::Prefix, Opt::Prefix(prefix)) => Some((prefix.prefix, prefix.length)),
            _ => None,
        })
}

fn lease_of<'a>(
    kind: Kind,
    (address, length): Lease,
    preferred_lifetime: u32,
    valid_lifetime: u32,
) -> Opt<'a> {
    match kind {
        Kind::Address => Opt::Address(IaAddress {
            address,
            preferred_lifetime,
            valid_lifetime,
            options: Vec::new(),
        }),
        Kind::Prefix => Opt::Prefix(IaPrefix {
            preferred_lifetime,
            valid_lifetime,
            length,
            prefix: address,
            options: Vec::new(),
        }),
    }
}

fn told(code: u16, message: &'static str) -> Opt<'static> {
    Opt::Status(Status {
        code,
        message: message.as_bytes(),
    })
}

/// An association with nothing but a status.
fn refused<'a>(ia: &Ia<'_>, code: u16, why: &'static str) -> Ia<'a> {
    Ia {
        options: vec![told(code, why)],
        ..Ia::new(ia.id)
    }
}

#[cfg(test)]
#[path = "dhcpv6_tests.rs"]
mod tests;

//! Options of DHCPv6 (RFC 8415 §21). Identity associations have options of their own.

use crate::{Malformed, Result};
use core::net::Ipv6Addr;

const CLIENT_ID: u16 = 1;
const SERVER_ID: u16 = 2;
const IA_NA: u16 = 3;
const IA_ADDRESS: u16 = 5;
const OPTION_REQUEST: u16 = 6;
const PREFERENCE: u16 = 7;
const ELAPSED_TIME: u16 = 8;
const STATUS_CODE: u16 = 13;
const RAPID_COMMIT: u16 = 14;
const RECONFIGURE_MESSAGE: u16 = 19;
const RECONFIGURE_ACCEPT: u16 = 20;
const IA_PD: u16 = 25;
const IA_PREFIX: u16 = 26;

/// An option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opt<'a> {
    /// DUID of the client.
    ClientId(&'a [u8]),
    /// DUID of the server.
    ServerId(&'a [u8]),
    /// Identity association for addresses. Only in a message itself.
    IaNa(Ia<'a>),
    /// Identity association for delegated prefixes. Only in a message itself.
    IaPd(Ia<'a>),
    /// An address. Only in an identity association.
    Address(IaAddress<'a>),
    /// A delegated prefix. Only in an identity association.
    Prefix(IaPrefix<'a>),
    /// Codes of options that the client wants.
    OptionRequest(Vec<u16>),
    /// The higher, the more the client should prefer this server; 255: take it at once.
    Preference(u8),
    /// Time since the client's first message of this exchange, in hundredths of a second.
    ElapsedTime(u16),
    /// Authentication.
    Auth(Auth<'a>),
    /// How it went.
    Status(Status<'a>),
    /// The client takes a Reply to its Solicit; the server has given one.
    RapidCommit,
    /// Message type with which the client has to answer a Reconfigure.
    ReconfigureMessage(u8),
    /// The client takes Reconfigure messages.
    ReconfigureAccept,
    /// Name servers, the preferred ones first (RFC 3646 §3).
    DnsServers(Vec<Ipv6Addr>),
    /// Seconds after which the client asks again for settings that it has without leases.
    InformationRefreshTime(u32),
    /// Longest time between two Solicits, in seconds.
    SolMaxRt(u32),
    /// Longest time between two Information-requests, in seconds.
    InfMaxRt(u32),
    /// Any other, with its code.
    Unknown(u16, &'a [u8]),
}

impl Opt<'_> {
    /// Code of [`Opt::Auth`].
    pub const AUTH: u16 = 11;
    /// Code of [`Opt::DnsServers`].
    pub const DNS_SERVERS: u16 = 23;
    /// Code of [`Opt::InformationRefreshTime`].
    pub const INFORMATION_REFRESH_TIME: u16 = 32;
    /// Code of [`Opt::SolMaxRt`].
    pub const SOL_MAX_RT: u16 = 82;
    /// Code of [`Opt::InfMaxRt`].
    pub const INF_MAX_RT: u16 = 83;
}

/// Identity association: what belongs to one interface or one use of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ia<'a> {
    /// Its number (IAID), chosen by the client.
    pub id: u32,
    /// T1: seconds after which the client renews at this server. 0: as it likes.
    pub t1: u32,
    /// T2: seconds after which the client asks any server. 0: as it likes.
    pub t2: u32,
    /// Leases and a status.
    pub options: Vec<Opt<'a>>,
}

impl Ia<'_> {
    /// One without leases.
    pub const fn new(id: u32) -> Self {
        Ia {
            id,
            t1: 0,
            t2: 0,
            options: Vec::new(),
        }
    }

    /// Its addresses, each with its lifetimes.
    pub fn addresses(&self) -> impl Iterator<Item = &IaAddress<'_>> {
        self.options.iter().filter_map(|option| match option {
            Opt::Address(address) => Some(address),
            _ => None,
        })
    }

    /// Its delegated prefixes, each with its lifetimes.
    pub fn prefixes(&self) -> impl Iterator<Item = &IaPrefix<'_>> {
        self.options.iter().filter_map(|option| match option {
            Opt::Prefix(prefix) => Some(prefix),
            _ => None,
        })
    }

    /// How it went, unless it went well without a word.
    pub fn status(&self) -> Option<u16> {
        self.options.iter().find_map(|option| match option {
            Opt::Status(status) => Some(status.code),
            _ => None,
        })
    }
}

/// An address with its lifetimes in seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IaAddress<'a> {
    /// The address.
    pub address: Ipv6Addr,
    /// Preferred lifetime.
    pub preferred_lifetime: u32,
    /// Valid lifetime.
    pub valid_lifetime: u32,
    /// A status.
    pub options: Vec<Opt<'a>>,
}

/// A delegated prefix with its lifetimes in seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IaPrefix<'a> {
    /// Preferred lifetime.
    pub preferred_lifetime: u32,
    /// Valid lifetime.
    pub valid_lifetime: u32,
    /// Prefix length; any octet on the wire.
    pub length: u8,
    /// The prefix; perhaps with bits beyond its length.
    pub prefix: Ipv6Addr,
    /// A status, or a part of the prefix that is excluded.
    pub options: Vec<Opt<'a>>,
}

/// Authentication (RFC 8415 §21.11).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Auth<'a> {
    /// Protocol; [`Auth::RECONFIGURE_KEY`].
    pub protocol: u8,
    /// Algorithm; 1 is HMAC-MD5.
    pub algorithm: u8,
    /// Replay detection method; 0: the number rises.
    pub method: u8,
    /// Number against replay.
    pub replay: u64,
    /// Key or digest.
    pub information: &'a [u8],
}

impl Auth<'_> {
    /// Protocol that authenticates Reconfigure messages (RFC 8415 §20.4).
    pub const RECONFIGURE_KEY: u8 = 3;
}

/// Without key or digest.
impl core::fmt::Debug for Auth<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Auth {
            protocol, replay, ..
        } = self;
        write!(f, "Auth {{ protocol: {protocol}, replay: {replay}, .. }}")
    }
}

/// How it went (RFC 8415 §21.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status<'a> {
    /// Code; see [`status`].
    pub code: u16,
    /// A text for people in UTF-8.
    pub message: &'a [u8],
}

/// Status codes.
pub mod status {
    /// It went well.
    pub const SUCCESS: u16 = 0;
    /// It failed, and nobody says why.
    pub const UNSPEC_FAIL: u16 = 1;
    /// There is no address.
    pub const NO_ADDRS_AVAIL: u16 = 2;
    /// The server has nothing bound for this identity association.
    pub const NO_BINDING: u16 = 3;
    /// The address does not fit the link.
    pub const NOT_ON_LINK: u16 = 4;
    /// The client has to use the multicast address.
    pub const USE_MULTICAST: u16 = 5;
    /// There is no prefix.
    pub const NO_PREFIX_AVAIL: u16 = 6;

    /// Name of a status code.
    pub const fn name(code: u16) -> Option<&'static str> {
        Some(match code {
            SUCCESS => "Success",
            UNSPEC_FAIL => "UnspecFail",
            NO_ADDRS_AVAIL => "NoAddrsAvail",
            NO_BINDING => "NoBinding",
            NOT_ON_LINK => "NotOnLink",
            USE_MULTICAST => "UseMulticast",
            NO_PREFIX_AVAIL => "NoPrefixAvail",
            _ => return None,
        })
    }
}

/// Where an option is. It says which options are known there, and so how deep they nest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Message,
    Association,
    Lease,
}

/// Reads the options of a message.
pub(super) fn parse_message(bytes: &[u8]) -> Result<Vec<Opt<'_>>> {
    parse(bytes, Scope::Message)
}

fn parse(mut bytes: &[u8], scope: Scope) -> Result<Vec<Opt<'_>>> {
    let mut options = Vec::new();
    while !bytes.is_empty() {
        let (&[k1, k2, l1, l2], rest) = bytes
            .split_first_chunk()
            .ok_or(Malformed("DHCPv6 option cut off"))?;
        let length = usize::from(u16::from_be_bytes([l1, l2]));
        let (data, rest) = rest
            .split_at_checked(length)
            .ok_or(Malformed("DHCPv6 option beyond what holds it"))?;
        options.push(parse_one(u16::from_be_bytes([k1, k2]), data, scope)?);
        bytes = rest;
    }
    Ok(options)
}

fn parse_one(code: u16, data: &[u8], scope: Scope) -> Result<Opt<'_>> {
    use Scope::{Association, Message};
    let word = |at: [u8; 2]| u16::from_be_bytes(at);
    Ok(match (code, scope) {
        (IA_NA, Message) => Opt::IaNa(parse_association(data)?),
        (IA_PD, Message) => Opt::IaPd(parse_association(data)?),
        (IA_ADDRESS, Association) => Opt::Address(parse_address(data)?),
        (IA_PREFIX, Association) => Opt::Prefix(parse_prefix(data)?),
        (CLIENT_ID, _) => Opt::ClientId(data),
        (SERVER_ID, _) => Opt::ServerId(data),
        (OPTION_REQUEST, _) => Opt::OptionRequest(chunks(data)?.map(word).collect()),
        (PREFERENCE, _) => Opt::Preference(u8::from_be_bytes(whole(data)?)),
        (ELAPSED_TIME, _) => Opt::ElapsedTime(word(whole(data)?)),
        (Opt::AUTH, _) => Opt::Auth(parse_auth(data)?),
        (STATUS_CODE, _) => {
            let (code, message) = fixed(data)?;
            let code = word(code);
            Opt::Status(Status { code, message })
        }
        (RAPID_COMMIT, _) => whole(data).map(|[]| Opt::RapidCommit)?,
        (RECONFIGURE_MESSAGE, _) => Opt::ReconfigureMessage(u8::from_be_bytes(whole(data)?)),
        (RECONFIGURE_ACCEPT, _) => whole(data).map(|[]| Opt::ReconfigureAccept)?,
        (Opt::DNS_SERVERS, _) => {
            Opt::DnsServers(chunks(data)?.map(Ipv6Addr::from_octets).collect())
        }
        (Opt::INFORMATION_REFRESH_TIME, _) => {
            Opt::InformationRefreshTime(u32::from_be_bytes(whole(data)?))
        }
        (Opt::SOL_MAX_RT, _) => Opt::SolMaxRt(u32::from_be_bytes(whole(data)?)),
        (Opt::INF_MAX_RT, _) => Opt::InfMaxRt(u32::from_be_bytes(whole(data)?)),
        _ => Opt::Unknown(code, data),
    })
}

/// Splits off the fixed part of an option.
fn fixed<const N: usize>(data: &[u8]) -> Result<([u8; N], &[u8])> {
    data.split_first_chunk()
        .map(|(fixed, rest)| (*fixed, rest))
        .ok_or(Malformed("DHCPv6 option too short"))
}

/// An option that is its fixed part.
fn whole<const N: usize>(data: &[u8]) -> Result<[u8; N]> {
    data.try_into()
        .map_err(|_| Malformed("DHCPv6 option of a wrong length"))
}

/// An option that is a list.
fn chunks<const N: usize>(data: &[u8]) -> Result<impl Iterator<Item = [u8; N]>> {
    if !data.len().is_multiple_of(N) {
        return Err(Malformed("DHCPv6 list of a wrong length"));
    }
    Ok(data
        .chunks_exact(N)
        .map(|chunk| core::array::from_fn(|at| chunk[at])))
}

fn take_u32(data: &mut &[u8]) -> Result<u32> {
    let (number, rest) = fixed(data)?;
    *data = rest;
    Ok(u32::from_be_bytes(number))
}

fn parse_association(mut data: &[u8]) -> Result<Ia<'_>> {
    Ok(Ia {
        id: take_u32(&mut data)?,
        t1: take_u32(&mut data)?,
        t2: take_u32(&mut data)?,
        options: parse(data, Scope::Association)?,
    })
}

fn parse_address(data: &[u8]) -> Result<IaAddress<'_>> {
    let (address, mut data) = fixed(data)?;
    Ok(IaAddress {
        address: Ipv6Addr::from_octets(address),
        preferred_lifetime: take_u32(&mut data)?,
        valid_lifetime: take_u32(&mut data)?,
        options: parse(data, Scope::Lease)?,
    })
}

fn parse_prefix(mut data: &[u8]) -> Result<IaPrefix<'_>> {
    let preferred_lifetime = take_u32(&mut data)?;
    let valid_lifetime = take_u32(&mut data)?;
    let ([length], data) = fixed(data)?;
    let (prefix, options) = fixed(data)?;
    Ok(IaPrefix {
        preferred_lifetime,
        valid_lifetime,
        length,
        prefix: Ipv6Addr::from_octets(prefix),
        options: parse(options, Scope::Lease)?,
    })
}

fn parse_auth(data: &[u8]) -> Result<Auth<'_>> {
    let ([protocol, algorithm, method], data) = fixed(data)?;
    let (replay, information) = fixed(data)?;
    Ok(Auth {
        protocol,
        algorithm,
        method,
        replay: u64::from_be_bytes(replay),
        information,
    })
}

impl Opt<'_> {
    /// Appends the option to `out`. It must fit into 65,535 octets.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.code().to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        self.emit_data(out);
        let length = out.len() - start - 4;
        debug_assert!(length <= 0xffff);
        out[start + 2..start + 4].copy_from_slice(&(length as u16).to_be_bytes());
    }

    /// Its code.
    pub fn code(&self) -> u16 {
        match self {
            Opt::ClientId(_) => CLIENT_ID,
            Opt::ServerId(_) => SERVER_ID,
            Opt::IaNa(_) => IA_NA,
            Opt::IaPd(_) => IA_PD,
            Opt::Address(_) => IA_ADDRESS,
            Opt::Prefix(_) => IA_PREFIX,
            Opt::OptionRequest(_) => OPTION_REQUEST,
            Opt::Preference(_) => PREFERENCE,
            Opt::ElapsedTime(_) => ELAPSED_TIME,
            Opt::Auth(_) => Opt::AUTH,
            Opt::Status(_) => STATUS_CODE,
            Opt::RapidCommit => RAPID_COMMIT,
            Opt::ReconfigureMessage(_) => RECONFIGURE_MESSAGE,
            Opt::ReconfigureAccept => RECONFIGURE_ACCEPT,
            Opt::DnsServers(_) => Opt::DNS_SERVERS,
            Opt::InformationRefreshTime(_) => Opt::INFORMATION_REFRESH_TIME,
            Opt::SolMaxRt(_) => Opt::SOL_MAX_RT,
            Opt::InfMaxRt(_) => Opt::INF_MAX_RT,
            Opt::Unknown(code, _) => *code,
        }
    }

    fn emit_data(&self, out: &mut Vec<u8>) {
        match self {
            Opt::ClientId(data) | Opt::ServerId(data) | Opt::Unknown(_, data) => {
                out.extend_from_slice(data);
            }
            Opt::IaNa(ia) | Opt::IaPd(ia) => ia.emit(out),
            Opt::Address(address) => address.emit(out),
            Opt::Prefix(prefix) => prefix.emit(out),
            Opt::OptionRequest(codes) => codes.iter().for_each(|code| emit_u16(*code, out)),
            Opt::Preference(octet) | Opt::ReconfigureMessage(octet) => out.push(*octet),
            Opt::ElapsedTime(hundredths) => emit_u16(*hundredths, out),
            Opt::Auth(auth) => auth.emit(out),
            Opt::Status(Status { code, message }) => {
                emit_u16(*code, out);
                out.extend_from_slice(message);
            }
            Opt::RapidCommit | Opt::ReconfigureAccept => {}
            Opt::DnsServers(servers) => servers
                .iter()
                .for_each(|server| out.extend_from_slice(&server.octets())),
            Opt::InformationRefreshTime(seconds)
            | Opt::SolMaxRt(seconds)
            | Opt::InfMaxRt(seconds) => emit_u32(*seconds, out),
        }
    }
}

fn emit_u16(number: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_be_bytes());
}

fn emit_u32(number: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_be_bytes());
}

impl Ia<'_> {
    fn emit(&self, out: &mut Vec<u8>) {
        [self.id, self.t1, self.t2]
            .into_iter()
            .for_each(|number| emit_u32(number, out));
        self.options.iter().for_each(|option| option.emit(out));
    }
}

impl IaAddress<'_> {
    fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.address.octets());
        emit_u32(self.preferred_lifetime, out);
        emit_u32(self.valid_lifetime, out);
        self.options.iter().for_each(|option| option.emit(out));
    }
}

impl IaPrefix<'_> {
    fn emit(&self, out: &mut Vec<u8>) {
        emit_u32(self.preferred_lifetime, out);
        emit_u32(self.valid_lifetime, out);
        out.push(self.length);
        out.extend_from_slice(&self.prefix.octets());
        self.options.iter().for_each(|option| option.emit(out));
    }
}

impl Auth<'_> {
    fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.protocol, self.algorithm, self.method]);
        out.extend_from_slice(&self.replay.to_be_bytes());
        out.extend_from_slice(self.information);
    }
}

//! Who the homes are: names by template, and lines.

use cpe::{Auth, Delegation, Family, HomeConfig};
use std::fmt::{self, Write};
use std::str::FromStr;
use wire::eth::{MacAddr, TPID_8021AD, TPID_8021Q, Tag, Tags};
use wire::pppoe::AccessLine;

/// The largest VLAN id that a line may have (IEEE 802.1Q §9.6).
const LAST_VLAN: u16 = 4094;
/// The most octets of a TR-101 sub-option.
const LONGEST_ID: usize = 63;

/// What a template may contain.
const VARIABLES: &str = "after % may follow d (number; %04d: four digits), s (outer tag), c (inner tag), m (MAC address) or %";

/// A text in which each home is named in its own way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// `%d`, `%4d`, `%04d`: the home's number, with zeros before it up to so many digits.
    Number(usize),
    /// `%s`: the outer tag.
    Outer,
    /// `%c`: the inner tag.
    Inner,
    /// `%m`: the MAC address.
    Mac,
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut pieces, mut literal, mut rest) = (Vec::new(), String::new(), text);
        while let Some((before, after)) = rest.split_once('%') {
            literal.push_str(before);
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            let (width, after) = after.split_at(digits);
            let mut letters = after.chars();
            let piece = match (letters.next(), width) {
                (Some('%'), "") => {
                    literal.push('%');
                    None
                }
                (Some('d'), width) => Some(Piece::Number(number_of_digits(width)?)),
                (Some('s'), "") => Some(Piece::Outer),
                (Some('c'), "") => Some(Piece::Inner),
                (Some('m'), "") => Some(Piece::Mac),
                _ => {
                    return Err(VARIABLES.into());
                }
            };
            if let Some(piece) = piece {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
                pieces.push(piece);
            }
            rest = letters.as_str();
        }
        literal.push_str(rest);
        pieces.push(Piece::Text(literal));
        Ok(Template(pieces))
    }
}

fn number_of_digits(width: &str) -> Result<usize, String> {
    match width.parse() {
        _ if width.is_empty() => Ok(0),
        Ok(digits @ 0..=20) => Ok(digits),
        _ => Err(format!("{width} digits are too many")),
    }
}

impl Template {
    /// The text of a home.
    fn of(&self, number: u32, mac: MacAddr, tags: Tags) -> String {
        let mut text = String::new();
        for piece in &self.0 {
            // A String takes everything.
            let _ = match piece {
                Piece::Text(literal) => write!(text, "{literal}"),
                Piece::Number(digits) => write!(text, "{number:0digits$}"),
                Piece::Outer => write!(text, "{}", vid(tags.outer)),
                Piece::Inner => write!(text, "{}", vid(tags.inner)),
                Piece::Mac => write!(text, "{mac}"),
            };
        }
        text
    }
}

fn vid(tag: Option<Tag>) -> u16 {
    tag.map_or(0, |tag| tag.vid)
}

/// A template that nobody reads in a log.
#[derive(Clone)]
struct Secret(Template);

impl FromStr for Secret {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Secret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Numbers from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: u16,
    last: u16,
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let vlan = |text: &str| match text.parse() {
            Ok(vlan @ 1..=LAST_VLAN) => Ok(vlan),
            _ => Err(format!("{text:?} is no VLAN id from 1 to {LAST_VLAN}")),
        };
        let range = Range {
            first: vlan(first)?,
            last: vlan(last)?,
        };
        match range.first <= range.last {
            true => Ok(range),
            false => Err(format!("{text}: the last VLAN id is below the first")),
        }
    }
}

impl Range {
    fn count(self) -> u32 {
        u32::from(self.last - self.first) + 1
    }

    fn nth(self, n: u32) -> u16 {
        self.first + (n % self.count()) as u16
    }
}

/// Which tags the homes' lines have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    outer: Option<Range>,
    inner: Option<Range>,
}

impl FromStr for Lines {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (outer, inner) = match text.split_once('.') {
            _ if text == "untagged" => return Ok(Lines::default()),
            Some((outer, inner)) => (outer, Some(inner)),
            None => (text, None),
        };
        Ok(Lines {
            outer: Some(outer.parse()?),
            inner: inner.map(str::parse).transpose()?,
        })
    }
}

impl Lines {
    /// The tags of the home at this place: each home the next inner tag, then the next outer one, and all over again.
    fn at(self, place: u32, outer_tpid: u16) -> Tags {
        let inner_count = self.inner.map_or(1, Range::count);
        let outer = self.outer.map(|range| Tag {
            tpid: outer_tpid,
            ..Tag::new(range.nth(place / inner_count))
        });
        let inner = self.inner.map(|range| Tag::new(range.nth(place)));
        Tags { outer, inner }
    }
}

/// `--auth`.
// Without doc comments: clap would print a list of them.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Method {
    Any,
    Pap,
    Chap,
    #[value(name = "mschapv2")]
    MsChapV2,
}

impl From<Method> for Auth {
    fn from(method: Method) -> Self {
        match method {
            Method::Any => Auth::Any,
            Method::Pap => Auth::Pap,
            Method::Chap => Auth::Chap,
            Method::MsChapV2 => Auth::MsChapV2,
        }
    }
}

/// `--outer-tpid`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OuterTpid {
    #[value(name = "8100")]
    Customer,
    #[value(name = "88a8")]
    Service,
}

impl From<OuterTpid> for u16 {
    fn from(tpid: OuterTpid) -> Self {
        match tpid {
            OuterTpid::Customer => TPID_8021Q,
            OuterTpid::Service => TPID_8021AD,
        }
    }
}

/// What an operator says of the homes.
#[derive(Clone, Debug, clap::Args)]
pub struct HomeOptions {
    /// Number of homes
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub homes: u32,
    /// Number of the first home: give machines that share one load different ones
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16_000_000))]
    first: u32,
    /// User name of each home. %d is its number, %04d with leading zeros; %s, %c and %m are outer tag, inner tag and MAC address
    #[arg(long, default_value = "home%d", value_name = "TEMPLATE")]
    user: Template,
    /// Password of each home, with the same variables
    #[arg(
        long,
        default_value = "secret",
        value_name = "TEMPLATE",
        env = "SLUICE_LOAD_PASSWORD",
        hide_env_values = true
    )]
    password: Secret,
    /// Authentication that homes accept
    #[arg(long, value_enum, default_value = "any", value_name = "METHOD")]
    auth: Method,
    /// Homes ask for IPv4 alone
    #[arg(long, conflicts_with = "ipv6_only")]
    ipv4_only: bool,
    /// Homes ask for IPv6 alone
    #[arg(long)]
    ipv6_only: bool,
    /// Homes ask for a delegated prefix by DHCPv6, and send their IPv6 packets from a host in it
    #[arg(long, conflicts_with = "ipv4_only")]
    pub delegation: bool,
    /// Service name that homes ask for [default: any service]
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        value_name = "NAME"
    )]
    service: String,
    /// VLANs of the lines: OUTER or OUTER.INNER, each an id or a range. 100: all homes in one VLAN; 100-199: home by home the next one;
    /// 100.1-4000: QinQ with a C-tag per home. With more homes than VLANs, homes share them
    #[arg(long, default_value = "untagged", value_name = "VLANS")]
    vlan: Lines,
    /// EtherType of the outer tag
    #[arg(
        long,
        value_enum,
        default_value = "8100",
        value_name = "TPID",
        requires = "vlan"
    )]
    outer_tpid: OuterTpid,
    /// TR-101 agent circuit id of each home, with the variables of --user [default: none]
    #[arg(long, value_name = "TEMPLATE")]
    circuit_id: Option<Template>,
    /// TR-101 agent remote id of each home, with the variables of --user [default: none]
    #[arg(long, value_name = "TEMPLATE")]
    remote_id: Option<Template>,
}

impl HomeOptions {
    /// The tags of the first home. The others have as many, with the same EtherTypes.
    pub fn tags(&self) -> Tags {
        self.vlan.at(0, self.outer_tpid.into())
    }

    /// Whether homes ask for an address family.
    pub fn ask_for(&self, family: Family) -> bool {
        match family {
            Family::V4 => !self.ipv6_only,
            Family::V6 => !self.ipv4_only,
        }
    }

    /// All homes.
    ///
    /// # Errors
    /// A home has a name that no packet carries.
    pub fn configs(&self) -> Result<Vec<HomeConfig>, String> {
        (0..self.homes).map(|place| self.config(place)).collect()
    }

    fn config(&self, place: u32) -> Result<HomeConfig, String> {
        let number = self.first + place;
        let [_, a, b, c] = number.to_be_bytes();
        let mac: MacAddr = [2, 0, 0x5e, a, b, c].into();
        let tags = self.vlan.at(place, self.outer_tpid.into());
        let text = |template: &Template| template.of(number, mac, tags);
        let (user, password) = (text(&self.user), text(&self.password.0));
        if user.len() > 255 || password.len() > 255 {
            return Err("a user name or password is longer than 255 octets".into());
        }
        Ok(HomeConfig {
            tags,
            access_line: self.access_line(text)?,
            service: self.service.clone(),
            auth: self.auth.into(),
            ipv4: self.ask_for(Family::V4),
            ipv6: self.ask_for(Family::V6),
            delegation: self.delegation.then_some(Delegation {
                rapid_commit: false,
            }),
            ..HomeConfig::new(mac, 0, 0, user, password)
        })
    }

    fn access_line(&self, text: impl Fn(&Template) -> String) -> Result<Vec<u8>, String> {
        let [circuit, remote] =
            [&self.circuit_id, &self.remote_id].map(|id| id.as_ref().map(&text));
        for id in [&circuit, &remote].into_iter().flatten() {
            if id.len() > LONGEST_ID {
                return Err(format!("{id:?} is longer than {LONGEST_ID} octets"));
            }
        }
        let mut data = Vec::new();
        AccessLine {
            circuit_id: circuit.as_deref().map(str::as_bytes),
            remote_id: remote.as_deref().map(str::as_bytes),
            others: Vec::new(),
        }
        .emit(&mut data);
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::collections::HashSet;

    #[derive(Parser)]
    struct Homes {
        #[command(flatten)]
        options: HomeOptions,
    }

    fn homes(words: &str) -> Vec<HomeConfig> {
        let words = ["load"].into_iter().chain(words.split_whitespace());
        Homes::try_parse_from(words)
            .unwrap()
            .options
            .configs()
            .unwrap()
    }

    #[test]
    fn names_follow_their_templates() {
        let of = |text: &str| {
            let mac = MacAddr([2, 0, 0x5e, 0, 0, 0x2a]);
            Template::from_str(text).map(|t| t.of(42, mac, Tags::qinq(100, 7)))
        };
        for (template, text) in [
            ("home%d@isp", "home42@isp"),
            ("%06d", "000042"),
            ("%1d%%", "42%"),
            ("olt eth 1/%d:%s.%c", "olt eth 1/42:100.7"),
            ("%m", "02:00:5e:00:00:2a"),
            ("", ""),
            ("ü%dé", "ü42é"),
        ] {
            assert_eq!(of(template).as_deref(), Ok(text), "{template}");
        }
        for wrong in ["%", "home%x", "%4s", "%99d", "%99999999999999999999999d"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lines_are_read_and_spread_over_homes() {
        let tags = |text: &str, place| {
            let lines: Result<Lines, String> = text.parse();
            lines.map(|lines| lines.at(place, TPID_8021Q).to_string())
        };
        for (text, expected) in [
            ("untagged", ["untagged", "untagged", "untagged"]),
            ("100", ["100", "100", "100"]),
            ("100-101", ["100", "101", "100"]),
            ("100.7", ["100.7", "100.7", "100.7"]),
            ("100.7-8", ["100.7", "100.8", "100.7"]),
            ("100-101.7", ["100.7", "101.7", "100.7"]),
            ("100-101.7-8", ["100.7", "100.8", "101.7"]),
        ] {
            let found = [0, 1, 2].map(|place| tags(text, place).unwrap());
            assert_eq!(found, expected, "{text}");
        }
        for wrong in ["", "0", "4095", "7-", "9-8", "1.2.3", "a", "1.", ".1", "-"] {
            assert!(wrong.parse::<Lines>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn homes_share_neither_address_nor_name_nor_line() {
        let homes = homes("--homes 9000 --first 5 --vlan 100-110.1-4000 --outer-tpid 88a8");
        let macs: HashSet<_> = homes.iter().map(|h| h.mac).collect();
        let users: HashSet<_> = homes.iter().map(|h| &h.user).collect();
        let lines: HashSet<_> = homes.iter().map(|h| h.tags.vids()).collect();
        assert_eq!([macs.len(), users.len(), lines.len()], [9000; 3]);
        assert_eq!(homes[0].user, "home5");
        assert_eq!(homes[0].tags.outer.unwrap().tpid, TPID_8021AD);
        assert_eq!(homes[0].tags.inner.unwrap().tpid, TPID_8021Q);
        assert!(homes[0].access_line.is_empty());
    }

    #[test]
    fn methods_and_ethertypes_are_read() {
        for (words, auth, tpid) in [
            ("--vlan 7", Auth::Any, TPID_8021Q),
            (
                "--vlan 7 --auth any --outer-tpid 8100",
                Auth::Any,
                TPID_8021Q,
            ),
            (
                "--vlan 7 --auth pap --outer-tpid 88a8",
                Auth::Pap,
                TPID_8021AD,
            ),
            ("--vlan 7 --auth chap", Auth::Chap, TPID_8021Q),
            ("--vlan 7 --auth mschapv2", Auth::MsChapV2, TPID_8021Q),
        ] {
            let home = &homes(words)[0];
            assert_eq!((home.auth, home.tags.outer.unwrap().tpid), (auth, tpid));
        }
        for wrong in [
            "--auth eap",
            "--vlan 7 --outer-tpid 9100",
            "--outer-tpid 88a8",
        ] {
            let words = ["load"].into_iter().chain(wrong.split_whitespace());
            assert!(Homes::try_parse_from(words).is_err(), "{wrong}");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        let words = ["load", "--password", "dont-tell-%d"];
        let options = Homes::try_parse_from(words).unwrap().options;
        assert!(!format!("{options:?}").contains("dont-tell"));
        assert_eq!(options.configs().unwrap()[0].password, "dont-tell-1");
    }

    #[test]
    fn access_lines_carry_their_ids() {
        let homes = homes("--homes 2 --vlan 7 --circuit-id olt/%d:%s --remote-id %m --ipv6-only");
        let line = AccessLine::parse(&homes[1].access_line);
        assert_eq!(line.circuit_id, Some(&b"olt/2:7"[..]));
        assert_eq!(line.remote_id, Some(&b"02:00:5e:00:00:02"[..]));
        assert_eq!((homes[1].ipv4, homes[1].ipv6), (false, true));
        let long = format!("--circuit-id {}", "x".repeat(64));
        let words = ["load"].into_iter().chain(long.split_whitespace());
        let long = Homes::try_parse_from(words).unwrap().options;
        assert!(long.configs().is_err());
    }
}

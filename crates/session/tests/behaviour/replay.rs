//! Recorded exchanges of real subscribers, replayed: see `pppd/README.md`.
use crate::support::exchange::whole_life;
use crate::support::pcap;
use crate::support::server::{Prepared, Server};
use policy::Bindings;
use session::discovery::DiscoveryConfig;
use session::ladder::describe_frame;
use session::*;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::eth::{Frame, Header, MacAddr, PPPOE_DISCOVERY, PPPOE_SESSION};
use wire::ppp::{self, Control};
use wire::pppoe::{self, Discovery, Tag};
use wire::{chap, ipcp, ipv6cp, lcp, nd, pap};

/// A frame of a recording that matters.
struct Rung {
    at: Duration,
    from_server: bool,
    bytes: Vec<u8>,
}

impl Rung {
    fn frame(&self) -> Frame<'_> {
        Frame::parse(&self.bytes).unwrap()
    }

    fn discovery(&self) -> Option<Discovery<'_>> {
        let frame = self.frame();
        (frame.header.ethertype == PPPOE_DISCOVERY)
            .then(|| Discovery::parse(frame.payload).unwrap())
    }

    /// Session id and PPP frame.
    fn ppp(&self) -> Option<(u16, ppp::Frame<'_>)> {
        let frame = self.frame();
        let packet = pppoe::Packet::parse(frame.payload)
            .ok()
            .filter(|_| frame.header.ethertype == PPPOE_SESSION)?;
        Some((packet.session_id, ppp::Frame::parse(packet.payload).ok()?))
    }

    fn control(&self, protocol: u16) -> Option<Control<'_>> {
        let (_, frame) = self.ppp().filter(|(_, f)| f.protocol == protocol)?;
        Some(Control::parse(frame.payload).unwrap())
    }

    fn advertisement(&self) -> Option<nd::RouterAdvertisement> {
        let (_, frame) = self.ppp().filter(|(_, f)| f.protocol == ppp::IPV6)?;
        match nd::Packet::parse(frame.payload).ok()?.message {
            nd::Message::RouterAdvertisement(ra) => Some(ra),
            _ => None,
        }
    }

    fn is_relevant(&self) -> bool {
        match self.frame().header.ethertype {
            PPPOE_DISCOVERY => true,
            PPPOE_SESSION => self.ppp().is_some_and(|(_, f)| match f.protocol {
                ppp::IPV6 => nd::Packet::parse(f.payload).is_ok(),
                protocol => protocol >= 0x8000,
            }),
            _ => false,
        }
    }

    /// The server's own echoes come at random times.
    fn is_comparable(&self) -> bool {
        self.from_server
            && self
                .control(ppp::LCP)
                .is_none_or(|c| c.code != lcp::ECHO_REQUEST)
    }
}

fn recording(folder: &Path) -> Vec<Rung> {
    let bytes = std::fs::read(folder.join("exchange.pcap")).expect("exchange.pcap");
    let mut rungs: Vec<_> = pcap::read(&bytes)
        .into_iter()
        .map(|(at, bytes)| Rung {
            at,
            from_server: false,
            bytes,
        })
        .filter(Rung::is_relevant)
        .collect();
    let is_offer = |r: &&Rung| r.discovery().is_some_and(|d| d.code == pppoe::PADO);
    let server = rungs
        .iter()
        .find(is_offer)
        .expect("a PADO in the capture")
        .frame()
        .header
        .source;
    for rung in &mut rungs {
        rung.from_server = rung.frame().header.source == server;
    }
    rungs
}

/// What the recorded server was configured with, drew, and was told.
struct Facts {
    prepared: Prepared,
    grant: Grant,
}

/// The rungs of the server in this session.
fn facts(rungs: &[Rung], session_id: u16) -> Facts {
    let ours: Vec<_> = rungs
        .iter()
        .filter(|r| r.from_server && r.ppp().is_some_and(|(id, _)| id == session_id))
        .collect();
    let mut config = SessionConfig {
        echo_interval: Duration::ZERO,
        // As the control plane has it.
        start_delay: Duration::from_millis(200),
        ..SessionConfig::default()
    };
    let mut random = Random {
        magic: 1,
        chap_challenge: [0; 16],
        chap_id: 0,
        interface_id: 1,
        seed: 1,
    };
    let mut grant = Grant::default();
    read_lcp(&ours, &mut config, &mut random);
    read_challenge(&ours, &mut config, &mut random);
    grant.ipv4 = read_ipcp(&ours);
    grant.ipv6 = read_ipv6(&ours, &mut config, &mut random);
    Facts {
        prepared: Prepared {
            session_id,
            config,
            random,
        },
        grant,
    }
}

fn read_lcp(ours: &[&Rung], config: &mut SessionConfig, random: &mut Random) {
    let first = ours
        .iter()
        .find_map(|r| r.control(ppp::LCP))
        .expect("LCP of the server");
    for option in lcp::Opt::parse_all(first.data).unwrap() {
        match option {
            lcp::Opt::Mru(mru) => config.mru = mru,
            lcp::Opt::Magic(magic) => random.magic = magic,
            lcp::Opt::Auth(lcp::Auth::Pap) => {
                config.auth = vec![AuthProtocol::Pap, AuthProtocol::Chap]
            }
            _ => {}
        }
    }
}

fn read_challenge(ours: &[&Rung], config: &mut SessionConfig, random: &mut Random) {
    for (_, frame) in ours
        .iter()
        .filter_map(|r| r.ppp())
        .filter(|(_, f)| f.protocol == ppp::CHAP)
    {
        if let Ok(chap::Packet::Challenge { id, value, name }) = chap::Packet::parse(frame.payload)
        {
            random.chap_id = id;
            random.chap_challenge = value.try_into().expect("a challenge of 16 octets");
            config.name = String::from_utf8(name.to_vec()).unwrap();
            return;
        }
    }
}

fn read_ipcp(ours: &[&Rung]) -> Option<Ipv4Grant> {
    let mut grant = None;
    for packet in ours.iter().filter_map(|r| r.control(ppp::IPCP)) {
        for option in ipcp::Opt::parse_all(packet.data).unwrap_or_default() {
            let unspecified = std::net::Ipv4Addr::UNSPECIFIED;
            let grant = grant.get_or_insert(Ipv4Grant {
                address: unspecified,
                gateway: unspecified,
                dns: [None; 2],
            });
            match (packet.code, option) {
                (ppp::CONFIGURE_REQUEST, ipcp::Opt::Address(a)) => grant.gateway = a,
                (ppp::CONFIGURE_ACK | ppp::CONFIGURE_NAK, ipcp::Opt::Address(a)) => {
                    grant.address = a
                }
                (ppp::CONFIGURE_ACK | ppp::CONFIGURE_NAK, ipcp::Opt::PrimaryDns(a)) => {
                    grant.dns[0] = Some(a)
                }
                (ppp::CONFIGURE_ACK | ppp::CONFIGURE_NAK, ipcp::Opt::SecondaryDns(a)) => {
                    grant.dns[1] = Some(a)
                }
                _ => {}
            }
        }
    }
    grant
}

fn read_ipv6(ours: &[&Rung], config: &mut SessionConfig, random: &mut Random) -> Option<Ipv6Grant> {
    let requests = ours
        .iter()
        .filter_map(|r| r.control(ppp::IPV6CP))
        .filter(|c| c.code == ppp::CONFIGURE_REQUEST);
    for option in requests
        .filter_map(|c| ipv6cp::Opt::parse_all(c.data).ok())
        .next()?
    {
        if let ipv6cp::Opt::InterfaceId(id) = option {
            random.interface_id = id;
        }
    }
    let mut grant = Ipv6Grant {
        bindings: Bindings::of(None, Some("2001:db8::/64".parse().unwrap())),
        dns: Box::default(),
        interface_id: None,
    };
    let Some(ra) = ours.iter().find_map(|r| r.advertisement()) else {
        return Some(grant);
    };
    config.ra.router_lifetime = ra.router_lifetime;
    for option in ra.options {
        match option {
            nd::Opt::Prefix(p) => {
                config.ra.valid_lifetime = p.valid_lifetime;
                config.ra.preferred_lifetime = p.preferred_lifetime;
                let prefix = format!("{}/{}", p.prefix, p.length).parse().unwrap();
                grant.bindings = Bindings::of(None, Some(prefix));
            }
            nd::Opt::Rdnss { lifetime, servers } => {
                config.ra.interval = Duration::from_secs((lifetime / 3).into());
                grant.dns = servers.into();
            }
            _ => {}
        }
    }
    Some(grant)
}

/// Names and limits of discovery, from the first PADO.
fn discovery_config(rungs: &[Rung]) -> (MacAddr, DiscoveryConfig) {
    let rung = rungs
        .iter()
        .find(|r| r.from_server)
        .expect("a frame of the server");
    let mut config = DiscoveryConfig {
        ac_name: String::new(),
        service_names: vec![],
        accepts_any_service: true,
        cookie_key: [5; 32],
        cookie_lifetime: Duration::from_secs(3600),
        trusts_access_line: true,
        max_payload: None,
    };
    for tag in rung.discovery().expect("a PADO first").tags {
        match tag {
            Tag::AcName(name) => config.ac_name = String::from_utf8(name.to_vec()).unwrap(),
            Tag::MaxPayload(octets) => config.max_payload = Some(octets),
            _ => {}
        }
    }
    (rung.frame().header.source, config)
}

/// A recording under way.
struct Replay<'a> {
    rungs: &'a [Rung],
    server: Server,
    /// What the sessions still to come, and the one under way, are granted.
    grants: Vec<(u16, Grant)>,
    session_id: u16,
}

impl<'a> Replay<'a> {
    fn new(rungs: &'a [Rung]) -> Self {
        let mut prepared = Vec::new();
        let mut grants: Vec<(u16, Grant)> = Vec::new();
        for rung in rungs.iter().filter(|r| r.from_server) {
            let Some(Discovery {
                code: pppoe::PADS,
                session_id,
                ..
            }) = rung.discovery()
            else {
                continue;
            };
            if session_id != 0 && grants.iter().all(|(id, _)| *id != session_id) {
                let facts = facts(rungs, session_id);
                prepared.push(facts.prepared);
                grants.push((session_id, facts.grant));
            }
        }
        let (mac, config) = discovery_config(rungs);
        Replay {
            rungs,
            server: Server::new(mac, config, prepared),
            grants,
            session_id: 0,
        }
    }

    fn run(&mut self) {
        for rung in self.rungs {
            if rung.from_server {
                self.on_server_rung(rung);
            } else {
                let bytes = self.with_our_cookie(rung);
                self.server.on_frame(rung.at, &bytes);
            }
        }
        let end = self.rungs.last().map_or(Duration::ZERO, |r| r.at);
        self.server.advance(end + Duration::from_secs(10));
    }

    /// What AAA, the user plane and the operator did to make the recorded server send this.
    fn on_server_rung(&mut self, rung: &Rung) {
        self.server.advance(rung.at);
        if let Some(Discovery {
            code: pppoe::PADS,
            session_id,
            ..
        }) = rung.discovery()
        {
            self.session_id = session_id;
        }
        if let Some(reply) = self.verdict(rung)
            && let Some(attempt) = self.server.attempt.take()
        {
            self.server
                .command(rung.at, Command::Auth { attempt, reply });
        }
        let releases_ipv4 = rung
            .control(ppp::IPCP)
            .is_some_and(|c| c.code == ppp::CONFIGURE_ACK);
        for (family, releases) in [
            (Family::Ipv4, releases_ipv4),
            (Family::Ipv6, rung.advertisement().is_some()),
        ] {
            if releases && self.server.wanted.contains(&family) {
                self.server.wanted.retain(|f| *f != family);
                self.server.command(rung.at, Command::Installed(family));
            }
        }
        let terminates = rung
            .control(ppp::LCP)
            .is_some_and(|c| c.code == ppp::TERMINATE_REQUEST);
        if terminates && !self.server.is_terminating() {
            self.server
                .command(rung.at, Command::Terminate(self.cause_after(rung.at)));
        }
    }

    fn verdict(&self, rung: &Rung) -> Option<AuthReply> {
        let (_, frame) = rung.ppp()?;
        let (accepted, message) = match frame.protocol {
            ppp::CHAP => match chap::Packet::parse(frame.payload).ok()? {
                chap::Packet::Success { message, .. } => (true, message),
                chap::Packet::Failure { message, .. } => (false, message),
                _ => return None,
            },
            ppp::PAP => match pap::Packet::parse(frame.payload).ok()? {
                pap::Packet::Ack { message, .. } => (true, message),
                pap::Packet::Nak { message, .. } => (false, message),
                _ => return None,
            },
            _ => return None,
        };
        let message = message.to_vec();
        let (_, grant) = self.grants.iter().find(|(id, _)| *id == self.session_id)?;
        Some(if accepted {
            AuthReply::Accept {
                grant: grant.clone(),
                message,
                proof: None,
            }
        } else {
            AuthReply::Reject {
                message,
                error: None,
            }
        })
    }

    /// The reason that the server's PADT gives in the end.
    fn cause_after(&self, at: Duration) -> Cause {
        const CAUSES: [Cause; 6] = [
            Cause::AdminReset,
            Cause::AdminReboot,
            Cause::SessionTimeout,
            Cause::IdleTimeout,
            Cause::NasRequest,
            Cause::NasError,
        ];
        let farewell = self
            .rungs
            .iter()
            .filter(|r| r.from_server && r.at >= at)
            .find_map(|r| r.discovery());
        let says = |cause: &Cause| {
            farewell
                .as_ref()
                .is_some_and(|d| d.tags.contains(&Tag::GenericError(cause.text().as_bytes())))
        };
        CAUSES.into_iter().find(says).unwrap_or(Cause::AdminReset)
    }

    /// A PADR must give the recorded cookie back; ours takes its place.
    fn with_our_cookie(&self, rung: &Rung) -> Vec<u8> {
        let Some(mut padr) = rung.discovery().filter(|d| d.code == pppoe::PADR) else {
            return rung.bytes.clone();
        };
        let cookie_of = |bytes: &[u8]| {
            let discovery = Discovery::parse(Frame::parse(bytes).ok()?.payload).ok()?;
            discovery.tags.iter().find_map(|t| {
                if let Tag::AcCookie(c) = t {
                    Some(c.to_vec())
                } else {
                    None
                }
            })
        };
        let before = self
            .rungs
            .iter()
            .filter(|r| r.from_server && r.at <= rung.at);
        let recorded: Vec<_> = before.filter_map(|r| cookie_of(&r.bytes)).collect();
        let ours = self
            .server
            .sent
            .iter()
            .rev()
            .find_map(|(_, f)| cookie_of(f))
            .expect("a PADO of ours");
        for tag in &mut padr.tags {
            if let Tag::AcCookie(cookie) = tag {
                assert!(
                    recorded.contains(&cookie.to_vec()),
                    "a cookie that the recorded server never gave"
                );
                *tag = Tag::AcCookie(&ours);
            }
        }
        let mut bytes = Vec::new();
        Header {
            ..rung.frame().header
        }
        .emit(&mut bytes);
        padr.emit(&mut bytes);
        bytes
    }
}

/// Replays one folder; the error says what is different. With `bless`, what is kept is written anew.
fn replay(folder: &Path, bless: bool) -> Result<(), String> {
    let rungs = recording(folder);
    let mut replay = Replay::new(&rungs);
    replay.run();
    let server = &replay.server;
    let ladder = server.ladder.to_string();
    compare_with_recording(&rungs, server)
        .map_err(|why| format!("{why}\nThe replay:\n{ladder}"))?;
    let expected_up = |family| match family {
        Family::Ipv4 => rungs.iter().any(|r| {
            r.from_server
                && r.control(ppp::IPCP)
                    .is_some_and(|c| c.code == ppp::CONFIGURE_ACK)
        }),
        Family::Ipv6 => rungs.iter().any(|r| r.advertisement().is_some()),
    };
    for family in [Family::Ipv4, Family::Ipv6] {
        if server.ups.contains(&family) != expected_up(family) {
            return Err(format!(
                "{family} was {:?} in the replay:\n{ladder}",
                server.ups
            ));
        }
    }
    if server.closed.len() != replay.grants.len() {
        return Err(format!(
            "not every session was closed: {:?}\n{ladder}",
            server.closed
        ));
    }
    let kept = folder.join("expected.txt");
    if bless {
        return std::fs::write(&kept, ladder).map_err(|e| format!("{}: {e}", kept.display()));
    }
    compare_with_kept(&kept, &ladder)
}

fn compare_with_recording(rungs: &[Rung], server: &Server) -> Result<(), String> {
    let recorded: Vec<_> = rungs
        .iter()
        .filter(|r| r.is_comparable())
        .map(|r| describe_frame(&r.bytes))
        .collect();
    let replayed: Vec<_> = server.sent.iter().map(|(_, f)| describe_frame(f)).collect();
    if recorded == replayed {
        return Ok(());
    }
    let mut text = String::from("The server sends something else than the recorded one:\n");
    for i in 0..recorded.len().max(replayed.len()) {
        let (r, p) = (recorded.get(i), replayed.get(i));
        let nothing = String::from("(nothing)");
        if r != p {
            let _ = writeln!(
                text,
                "  recorded {}\n  replayed {}",
                r.unwrap_or(&nothing),
                p.unwrap_or(&nothing)
            );
            break;
        }
    }
    Err(text)
}

fn compare_with_kept(path: &Path, ladder: &str) -> Result<(), String> {
    let kept = std::fs::read_to_string(path)
        .map_err(|e| format!("{}: {e}; SLUICE_BLESS=1 writes it", path.display()))?;
    if kept == ladder {
        return Ok(());
    }
    let differs = kept.lines().zip(ladder.lines()).position(|(a, b)| a != b);
    let line = differs.unwrap_or(kept.lines().count().min(ladder.lines().count())) + 1;
    Err(format!(
        "{}, line {line}: the ladder is another one now:\n{ladder}",
        path.display()
    ))
}

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pppd");
    let mut folders: Vec<_> = std::fs::read_dir(root)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.is_dir())
        .collect();
    folders.sort();
    folders
}

#[test]
fn recorded_exchanges_of_pppd() {
    let folders = folders();
    assert!(
        !folders.is_empty(),
        "there is no recording in tests/pppd: see the README there"
    );
    let bless = std::env::var_os("SLUICE_BLESS").is_some();
    let failures: Vec<_> = folders
        .iter()
        .filter_map(|folder| {
            replay(folder, bless)
                .err()
                .map(|why| format!("{}: {why}", folder.display()))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Puts a capture of the scripted exchange into a folder, and its ladder beside it.
fn synthetic(change: impl FnOnce(&mut Vec<(Duration, Vec<u8>)>)) -> tempfile::TempDir {
    let exchange = whole_life(Duration::from_secs(30));
    let folder = tempfile::tempdir().unwrap();
    let mut frames = exchange.frames;
    // A stranger's packet is passed over.
    frames.insert(
        3,
        (frames[2].0, [&[0xff; 12][..], &[8, 6], &[0; 28]].concat()),
    );
    change(&mut frames);
    std::fs::write(folder.path().join("exchange.pcap"), pcap::write(&frames)).unwrap();
    folder
}

#[test]
fn the_harness_accepts_our_own_capture_and_notices_changes() {
    let good = synthetic(|_| {});
    let without = replay(good.path(), false).unwrap_err();
    assert!(without.contains("expected.txt"), "{without}");
    replay(good.path(), true).unwrap();
    replay(good.path(), false).unwrap();

    std::fs::write(good.path().join("expected.txt"), "").unwrap();
    assert!(replay(good.path(), false).unwrap_err().contains("line 1"));

    let is = |frame: &[u8], start: &[u8]| frame.get(28..).is_some_and(|f| f.starts_with(start));
    // The recorded server acknowledged with another identifier, or not at all, or did not hang up.
    let other_id = synthetic(|frames| {
        let ack = frames
            .iter_mut()
            .find(|(_, f)| f[6..12] == [2, 0, 0, 0, 0xff, 1] && is(f, &[0xc0, 0x21, 2]));
        ack.unwrap().1[31] += 1;
    });
    assert!(
        replay(other_id.path(), false)
            .unwrap_err()
            .contains("something else")
    );
    let no_reject = synthetic(|frames| frames.retain(|(_, f)| !is(f, &[0xc0, 0x21, 8])));
    assert!(
        replay(no_reject.path(), false)
            .unwrap_err()
            .contains("Protocol-Reject")
    );
    let no_end = synthetic(|frames| frames.truncate(frames.len() - 4));
    assert!(
        replay(no_end.path(), false)
            .unwrap_err()
            .contains("not every session was closed")
    );
}

//! A subscriber's whole life as a script: what it sends is written down here octet by octet.
use super::server::{Prepared, Server};
use super::*;
use session::discovery::DiscoveryConfig;
use wire::eth::MacAddr;

const SERVER: MacAddr = MacAddr([2, 0, 0, 0, 0xff, 1]);
const SESSION_ID: u16 = 0x0102;

/// The server after the script, and all frames of both directions with their times.
pub struct Exchange {
    pub server: Server,
    pub frames: Vec<(Duration, Vec<u8>)>,
}

struct Home {
    now: Duration,
    server: Server,
    frames: Vec<(Duration, Vec<u8>)>,
    seen: usize,
}

impl Home {
    fn send(&mut self, ethertype: u16, to: [u8; 6], payload: &[u8]) {
        self.now += Duration::from_millis(1);
        let mut frame = to.to_vec();
        frame.extend([2, 0, 0, 0, 0, 7, 0x88, 0xa8, 0, 100, 0x81, 0, 0, 7]);
        frame.extend(ethertype.to_be_bytes());
        frame.extend(payload);
        // Ethernet's minimum, as a real card pads.
        frame.resize(frame.len().max(60), 0);
        self.frames.push((self.now, frame.clone()));
        self.server.on_frame(self.now, &frame);
        self.collect();
    }

    fn collect(&mut self) {
        self.frames
            .extend_from_slice(&self.server.sent[self.seen..]);
        self.seen = self.server.sent.len();
    }

    fn discover(&mut self, to: [u8; 6], code: u8, session_id: u16, tags: &[u8]) {
        let mut payload = vec![0x11, code];
        payload.extend(session_id.to_be_bytes());
        payload.extend((tags.len() as u16).to_be_bytes());
        payload.extend(tags);
        self.send(0x8863, to, &payload);
    }

    fn ppp(&mut self, frame: &[u8]) {
        let mut payload = vec![0x11, 0];
        payload.extend(SESSION_ID.to_be_bytes());
        payload.extend((frame.len() as u16).to_be_bytes());
        payload.extend(frame);
        self.send(0x8864, SERVER.0, &payload);
    }

    fn command(&mut self, command: Command) {
        self.now += Duration::from_millis(1);
        self.server.command(self.now, command);
        self.collect();
    }

    fn wait(&mut self, duration: Duration) {
        self.now += duration;
        self.server.advance(self.now);
        self.collect();
    }

    /// The PPP frames that the server has sent, from the protocol field on; the last one of this protocol and code.
    fn last(&self, protocol: u16, code: u8) -> Vec<u8> {
        let mut frames = self.server.sent.iter().map(|(_, f)| &f[22 + 6..]);
        let wanted = [&protocol.to_be_bytes()[..], &[code]].concat();
        frames
            .rfind(|f| f.starts_with(&wanted))
            .expect("such a frame")
            .to_vec()
    }

    /// Acknowledges the server's last Configure-Request.
    fn ack(&mut self, protocol: u16) {
        let request = self.last(protocol, 1);
        self.ppp(&packet(protocol, 2, request[3], &request[6..]));
    }
}

/// PADI, PADO, PADR, PADS, LCP, CHAP, IPCP, IPV6CP, RA, echo, hang-up, PADT.
pub fn whole_life(echo_interval: Duration) -> Exchange {
    let config = SessionConfig {
        name: "bng1".into(),
        echo_interval,
        ..SessionConfig::default()
    };
    let discovery = DiscoveryConfig {
        ac_name: "bng1".into(),
        service_names: vec![],
        accepts_any_service: true,
        cookie_key: [3; 32],
        cookie_lifetime: Duration::from_secs(60),
        trusts_access_line: true,
        max_payload: None,
    };
    let prepared = Prepared {
        session_id: SESSION_ID,
        config,
        random: random(),
    };
    let server = Server::new(SERVER, discovery, [prepared]);
    let mut home = Home {
        now: Duration::from_secs(500),
        server,
        frames: vec![],
        seen: 0,
    };
    discover(&mut home);
    negotiate(&mut home);
    open_network(&mut home);
    live_and_leave(&mut home);
    Exchange {
        server: home.server,
        frames: home.frames,
    }
}

fn discover(home: &mut Home) {
    home.discover([0xff; 6], 0x09, 0, b"\x01\x01\x00\x00\x01\x03\x00\x04uniq");
    let pado = home.server.sent[0].1[22 + 6..].to_vec();
    let at = pado
        .windows(4)
        .position(|w| w == [1, 4, 0, 16])
        .expect("a cookie");
    let cookie = &pado[at..at + 20];
    home.discover(
        SERVER.0,
        0x19,
        0,
        &[&b"\x01\x01\x00\x00\x01\x03\x00\x04uniq"[..], cookie].concat(),
    );
}

fn negotiate(home: &mut Home) {
    // As pppd does: asks for what PPPoE must not have, and is taught better.
    let mut options = home_lcp();
    options.extend([7, 2, 8, 2]);
    home.ppp(&packet(LCP, 1, 1, &options));
    home.ack(LCP);
    home.ppp(&packet(LCP, 1, 2, &home_lcp()));
    home.ppp(&packet(
        CHAP,
        2,
        1,
        &[&[16][..], &[0x22; 16], b"alice"].concat(),
    ));
    let attempt = home.server.attempt.expect("a question for AAA");
    home.command(Command::Auth {
        attempt,
        reply: accept(grant()),
    });
    home.ppp(&packet(0x80fd, 1, 1, &[0x1a, 4, 0x78, 0]));
}

fn open_network(home: &mut Home) {
    home.ppp(&packet(
        IPCP,
        1,
        1,
        &[
            2, 6, 0, 0x2d, 15, 1, 3, 6, 0, 0, 0, 0, 129, 6, 0, 0, 0, 0, 131, 6, 0, 0, 0, 0,
        ],
    ));
    home.ppp(&packet(IPV6CP, 1, 1, &home_ipv6cp()));
    home.ack(IPCP);
    home.ack(IPV6CP);
    home.ppp(&packet(
        IPCP,
        1,
        2,
        &[3, 6, 0, 0, 0, 0, 129, 6, 0, 0, 0, 0, 131, 6, 0, 0, 0, 0],
    ));
    home.ppp(&packet(
        IPCP,
        1,
        3,
        &[3, 6, 100, 64, 0, 7, 129, 6, 9, 9, 9, 9, 131, 6, 1, 1, 1, 1],
    ));
    home.command(Command::Installed(Family::Ipv4));
    home.command(Command::Installed(Family::Ipv6));
    home.ppp(&router_solicitation());
}

fn live_and_leave(home: &mut Home) {
    home.ppp(&packet(LCP, 9, 1, &HOME_MAGIC));
    home.wait(40 * SECOND);
    if home
        .server
        .sent
        .iter()
        .any(|(_, f)| f[28..].starts_with(&[0xc0, 0x21, 9]))
    {
        let id = home.last(LCP, 9)[3];
        home.ppp(&packet(LCP, 10, id, &HOME_MAGIC));
    }
    home.ppp(&packet(LCP, 5, 2, b"User request"));
    home.discover(SERVER.0, 0xa7, SESSION_ID, b"\x02\x03\x00\x03bye");
}

/// From fe80::9 to ff02::2, with its checksum.
fn router_solicitation() -> Vec<u8> {
    let mut frame = vec![0x00, 0x57, 0x60, 0, 0, 0, 0, 8, 58, 255];
    frame.extend("fe80::9".parse::<std::net::Ipv6Addr>().unwrap().octets());
    frame.extend("ff02::2".parse::<std::net::Ipv6Addr>().unwrap().octets());
    // The sum of the pseudo header and of the message: fe80 + 9 + ff02 + 2 + 8 + 3a + 8500, complemented.
    let sum: u32 = 0xfe80 + 9 + 0xff02 + 2 + 8 + 0x3a + 0x8500;
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame.extend([133, 0]);
    frame.extend(sum.to_be_bytes());
    frame.extend([0; 4]);
    frame
}

//! A port with two members, whose other end expects LACP at its times whatever the user plane is doing.

// The namespace is shared with other tests, which use more of it.
#[allow(dead_code)]
mod namespace;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use config::UserPlaneDocument;
use namespace::{Asking, End, ip};
use rustix::fs::{CWD, Mode, mkfifoat};
use wire::eth::{self, MacAddr, Tags};
use wire::lacp::{DESTINATION, Lacpdu, Party, State};

/// How long a device takes to open: longer than a partner with fast timers waits (3 s).
const SLOW: Duration = Duration::from_secs(4);
/// Longest time between two LACPDUs by a member. They come each second.
const LONGEST: Duration = Duration::from_millis(1500);
/// By then it is known that the link of a member failed. Links are looked at each 50 ms; the rest is for a busy machine.
const NOTICED: Duration = Duration::from_millis(400);
/// What each end of a link in use says of itself.
const USED: State = State::ACTIVITY
    .union(State::TIMEOUT)
    .union(State::AGGREGATION)
    .union(State::SYNCHRONIZATION)
    .union(State::COLLECTING)
    .union(State::DISTRIBUTING);
/// Header of a capture file without packets (libpcap, Ethernet).
const EMPTY_CAPTURE: [u8; 24] = [
    0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0,
];

fn document(more: &str) -> UserPlaneDocument {
    let text = format!(
        "network-instances: {{default: {{interface: sl-default, gateway: [100.64.0.1]}}}}
ports: {{access0: {{role: access, lag: {{minimum-links: 2, members: ['net_af_packet0,iface=acc0',
          'net_af_packet1,iface=acc1']}}}}{more}}}"
    );
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn lacp_goes_on_while_a_device_opens() {
    namespace::run(story);
}

fn story(ask: &Asking, [_, first, second]: &[End; 3]) {
    let folder = tempfile::tempdir().unwrap();
    let lag = document("");
    ask.reconfigure(&lag).unwrap();
    let mut partner = Partner::of([first, second]);
    let deadline = Instant::now() + Duration::from_secs(10);
    while !partner.is_used() {
        assert!(Instant::now() < deadline, "the members are used");
        partner.hear();
    }
    let before = ask.tables();

    let pipe = folder.path().join("slow");
    let slow = SlowDevice::new(&pipe);
    std::thread::scope(|scope| {
        let opens = scope.spawn(|| ask.reconfigure(&slow.document()));
        let held = slow.hold();
        // Documents that come meanwhile wait for their turn.
        let closes = scope.spawn(|| ask.reconfigure(&lag));
        partner.expect_for(SLOW);
        partner.notice_a_failure();
        assert!(!opens.is_finished() && !closes.is_finished());
        slow.open(held);
        opens.join().unwrap().unwrap();
        closes.join().unwrap().unwrap();
    });
    ask.eventually("the second document counts", |tables| *tables == before);

    let faults = std::thread::scope(|scope| {
        let opens = scope.spawn(|| ask.reconfigure(&slow.document()));
        drop(slow.hold());
        opens.join().unwrap().unwrap_err()
    });
    assert_eq!(faults.len(), 1, "{faults:?}");
    let fault = faults[0].to_string();
    assert!(fault.starts_with("ports slow0 device: "), "{fault}");
    ask.eventually("as it was", |tables| *tables == before);
}

/// A device that reads a capture from a pipe: it opens when somebody writes the capture's header there.
struct SlowDevice<'a>(&'a Path);

impl<'a> SlowDevice<'a> {
    fn new(pipe: &'a Path) -> Self {
        mkfifoat(CWD, pipe, Mode::RWXU).unwrap();
        Self(pipe)
    }

    fn document(&self) -> UserPlaneDocument {
        let pipe = self.0.display();
        document(&format!(
            ", slow0: {{role: access, device: 'net_pcap0,rx_pcap={pipe},tx_pcap={pipe}-sent'}}"
        ))
    }

    /// Waits until the device is being opened, and lets it wait.
    fn hold(&self) -> File {
        OpenOptions::new().write(true).open(self.0).unwrap()
    }

    /// Lets the device open.
    fn open(&self, mut held: File) {
        held.write_all(&EMPTY_CAPTURE).unwrap();
    }
}

/// The other end of the links.
struct Partner<'a> {
    ends: [&'a End; 2],
    /// What was heard last by each of them, and when.
    heard: [(State, Instant); 2],
}

impl<'a> Partner<'a> {
    fn of(ends: [&'a End; 2]) -> Self {
        Self {
            ends,
            heard: [(State::empty(), Instant::now()); 2],
        }
    }

    /// Takes what has come by each link, and answers.
    fn hear(&mut self) {
        for (link, end) in self.ends.into_iter().enumerate() {
            while let Some(pdu) = lacpdu(end) {
                self.heard[link] = (pdu.actor.state, Instant::now());
                answer(end, link as u16 + 1, pdu.actor);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }

    /// Whether both links are in use.
    fn is_used(&self) -> bool {
        self.heard.iter().all(|(state, _)| *state == USED)
    }

    /// Expects LACPDUs of links in use for a while, each at its time.
    fn expect_for(&mut self, time: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < time {
            self.hear();
            assert!(
                self.is_used(),
                "after {:?}: {:?}",
                begun.elapsed(),
                self.heard
            );
            for (_, last) in self.heard {
                assert!(last.elapsed() < LONGEST, "nothing for {:?}", last.elapsed());
            }
        }
    }

    /// The first link fails: the second one, alone, is not enough.
    fn notice_a_failure(&mut self) {
        ip("link set acc0 down");
        let failed = Instant::now();
        while self.heard[1].0.contains(State::COLLECTING) {
            let since = failed.elapsed();
            assert!(since < NOTICED, "not noticed after {since:?}");
            self.hear();
        }
        println!("a failed link was noticed after {:?}", failed.elapsed());
        ip("link set acc0 up");
    }
}

/// A LACPDU that has come.
fn lacpdu(end: &End) -> Option<Lacpdu> {
    let mut buffer = [0; 4096];
    while let Ok(length) = std::io::Read::read(&mut &end.0, &mut buffer) {
        let frame = eth::Frame::parse(&buffer[..length]).ok();
        let slow = frame.filter(|frame| frame.header.ethertype == eth::SLOW_PROTOCOLS);
        if let Some(pdu) = slow.and_then(|frame| Lacpdu::parse(frame.payload).ok()) {
            return Some(pdu);
        }
    }
    None
}

/// Agrees with what was heard.
fn answer(end: &End, port: u16, heard: Party) {
    let system = MacAddr([2, 0, 0, 0, 9, 9]);
    let mut frame = Vec::new();
    eth::Header {
        destination: DESTINATION,
        source: system,
        tags: Tags::NONE,
        ethertype: eth::SLOW_PROTOCOLS,
    }
    .emit(&mut frame);
    let actor = Party {
        system,
        key: 1,
        port,
        state: USED,
        ..Party::default()
    };
    Lacpdu {
        actor,
        partner: heard,
        max_delay: 0,
    }
    .emit(&mut frame);
    end.send(&frame);
}

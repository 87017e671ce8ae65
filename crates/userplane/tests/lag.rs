//! A port with two members, whose other end expects LACP at its times whatever the user plane is doing.

// The namespace is shared with other tests, which use more of it.
#[allow(dead_code)]
mod namespace;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::UdpSocket;
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
    let pipe = folder.path().join("slow");
    let (slow, lag) = (SlowDevice::new(&pipe), document(""));
    ask.reconfigure(&lag).unwrap();
    let mut partner = Partner::of([first, second]);
    partner.agree();
    let before = ask.tables();

    // A new port: nothing else waits, either.
    opens_slowly(ask, &slow, || {
        partner.expect_for(SLOW);
        heartbeat();
        partner.notice_a_failure();
    });
    ask.eventually("the next document counts", |tables| *tables == before);
    // The device of a port that there is: it is closed before.
    let other = folder.path().join("other");
    let other = port("net_pcap1", &format!("tx_pcap={}", other.display()));
    is_closed_unused(ask, &other);
    ask.reconfigure(&document(&other)).unwrap();
    partner.agree();
    opens_slowly(ask, &slow, || {
        partner.expect_for(SLOW);
        partner.notice_a_failure();
    });
    ask.eventually("the next document counts", |tables| *tables == before);

    does_not_open(ask, &slow);
    ask.eventually("as it was", |tables| *tables == before);
    ends_meanwhile(ask, &slow);
}

/// A document is rejected whose last device was opened and not needed yet. It can be opened again.
fn is_closed_unused(ask: &Asking, last: &str) {
    ip("link add core1 type veth peer name core2");
    let taken = ", core1: {role: core, device: 'net_af_packet7,iface=core1', tap: core0}";
    let faults = ask.reconfigure(&document(&format!("{taken}{last}")));
    let fault = faults.unwrap_err()[0].to_string();
    assert!(fault.starts_with("ports core1: "), "{fault}");
}

/// Has a device open as long as `meanwhile` takes. The next document comes before, and waits for its turn.
fn opens_slowly(ask: &Asking, slow: &SlowDevice<'_>, meanwhile: impl FnOnce()) {
    let lag = document("");
    std::thread::scope(|scope| {
        let opens = scope.spawn(|| ask.reconfigure(&slow.document()));
        let held = slow.hold();
        let closes = scope.spawn(|| ask.reconfigure(&lag));
        meanwhile();
        assert!(!opens.is_finished() && !closes.is_finished());
        slow.open(held);
        opens.join().unwrap().unwrap();
        closes.join().unwrap().unwrap();
    });
}

/// The driver rejects the device, after a while.
fn does_not_open(ask: &Asking, slow: &SlowDevice<'_>) {
    let faults = std::thread::scope(|scope| {
        let opens = scope.spawn(|| ask.reconfigure(&slow.document()));
        drop(slow.hold());
        opens.join().unwrap().unwrap_err()
    });
    assert_eq!(faults.len(), 1, "{faults:?}");
    let fault = faults[0].to_string();
    assert!(fault.starts_with("ports slow0 device: "), "{fault}");
}

/// The user plane is told to end when this returns, while a device opens.
fn ends_meanwhile(ask: &Asking, slow: &SlowDevice<'_>) {
    let (management, document) = (ask.0.clone(), slow.document());
    let opens = ask
        .1
        .spawn(async move { management.reconfigure(document).await });
    let held = slow.hold();
    assert!(!opens.is_finished());
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        drop(held);
    });
}

/// A control plane's heartbeat is answered.
fn heartbeat() {
    let socket = UdpSocket::bind("127.0.0.2:8805").unwrap();
    socket.set_read_timeout(Some(NOTICED)).unwrap();
    // Heartbeat Request 1 with a Recovery Time Stamp (3GPP TS 29.244 §7.4.2).
    let request = [0x20, 1, 0, 12, 0, 0, 1, 0, 0, 96, 0, 4, 0xe0, 0, 0, 0];
    socket.send_to(&request, "127.0.0.1:8805").unwrap();
    let mut answer = [0; 512];
    loop {
        socket.recv(&mut answer).expect("an answer");
        // Its own requests come meanwhile.
        if answer[1] == 2 {
            return;
        }
    }
}

/// A port beside the LAG.
fn port(device: &str, arguments: &str) -> String {
    format!(", slow0: {{role: access, device: '{device},{arguments}'}}")
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
        let arguments = format!("rx_pcap={pipe},tx_pcap={pipe}-sent");
        document(&port("net_pcap0", &arguments))
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

    /// Waits until both links are in use.
    fn agree(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !self.is_used() {
            assert!(Instant::now() < deadline, "{:?}", self.heard);
            self.hear();
        }
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

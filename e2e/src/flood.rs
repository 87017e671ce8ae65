//! A stranger on the access network, or on the core's, who sends frames as fast as he likes.

use anyhow::Result;
use lab::topology::{Lab, Place, UserPlane};
use pcap::{Active, Capture};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};
use tun_rs::SyncDevice;

/// The stranger's interface on the access network.
const STRANGER: &str = "flood0";
/// How often frames are due.
const TICK: Duration = Duration::from_millis(1);

/// Side of the gateway on which a stranger is.
#[derive(Clone, Copy, Debug)]
pub enum Side {
    /// On the access network of the first user plane.
    Access,
    /// On its core link.
    Core,
}

/// What sends his frames.
pub enum Sender {
    Tap(SyncDevice),
    Link(Capture<Active>),
}

impl Sender {
    /// Joins the network on a side.
    pub fn open(lab: &Lab, side: Side) -> Result<Self> {
        Ok(match side {
            Side::Access => {
                let tap = lab.tap(UserPlane::One, STRANGER)?;
                // The bridge must not learn forged senders: frames for the real home would come here.
                let access = lab.netns(Place::Access(UserPlane::One));
                access.run(&["bridge", "link", "set", "dev", STRANGER, "learning", "off"])?;
                Sender::Tap(tap)
            }
            Side::Core => {
                let link = UserPlane::One.core_link();
                let opened = lab
                    .netns(Place::Internet)
                    .within(|| Capture::from_device(link)?.snaplen(0).open())?;
                Sender::Link(opened?)
            }
        })
    }

    /// Sends a frame; false: there is no room now.
    pub fn send(&mut self, frame: &[u8]) -> Result<bool> {
        match self {
            Sender::Tap(tap) => match tap.send(frame) {
                Ok(_) => Ok(true),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
                Err(error) => Err(error.into()),
            },
            Sender::Link(link) => Ok(link.sendpacket(frame).is_ok()),
        }
    }
}

/// A flood that goes on until it is ended.
pub struct Flood {
    over: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    sender: Option<JoinHandle<Result<()>>>,
    begun: Instant,
}

impl Flood {
    /// Sends these frames one after the other, again and again, so many in a second.
    pub fn start(lab: &Lab, side: Side, frames: Vec<Vec<u8>>, per_second: u64) -> Result<Self> {
        let mut sender = Sender::open(lab, side)?;
        let (over, sent) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (until, count) = (over.clone(), sent.clone());
        let begun = Instant::now();
        let sender = spawn(move || -> Result<()> {
            let mut frames = frames.iter().cycle();
            while !until.load(Ordering::Relaxed) {
                let due = begun.elapsed().as_micros() as u64 * per_second / 1_000_000;
                while count.load(Ordering::Relaxed) < due
                    && let Some(frame) = frames.next()
                {
                    if !sender.send(frame)? {
                        break;
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                }
                sleep(TICK);
            }
            Ok(())
        });
        Ok(Flood {
            over,
            sent,
            sender: Some(sender),
            begun,
        })
    }

    /// Ends it: how many frames were sent in a second.
    pub fn end(mut self) -> Result<f64> {
        let rate = self.sent.load(Ordering::Relaxed) as f64 / self.begun.elapsed().as_secs_f64();
        self.over.store(true, Ordering::Relaxed);
        if let Some(sender) = self.sender.take() {
            sender.join().expect("it does not panic")?;
        }
        Ok(rate)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

//! `sluice top`: the gateway at work, drawn again and again, or told once or line by line to scripts.

mod meter;
mod picture;

use crate::cli::{Answer, Failure, Sockets, Watching};
use crate::screen::{self, Interrupt, Key, Screen};
use meter::{Look, Meter};
use northbound::WatchStateResponse;
use picture::{Order, Picture};
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// How long a key may wait.
const KEYS: Duration = Duration::from_millis(50);
/// How long nobody asks again after the control plane has gone.
const PAUSE: Duration = Duration::from_secs(1);
/// So many states are enough for one of each user plane that is newer than the first: it tells one a second.
const ENOUGH: usize = 4;
/// The columns of a page that goes nowhere near a terminal.
const PAGE_WIDTH: usize = 80;

/// What is watched, and how.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Top {
    /// Look for one interval, print what was seen, and end
    #[arg(long)]
    once: bool,
    /// Seconds from one look to the next
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=60))]
    interval: u64,
    /// Print JSON, one line for each look
    #[arg(long)]
    json: bool,
}

/// What came of watching.
type Seen = Result<WatchStateResponse, Failure>;

impl Top {
    /// Watches until somebody has seen enough.
    pub fn run(self, sockets: &Sockets) -> Result<Answer, Failure> {
        let interval = Duration::from_secs(self.interval);
        let mut watching = sockets.watch(interval)?;
        if self.once || !self.json && !io::stdout().is_terminal() {
            let look = look(&mut watching)?;
            return match self.json {
                true => Answer::json(&look),
                false => Ok(Answer::of(Picture::page(&look, PAGE_WIDTH))),
            };
        }
        let interrupt = Interrupt::listen()?;
        let states = follow(sockets.clone(), watching, interval);
        match self.json {
            true => lines(&states, &interrupt)?,
            false => draw(&states, &interrupt)?,
        }
        Ok(Answer::default())
    }
}

/// One look: two states, of each user plane too.
fn look(watching: &mut Watching) -> Result<Look, Failure> {
    let mut meter = Meter::default();
    let mut look = meter.take(watching.next()?);
    for _ in 1..ENOUGH {
        look = meter.take(watching.next()?);
        if meter.is_complete() {
            break;
        }
    }
    Ok(look)
}

/// States as they come; after a failure, which is one of them, the control plane is asked again.
fn follow(sockets: Sockets, first: Watching, interval: Duration) -> Receiver<Seen> {
    let (sender, states) = sync_channel(1);
    std::thread::spawn(move || {
        let mut watching = Ok(first);
        loop {
            let seen = match &mut watching {
                Ok(watching) => watching.next(),
                Err(_) => {
                    std::thread::sleep(PAUSE);
                    watching = sockets.watch(interval);
                    match &mut watching {
                        Ok(watching) => watching.next(),
                        Err(failure) => Err(Failure::Other(failure.to_string())),
                    }
                }
            };
            if let Err(failure) = &seen {
                watching = Err(Failure::Other(failure.to_string()));
            }
            if sender.send(seen).is_err() {
                return;
            }
        }
    });
    states
}

fn lines(states: &Receiver<Seen>, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut meter = Meter::default();
    while !interrupt.is_asked() {
        let state = match states.recv_timeout(KEYS) {
            Ok(seen) => seen?,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        let look = meter.take(state);
        let text = serde_json::to_string(&look).map_err(|e| Failure::Other(e.to_string()))?;
        let mut out = io::stdout().lock();
        match writeln!(out, "{text}").and_then(|()| out.flush()) {
            // `sluice top --json | head` is no error.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            done => done?,
        }
    }
    Ok(())
}

fn draw(states: &Receiver<Seen>, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut screen = Screen::with_keys()?;
    let mut meter = Meter::default();
    let (mut look, mut failure, mut order) = (Look::default(), None, Order::default());
    let mut changed = true;
    while !interrupt.is_asked() {
        match states.try_recv() {
            Ok(Ok(state)) => {
                (look, failure, changed) = (meter.take(state), None, true);
            }
            Ok(Err(why)) => (failure, changed) = (Some(why.to_string()), true),
            Err(_) => {}
        }
        if changed {
            let picture = Picture {
                look: &look,
                order,
                failure: failure.as_deref(),
            };
            let (width, height) = screen::size()?;
            screen.draw(&picture.screen(width, height))?;
        }
        changed = true;
        match screen.key(KEYS)? {
            Some(Key::Leave) => return Ok(()),
            Some(Key::On) => order = order.next(),
            Some(Key::Back) => order = order.previous(),
            Some(Key::Resized) => {}
            None => changed = false,
        }
    }
    Ok(())
}

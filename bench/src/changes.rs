//! How many sessions come, change and go in a second while packets are forwarded, all of it on one core.
use crate::frames::Way;
use crate::layout::Layout;
use crate::report::{Entry, Samples};
use crate::world::{HOT, Scenario, Stock, Traffic, World};
use anyhow::Result;
use dataplane::{PacketSettings, SessionEntry, SessionIndex};
use dpdk::{Eal, tsc, tsc_hz};

/// Changes between two passes of packets.
const AT_ONCE: u32 = 256;
/// Sessions that are changed, removed and set again; the first stays, and has the packets.
const CHANGING: std::ops::RangeInclusive<u32> = 1..=32_768;

/// What happens to each session, in turns. At the end they are as they were.
#[derive(Clone, Copy)]
enum Step {
    Change,
    Remove,
    Add,
}

/// The control thread's calls and what the worker does for them and for the packets are timed, nothing else.
pub fn measure(eal: &Eal, world: &mut World, stock: &mut Stock) -> Result<Entry> {
    let scenario = Scenario::plain(Way::Down, 1, HOT);
    let mut traffic = Traffic::new(scenario, &world.routes);
    let mut samples = Samples::default();
    let sessions: Vec<u32> = CHANGING.collect();
    for step in [Step::Change, Step::Remove, Step::Add] {
        for some in sessions.chunks(AT_ONCE as usize) {
            let begin = tsc();
            for &session in some {
                say(world, step, session)?;
            }
            let said = (tsc() - begin) as f64;
            let forwarded = traffic.pass(world, stock)? * HOT as f64;
            world.settle()?;
            let each = (said + forwarded) / some.len() as f64;
            samples.0.push(tsc_hz(eal) as f64 / each);
        }
    }
    let name = "sessions that come, change or go, two packets beside each";
    let mut entry = Entry::new("session-changes", name, "a second", &samples);
    entry.sessions = Some(world.sessions);
    Ok(entry.at_least(50_000.0))
}

fn say(world: &mut World, step: Step, session: u32) -> Result<()> {
    let entry = Layout::PLAIN.entry(session);
    match step {
        Step::Remove => world.controller.remove_session(SessionIndex(session))?,
        Step::Add => world.controller.set_session(entry)?,
        Step::Change => {
            let smaller = SessionEntry {
                packets: PacketSettings::with_mtu(1480),
                ..entry
            };
            world.controller.set_session(smaller)?;
        }
    }
    Ok(())
}

//! Checks of the history, block by block: it must agree with itself and with the homes' addresses and routes.

use crate::access_network::Line;
use control::history::{Event, Step, What, events};
use policy::Bindings;
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::eth::MacAddr;

/// History as a query would see it.
#[derive(Default)]
pub struct HistoryChecker {
    /// The last block.
    pub last: u64,
    /// Sessions that are online, with their bindings and their lines.
    online: BTreeMap<u64, (Bindings, Line)>,
}

impl HistoryChecker {
    /// Takes a block that it does not have yet.
    pub fn take(&mut self, number: u64, block: &[u8]) -> Result<(), String> {
        if number <= self.last {
            return Ok(());
        }
        if number != self.last + 1 {
            return Err(format!(
                "block {number} of the history comes after {}",
                self.last
            ));
        }
        self.last = number;
        events(block).try_for_each(|event| self.event(&event))
    }

    fn event(&mut self, event: &Event<'_>) -> Result<(), String> {
        let What::Subscriber(who, step) = &event.what else {
            return Ok(());
        };
        let known = self.online.get(&who.session).map(|(has, _)| has);
        let now = match step {
            Step::Online { bindings, .. } if known.is_none() => bindings,
            Step::Changed {
                before, bindings, ..
            } if known == Some(before) => bindings,
            Step::Ended { bindings, .. } if known == Some(bindings) => {
                self.online.remove(&who.session);
                return Ok(());
            }
            Step::Counted { .. } if known.is_none() => return Ok(()),
            // one that is online may be refused when it dials anew in its session
            Step::Refused { .. } => return Ok(()),
            Step::FellBack { .. } if known.is_none() => return Ok(()),
            Step::Failed { .. } if known.is_none() => return Ok(()),
            Step::Authorized { .. } if known.is_some() => return Ok(()),
            _ => return Err(format!("the history has {known:?}, and is told {event:?}")),
        };
        let others = self.online.iter().filter(|(id, _)| **id != who.session);
        for (id, (has, _)) in others {
            if overlap(has, now) {
                return Err(format!(
                    "the history has {has:?} at {id:x}, and is told {event:?}"
                ));
            }
        }
        let plane = who
            .user_plane
            .strip_prefix("up")
            .and_then(|n| n.parse::<usize>().ok());
        let port = who.port.strip_prefix("access").and_then(|n| n.parse().ok());
        let (Some(plane), Some(port)) = (plane, port) else {
            return Err(format!("no such place: {event:?}"));
        };
        let place = MacAddr(who.mac).0[5];
        let line = Line {
            plane: plane - 1,
            port,
            place,
        };
        self.online.insert(who.session, (now.clone(), line));
        Ok(())
    }

    /// Line that has an address now, by itself or in a prefix.
    pub fn holder(&self, address: IpAddr) -> Option<Line> {
        let has = |has: &Bindings| has.iter().any(|own| own.prefix.contains(&address));
        let mut found = self.online.values().filter(|(bindings, _)| has(bindings));
        found.next().map(|(_, line)| *line)
    }

    /// Sessions that are still online.
    pub fn left(&self) -> impl Iterator<Item = String> {
        self.online.iter().map(|(id, (has, line))| {
            format!("the history still has {id:x} at {line:?} with {has:?}")
        })
    }
}

/// Whether two sessions have a prefix in common.
fn overlap(a: &Bindings, b: &Bindings) -> bool {
    a.iter().map(|a| a.prefix).any(|a| {
        let mut others = b.iter().map(|b| b.prefix);
        others.any(|b| a.contains(&b) || b.contains(&a))
    })
}

//! Sessions that leave their worker for another one, with all that was counted and all tokens.
use super::policing::PolicedState;
use super::{Carried, Down, Punts, Sessions, Sources, Up};
use crate::api::{SessionEntry, SessionIndex};

/// A session between two workers.
pub(crate) struct MovedSession {
    pub entry: SessionEntry,
    sources: Sources,
    up: Up,
    down: Down,
    punts: Punts,
    carried: Carried,
    policing: PolicedState,
}

impl Sessions {
    /// Takes a session out, to be put in at another worker; `None` if it is not there.
    pub fn release(&mut self, index: SessionIndex) -> Option<MovedSession> {
        let place = self.place(index);
        let known = self.known.get_mut(place)?.take()?;
        let up = self.vacate(&known);
        let down = core::mem::take(&mut self.down[place]);
        let policing = self.policing.release(place, &known.entry);
        Some(MovedSession {
            entry: known.entry,
            sources: known.sources,
            up,
            down,
            punts: known.punts,
            carried: known.carried,
            policing,
        })
    }

    /// Puts in a session of another worker, which may be set here ([`Sessions::check`]). Packets to it do not find it before it is
    /// [shown](Sessions::show).
    pub fn adopt(&mut self, moved: MovedSession) {
        let MovedSession {
            entry,
            sources,
            up,
            down,
            punts,
            carried,
            policing,
        } = moved;
        let place = self.place(entry.index);
        self.make_room(place);
        self.down[place] = down;
        self.policing.adopt(place, &entry, policing);
        self.put(place, entry, (sources, 0), (up, punts, carried));
        self.down[place] = Down {
            counts: down.counts,
            ..Down::default()
        };
    }

    /// Lets packets find a session that was put in.
    pub fn show(&mut self, index: SessionIndex, generation: u32) {
        let place = self.place(index);
        let Some(Some(known)) = self.known.get(place) else {
            return;
        };
        let mut down = self.down[place].with(&known.entry);
        if self.pages.up[known.slot as usize].is_sampled() {
            down.plain = 0;
        }
        self.down[place] = Down { generation, ..down };
    }
}

//! The management interface (Mi): the control plane brings each user plane the document that it is to have.
//!
//! What either side does with a document is the product's: [`Standing`] there, `Managed` and `Configured` here. Between them is a
//! connection. It breaks when the user plane dies, and when nothing has passed for a while; what was under way then may have
//! arrived or not.

use super::scene::plane_name;
use super::{Event, Phase, World};
use crate::plan::{Link, Part, USER_PLANES};
use control::management::{INTERVAL, Next, OFFER_AGAIN, Standing, Wanted};
use core::time::Duration;
use mi::{ApplyResponse, Document, InForce, Keep, Response};
use rand::Rng;

/// After so long without a sign of life a connection is given up.
const SILENCE: Duration = Duration::from_secs(20);
/// How long a message waits for a daemon that is stopped before it is looked at again.
const WAIT: Duration = Duration::from_millis(200);

/// What happens on a connection.
pub(super) enum Mi {
    /// The control plane connects, and asks what is in force.
    Meet,
    /// A document arrives, or without one the question what is in force.
    Asked(Option<Document>),
    /// This is in force.
    InForce(Option<InForce>),
    /// The answer to a document.
    Applied(Document, ApplyResponse),
    /// The user plane tells its state.
    State,
    /// It is time to offer a refused document again.
    OfferAgain,
    /// The connection is gone.
    Lost,
}

/// The control plane's end of a connection.
pub(super) struct MiConnection {
    wanted: Wanted,
    standing: Standing,
    /// Tells the connection from earlier ones.
    connection: u64,
    /// A document is under way.
    busy: bool,
    /// For how long nothing was heard.
    silent: Duration,
}

impl World<'_> {
    /// User planes are managed that the configuration has, and are to have what it says of them.
    pub(super) fn manage(&mut self) {
        let configuration = self.configuration.configuration.clone();
        for plane in 0..USER_PLANES {
            let name = plane_name(plane);
            if !configuration.user_planes.contains_key(&name) {
                self.mi_connections.remove(&plane);
                continue;
            }
            let wanted = Wanted::new(&configuration, &name, self.version);
            let Some(mi) = self.mi_connections.get_mut(&plane) else {
                let mi = MiConnection {
                    wanted,
                    standing: Standing::default(),
                    connection: 0,
                    busy: false,
                    silent: Duration::ZERO,
                };
                self.mi_connections.insert(plane, mi);
                self.meet_after(plane, Duration::ZERO);
                continue;
            };
            let same = mi.wanted.is_same(&wanted);
            mi.wanted = wanted;
            if !same {
                mi.standing.offer_again();
                self.bring(plane);
            }
        }
    }

    /// User planes that do not have what they are to have.
    pub(crate) fn without_document(&self) -> Vec<usize> {
        let lacks = |(plane, mi): (&usize, &MiConnection)| {
            let told = mi.standing.has(&mi.wanted);
            let in_force = self.planes[*plane].as_ref().and_then(|up| up.in_force());
            let mut there = mi.standing.clone();
            there.told(in_force);
            (!told || !there.has(&mi.wanted)).then_some(*plane)
        };
        self.mi_connections.iter().filter_map(lacks).collect()
    }

    /// What user planes that can be asked say against a configuration that is not in force yet.
    pub(super) fn validate(&mut self, configuration: &config::Configuration) -> Vec<String> {
        let mut faults = Vec::new();
        for plane in 0..USER_PLANES {
            let wanted = Wanted::new(configuration, &plane_name(plane), self.version + 1);
            let configured = configuration.user_planes.contains_key(&plane_name(plane));
            let mi = self.mi_connections.get(&plane).filter(|_| configured);
            let document = mi.and_then(|mi| mi.standing.to_validate(&wanted));
            let reached = !self.is_cut(plane) && !self.is_stopped(Part::UserPlane(plane));
            let misses = self.phase == Phase::Storm && self.random.random_range(0..20) == 0;
            if let (true, Some(document), Some(up)) = (reached, document, &mut self.planes[plane]) {
                up.misses_device = misses;
                faults.extend(up.judge(&document).into_iter().map(|fault| fault.message));
            }
        }
        faults
    }

    /// Something happens on a connection.
    pub(super) fn on_mi(&mut self, plane: usize, connection: u64, what: Mi) {
        let at = match what {
            Mi::Asked(_) => Part::UserPlane(plane),
            _ => Part::Control,
        };
        if self.is_stopped(at) {
            return self.later(WAIT, Event::Mi(plane, connection, what));
        }
        if let Mi::Asked(document) = what {
            return self.asked(plane, connection, document);
        }
        let Some(mi) = self
            .mi_connections
            .get_mut(&plane)
            .filter(|l| l.connection == connection)
        else {
            return; // an earlier one
        };
        mi.silent = Duration::ZERO;
        match what {
            Mi::Meet => self.ask(plane, None),
            Mi::InForce(in_force) => {
                mi.standing.met(in_force);
                self.later(INTERVAL, Event::Mi(plane, connection, Mi::State));
                self.bring(plane);
            }
            Mi::Applied(document, answer) => self.applied(plane, &document, answer),
            Mi::State => self.state(plane),
            Mi::OfferAgain => {
                mi.standing.offer_again();
                self.bring(plane);
            }
            Mi::Lost => self.lose(plane),
            Mi::Asked(_) => {} // above
        }
    }

    /// The connection to a user plane is gone, and is made anew.
    fn lose(&mut self, plane: usize) {
        if let Some(mi) = self.mi_connections.get_mut(&plane) {
            mi.standing.lost();
            let pause = Duration::from_millis(self.random.random_range(100..5_000));
            self.meet_after(plane, pause);
        }
    }

    /// A user plane dies: whoever is connected notices.
    pub(super) fn hang_up_mi(&mut self, plane: usize) {
        if let Some(mi) = self.mi_connections.get(&plane) {
            let lost = Event::Mi(plane, mi.connection, Mi::Lost);
            self.later(Duration::ZERO, lost);
        }
    }

    fn meet_after(&mut self, plane: usize, pause: Duration) {
        self.connections += 1;
        let connection = self.connections;
        if let Some(mi) = self.mi_connections.get_mut(&plane) {
            (mi.connection, mi.busy, mi.silent) = (connection, false, Duration::ZERO);
        }
        self.later(pause, Event::Mi(plane, connection, Mi::Meet));
    }

    /// Brings what is wanted, if it is not there.
    fn bring(&mut self, plane: usize) {
        let Some(mi) = self.mi_connections.get_mut(&plane).filter(|mi| !mi.busy) else {
            return;
        };
        match mi.standing.next(&mi.wanted) {
            Next::Nothing => {}
            Next::HasIt => self.has_it(plane),
            Next::Apply(document) => {
                mi.busy = true;
                self.ask(plane, Some(document));
            }
        }
    }

    fn has_it(&mut self, plane: usize) {
        let name = plane_name(plane);
        self.say(|| format!("{name} has its configuration"));
        let moment = self.moment(Part::Control);
        if let Some(control) = &mut self.control {
            control.user_plane_was_told(moment, &name);
            self.drain_control();
        }
    }

    fn applied(&mut self, plane: usize, document: &Document, answer: ApplyResponse) {
        let Some(mi) = self.mi_connections.get_mut(&plane) else {
            return;
        };
        mi.busy = false;
        let next = mi.standing.answered(&plane_name(plane), document, answer);
        if mi.standing.refuses(&mi.wanted).is_some() {
            let again = Event::Mi(plane, mi.connection, Mi::OfferAgain);
            self.later(OFFER_AGAIN, again);
        }
        if next == Next::HasIt {
            self.has_it(plane);
        }
        self.bring(plane);
    }

    /// The user plane says what is in force, if that gets through.
    fn state(&mut self, plane: usize) {
        let cut = self.is_cut(plane) || self.is_stopped(Part::UserPlane(plane));
        let in_force = self.planes[plane].as_ref().and_then(|up| up.in_force());
        let Some(mi) = self.mi_connections.get_mut(&plane) else {
            return;
        };
        let state = Event::Mi(plane, mi.connection, Mi::State);
        if cut {
            mi.silent += INTERVAL;
            if mi.silent >= SILENCE {
                return self.lose(plane);
            }
        } else if !mi.busy {
            mi.standing.told(in_force);
            self.bring(plane);
        }
        self.later(INTERVAL, state);
    }

    fn is_cut(&self, plane: usize) -> bool {
        let links = [Link::ToUserPlane(plane), Link::FromUserPlane(plane)];
        links
            .iter()
            .any(|link| self.cuts.get(link).is_some_and(|cuts| *cuts > 0))
    }

    /// Whether a message gets lost, and its connection with it.
    fn breaks(&mut self, plane: usize) -> bool {
        self.is_cut(plane) || self.phase == Phase::Storm && self.random.random_range(0..30) == 0
    }

    fn ask(&mut self, plane: usize, document: Option<Document>) {
        let (after, what) = match (self.planes[plane].is_some(), self.breaks(plane)) {
            (false, _) => (Duration::from_millis(1), Mi::Lost),
            (true, true) => (SILENCE, Mi::Lost),
            (true, false) => (self.delay(), Mi::Asked(document)),
        };
        self.tell(plane, after, what);
    }

    fn tell(&mut self, plane: usize, after: Duration, what: Mi) {
        if let Some(mi) = self.mi_connections.get(&plane) {
            let event = Event::Mi(plane, mi.connection, what);
            self.later(after, event);
        }
    }

    fn delay(&mut self) -> Duration {
        Duration::from_micros(
            self.random
                .random_range(self.plan.delay..=4 * self.plan.delay),
        )
    }

    /// A user plane is asked something, by a control plane that may be dead by now.
    fn asked(&mut self, plane: usize, connection: u64, document: Option<Document>) {
        let answer = match document {
            None => self.planes[plane]
                .as_ref()
                .map(|up| Mi::InForce(up.in_force())),
            Some(document) => self.apply(plane, document),
        };
        let after = self.delay();
        let (after, answer) = match (answer, self.breaks(plane)) {
            (None, _) => (Duration::from_millis(1), Mi::Lost),
            (Some(_), true) => (SILENCE, Mi::Lost),
            (Some(answer), false) => (after, answer),
        };
        self.later(after, Event::Mi(plane, connection, answer));
    }

    /// A user plane puts a document in force. In a storm a device may be missing, or it dies over it: before the
    /// document has taken the place of the one before, or before anybody hears that it has.
    fn apply(&mut self, plane: usize, document: Document) -> Option<Mi> {
        let chance = match self.phase {
            Phase::Storm => self.random.random_range(0..30),
            _ => u32::MAX,
        };
        if chance == 0 {
            self.kept[plane]
                .begin(&document)
                .expect("this disk does not fail");
            self.stumble(plane);
            return None;
        }
        let moment = self.moment(Part::UserPlane(plane));
        let up = self.planes[plane].as_mut()?;
        up.misses_device = chance == 1;
        let answer = up.on_document(moment, document.clone());
        self.checks.planes_changed = true;
        self.drain_user_plane(plane);
        if chance == 2 {
            self.stumble(plane);
            return None;
        }
        match answer {
            Ok(Response::Applied(answer)) => Some(Mi::Applied(document, answer)),
            other => {
                self.say(|| format!("up{} refuses a document: {other:?}", plane + 1));
                Some(Mi::Lost)
            }
        }
    }

    /// A user plane dies, and comes back soon.
    fn stumble(&mut self, plane: usize) {
        self.say(|| format!("up{} dies over a document", plane + 1));
        self.summary.faults += 1;
        if self.count_down((1, plane), true) == (0, 1) {
            self.kill_user_plane(plane);
        }
        let after = Duration::from_millis(self.random.random_range(10..3_000));
        self.later(after, Event::Rise(plane));
    }
}

//! What a person sees of the lab: a live screen on a terminal, plain lines elsewhere.

use crate::cli::table::{Column, Table};
use crate::cli::units::octets;
use crate::screen::{self, Screen};
use cpe::State;
use lab::access_network::{self, Row};
use lab::daemon::{Daemon, Phase};
use lab::internet;
use lab::topology::UserPlane;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the screen is drawn.
const REDRAW: Duration = Duration::from_millis(500);
/// How often a plain line is printed while homes dial, and while the lab runs.
const LINE_EVERY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// What the lab is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The homes are coming online.
    Dialling,
    /// All homes that can are online.
    Running,
}

/// The lab at one moment.
#[derive(Clone, Copy)]
pub struct Scene<'s> {
    /// What the lab is about.
    pub stage: Stage,
    /// The homes of each user plane.
    pub networks: &'s [access_network::Status],
    /// The internet host.
    pub internet: &'s internet::Status,
    /// Each daemon, how far it has come, and how often it was started again.
    pub daemons: &'s [(Daemon, Phase, u32)],
}

/// Where progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surface {
    Screen,
    StandardOutput,
    StandardError,
}

/// Shows the lab.
#[derive(Debug)]
pub struct View {
    surface: Surface,
    homes: u32,
    start: Instant,
    shown: Option<Instant>,
    before: Option<(Instant, [u64; 4])>,
    screen: Screen,
    /// How to look around from another terminal.
    look: String,
}

/// Per second, up and down.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rates {
    packets: [f64; 2],
    octets: [f64; 2],
}

impl View {
    /// A view for `homes` homes; with `json`, the standard output is left alone.
    pub fn new(json: bool, homes: u32, look: String) -> Self {
        let surface = match (json, io::stdout().is_terminal()) {
            (true, _) => Surface::StandardError,
            (false, true) => Surface::Screen,
            (false, false) => Surface::StandardOutput,
        };
        View {
            surface,
            homes,
            start: Instant::now(),
            shown: None,
            before: None,
            screen: Screen::default(),
            look,
        }
    }

    /// Says how to look around from another terminal.
    pub fn say_look(&mut self) {
        let text = format!("look around from another terminal: {}", self.look);
        self.say(&text);
    }

    /// Says what happens now.
    pub fn say(&mut self, text: &str) {
        self.screen.leave();
        let line = format!("[{:6.2} s] {text}", self.start.elapsed().as_secs_f64());
        // A terminal that has gone away must not keep the lab from cleaning up.
        let _ = match self.surface {
            Surface::StandardError => writeln!(io::stderr(), "{line}"),
            _ => writeln!(io::stdout(), "{line}"),
        };
    }

    /// Shows how the lab is getting on; most calls come too early and do nothing.
    pub fn show(&mut self, scene: &Scene) {
        let every = match self.surface {
            Surface::Screen => REDRAW,
            _ => LINE_EVERY[scene.stage as usize],
        };
        if self.shown.is_some_and(|at| at.elapsed() < every) {
            return;
        }
        self.shown = Some(Instant::now());
        let network = access_network::Status::of_all(scene.networks);
        let rates = self.rates(&network, scene.internet);
        let look = self.look.clone();
        let picture = Picture {
            scene,
            homes: self.homes,
            network: &network,
            rates,
            look: &look,
        };
        if self.surface == Surface::Screen {
            // A terminal that has gone away is noticed by its hang-up signal.
            let _ = self.draw(&picture);
        } else {
            self.say(&picture.summary());
        }
    }

    /// Rates since the last look.
    fn rates(&mut self, network: &access_network::Status, internet: &internet::Status) -> Rates {
        let now = (
            Instant::now(),
            [
                internet.counts.received,
                network.counts.received,
                internet.octets,
                network.octets,
            ],
        );
        let Some((then, before)) = self.before.replace(now) else {
            return Rates::default();
        };
        let seconds = now.0.duration_since(then).as_secs_f64().max(1e-3);
        let rate = |i: usize| now.1[i].saturating_sub(before[i]) as f64 / seconds;
        Rates {
            packets: [rate(0), rate(1)],
            octets: [rate(2), rate(3)],
        }
    }

    fn draw(&mut self, picture: &Picture) -> io::Result<()> {
        let (width, height) = screen::size()?;
        self.screen.draw(&picture.screen(width, height))
    }
}

/// What is drawn of a scene.
struct Picture<'p> {
    scene: &'p Scene<'p>,
    homes: u32,
    /// All homes together.
    network: &'p access_network::Status,
    rates: Rates,
    look: &'p str,
}

impl Picture<'_> {
    /// One line about everything.
    fn summary(&self) -> String {
        let (network, homes) = (self.network, self.homes);
        let wrong = network.counts.wrong() + self.scene.internet.counts.wrong();
        let mut text = format!("{} of {homes} homes online", network.at(State::Online));
        let under_way: Vec<String> = network
            .states
            .iter()
            .filter(|(state, _)| !matches!(state, State::Online | State::Offline))
            .map(|(state, count)| format!("{count} {}", word(*state)))
            .collect();
        if !under_way.is_empty() {
            text.push_str(&format!(" ({})", under_way.join(", ")));
        }
        let [up, down] = self.rates.packets;
        text.push_str(&format!(
            "; verified packets/s {up:.0} up, {down:.0} down; wrong {wrong}"
        ));
        for (daemon, phase, _) in self.scene.daemons {
            if *phase != Phase::Ready {
                text.push_str(&format!("; {daemon} {}", phase_word(*phase)));
            }
        }
        text
    }

    /// A line for each daemon.
    fn daemons(&self) -> Vec<String> {
        let line = |(daemon, phase, restarts): &(Daemon, Phase, u32)| {
            let homes = match daemon {
                Daemon::UserPlane(up) => self.scene.networks.get(*up as usize),
                Daemon::ControlPlane => None,
            };
            let name = format!("{} {}", daemon, phase_word(*phase));
            let online = homes.map(|homes| format!(", {} homes online", homes.at(State::Online)));
            let again = match restarts {
                0 => String::new(),
                times => format!(", started again {times} times"),
            };
            format!("{name}{}{again}", online.unwrap_or_default())
        };
        self.scene.daemons.iter().map(line).collect()
    }

    /// The live screen.
    fn screen(&self, width: usize, height: usize) -> Vec<String> {
        let way = |name: &str, way: usize, all: u64| {
            let (packets, bytes) = (
                self.rates.packets[way],
                octets(self.rates.octets[way] as u64),
            );
            format!("{name:<6}{packets:.0} packets/s, {bytes}/s, {all} in all")
        };
        let online = self.network.at(State::Online);
        let bar = bar(online, self.homes, width.saturating_sub(50).clamp(10, 40));
        let mut lines = vec![
            format!("sluice lab   {bar}"),
            self.summary(),
            way("up", 0, self.scene.internet.counts.received),
            way("down", 1, self.network.counts.received),
        ];
        lines.extend(self.daemons());
        let ends = self.network.ends.iter().take(3);
        lines.extend(ends.map(|(why, times)| format!("ended {times} times: {why}")));
        lines.push(String::new());
        let foot = [
            String::new(),
            "in another terminal:".to_owned(),
            format!("  {}", self.look),
            match self.scene.stage {
                Stage::Dialling => "the homes are dialling in; Ctrl-C ends the lab".to_owned(),
                Stage::Running => "Ctrl-C: the homes hang up, and everything is removed".to_owned(),
            },
        ];
        let room = height.saturating_sub(lines.len() + foot.len() + 1);
        lines.extend(table(self.scene.networks, room).render(Some(width)));
        lines.extend(foot);
        lines.truncate(height);
        lines
            .iter()
            .map(|line| line.chars().take(width).collect())
            .collect()
    }
}

/// The first homes of each user plane, as many as there is room for.
fn table(networks: &[access_network::Status], room: usize) -> Table {
    let mut table = Table::new(&[
        Column::words("AT", 0),
        Column::words("USER", 0),
        Column::words("LINE", 3),
        Column::words("STATE", 0),
        Column::numbers("PPPOE", 4),
        Column::words("IPV4", 0),
        Column::words("IPV6", 1),
        Column::numbers("SENT", 2),
        Column::numbers("RECEIVED", 2),
    ]);
    let share = room / networks.len().max(1);
    let homes = UserPlane::ALL.into_iter().zip(networks);
    let rows = homes.flat_map(|(up, network)| {
        let rows: std::iter::Take<std::slice::Iter<Row>> = network.rows.iter().take(share);
        rows.map(move |row| (up, row))
    });
    for (up, row) in rows {
        let address = |family: usize| {
            row.addresses[family]
                .map(|a| a.to_string())
                .unwrap_or_default()
        };
        table.push([
            up.name().into(),
            row.user.clone(),
            row.line.clone(),
            word(row.state).into(),
            row.session_id.map(|id| id.to_string()).unwrap_or_default(),
            address(0),
            address(1),
            row.packets[0].to_string(),
            row.packets[1].to_string(),
        ]);
    }
    table
}

fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Dead => "is dead",
        Phase::Starting => "is starting",
        Phase::Joining => "is getting its sessions back",
        Phase::Ready => "runs",
        Phase::Paused => "is stopped",
    }
}

fn bar(done: u32, all: u32, width: usize) -> String {
    let filled = width * done as usize / all.max(1) as usize;
    format!(
        "[{}{}] {done}/{all} online",
        "#".repeat(filled),
        "-".repeat(width - filled.min(width))
    )
}

fn word(state: State) -> &'static str {
    match state {
        State::Offline => "offline",
        State::Discovery => "discovery",
        State::Link => "link",
        State::Authentication => "authentication",
        State::Network => "addresses",
        State::Online => "online",
        State::Closing => "closing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> access_network::Status {
        let row = |n: u8| Row {
            user: format!("home{n:04}"),
            line: format!("100.{n}"),
            state: State::Online,
            session_id: Some(n.into()),
            addresses: [
                Some([100, 64, 0, n].into()),
                Some("2001:db8:100:1:1234:5678:9abc:def0".parse().unwrap()),
            ],
            packets: [10, 20],
        };
        access_network::Status {
            states: [(State::Online, 97), (State::Link, 3)].into(),
            rows: (1..=100).map(row).collect(),
            ..access_network::Status::default()
        }
    }

    const DAEMONS: [(Daemon, Phase, u32); 3] = [
        (Daemon::ControlPlane, Phase::Ready, 0),
        (Daemon::UserPlane(UserPlane::One), Phase::Ready, 0),
        (Daemon::UserPlane(UserPlane::Two), Phase::Dead, 2),
    ];

    fn picture<T>(work: impl FnOnce(&Picture) -> T) -> T {
        let networks = [network(), network()];
        let internet = internet::Status::default();
        let scene = Scene {
            stage: Stage::Running,
            networks: &networks,
            internet: &internet,
            daemons: &DAEMONS,
        };
        work(&Picture {
            scene: &scene,
            homes: 200,
            network: &access_network::Status::of_all(&networks),
            rates: Rates::default(),
            look: "sluice show sessions",
        })
    }

    #[test]
    fn the_screen_fits_every_terminal() {
        for (width, height) in [(80, 24), (200, 60), (30, 10), (10, 3)] {
            let lines = picture(|picture| picture.screen(width, height));
            assert!(lines.len() <= height, "{width}x{height}");
            assert!(
                lines.iter().all(|line| line.chars().count() <= width),
                "{width}x{height}: {lines:#?}"
            );
        }
        let text = picture(|picture| picture.screen(80, 24)).join("\n");
        for shown in [
            "194/200 online",
            "100.64.0.1",
            "show sessions",
            "up1  home0001",
            "up2  home0001",
            "sluice-up up1 runs, 97 homes online",
            "sluice-up up2 is dead, 97 homes online, started again 2 times",
        ] {
            assert!(text.contains(shown), "{text}");
        }
    }

    #[test]
    fn a_line_says_how_many_are_where() {
        let line = picture(|picture| picture.summary());
        assert!(
            line.starts_with("194 of 200 homes online (6 link);")
                && line.ends_with("; sluice-up up2 is dead"),
            "{line}"
        );
    }
}

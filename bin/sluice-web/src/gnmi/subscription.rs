//! A path that is subscribed to: when something is to be told of it, and what its client knows.

use super::read::{Part, Source};
use super::subscribe::VALUES;
use super::who::Known;
use gnmi::path::{Path, Step};
use gnmi::proto::subscription_list::Mode;
use gnmi::proto::{self, Subscription as Sent, SubscriptionMode};
use gnmi::select::{Found, leaves};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tonic::Status;

/// The shortest time between two samples.
const SHORTEST: Duration = Duration::from_secs(1);
/// What is due within this time is due now: it is looked once a second.
const SOON: Duration = Duration::from_millis(500);
/// The longest.
const LONGEST: Duration = Duration::from_secs(86_400);
/// Time between two samples where the target chooses.
const USUAL: Duration = Duration::from_secs(10);
/// A path that is subscribed to.
#[derive(Debug)]
pub struct Subscription {
    /// The path.
    pub path: Path,
    sources: Vec<Watched>,
    /// Time between two samples; [`None`]: changes are told within a second.
    sample: Option<Duration>,
    suppress_redundant: bool,
    heartbeat: Option<Duration>,
    next_sample: Instant,
    next_heartbeat: Instant,
}

/// A source with what was told of it.
#[derive(Debug)]
pub struct Watched {
    /// The source.
    pub source: Source,
    told: Option<Arc<Value>>,
    /// Rows and values of which the client knows.
    known: BTreeSet<Path>,
    values: usize,
}

impl Watched {
    /// How many values there were.
    pub fn count(&self) -> usize {
        self.values
    }
}

impl Subscription {
    /// Reads a path with its mode.
    ///
    /// # Errors
    /// The path leads nowhere, the caller may not read it, or it cannot be told as it is asked for.
    pub fn read(
        sent: &Sent,
        prefix: Option<&proto::Path>,
        order: Mode,
        known: &Known,
    ) -> Result<Self, Status> {
        let none = proto::Path::default();
        let path = Path::read(prefix, sent.path.as_ref().unwrap_or(&none));
        let path = path.map_err(Status::invalid_argument)?;
        let sources = Source::of(&path, known)?;
        let dear = sources.iter().find(|source| !source.is_cheap());
        if let (Some(Source::Table(table)), Mode::Stream) = (dear, order) {
            return Err(Status::unimplemented(format!(
                "{path}: {} grows with the sessions and is not streamed: use ONCE, POLL or Get",
                table.name
            )));
        }
        let mode = SubscriptionMode::try_from(sent.mode);
        let mode =
            mode.map_err(|_| Status::invalid_argument("the subscription's mode is not known"))?;
        let changes = sources.iter().all(|source| source.tells_changes());
        let sample = match mode {
            // a single answer, and each poll, is told at once
            _ if order != Mode::Stream => None,
            SubscriptionMode::OnChange => None,
            SubscriptionMode::TargetDefined if changes => None,
            SubscriptionMode::TargetDefined if sent.sample_interval == 0 => Some(USUAL),
            _ => Some(interval(sent.sample_interval)?),
        };
        let heartbeat = Some(sent.heartbeat_interval).filter(|interval| *interval > 0);
        let heartbeat = heartbeat.map(Duration::from_nanos);
        let heartbeat = heartbeat.map(|interval| interval.clamp(SHORTEST, LONGEST));
        let now = Instant::now();
        let watched = |source| Watched {
            source,
            told: None,
            known: BTreeSet::new(),
            values: 0,
        };
        Ok(Subscription {
            path,
            sources: sources.into_iter().map(watched).collect(),
            sample,
            suppress_redundant: sent.suppress_redundant,
            heartbeat,
            next_sample: now,
            next_heartbeat: now + heartbeat.unwrap_or(SHORTEST) - SOON,
        })
    }

    /// Where its data comes from.
    pub fn sources(&self) -> &[Watched] {
        &self.sources
    }

    /// Whether something is to be told now: its next sample is due, or it may have changed.
    pub fn is_due(&self, now: Instant) -> bool {
        self.beats(now) || self.sample.is_none() || now >= self.next_sample
    }

    /// Whether everything is told, because nothing else was for long.
    fn beats(&self, now: Instant) -> bool {
        self.heartbeat.is_some() && now >= self.next_heartbeat
    }

    /// Remembers what was told of a source.
    ///
    /// # Errors
    /// There is too much.
    pub fn told(&mut self, number: usize, part: Part) -> Result<(), Status> {
        let told = &self.sources[number].told;
        if told
            .as_ref()
            .is_some_and(|told| Arc::ptr_eq(told, &part.value))
        {
            return Ok(());
        }
        let values = values(self.sources[number].source, &part.value, &self.path)?;
        let units: BTreeSet<Path> = values.iter().map(|found| self.unit(&found.path)).collect();
        let count = values.len();
        let watched = &mut self.sources[number];
        match part.complete {
            true => watched.known = units,
            // a plane that does not answer has not lost what it has
            false => watched.known.extend(units),
        }
        watched.values = count;
        watched.told = Some(part.value);
        Ok(())
    }

    /// Values to tell of a part, and paths that are gone, since it was told last.
    ///
    /// # Errors
    /// There is too much.
    pub fn news<'a>(
        &self,
        watched: &Watched,
        part: &'a Part,
        now: Instant,
    ) -> Result<(Vec<Found<'a>>, Vec<Path>), Status> {
        let source = watched.source;
        let Some(before) = &watched.told else {
            return Ok((values(source, &part.value, &self.path)?, Vec::new()));
        };
        let in_full = self.sample.is_some() && !self.suppress_redundant || self.beats(now);
        if !in_full && Arc::ptr_eq(before, &part.value) {
            return Ok((Vec::new(), Vec::new()));
        }
        let mut now = values(source, &part.value, &self.path)?;
        let before = values(source, before, &self.path)?;
        let before: BTreeMap<&Path, &Value> = before.iter().map(|f| (&f.path, f.value)).collect();
        let gone = self.gone(&watched.known, &before, &now, part.complete);
        now.retain(|found| in_full || before.get(&found.path) != Some(&found.value));
        Ok((now, gone))
    }

    /// What is deleted together: a row, where it is at or below what is subscribed to, otherwise a value.
    fn unit(&self, path: &Path) -> Path {
        let (row, _) = split(path);
        let has_keys = row.steps.last().is_some_and(|step| !step.keys.is_empty());
        match has_keys && row.steps.len() >= self.path.steps.len() {
            true => row,
            false => path.clone(),
        }
    }

    /// What the client knows and is there no more: rows, and values of rows that are still there.
    fn gone(
        &self,
        known: &BTreeSet<Path>,
        before: &BTreeMap<&Path, &Value>,
        now: &[Found<'_>],
        complete: bool,
    ) -> Vec<Path> {
        let paths: BTreeSet<&Path> = now.iter().map(|found| &found.path).collect();
        let units: BTreeSet<Path> = paths.iter().map(|path| self.unit(path)).collect();
        let rows = known.difference(&units).filter(|_| complete).cloned();
        let values = before.keys().filter(|path| !paths.contains(*path));
        let values = values.filter(|path| {
            let unit = self.unit(path);
            unit != ***path && units.contains(&unit)
        });
        rows.chain(values.map(|path| (*path).clone())).collect()
    }

    /// Everything was told that was due now.
    pub fn is_told(&mut self, now: Instant) {
        let after = |time: Option<Duration>| now + time.unwrap_or(SHORTEST) - SOON;
        if self.beats(now) {
            self.next_heartbeat = after(self.heartbeat);
        }
        self.next_sample = after(self.sample);
    }
}

impl Source {
    /// Whether changes of it say more than samples.
    fn tells_changes(self) -> bool {
        match self {
            Source::Configuration => true,
            Source::Table(table) => ["alarms", "associations"].contains(&table.name),
            Source::OpenConfig(of) => of.tells_changes,
        }
    }
}

/// Time between two samples; 0 stands for the shortest (section 3.5.1.5.2 of the specification).
///
/// # Errors
/// It is too short.
fn interval(nanoseconds: u64) -> Result<Duration, Status> {
    let asked = Duration::from_nanos(nanoseconds);
    match nanoseconds {
        0 => Ok(SHORTEST),
        _ if asked < SHORTEST => Err(Status::invalid_argument(format!(
            "sample_interval is {nanoseconds} ns: expected 0, or at least {} ns",
            SHORTEST.as_nanos()
        ))),
        _ => Ok(asked.min(LONGEST)),
    }
}

/// Values to which a path leads.
///
/// # Errors
/// There are too many.
pub fn values<'a>(source: Source, value: &'a Value, path: &Path) -> Result<Vec<Found<'a>>, Status> {
    let mut all = Vec::new();
    for found in source.find(value, path) {
        all.extend(leaves(&found));
        if all.len() > VALUES {
            let why = format!("{path} has more than {VALUES} values: subscribe to less");
            return Err(Status::resource_exhausted(why));
        }
    }
    Ok(all)
}

/// A path up to its last entry of a list, and the rest.
pub fn split(path: &Path) -> (Path, Path) {
    let last = path.steps.iter().rposition(|step| !step.keys.is_empty());
    let (row, rest) = path.steps.split_at(last.map_or(1, |last| last + 1));
    let path = |steps: &[Step]| Path {
        steps: steps.to_vec(),
    };
    (path(row), path(rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnmi::proto::{Path as SentPath, PathElem};
    use northbound::catalogue::PORTS;
    use serde_json::json;

    const SOURCE: Source = Source::Table(&PORTS);

    fn subscription(names: &[&str], sample: Option<Duration>, suppress: bool) -> Subscription {
        let element = |name: &&str| PathElem {
            name: (*name).into(),
            ..PathElem::default()
        };
        let sent = SentPath {
            elem: names.iter().map(element).collect(),
            ..SentPath::default()
        };
        let now = Instant::now();
        Subscription {
            path: Path::read(None, &sent).unwrap(),
            sources: vec![Watched {
                source: SOURCE,
                told: None,
                known: BTreeSet::new(),
                values: 0,
            }],
            sample,
            suppress_redundant: suppress,
            heartbeat: None,
            next_sample: now,
            next_heartbeat: now,
        }
    }

    /// Ports with what each has received.
    fn ports(all: &[(&str, u64)], complete: bool) -> Part {
        let row = |(name, octets): &(&str, u64)| json!({"user_plane": "up1", "name": name, "rx_octets": octets});
        let rows: Vec<Value> = all.iter().map(row).collect();
        Part::of_rows(&PORTS, &rows, complete)
    }

    /// Tells what is new: values and what is gone, by their paths.
    fn tell(of: &mut Subscription, part: &Part) -> (Vec<String>, Vec<String>) {
        tell_at(of, part, Instant::now())
    }

    fn tell_at(of: &mut Subscription, part: &Part, now: Instant) -> (Vec<String>, Vec<String>) {
        let (told, gone) = of.news(&of.sources[0], part, now).unwrap();
        let told = told.iter().map(|found| found.path.to_string()).collect();
        let gone = gone.iter().map(Path::to_string).collect();
        of.told(0, part.clone()).unwrap();
        (told, gone)
    }

    fn octets(name: &str) -> String {
        format!("/state/ports[name={name}][user_plane=up1]/rx_octets")
    }

    #[test]
    fn changes_are_told_and_nothing_else() {
        let mut of = subscription(&["state", "ports"], None, false);
        let first = ports(&[("a", 1), ("b", 1)], true);
        assert_eq!(
            tell(&mut of, &first).0.len(),
            6,
            "name, plane and octets of each"
        );
        assert_eq!(tell(&mut of, &first), Default::default());
        let same = ports(&[("a", 1), ("b", 1)], true);
        assert_eq!(tell(&mut of, &same), Default::default());
        let more = ports(&[("a", 2), ("b", 1)], true);
        assert_eq!(tell(&mut of, &more), (vec![octets("a")], vec![]));
    }

    #[test]
    fn a_row_is_deleted_once_every_plane_says_so() {
        let mut of = subscription(&["state", "ports"], None, false);
        tell(&mut of, &ports(&[("a", 1), ("b", 1)], true));
        let silent = ports(&[("a", 1)], false);
        assert_eq!(tell(&mut of, &silent), Default::default());
        let gone = tell(&mut of, &ports(&[("a", 1)], true)).1;
        assert_eq!(gone, ["/state/ports[name=b][user_plane=up1]"]);
        assert_eq!(tell(&mut of, &ports(&[("a", 1)], true)), Default::default());
        // of a value that is subscribed to, the value
        let mut of = subscription(&["state", "ports", "rx_octets"], None, false);
        tell(&mut of, &ports(&[("a", 1), ("b", 1)], true));
        let gone = tell(&mut of, &ports(&[("a", 1)], true)).1;
        assert_eq!(gone, [octets("b")]);
    }

    #[test]
    fn samples_are_told_in_full_unless_redundant_ones_are_left_out() {
        for (suppress, count) in [(false, 3), (true, 0)] {
            let mut of = subscription(&["state", "ports"], Some(SHORTEST), suppress);
            let part = ports(&[("a", 1)], true);
            tell(&mut of, &part);
            let now = Instant::now();
            of.is_told(now);
            assert!(!of.is_due(now));
            assert_eq!(tell(&mut of, &part).0.len(), count);
        }
    }

    #[test]
    fn a_heartbeat_tells_what_has_not_changed_and_is_not_lost() {
        for sample in [None, Some(LONGEST)] {
            let mut of = subscription(&["state", "ports"], sample, true);
            let part = ports(&[("a", 1)], true);
            let begin = Instant::now();
            tell_at(&mut of, &part, begin);
            of.heartbeat = Some(USUAL);
            of.next_heartbeat = begin + USUAL;
            of.is_told(begin);
            assert_eq!(tell_at(&mut of, &part, begin).0.len(), 0);
            // it becomes due while something else is told
            of.is_told(begin + USUAL - SOON);
            let due = begin + USUAL;
            assert!(of.is_due(due));
            assert_eq!(tell_at(&mut of, &part, due).0.len(), 3);
            of.is_told(due);
            assert_eq!(tell_at(&mut of, &part, due).0.len(), 0);
            assert!(of.is_due(due + USUAL));
            assert_eq!(tell_at(&mut of, &part, due + USUAL).0.len(), 3);
        }
    }

    #[test]
    fn a_sample_interval_that_is_too_short_is_refused() {
        let second = 1_000_000_000;
        assert_eq!(interval(0).unwrap(), SHORTEST);
        assert_eq!(interval(second).unwrap(), SHORTEST);
        assert_eq!(interval(u64::MAX).unwrap(), LONGEST);
        let refused = interval(second - 1).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    }
}

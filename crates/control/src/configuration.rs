//! The task that changes the configuration, one change at a time, and sends it to the planes.
//!
//! The model, the control plane and the reachable user planes check a change. Then it is written to disk, and from that moment it survives
//! any crash. Then the planes apply it.

use crate::acls;
use crate::alarms::{self, Condition};
use crate::history::{Kind, Sample, Subject};
use crate::management::{Management, Wanted};
use crate::plane::{ControlPlane, Input, Lines, Note, Now, Plan, Progress, ends};
use crate::trace;
use config::edit::Edit as ModelEdit;
use config::history::HistoryError;
use config::model::Level;
use config::transactions::{Author, Change, Refusal, Transactions};
use config::{Checked, Configuration, Fault, Path, Verb};
use northbound::{
    CheckChangeResponse, CommitRequest, CommitResponse, ConfigurationCall, ConfigurationFault,
    ConfigurationRequest, ConfigurationResponse, Effect, GetConfigurationResponse, MOST_COMMENT,
    MOST_CONFIRM, Refusal as Refused, Version, WatchStateResponse, change,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};

// a document that may be read can be sent
const _: () = assert!(northbound::MAX_DOCUMENT >= config::MAX_DOCUMENT + 65_536);

/// Maximum time for sessions to end before their user planes get a document without their ports.
pub const LAST_WORDS: Duration = Duration::from_secs(5);
/// Interval of checks whether they have ended.
pub const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Interval of reports of conditions for alarms.
const LOOK: Duration = Duration::from_secs(1);
/// Time for which a commit waits for the user planes.
const SETTLE: Duration = Duration::from_secs(10);
/// Author of the rollback of an unconfirmed version.
const OURSELVES: &str = "sluice-cp";

/// Request to the control plane's loop.
pub(crate) enum ToPlane {
    /// Begin to compute the effects of a change, or find its faults.
    BeginPlan(
        Arc<Configuration>,
        oneshot::Sender<Result<Box<Plan>, Vec<Fault>>>,
    ),
    /// Go on with a plan.
    PlanMore(Box<Plan>, oneshot::Sender<Progress>),
    /// Apply this version, which is on the disk.
    Adopt(Adoption, oneshot::Sender<Result<(), Vec<Fault>>>),
    /// This user plane has its current document.
    Told(String),
    /// Add this event to the history.
    Note(Note),
    /// Ask whether objects that the configuration no longer contains still have sessions.
    IsRetiring(oneshot::Sender<bool>),
    /// Add these figures to the history.
    Figures(Sample),
    /// Return the overview.
    Overview(oneshot::Sender<WatchStateResponse>),
    /// Name the access lines of the sessions that match, from a place on, and the place to go on from.
    Lines(Arc<Subject>, usize, oneshot::Sender<Lines>),
    /// Start a trace.
    Trace(
        trace::Subject,
        trace::Reader,
        oneshot::Sender<Result<trace::Begun, Refused>>,
    ),
}

/// Asks the control plane's loop.
pub(crate) async fn ask<T>(
    plane: &mpsc::Sender<ToPlane>,
    question: impl FnOnce(oneshot::Sender<T>) -> ToPlane,
) -> Result<T, Refused> {
    let (reply, answer) = oneshot::channel();
    plane.send(question(reply)).await.map_err(|_| gone())?;
    answer.await.map_err(|_| gone())
}

/// Version that is to come into force.
struct Wish {
    /// Configuration of the version.
    candidate: Checked,
    /// Author.
    author: Author,
    /// Comment.
    comment: String,
    /// Time in seconds since 1970 at which it is rolled back unless it is confirmed.
    confirm_by: Option<u64>,
    /// Whether it is a rollback to an earlier version.
    back: bool,
    /// Whether it may end sessions.
    end_sessions: bool,
}

/// Version that is on the disk, and that the control plane does not have yet.
pub struct Adoption {
    /// Its configuration.
    pub configuration: Arc<Configuration>,
    /// Its number.
    pub version: u64,
    /// Name of its author.
    pub by: String,
    /// Comment.
    pub comment: String,
    /// Whether it is a rollback to an earlier version.
    pub back: bool,
    /// Whether it may end sessions.
    pub end_sessions: bool,
}

/// What a change would do.
struct Planned {
    effects: Vec<Effect>,
    /// What else whoever commits it ought to know.
    remarks: Vec<Effect>,
    faults: Vec<ConfigurationFault>,
}

/// Version in force.
type Adopted = Result<u64, Refusal>;

/// Applies a version to the control plane, in one step.
///
/// # Errors
/// The reasons for which it cannot be applied, for example because subscribers have dialled in since it was planned. Nothing has changed
/// then.
pub fn adopt(now: Now, plane: &mut ControlPlane, adoption: Adoption) -> Result<(), Vec<Fault>> {
    let prepared = plane.prepare_change(adoption.configuration)?;
    if let Some(fault) = would_end(prepared.ends(), adoption.end_sessions) {
        return Err(vec![fault]);
    }
    plane.follow_change(now, prepared);
    let kind = match adoption.back {
        true => Kind::RolledBack,
        false => Kind::Committed,
    };
    let note = note(kind, adoption.version, &adoption.by, &adoption.comment);
    plane.handle(now, Input::Note(note));
    Ok(())
}

/// Fault of a change that would end sessions without permission.
fn would_end<'a>(ending: impl Iterator<Item = &'a Effect>, may: bool) -> Option<Fault> {
    let what: Vec<&str> = ending.map(|e| e.text.as_str()).collect();
    (!what.is_empty() && !may).then(|| {
        Fault::of_document(format!(
            "the commit would end sessions: {}. `commit ending-sessions` permits it",
            what.join("; ")
        ))
    })
}

/// State of the task.
pub(crate) struct Keeper {
    /// `None` while another thread has them.
    transactions: Option<Transactions>,
    management: Management,
    /// Sets the log level.
    set_level: SetLevel,
    plane: mpsc::Sender<ToPlane>,
    calls: mpsc::Receiver<ConfigurationCall>,
    /// Cache of the last version that was shown.
    shown: GetConfigurationResponse,
    /// Receiver of conditions for alarms.
    wrong: watch::Sender<Vec<Condition>>,
    /// Time at which the version in force is rolled back.
    give_up_at: Option<Instant>,
}

/// Function that sets the log level.
pub type SetLevel = Box<dyn Fn(Level) + Send>;
type Answer = Result<ConfigurationResponse, Refused>;

impl Keeper {
    /// Creates the task. The control plane already has the configuration; the user planes get it now.
    pub fn new(
        transactions: Transactions,
        management: Management,
        set_level: SetLevel,
        plane: mpsc::Sender<ToPlane>,
        calls: mpsc::Receiver<ConfigurationCall>,
        wrong: watch::Sender<Vec<Condition>>,
    ) -> Self {
        let mut keeper = Keeper {
            transactions: Some(transactions),
            management,
            set_level,
            plane,
            calls,
            shown: GetConfigurationResponse::default(),
            wrong,
            give_up_at: None,
        };
        let (current, version) = (
            keeper.transactions().current(),
            keeper.transactions().version(),
        );
        let documents = Wanted::all(&current.configuration, version);
        keeper.follow(documents);
        keeper
    }

    fn transactions(&self) -> &Transactions {
        self.transactions
            .as_ref()
            .expect("it is here between two changes")
    }

    fn transactions_mut(&mut self) -> &mut Transactions {
        self.transactions
            .as_mut()
            .expect("it is here between two changes")
    }

    /// Applies the version in force to the log level, the user planes and the confirm timer.
    fn follow(&mut self, documents: BTreeMap<String, Wanted>) {
        let transactions = self
            .transactions
            .as_ref()
            .expect("it is here between two changes");
        let configuration = &transactions.current().configuration;
        (self.set_level)(configuration.logging.level);
        self.management.follow(configuration, documents);
        self.arm();
    }

    /// Serves until every client handle is dropped.
    pub async fn run(mut self) {
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let give_up = async {
                match self.give_up_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                call = self.calls.recv() => {
                    let Some((request, reply)) = call else { return };
                    if reply.is_closed() {
                        continue; // whoever asked was told that it took too long, and may have asked again
                    }
                    let answer = self.answer(request).await;
                    let _ = reply.send(answer); // whoever asked may have gone
                }
                () = give_up => self.give_up().await,
                _ = looks.tick() => self.look(),
            }
        }
    }

    /// Reports the planes' conditions for alarms.
    fn look(&self) {
        let behind = self
            .management
            .managed()
            .filter(|managed| !managed.in_force);
        let mut wrong: Vec<Condition> = behind
            .map(|managed| Condition {
                fault: alarms::Fault::ConfigurationNotInForce,
                text: format!(
                    "{} does not have the configuration in force: {}",
                    managed.name, managed.why
                ),
                resource: managed.name,
            })
            .collect();
        wrong.extend(self.management.hosts().map(|(name, lacking)| Condition {
            fault: alarms::Fault::HostLacking,
            text: lacking.join(" "),
            resource: name,
        }));
        wrong.extend(crate::floods::floods(self.management.offenders()));
        wrong.extend(crate::lags::unused(&self.management.lag_members()));
        wrong.extend(crate::split_aggregates::split(
            &self.management.split_aggregates(),
        ));
        if let Some(by) = self.transactions().history().confirm_by() {
            let version = self.transactions().version();
            let left = by.saturating_sub(unix_time());
            wrong.push(Condition {
                fault: alarms::Fault::CommitUnconfirmed,
                resource: format!("version {version}"),
                text: format!(
                    "version {version} is given up in {left} s unless it is confirmed: `commit confirm` keeps it"
                ),
            });
        }
        self.wrong.send_replace(wrong);
    }

    /// Starts the confirm timer. Its end is stored as wall time; the timer uses the monotonic clock.
    fn arm(&mut self) {
        let by = self.transactions().history().confirm_by();
        self.give_up_at =
            by.map(|by| Instant::now() + Duration::from_secs(by.saturating_sub(unix_time())));
    }

    async fn answer(&mut self, request: ConfigurationRequest) -> Answer {
        match request {
            ConfigurationRequest::Get(version) => self.get(version).await,
            ConfigurationRequest::Versions => Ok(ConfigurationResponse::Versions(self.versions())),
            ConfigurationRequest::Check(change) => {
                Ok(ConfigurationResponse::Checked(self.check(change).await?))
            }
            ConfigurationRequest::Commit { by, commit } => Ok(ConfigurationResponse::Committed(
                self.commit(by, commit).await?,
            )),
            ConfigurationRequest::Managed => {
                let managed = self.management.managed().collect();
                Ok(ConfigurationResponse::Managed(managed))
            }
            ConfigurationRequest::Confirm { by, lock } => self.confirm(by, lock).await,
            ConfigurationRequest::Lock { by } => {
                let lock = self.transactions_mut().acquire(&by, unix_time());
                lock.map(ConfigurationResponse::Locked).map_err(refused)
            }
            ConfigurationRequest::Unlock(number) => {
                self.transactions_mut().unlock(number);
                Ok(ConfigurationResponse::Done)
            }
        }
    }

    async fn get(&mut self, version: Option<u64>) -> Answer {
        let version = version.unwrap_or(self.transactions().version());
        if self.shown.version != version || self.shown.document.is_empty() {
            let show = move |transactions: &mut Transactions| {
                let tree = transactions.load(version)?.tree;
                Ok(GetConfigurationResponse {
                    version,
                    document: config::write(&tree, false),
                    tree: config::masked(&tree).to_string(),
                })
            };
            let shown: Result<_, HistoryError> = self.aside(show).await?;
            self.shown = shown.map_err(|error| refused(error.into()))?;
        }
        Ok(ConfigurationResponse::Configuration(self.shown.clone()))
    }

    fn versions(&self) -> Vec<Version> {
        let newest = self.transactions().version();
        let versions = self.transactions().history().versions();
        let told = versions.map(|v| Version {
            version: v.version,
            at: v.at,
            by: v.by.clone(),
            comment: v.comment.clone(),
            // those before it do not wait any more
            confirm_by: v.confirm_by.filter(|_| v.version == newest),
        });
        told.collect()
    }

    async fn check(&mut self, change: northbound::Change) -> Result<CheckChangeResponse, Refused> {
        let change = read_change(change)?;
        let back = matches!(change, Change::Version(_));
        let candidate = match self.candidate(change).await? {
            Ok(candidate) => candidate,
            Err(why) => {
                return Ok(CheckChangeResponse {
                    faults: faults_of(why),
                    ..CheckChangeResponse::default()
                });
            }
        };
        let planned = self.plan(&candidate, back).await?;
        let shown = move |_: &mut Transactions| config::masked(&candidate.tree).to_string();
        Ok(CheckChangeResponse {
            faults: planned.faults,
            effects: [planned.effects, planned.remarks].concat(),
            tree: self.aside(shown).await?,
        })
    }

    /// What the configuration would be.
    async fn candidate(&mut self, change: Change) -> Result<Result<Checked, Refusal>, Refused> {
        self.aside(move |transactions| transactions.candidate(&change))
            .await
    }

    /// Effects and faults of a candidate, from all planes.
    async fn plan(&mut self, candidate: &Checked, back: bool) -> Result<Planned, Refused> {
        let begin = |reply| ToPlane::BeginPlan(candidate.configuration.clone(), reply);
        let (effects, mut faults) = match ask(&self.plane, begin).await? {
            Ok(plan) => (effects(&self.plane, plan).await?, Vec::new()),
            Err(faults) => (Vec::new(), faults),
        };
        let found = self.examine(candidate, back).await?;
        faults.extend(found.faults);
        let configuration = &candidate.configuration;
        let version = self.transactions().version() + 1;
        let documents = documents(configuration.clone(), version).await?;
        faults.extend(self.management.validate(configuration, documents).await);
        Ok(Planned {
            effects,
            remarks: found.remarks,
            faults: faults.into_iter().map(told).collect(),
        })
    }

    /// Looks for what contradicts itself, and at changed ACLs and policies, which may take seconds, on another thread. A way back is open,
    /// whatever was in force.
    async fn examine(
        &mut self,
        candidate: &Checked,
        back: bool,
    ) -> Result<acls::Findings, Refused> {
        let before = self.transactions().current().configuration.clone();
        let new = candidate.configuration.clone();
        let found = tokio::task::spawn_blocking(move || {
            let mut found = acls::examine(&before, &new);
            if !back {
                let contradictions = config::check::new_contradictions(&before, &new);
                found.faults.extend(contradictions);
            }
            found
        });
        found.await.map_err(|_| gone())
    }

    async fn commit(
        &mut self,
        by: String,
        request: CommitRequest,
    ) -> Result<CommitResponse, Refused> {
        bounded(&request)?;
        let author = author(by, request.lock);
        let change = read_change(request.change.unwrap_or_default())?;
        let refuse = |faults| CommitResponse {
            faults,
            ..CommitResponse::default()
        };
        let back = matches!(change, Change::Version(_));
        if let Err(why) = self.transactions().may_commit(&author, &change) {
            return Ok(refuse(faults_of(why)));
        }
        let candidate = match self.candidate(change).await? {
            Ok(candidate) => candidate,
            Err(why) => return Ok(refuse(faults_of(why))),
        };
        let planned = self.plan(&candidate, back).await?;
        let mut faults = planned.faults;
        faults.extend(would_end(ends(&planned.effects), request.end_sessions).map(told));
        if !faults.is_empty() {
            return Ok(refuse(faults));
        }
        // what it took to check the change is not taken from the time
        let confirm_within = u64::from(request.confirm_within);
        let wish = Wish {
            candidate,
            confirm_by: (confirm_within > 0).then(|| unix_time() + confirm_within),
            author,
            comment: request.comment,
            back,
            end_sessions: request.end_sessions,
        };
        match self.adopt(wish).await? {
            Ok(version) => Ok(CommitResponse {
                version,
                effects: [planned.effects, planned.remarks].concat(),
                pending: self.management.settle(SETTLE).await,
                ..CommitResponse::default()
            }),
            Err(why) => Ok(CommitResponse {
                unchanged: matches!(why, Refusal::Nothing),
                ..refuse(faults_of(why))
            }),
        }
    }

    /// Writes a version and sends it to the planes. The control plane's loop does not wait for the disk. If it cannot apply the version, that
    /// is taken back.
    async fn adopt(&mut self, wish: Wish) -> Result<Adopted, Refused> {
        let committed = self.aside(move |transactions| commit(transactions, wish));
        let (adoption, former) = match committed.await? {
            Ok(committed) => committed,
            Err(why) => return Ok(Err(why)),
        };
        let (version, by) = (adoption.version, adoption.by.clone());
        let comment = adoption.comment.clone();
        let adopt = |reply| ToPlane::Adopt(adoption, reply);
        let applied = ask(&self.plane, adopt).await?;
        let done = match applied {
            Ok(()) => {
                self.aside(|_| drop(former)).await?; // letting go of a large one takes long
                Ok(version)
            }
            Err(mut faults) => {
                let back = self.aside(|transactions| transactions.take_back(former));
                faults.extend(back.await?.err().map(|why| still_there(version, &why)));
                Err(Refusal::Faults(faults))
            }
        };
        if let Ok(version) = done {
            tracing::info!(version, by, comment, "configuration changes");
            self.let_go().await?;
            let configuration = self.transactions().current().configuration.clone();
            let documents = documents(configuration, version).await?;
            self.follow(documents);
        }
        Ok(done)
    }

    /// Does something with the versions on another thread. What has to do with a whole document may take seconds, in which the control
    /// plane's loop must answer others.
    async fn aside<T: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut Transactions) -> T + Send + 'static,
    ) -> Result<T, Refused> {
        let transactions = self.transactions.take();
        let mut transactions = transactions.expect("it is here between two changes");
        let acted = tokio::task::spawn_blocking(move || {
            let done = act(&mut transactions);
            (transactions, done)
        });
        let (transactions, done) = acted.await.map_err(|_| gone())?;
        self.transactions = Some(transactions);
        Ok(done)
    }

    /// Waits until sessions that end are deleted from their user planes, with their last counters. Only then the user planes get a document
    /// without their ports or segments.
    async fn let_go(&mut self) -> Result<(), Refused> {
        let until = Instant::now() + LAST_WORDS;
        loop {
            if !ask(&self.plane, ToPlane::IsRetiring).await? || Instant::now() >= until {
                return Ok(());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn confirm(&mut self, by: String, lock: u64) -> Answer {
        let author = author(by, lock);
        let version = self.transactions().version();
        let may = self
            .transactions()
            .may_commit(&author, &Change::Version(version));
        may.map_err(refused)?;
        let confirmed = self.aside(Transactions::confirm).await?;
        let confirmed = confirmed.map_err(refused)?;
        tracing::info!(version, by = author.name, "configuration is confirmed");
        let note = note(Kind::Confirmed, version, &author.name, "");
        self.plane
            .send(ToPlane::Note(note))
            .await
            .map_err(|_| gone())?;
        self.arm();
        Ok(ConfigurationResponse::Confirmed(confirmed))
    }

    /// Rolls back an unconfirmed version.
    async fn give_up(&mut self) {
        self.give_up_at = None;
        let unconfirmed = self.aside(|transactions| transactions.unconfirmed()).await;
        let back = match unconfirmed {
            Ok(Ok(Some((candidate, comment)))) => {
                let wish = Wish {
                    candidate,
                    author: author(OURSELVES.into(), 0),
                    comment,
                    confirm_by: None,
                    back: true,
                    end_sessions: true,
                };
                self.adopt(wish).await
            }
            Ok(Ok(None)) => return,
            Ok(Err(why)) => Ok(Err(why.into())),
            Err(stops) => Err(stops),
        };
        if let Ok(Err(why)) = back {
            tracing::error!(%why, "cannot discard an unconfirmed version: `rollback` to the version before it");
        }
    }
}

/// Effects of a plan.
async fn effects(
    plane: &mpsc::Sender<ToPlane>,
    mut plan: Box<Plan>,
) -> Result<Vec<Effect>, Refused> {
    loop {
        match ask(plane, |reply| ToPlane::PlanMore(plan, reply)).await? {
            Progress::More(further) => plan = further,
            Progress::Done(effects) => return Ok(effects),
        }
    }
}

/// Fault of a version that is refused and could not be taken back.
fn still_there(version: u64, why: &HistoryError) -> Fault {
    Fault::of_document(format!(
        "version {version} is refused, and will be in force after the next start of the control plane, as it cannot be removed: {why}. Remove \
            that file"
    ))
}

/// Writes a version. Returns it with what was in force before.
fn commit(transactions: &mut Transactions, wish: Wish) -> Result<(Adoption, Checked), Refusal> {
    let Wish {
        candidate,
        author,
        comment,
        ..
    } = wish;
    let configuration = candidate.configuration.clone();
    let (version, former) = transactions.commit(candidate, &author, &comment, wish.confirm_by)?;
    let adoption = Adoption {
        configuration,
        version,
        by: author.name,
        comment,
        back: wish.back,
        end_sessions: wish.end_sessions,
    };
    Ok((adoption, former))
}

/// Documents of the user planes in a version. Writing them down takes long if there are many rules: another thread does it.
async fn documents(
    configuration: Arc<Configuration>,
    version: u64,
) -> Result<BTreeMap<String, Wanted>, Refused> {
    let write = move || Wanted::all(&configuration, version);
    tokio::task::spawn_blocking(write).await.map_err(|_| gone())
}

/// Author of a commit; `lock` is the number of its lock, or 0.
fn author(name: String, lock: u64) -> Author {
    Author {
        name,
        lock: (lock != 0).then_some(lock),
        at: unix_time(),
    }
}

/// Event of a version, for the history.
fn note(kind: Kind, version: u64, by: &str, comment: &str) -> Note {
    Note {
        kind,
        resource: format!("version {version}"),
        by: Some(by.to_owned()),
        text: comment.to_owned(),
    }
}

/// Refuses a commit whose comment or confirm time-out is too long.
fn bounded(request: &CommitRequest) -> Result<(), Refused> {
    if request.comment.chars().count() > MOST_COMMENT {
        return Err(Refused::Invalid(format!(
            "the comment is too long: at most {MOST_COMMENT} characters"
        )));
    }
    if request.confirm_within > MOST_CONFIRM {
        return Err(Refused::Invalid(format!(
            "the confirm time-out is at most {MOST_CONFIRM} seconds"
        )));
    }
    Ok(())
}

fn read_change(change: northbound::Change) -> Result<Change, Refused> {
    let verb = |delete| if delete { Verb::Delete } else { Verb::Set };
    match change.change {
        Some(change::Change::Edits(edits)) => Ok(Change::Edits {
            base: edits.base,
            edits: edits
                .edits
                .into_iter()
                .map(|edit| ModelEdit {
                    verb: verb(edit.delete),
                    words: Path::from_iter(edit.words),
                })
                .collect(),
        }),
        Some(change::Change::Document(text)) => Ok(Change::Document(text)),
        Some(change::Change::Version(version)) => Ok(Change::Version(version)),
        None => Err(Refused::Invalid("the request names no change".into())),
    }
}

fn faults_of(why: Refusal) -> Vec<ConfigurationFault> {
    match why {
        Refusal::Faults(faults) => faults.into_iter().map(told).collect(),
        other => vec![told(Fault::of_document(other.to_string()))],
    }
}

fn told(fault: Fault) -> ConfigurationFault {
    ConfigurationFault {
        line: fault.line,
        path: fault.path.to_string(),
        message: fault.message,
    }
}

fn refused(why: Refusal) -> Refused {
    let text = why.to_string();
    match why {
        Refusal::History(HistoryError::Unknown(_)) => Refused::NotFound(text),
        Refusal::Nothing | Refusal::Locked(_) | Refusal::Unconfirmed(..) => Refused::Outdated(text),
        _ => Refused::Failed(text),
    }
}

fn gone() -> Refused {
    Refused::Failed("the control plane is shutting down".into())
}

fn unix_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;

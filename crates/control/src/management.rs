//! Management of user planes (Mi): one task for each user plane keeps its document in force equal to the configuration, also after restarts
//! and local changes.

mod standing;

pub use standing::{Next, Standing, Wanted};

use crate::configuration::ToPlane;
use config::start::Tls;
use config::{Configuration, Fault, Path};
use futures_util::future::join_all;
use mi::{Client, Document, DocumentFault, Endpoint, State};
use northbound::{LagMember, Managed, Offender, QueueAggregate};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Interval of a user plane's state messages.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// Time after which a rejected document is sent again: a missing device may have appeared.
pub const OFFER_AGAIN: Duration = Duration::from_secs(10);
/// Time after which a document is sent again to a user plane that puts another one in force.
const BUSY: Duration = Duration::from_secs(1);
/// Time-out of a document's validation by a user plane.
const VALIDATE: Duration = Duration::from_secs(5);

struct Link {
    endpoint: String,
    client: Client,
    wanted: watch::Sender<Wanted>,
    standing: watch::Receiver<Standing>,
    task: JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Configured user planes.
pub(crate) struct Management {
    tls: Option<Tls>,
    plane: mpsc::Sender<ToPlane>,
    links: BTreeMap<String, Link>,
    standings: watch::Sender<Standings>,
}

/// Connection and state of each user plane, by name.
pub(crate) type Standings = BTreeMap<String, (Client, watch::Receiver<Standing>)>;

impl Management {
    /// Creates an empty set. `tls` is for user planes on other machines; `plane` is notified of user planes that have their document.
    pub fn new(tls: Option<Tls>, plane: mpsc::Sender<ToPlane>) -> Self {
        Management {
            tls,
            plane,
            links: BTreeMap::new(),
            standings: watch::Sender::default(),
        }
    }

    /// State of the user planes, for live views.
    pub fn standings(&self) -> watch::Receiver<Standings> {
        self.standings.subscribe()
    }

    /// Applies a configuration: its user planes get their documents. Endpoints that this control plane cannot reach are logged.
    pub fn follow(&mut self, configuration: &Configuration, documents: BTreeMap<String, Wanted>) {
        self.links.retain(|name, link| {
            let plane = configuration.user_planes.get(name);
            plane.is_some_and(|plane| plane.management == link.endpoint)
        });
        for (name, wanted) in documents {
            match self.links.get(&name) {
                Some(link) => {
                    link.wanted.send_if_modified(|now| {
                        let same = now.is_same(&wanted);
                        *now = wanted;
                        !same
                    });
                }
                None => match self.open(configuration, &name, wanted) {
                    Ok(link) => {
                        self.links.insert(name, link);
                    }
                    Err(why) => {
                        tracing::error!(user_plane = name, why, "cannot manage a user plane")
                    }
                },
            }
        }
        let standing = |(name, link): (&String, &Link)| {
            let standing = (link.client.clone(), link.standing.clone());
            (name.clone(), standing)
        };
        self.standings
            .send_replace(self.links.iter().map(standing).collect());
    }

    fn open(
        &self,
        configuration: &Configuration,
        name: &str,
        wanted: Wanted,
    ) -> Result<Link, String> {
        let endpoint = configuration.user_planes[name].management.clone();
        let client = self.client(&endpoint)?;
        let (wanted, wants) = watch::channel(wanted);
        let (stands, standing) = watch::channel(Standing::default());
        let keeper = Keeper {
            name: name.to_owned(),
            client: client.clone(),
            plane: self.plane.clone(),
            wants,
            stands,
        };
        Ok(Link {
            endpoint,
            client,
            wanted,
            standing,
            task: tokio::spawn(keeper.run()),
        })
    }

    fn client(&self, endpoint: &str) -> Result<Client, String> {
        let at: Endpoint = endpoint
            .parse()
            .map_err(|error: mi::NetworkError| error.to_string())?;
        Client::new(&at, self.tls.as_ref()).map_err(|error| error.to_string())
    }

    /// Faults of a configuration from the reachable user planes. The others get it later.
    pub async fn validate(
        &self,
        configuration: &Configuration,
        documents: BTreeMap<String, Wanted>,
    ) -> Vec<Fault> {
        let asked = documents.into_iter().map(async |(name, wanted)| {
            let endpoint = &configuration.user_planes[&name].management;
            self.validate_one(&name, endpoint, wanted).await
        });
        let faults: Vec<Vec<Fault>> = join_all(asked).await;
        faults.into_iter().flatten().collect()
    }

    async fn validate_one(&self, name: &str, endpoint: &str, wanted: Wanted) -> Vec<Fault> {
        let link = self.links.get(name);
        let client = match link.filter(|link| link.endpoint == endpoint) {
            Some(link) if link.standing.borrow().to_validate(&wanted).is_none() => {
                return Vec::new();
            }
            Some(link) => Ok(link.client.clone()),
            None => self.client(endpoint),
        };
        let mut client = match client {
            Ok(client) => client,
            Err(message) => {
                let path = Path::from_iter(["user-planes", name, "management"]);
                let line = 0;
                return vec![Fault {
                    line,
                    path,
                    message,
                }];
            }
        };
        let patience = VALIDATE + wanted.patience();
        match timeout(patience, client.validate(wanted.candidate())).await {
            Ok(Ok(told)) => told.into_iter().map(|fault| here(name, fault)).collect(),
            Ok(Err(_)) | Err(_) => {
                tracing::warn!(
                    user_plane = name,
                    "a user plane did not validate the new configuration"
                );
                Vec::new()
            }
        }
    }

    /// Waits until every reachable user plane has its document, at most for `patience` and what large documents need. Returns those without
    /// it, with the reason.
    pub async fn settle(&self, patience: Duration) -> Vec<String> {
        let large = self
            .links
            .values()
            .map(|link| link.wanted.borrow().patience());
        let patience = patience + large.max().unwrap_or_default();
        let settled = async {
            for link in self.links.values() {
                let wanted = link.wanted.borrow().clone();
                let mut standing = link.standing.clone();
                let over =
                    |s: &Standing| !s.reached || s.refuses(&wanted).is_some() || s.has(&wanted);
                let _ = standing.wait_for(over).await;
            }
        };
        let _ = timeout(patience, settled).await;
        let pending = self.managed().filter(|m| !m.in_force);
        pending.map(|m| format!("{}: {}", m.name, m.why)).collect()
    }

    /// What the machines of user planes lack, by user plane.
    pub fn hosts(&self) -> impl Iterator<Item = (String, Vec<String>)> {
        let told = self.links.iter().filter_map(|(name, link)| {
            let lacking = link.standing.borrow().state.as_ref()?.host.clone();
            Some((name.clone(), lacking))
        });
        told.filter(|(_, lacking)| !lacking.is_empty())
    }

    /// Those whom user planes hold down, or who send them more than permitted.
    pub fn offenders(&self) -> impl Iterator<Item = Offender> {
        self.links.values().flat_map(|link| {
            let standing = link.standing.borrow();
            let state = standing.state.as_ref();
            state.map_or_else(Vec::new, |state| state.offenders.clone())
        })
    }

    /// Members of the user planes' link aggregation groups.
    pub fn lag_members(&self) -> Vec<LagMember> {
        self.told(|state| &state.lag_members)
    }

    /// Aggregates with a rate that several workers of a user plane keep.
    pub fn split_aggregates(&self) -> Vec<QueueAggregate> {
        self.told(|state| &state.split_aggregates)
    }

    /// A part of what user planes tell that can be reached.
    fn told<T: Clone>(&self, part: impl Fn(&State) -> &Vec<T>) -> Vec<T> {
        let told = self.links.values().flat_map(|link| {
            let standing = link.standing.borrow();
            let state = standing.state.as_ref().filter(|_| standing.reached);
            state.map_or_else(Vec::new, |state| part(state).clone())
        });
        told.collect()
    }

    /// State of each user plane's document.
    pub fn managed(&self) -> impl Iterator<Item = Managed> {
        self.links.iter().map(|(name, link)| {
            let standing = link.standing.borrow();
            let in_force = standing.in_force.as_ref();
            let wanted = link.wanted.borrow();
            let has = standing.has(&wanted);
            Managed {
                name: name.clone(),
                in_force: has,
                why: if has {
                    String::new()
                } else {
                    standing.why(&wanted).into()
                },
                generation: in_force.map(|f| f.generation),
                reached: standing.reached,
            }
        })
    }
}

/// Maps a fault in a user plane's document to its path in the configuration.
fn here(name: &str, fault: DocumentFault) -> Fault {
    let inner = Path::parse(&fault.path).unwrap_or_default();
    let shared = inner
        .steps()
        .first()
        .is_some_and(|step| step == "network-instances");
    let above: &[&str] = if shared { &[] } else { &["user-planes", name] };
    let steps = above.iter().map(|step| (*step).to_owned());
    Fault {
        line: 0,
        path: steps.chain(inner.steps().iter().cloned()).collect(),
        message: match shared {
            true => format!("{name}: {}", fault.message),
            false => fault.message,
        },
    }
}

/// Task that keeps one user plane at its document.
struct Keeper {
    name: String,
    client: Client,
    plane: mpsc::Sender<ToPlane>,
    wants: watch::Receiver<Wanted>,
    stands: watch::Sender<Standing>,
}

impl Keeper {
    async fn run(mut self) {
        loop {
            let description = self.client.meet(&self.name).await;
            tracing::info!(
                user_plane = self.name,
                software = description.software,
                "user plane is managed"
            );
            self.stands.send_modify(|s| s.met(description.in_force));
            let why = self.keep().await;
            tracing::warn!(
                user_plane = self.name,
                why,
                "the management interface of a user plane does not answer: the user plane keeps its configuration, and the \
                    control plane retries. If this lasts, check whether sluice-up runs there"
            );
            self.stands.send_modify(Standing::lost);
        }
    }

    /// Serves one connection. Returns the reason for its end.
    async fn keep(&mut self) -> String {
        let mut offered = Instant::now();
        if let Err(why) = self.bring().await {
            return why;
        }
        let mut states = match self.client.watch(INTERVAL).await {
            Ok(states) => states,
            Err(status) => return mi::reason(&status),
        };
        loop {
            let refused = self.stands.borrow().refuses(&self.wants.borrow()).is_some();
            tokio::select! {
                state = states.message() => match state {
                    Ok(Some(state)) => self.told(state),
                    Ok(None) => return "it has ended".into(),
                    Err(status) => return mi::reason(&status),
                },
                changed = self.wants.changed() => match changed {
                    Ok(()) => offered = self.offer_again(),
                    Err(_) => return "it is no longer configured".into(),
                },
                () = sleep_until(offered + OFFER_AGAIN), if refused => offered = self.offer_again(),
            }
            if let Err(why) = self.bring().await {
                return why;
            }
        }
    }

    fn offer_again(&self) -> Instant {
        self.stands.send_modify(Standing::offer_again);
        Instant::now()
    }

    fn told(&self, state: State) {
        self.stands.send_modify(|s| {
            s.told(state.in_force.clone());
            s.state = Some(state);
            s.told_at = Some(Instant::now());
        });
    }

    /// Sends the document if the user plane does not have it.
    async fn bring(&mut self) -> Result<(), String> {
        let wanted = self.wants.borrow_and_update().clone();
        let mut next = Next::Nothing;
        self.stands.send_if_modified(|s| {
            let refused = s.refuses(&wanted).is_some();
            next = s.next(&wanted);
            refused && s.refuses(&wanted).is_none()
        });
        if let Next::Apply(document) = next {
            next = self.apply(document).await?;
        }
        match next {
            Next::HasIt => self.has_it().await,
            _ => Ok(()),
        }
    }

    async fn apply(&mut self, document: Document) -> Result<Next, String> {
        tracing::info!(
            user_plane = self.name,
            generation = document.generation,
            "sending a user plane its configuration"
        );
        let answer = loop {
            match self.client.apply(document.clone()).await {
                // it still reads what an earlier life of ours sent
                Err(status) if mi::is_busy(&status) => sleep(BUSY).await,
                answer => break answer.map_err(|status| mi::reason(&status))?,
            }
        };
        let mut next = Next::Nothing;
        self.stands
            .send_modify(|s| next = s.answered(&self.name, &document, answer));
        if let Some((_, why)) = &self.stands.borrow().refused {
            tracing::error!(
                user_plane = self.name,
                why,
                "a user plane rejects its configuration and keeps the previous one"
            );
        }
        Ok(next)
    }

    async fn has_it(&self) -> Result<(), String> {
        let told = ToPlane::Told(self.name.clone());
        let sent = self.plane.send(told).await;
        sent.map_err(|_| "the control plane stops".into())
    }
}

#[cfg(test)]
pub(crate) mod tests;

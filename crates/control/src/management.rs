//! What the user planes are told over their management interfaces: for each one a task that sees to it that the document in
//! force there is the one of the configuration, whoever was restarted or changed something meanwhile.

use crate::configuration::ToPlane;
use config::start::Tls;
use config::{Configuration, Fault, Path};
use futures_util::future::join_all;
use mi::{Client, Document, DocumentFault, Endpoint, InForce, State};
use northbound::Managed;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

/// How often a user plane tells its state.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a refused document waits before it is offered again: a device may have appeared.
const OFFER_AGAIN: Duration = Duration::from_secs(10);
/// How long a user plane may take to say what is wrong with a document.
const VALIDATE: Duration = Duration::from_secs(5);

/// What a user plane is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    /// The version of the configuration that it was made of.
    version: u64,
    hash: String,
    text: String,
}

/// How a user plane stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    /// It answers.
    pub reached: bool,
    /// What is in force there.
    pub in_force: Option<InForce>,
    /// The hash of the document that was refused last, and why.
    refused: Option<(String, String)>,
    /// What it told last.
    pub state: Option<State>,
    /// When.
    pub told_at: Option<Instant>,
}

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

/// Every user plane of the configuration.
pub(crate) struct Management {
    tls: Option<Tls>,
    plane: mpsc::Sender<ToPlane>,
    links: BTreeMap<String, Link>,
    standings: watch::Sender<Standings>,
}

/// Each user plane by name: the way to it, and how it stands.
pub(crate) type Standings = BTreeMap<String, (Client, watch::Receiver<Standing>)>;

impl Management {
    /// Nobody yet. `tls` is for user planes on other machines; `plane` hears of those that were told.
    pub fn new(tls: Option<Tls>, plane: mpsc::Sender<ToPlane>) -> Self {
        Management {
            tls,
            plane,
            links: BTreeMap::new(),
            standings: watch::Sender::default(),
        }
    }

    /// How the user planes stand, for those who watch them.
    pub fn standings(&self) -> watch::Receiver<Standings> {
        self.standings.subscribe()
    }

    /// The user planes are those of this configuration, and are to have what it says. What cannot be reached by this
    /// control plane is told.
    pub fn follow(&mut self, configuration: &Configuration, version: u64) {
        self.links.retain(|name, link| {
            let plane = configuration.user_planes.get(name);
            plane.is_some_and(|plane| plane.management == link.endpoint)
        });
        for name in configuration.user_planes.keys() {
            let wanted = wanted(configuration, name, version);
            match self.links.get(name) {
                Some(link) => {
                    link.wanted.send_if_modified(|now| {
                        let other = now.hash != wanted.hash;
                        *now = wanted;
                        other
                    });
                }
                None => match self.open(configuration, name, wanted) {
                    Ok(link) => {
                        self.links.insert(name.clone(), link);
                    }
                    Err(why) => {
                        tracing::error!(user_plane = name, why, "a user plane cannot be managed")
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

    /// What is wrong with a configuration, as the user planes say that can be reached; those that cannot hear of it later.
    pub async fn validate(&self, configuration: &Configuration, version: u64) -> Vec<Fault> {
        let planes = configuration.user_planes.iter();
        let asked = planes.map(|(name, plane)| async {
            let wanted = wanted(configuration, name, version);
            self.validate_one(name, &plane.management, wanted).await
        });
        let faults: Vec<Vec<Fault>> = join_all(asked).await;
        faults.into_iter().flatten().collect()
    }

    async fn validate_one(&self, name: &str, endpoint: &str, wanted: Wanted) -> Vec<Fault> {
        let link = self.links.get(name);
        let client = match link.filter(|link| link.endpoint == endpoint) {
            Some(link) if !link.standing.borrow().reached => return Vec::new(),
            Some(link) if link.standing.borrow().has(&wanted) => return Vec::new(),
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
        let document = wanted.document(wanted.version);
        match timeout(VALIDATE, client.validate(document)).await {
            Ok(Ok(told)) => told.into_iter().map(|fault| here(name, fault)).collect(),
            Ok(Err(_)) | Err(_) => {
                tracing::warn!(
                    user_plane = name,
                    "a user plane does not say whether it can do the new configuration"
                );
                Vec::new()
            }
        }
    }

    /// Waits until every user plane that can be reached has what it is to have, or for `patience`; those that have it not,
    /// and why.
    pub async fn settle(&self, patience: Duration) -> Vec<String> {
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

    /// What each user plane has.
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

impl Standing {
    /// Whether it has what is wanted.
    fn has(&self, wanted: &Wanted) -> bool {
        let in_force = self.in_force.as_ref();
        in_force.is_some_and(|in_force| in_force.hash == wanted.hash)
    }

    /// Why it does not take what is wanted, if it said so.
    fn refuses(&self, wanted: &Wanted) -> Option<&str> {
        let refused = self.refused.as_ref();
        let refused = refused.filter(|(hash, _)| *hash == wanted.hash);
        refused.map(|(_, why)| why.as_str())
    }

    /// Why it does not have what it is to have.
    fn why(&self, wanted: &Wanted) -> &str {
        match (self.refuses(wanted), self.reached) {
            (Some(why), _) => why,
            (None, true) => "it has not answered yet",
            (None, false) => "it cannot be reached; it hears of it when it can",
        }
    }
}

impl Wanted {
    /// As a later document than any that the user plane has.
    fn document(&self, generation: u64) -> Document {
        Document {
            generation: generation.max(self.version),
            hash: self.hash.clone(),
            text: self.text.clone(),
        }
    }
}

fn wanted(configuration: &Configuration, name: &str, version: u64) -> Wanted {
    let document = configuration.document_for(name).unwrap_or_default();
    let text = serde_json::to_string(&document).expect("a document has only names and values");
    let mut hash = String::new();
    for octet in Sha256::digest(text.as_bytes()) {
        let _ = write!(hash, "{octet:02x}");
    }
    Wanted {
        version,
        hash,
        text,
    }
}

/// A fault in a user plane's document, in its place in the configuration.
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

/// Keeps one user plane at what is wanted.
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
            self.stands.send_modify(|s| {
                s.reached = true;
                s.in_force = description.in_force;
            });
            let why = self.keep().await;
            tracing::warn!(
                user_plane = self.name,
                why,
                "a user plane cannot be managed for now"
            );
            self.stands.send_modify(|s| {
                s.reached = false;
                s.state = None;
            });
        }
    }

    /// As long as the connection holds; why it does no longer.
    async fn keep(&mut self) -> String {
        let mut offered = Instant::now();
        if let Err(why) = self.bring(true).await {
            return why;
        }
        let mut states = match self.client.watch(INTERVAL).await {
            Ok(states) => states,
            Err(status) => return status.to_string(),
        };
        loop {
            let refused = self.stands.borrow().refuses(&self.wants.borrow()).is_some();
            let mut again = false;
            tokio::select! {
                state = states.message() => match state {
                    Ok(Some(state)) => self.told(state),
                    Ok(None) => return "it has ended".into(),
                    Err(status) => return status.to_string(),
                },
                changed = self.wants.changed() => match changed {
                    Ok(()) => again = true,
                    Err(_) => return "it is not configured any more".into(),
                },
                () = sleep_until(offered + OFFER_AGAIN), if refused => again = true,
            }
            if again {
                offered = Instant::now();
            }
            if let Err(why) = self.bring(again).await {
                return why;
            }
        }
    }

    fn told(&self, state: State) {
        self.stands.send_modify(|s| {
            s.in_force = state.in_force.clone();
            s.state = Some(state);
            s.told_at = Some(Instant::now());
        });
    }

    /// Brings what is wanted, unless it is there; what was refused only `again`.
    async fn bring(&mut self, again: bool) -> Result<(), String> {
        let wanted = self.wants.borrow_and_update().clone();
        let (there, in_force, refused) = {
            let standing = self.stands.borrow();
            let refused = standing.refuses(&wanted).is_some();
            (standing.has(&wanted), standing.in_force.clone(), refused)
        };
        if there {
            self.stands.send_if_modified(|s| s.refused.take().is_some());
            return if again { self.has_it().await } else { Ok(()) };
        }
        if refused && !again {
            return Ok(());
        }
        let next = in_force.as_ref().map_or(0, |f| f.generation + 1);
        let document = wanted.document(next);
        tracing::info!(
            user_plane = self.name,
            generation = document.generation,
            "a user plane is told its configuration"
        );
        let answer = self
            .client
            .apply(document)
            .await
            .map_err(|status| status.to_string())?;
        let faults: Vec<String> = answer
            .faults
            .into_iter()
            .map(|f| here(&self.name, f).to_string())
            .collect();
        let refused = (!faults.is_empty()).then(|| faults.join("; "));
        if let Some(why) = &refused {
            tracing::error!(
                user_plane = self.name,
                why,
                "a user plane refuses its configuration: it goes on with the one before"
            );
        }
        let done = refused.is_none();
        self.stands.send_modify(|s| {
            s.in_force = answer.in_force;
            s.refused = refused.map(|why| (wanted.hash, why));
        });
        if done { self.has_it().await } else { Ok(()) }
    }

    async fn has_it(&self) -> Result<(), String> {
        let told = ToPlane::Told(self.name.clone());
        let sent = self.plane.send(told).await;
        sent.map_err(|_| "the control plane ends".into())
    }
}

#[cfg(test)]
pub(crate) mod tests;

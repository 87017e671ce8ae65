//! Asking a daemon, and saying in plain words why it did not answer.

use super::units::counted;
use config::completion::Candidate;
use lab::claim;
use northbound::CallError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// How long a daemon may take for each part of its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The exit code when a daemon does not answer.
const UNREACHABLE: u8 = 3;
/// The most names that are offered.
const MAX_NAMES: usize = 1000;

/// Where the control plane listens, which answers for the user planes as well.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Sockets {
    /// The socket of sluice-cp [default: /run/sluice/cp.sock, or the running lab's]
    #[arg(long, global = true, env = "SLUICE_CP_SOCKET", value_name = "PATH")]
    pub cp_socket: Option<PathBuf>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// Nobody listens.
    Unreachable {
        /// Where it was expected.
        path: PathBuf,
        /// The operating system's reason.
        reason: std::io::Error,
    },
    /// It answered that it cannot, or the answer could not be read or printed.
    Other(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unreachable { path, reason } => {
                writeln!(
                    f,
                    "sluice-cp does not answer at {} ({reason}).",
                    path.display()
                )?;
                match reason.kind() {
                    std::io::ErrorKind::PermissionDenied => {
                        f.write_str("Try again as root (sudo).")
                    }
                    _ => f.write_str(
                        "Is it running? `make run` starts a lab; --cp-socket names another socket.",
                    ),
                }
            }
            Failure::Other(message) => f.write_str(message),
        }
    }
}

impl Failure {
    /// Says it on standard error; the exit code that goes with it.
    pub fn report(&self) -> ExitCode {
        eprintln!("sluice: {self}");
        match self {
            Failure::Unreachable { .. } => ExitCode::from(UNREACHABLE),
            Failure::Other(_) => ExitCode::FAILURE,
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Other(format!("cannot print: {error}"))
    }
}

impl Sockets {
    /// Asks `sluice-cp`.
    pub fn control_plane<T>(
        &self,
        question: impl FnOnce(&mut northbound::Client) -> Result<T, CallError>,
    ) -> Result<T, Failure> {
        let path = self.control_plane_path();
        let answer = northbound::Client::connect(&path, PATIENCE);
        let answer = answer.and_then(|mut client| question(&mut client));
        answer.map_err(|error| failure(&path, error))
    }

    /// The tables of `sluice-cp`.
    pub fn tables<T>(
        &self,
        question: impl FnOnce(&mut northbound::TablesClient) -> Result<T, CallError>,
    ) -> Result<T, Failure> {
        let path = self.control_plane_path();
        let answer = northbound::TablesClient::connect(&path, PATIENCE);
        let answer = answer.and_then(|mut client| question(&mut client));
        answer.map_err(|error| failure(&path, error))
    }

    /// Asks the history of `sluice-cp`.
    pub fn history<T>(
        &self,
        question: impl FnOnce(&mut northbound::HistoryClient) -> Result<T, CallError>,
    ) -> Result<T, Failure> {
        let path = self.control_plane_path();
        let answer = northbound::HistoryClient::connect(&path, PATIENCE);
        let answer = answer.and_then(|mut client| question(&mut client));
        answer.map_err(|error| failure(&path, error))
    }

    /// The configuration of `sluice-cp`.
    pub fn configuration(&self) -> Result<Configuration, Failure> {
        let path = self.control_plane_path();
        match northbound::ConfigurationClient::connect(&path, PATIENCE) {
            Ok(client) => Ok(Configuration { path, client }),
            Err(error) => Err(failure(&path, error)),
        }
    }

    /// Watches `sluice-cp`.
    pub(crate) fn watch(&self, interval: Duration) -> Result<Watching, Failure> {
        let path = self.control_plane_path();
        let client = northbound::LiveClient::connect(&path, PATIENCE);
        match client.and_then(|client| client.watch_state(interval)) {
            Ok(states) => Ok(Watching { path, states }),
            Err(error) => Err(failure(&path, error)),
        }
    }

    /// Follows a subscriber.
    pub(crate) fn trace(&self, request: northbound::TraceRequest) -> Result<Following, Failure> {
        let path = self.control_plane_path();
        let client = northbound::LiveClient::connect(&path, PATIENCE);
        match client.and_then(|client| client.trace(request)) {
            Ok(trace) => Ok(Following { path, trace }),
            Err(error) => Err(failure(&path, error)),
        }
    }

    /// Follows the events.
    pub(crate) fn follow(
        &self,
        request: northbound::FollowEventsRequest,
    ) -> Result<FollowingEvents, Failure> {
        let path = self.control_plane_path();
        let client = northbound::HistoryClient::connect(&path, PATIENCE);
        match client.and_then(|client| client.follow(request)) {
            Ok(events) => Ok(FollowingEvents { path, events }),
            Err(error) => Err(failure(&path, error)),
        }
    }

    /// The names of what there is of a kind that begin like this, for completion; nothing where nobody answers.
    pub fn names(&self, kind: &str, typed: &str) -> Vec<Candidate> {
        let named: Vec<(String, String)> = match kind {
            "USER-PLANE" => {
                let planes = self.control_plane(|cp| cp.user_planes());
                let planes = planes.unwrap_or_default().into_iter();
                planes.map(|u| (u.node_id, u.address)).collect()
            }
            "SESSION" | "WHO" | "SUBSCRIBER" | "ADDRESS" => {
                let sessions = self.control_plane(|cp| cp.sessions()).unwrap_or_default();
                let sessions = sessions.into_iter();
                sessions
                    .flat_map(|session| own_names(kind, session))
                    .collect()
            }
            "ALARM" | "RESOURCE" => {
                let raised = self.history(|history| history.alarms());
                let raised = raised.unwrap_or_default().alarms.into_iter();
                raised
                    .map(|alarm| match kind {
                        "ALARM" => (alarm.name, alarm.resource),
                        _ => (alarm.resource, alarm.name),
                    })
                    .collect()
            }
            "ACL" => self.acls(),
            _ => Vec::new(),
        };
        let fitting = named
            .into_iter()
            .filter(|(name, _)| !name.is_empty() && name.starts_with(typed));
        let fitting = fitting.take(MAX_NAMES);
        fitting
            .map(|(name, what)| Candidate::new(config::quoted(&name), what))
            .collect()
    }

    /// The ACLs of the configuration, each with the number of its rules; nothing where nobody answers.
    fn acls(&self) -> Vec<(String, String)> {
        let configuration = self.configuration();
        let got = configuration.and_then(|mut configuration| configuration.ask(|c| c.get(None)));
        let tree = got.map_or_else(|_| String::new(), |got| got.tree);
        let tree: serde_json::Value = serde_json::from_str(&tree).unwrap_or_default();
        let acls = tree["acls"].as_object().into_iter().flatten();
        let rules = |acl: &serde_json::Value| acl["rules"].as_object().map_or(0, |all| all.len());
        acls.map(|(name, acl)| (name.clone(), counted(rules(acl), "rule")))
            .collect()
    }

    /// The path that was given; else the daemon's default; else, where nothing is there, that of the running lab.
    fn control_plane_path(&self) -> PathBuf {
        if let Some(path) = &self.cp_socket {
            return path.clone();
        }
        let default = PathBuf::from(northbound::CP_SOCKET);
        let lab = claim::directory("").join("cp.sock");
        if !default.exists() && lab.exists() {
            lab
        } else {
            default
        }
    }
}

/// The states of a gateway that is watched.
pub(crate) struct Watching {
    path: PathBuf,
    states: northbound::States,
}

impl Watching {
    /// Waits for the next one.
    pub fn next(&mut self) -> Result<northbound::WatchStateResponse, Failure> {
        match self.states.wait() {
            Ok(Some(state)) => Ok(state),
            Ok(None) => Err(Failure::Other("sluice-cp ends".into())),
            Err(error) => Err(failure(&self.path, error)),
        }
    }
}

/// A subscriber who is followed.
pub(crate) struct Following {
    path: PathBuf,
    trace: northbound::Traced,
}

impl Following {
    /// What came within this time.
    pub fn next(&mut self, within: Duration) -> Result<Option<northbound::TraceResponse>, Failure> {
        let part = self.trace.next(within);
        part.map_err(|error| failure(&self.path, error))
    }
}

/// Events that are followed.
pub(crate) struct FollowingEvents {
    path: PathBuf,
    events: northbound::Followed,
}

impl FollowingEvents {
    /// What came within this time.
    pub fn next(
        &mut self,
        within: Duration,
    ) -> Result<Option<northbound::FollowEventsResponse>, Failure> {
        let part = self.events.next(within);
        part.map_err(|error| failure(&self.path, error))
    }
}

/// The way to the configuration.
pub struct Configuration {
    path: PathBuf,
    client: northbound::ConfigurationClient,
}

impl Configuration {
    /// Asks.
    pub fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut northbound::ConfigurationClient) -> Result<T, CallError>,
    ) -> Result<T, Failure> {
        question(&mut self.client).map_err(|error| failure(&self.path, error))
    }
}

/// The names of a session that a kind of them has, and what each is.
fn own_names(kind: &str, s: northbound::Session) -> Vec<(String, String)> {
    match kind {
        "SESSION" => vec![(s.id, s.user)],
        "WHO" => vec![(s.user, s.mac.clone()), (s.mac, s.id)],
        "SUBSCRIBER" => vec![(s.user, s.mac)],
        _ => vec![(s.ipv4.unwrap_or_default(), s.user)],
    }
}

fn failure(path: &Path, error: CallError) -> Failure {
    match error {
        CallError::Refused(message) => Failure::Other(message),
        CallError::Unreachable { path, source } => Failure::Unreachable {
            path,
            reason: source,
        },
        other => Failure::Other(format!("sluice-cp at {}: {other}", path.display())),
    }
}

/// What several planes said, and the last reason why one of them said nothing; those before it are told here.
pub(crate) fn answers<T>(
    asked: impl IntoIterator<Item = Result<T, Failure>>,
) -> (Vec<T>, Option<Failure>) {
    let (mut answers, mut failure) = (Vec::new(), None);
    for answer in asked {
        match answer {
            Ok(answer) => answers.push(answer),
            Err(error) => {
                if let Some(before) = failure.replace(error) {
                    eprintln!("sluice: {before}");
                }
            }
        }
    }
    (answers, failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_the_names_that_are_asked_for() {
        let session = northbound::Session {
            id: "1f".into(),
            user: "a b".into(),
            mac: "02:00:00:00:00:07".into(),
            ..northbound::Session::default()
        };
        let names = |kind| -> Vec<String> {
            let names = own_names(kind, session.clone()).into_iter();
            names.map(|(name, _)| name).collect()
        };
        assert_eq!(names("SESSION"), ["1f"]);
        assert_eq!(names("WHO"), ["a b", "02:00:00:00:00:07"]);
        assert_eq!(names("ADDRESS"), [""]);
    }

    #[test]
    fn a_daemon_that_is_not_there_is_named_with_its_socket_and_what_to_do() {
        let sockets = Sockets {
            cp_socket: Some("/nonexistent/cp.sock".into()),
        };
        let failure = sockets.control_plane(|cp| cp.sessions()).unwrap_err();
        assert!(matches!(failure, Failure::Unreachable { .. }));
        let text = failure.to_string();
        assert!(
            text.contains("sluice-cp does not answer at /nonexistent/cp.sock"),
            "{text}"
        );
        assert!(text.contains("make run"), "{text}");
    }
}

//! Asking a daemon, and saying in plain words why it did not answer.

use crate::lab::topology;
use crate::shell::Candidate;
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
/// What the control plane's socket is called.
const CP_NAME: &str = "cp.sock";

/// Where the daemons listen.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Sockets {
    /// The socket of sluice-cp [default: /run/sluice/cp.sock, or the running lab's]
    #[arg(long, global = true, env = "SLUICE_CP_SOCKET", value_name = "PATH")]
    pub cp_socket: Option<PathBuf>,
    /// The socket of sluice-up [default: /run/sluice/up.sock, or the running lab's up1.sock]
    #[arg(long, global = true, env = "SLUICE_UP_SOCKET", value_name = "PATH")]
    pub up_socket: Option<PathBuf>,
    /// Ask this user plane: its socket is NAME.sock in that folder
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "up_socket")]
    pub user_plane: Option<String>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// Nobody listens.
    Unreachable {
        /// `sluice-cp` or `sluice-up`.
        daemon: &'static str,
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
            Failure::Unreachable {
                daemon,
                path,
                reason,
            } => {
                writeln!(
                    f,
                    "{daemon} does not answer at {} ({reason}).",
                    path.display()
                )?;
                match reason.kind() {
                    std::io::ErrorKind::PermissionDenied => f.write_str("Try again as root (sudo)."),
                    _ => f.write_str(
                        "Is it running? `make run` starts a lab; --cp-socket, --up-socket and --user-plane name other sockets.",
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
        answer.map_err(|error| failure("sluice-cp", &path, error))
    }

    /// The tables of `sluice-cp`.
    pub fn tables<T>(
        &self,
        question: impl FnOnce(&mut northbound::TablesClient) -> Result<T, CallError>,
    ) -> Result<T, Failure> {
        let path = self.control_plane_path();
        let answer = northbound::TablesClient::connect(&path, PATIENCE);
        let answer = answer.and_then(|mut client| question(&mut client));
        answer.map_err(|error| failure("sluice-cp", &path, error))
    }

    /// Whether a user plane's own socket is named.
    pub fn names_user_plane(&self) -> bool {
        self.up_socket.is_some() || self.user_plane.is_some()
    }

    /// Asks the history of `sluice-cp`.
    pub fn history<T>(
        &self,
        question: impl FnOnce(&mut northbound::HistoryClient) -> Result<T, CallError>,
    ) -> Result<T, Failure> {
        let path = self.control_plane_path();
        let answer = northbound::HistoryClient::connect(&path, PATIENCE);
        let answer = answer.and_then(|mut client| question(&mut client));
        answer.map_err(|error| failure("sluice-cp", &path, error))
    }

    /// The configuration of `sluice-cp`.
    pub fn configuration(&self) -> Result<Configuration, Failure> {
        let path = self.control_plane_path();
        match northbound::ConfigurationClient::connect(&path, PATIENCE) {
            Ok(client) => Ok(Configuration { path, client }),
            Err(error) => Err(failure("sluice-cp", &path, error)),
        }
    }

    /// Watches `sluice-cp`.
    pub(crate) fn watch(&self, interval: Duration) -> Result<Watching, Failure> {
        let path = self.control_plane_path();
        let client = northbound::LiveClient::connect(&path, PATIENCE);
        match client.and_then(|client| client.watch_state(interval)) {
            Ok(states) => Ok(Watching { path, states }),
            Err(error) => Err(failure("sluice-cp", &path, error)),
        }
    }

    /// Follows a subscriber.
    pub(crate) fn trace(&self, request: northbound::TraceRequest) -> Result<Following, Failure> {
        let path = self.control_plane_path();
        let client = northbound::LiveClient::connect(&path, PATIENCE);
        match client.and_then(|client| client.trace(request)) {
            Ok(trace) => Ok(Following { path, trace }),
            Err(error) => Err(failure("sluice-cp", &path, error)),
        }
    }

    /// Asks `sluice-up`.
    pub fn user_plane<T>(
        &self,
        question: impl FnOnce(&mut mi::blocking::Client) -> Result<T, CallError>,
    ) -> Result<T, Failure> {
        ask_user_plane(&self.user_plane_path(), question)
    }

    /// Asks the `sluice-up` that was named, or else every one whose socket is in the same folder, in order of their names.
    pub fn user_planes<T>(
        &self,
        question: impl Fn(&mut mi::blocking::Client) -> Result<T, CallError>,
    ) -> Vec<Result<T, Failure>> {
        let one = self.user_plane_path();
        let mut paths = vec![one.clone()];
        if !self.names_user_plane() {
            let control_plane = self.control_plane_path();
            let beside = one
                .parent()
                .map(|folder| sockets_in(folder, &control_plane));
            let beside = beside.unwrap_or_default();
            paths = if beside.is_empty() { paths } else { beside };
        }
        let ask = |path: &PathBuf| ask_user_plane(path, &question);
        paths.iter().map(ask).collect()
    }

    /// The names of what there is of a kind, for completion; nothing where nobody answers.
    pub fn names(&self, kind: &str) -> Vec<Candidate> {
        match kind {
            "SESSION" => {
                let sessions = self.control_plane(|cp| cp.sessions()).unwrap_or_default();
                let sessions = sessions.into_iter().take(MAX_NAMES);
                sessions.map(|s| Candidate::new(s.id, s.user)).collect()
            }
            "USER-PLANE" => {
                let planes = self.control_plane(|cp| cp.user_planes());
                let planes = planes.unwrap_or_default().into_iter();
                planes
                    .map(|u| Candidate::new(u.node_id, u.address))
                    .collect()
            }
            "WHO" => {
                let sessions = self.control_plane(|cp| cp.sessions()).unwrap_or_default();
                let sessions = sessions.into_iter().take(MAX_NAMES);
                let homes = sessions.flat_map(|s| {
                    let user = (!s.user.is_empty()).then(|| Candidate::new(&s.user, &s.mac));
                    user.into_iter().chain([Candidate::new(s.mac, s.id)])
                });
                homes.collect()
            }
            "SUBSCRIBER" => {
                let sessions = self.control_plane(|cp| cp.sessions()).unwrap_or_default();
                let named = sessions.into_iter().filter(|s| !s.user.is_empty());
                let named = named.take(MAX_NAMES);
                named.map(|s| Candidate::new(s.user, s.mac)).collect()
            }
            "ADDRESS" => {
                let sessions = self.control_plane(|cp| cp.sessions()).unwrap_or_default();
                let sessions = sessions.into_iter().take(MAX_NAMES);
                let with = sessions.filter_map(|s| Some(Candidate::new(s.ipv4?, s.user)));
                with.collect()
            }
            _ => Vec::new(),
        }
    }

    fn control_plane_path(&self) -> PathBuf {
        path(self.cp_socket.clone(), northbound::CP_SOCKET, CP_NAME)
    }

    fn user_plane_path(&self) -> PathBuf {
        let socket = |name: &str| format!("{name}.sock");
        match &self.user_plane {
            Some(name) => {
                let default = PathBuf::from(northbound::UP_SOCKET).with_file_name(socket(name));
                path(None, default, &socket(name))
            }
            None => path(
                self.up_socket.clone(),
                northbound::UP_SOCKET,
                &socket(topology::UserPlane::One.name()),
            ),
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
            Err(error) => Err(failure("sluice-cp", &self.path, error)),
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
        part.map_err(|error| failure("sluice-cp", &self.path, error))
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
        question(&mut self.client).map_err(|error| failure("sluice-cp", &self.path, error))
    }
}

/// The path that was given; else the daemon's default; else, where nothing is there, that of the running lab.
fn path(given: Option<PathBuf>, default: impl Into<PathBuf>, in_lab: &str) -> PathBuf {
    if let Some(path) = given {
        return path;
    }
    let (default, lab) = (default.into(), topology::directory("").join(in_lab));
    if !default.exists() && lab.exists() {
        lab
    } else {
        default
    }
}

/// The sockets of user planes in a folder: all but the control plane's, which may have another name.
fn sockets_in(folder: &Path, control_plane: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let socket = |path: &PathBuf| {
        let is_socket = path
            .extension()
            .is_some_and(|extension| extension == "sock");
        let is_other = path.file_name().is_some_and(|name| name != CP_NAME);
        is_socket && is_other && path != control_plane
    };
    let mut found: Vec<PathBuf> = paths.filter(socket).collect();
    found.sort();
    found
}

fn ask_user_plane<T>(
    path: &Path,
    question: impl FnOnce(&mut mi::blocking::Client) -> Result<T, CallError>,
) -> Result<T, Failure> {
    let answer = mi::blocking::Client::connect(path, PATIENCE);
    let answer = answer.and_then(|mut client| question(&mut client));
    answer.map_err(|error| failure("sluice-up", path, error))
}

fn failure(daemon: &'static str, path: &Path, error: CallError) -> Failure {
    match error {
        CallError::Refused(message) => Failure::Other(message),
        CallError::Unreachable { path, source } => Failure::Unreachable {
            daemon,
            path,
            reason: source,
        },
        other => Failure::Other(format!("{daemon} at {}: {other}", path.display())),
    }
}

/// What several daemons said, and the last reason why one of them said nothing; those before it are told here.
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
    fn the_user_planes_of_a_folder_are_those_beside_the_control_planes_socket() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["up2.sock", "cp.sock", "up1.sock", "cp.log", "other.sock"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let control_plane = folder.path().join("other.sock");
        let names = sockets_in(folder.path(), &control_plane);
        let names: Vec<_> = names.iter().map(|path| path.file_name().unwrap()).collect();
        assert_eq!(names, ["up1.sock", "up2.sock"]);
        assert!(sockets_in(Path::new("/nonexistent"), &control_plane).is_empty());
    }

    #[test]
    fn a_daemon_that_is_not_there_is_named_with_its_socket_and_what_to_do() {
        let sockets = Sockets {
            cp_socket: Some("/nonexistent/cp.sock".into()),
            ..Sockets::default()
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

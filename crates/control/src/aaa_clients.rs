//! Authentication and accounting clients: one RADIUS client for each server group, and the configured users.

mod outages;
mod servers;
mod verifications;

use crate::fallback::{self, AcceptedBy};
use crate::radius_sockets::RadiusBinding;
use crate::radius_streams::RadiusConnection;
use crate::topology::{Numbers, Seid};
use aaa::dictionary::Dictionary;
use aaa::mapping::Mappings;
use aaa::{
    AccessRequest, AccountingRecord, Announcement, Client, Outcome, Output, Secret, Transport,
    Unavailable, Users, Verdict,
};
use config::model::Fallback;
use config::{Configuration, start};
use core::net::SocketAddr;
use core::time::Duration;
use northbound::DropCounter;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use servers::Source;
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use verifications::Verifications;

pub use verifications::MOST_VERIFICATIONS;

/// Who waits for the answer to an authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PendingAuth {
    /// A session. The attempt distinguishes it from earlier ones of the session.
    Session { seid: Seid, attempt: u8 },
    /// A session that is authenticated, and whose server wants to be asked again. The number distinguishes it from earlier ones.
    Authorization { seid: Seid, number: u8 },
    /// A call of the local API, which tests this access profile.
    Call { ticket: u64, access_profile: String },
}

impl PendingAuth {
    /// Session whose subscriber waits.
    fn session(&self) -> Option<Seid> {
        match self {
            PendingAuth::Session { seid, .. } => Some(*seid),
            PendingAuth::Authorization { .. } | PendingAuth::Call { .. } => None,
        }
    }
}

/// Event that the control plane handles.
pub(crate) enum AaaEvent {
    Transmit {
        socket: u16,
        to: SocketAddr,
        bytes: Vec<u8>,
    },
    /// Send a packet on a connection.
    Send {
        connection: RadiusConnection,
        bytes: Vec<u8>,
    },
    /// Close a connection.
    Close(RadiusConnection),
    Answer(PendingAuth, AcceptedBy, Outcome),
    /// A server acknowledged a record, or the client gave up an interim record.
    Accounted(u64),
    /// Compare a password with a hash until a deadline. [`AaaClients::verified`] takes the result.
    Verify {
        ticket: u64,
        deadline: Duration,
        hash: Secret,
        password: Secret,
    },
}

/// RADIUS sockets of each server group and address family. Each carries at most 256 accounting records at a time.
pub(crate) const RADIUS_SOCKETS: u16 = 16;
/// Maximum number of server groups. The number of sockets limits it.
const MAX_GROUPS: usize = 32;

/// RADIUS clients of all server groups, and the configured users.
pub(crate) struct AaaClients {
    node_id: String,
    addresses: config::Addresses,
    random: StdRng,
    dictionary: Arc<Dictionary>,
    mappings: Arc<Mappings>,
    groups: BTreeMap<String, Group>,
    users: Users,
    /// Answers that no server has given.
    answers: VecDeque<(u64, AcceptedBy, Outcome)>,
    pending: Slab<Pending>,
    /// Tokens of the sessions' authentications.
    of_sessions: HashMap<Seid, u64>,
    verifications: Verifications,
    /// Verifications that begin.
    to_verify: VecDeque<AaaEvent>,
}

/// Pending authentication.
struct Pending {
    auth: PendingAuth,
    /// The request, if the configured users answer it when no server does.
    fallback: Option<Box<AccessRequest>>,
}

/// RADIUS server group.
struct Group {
    /// Number of the group. Its socket numbers start at `number * RADIUS_SOCKETS`.
    number: u16,
    client: Client,
    /// Address families of the servers over UDP that the group has had; `true` is IPv6.
    families: BTreeSet<bool>,
    source: Source,
}

/// Maximum number of mappings. Each answer is read with them.
pub(crate) const MAX_MAPPINGS: usize = 1024;

impl Group {
    /// Whether every server is within its dead time.
    fn is_out(&self, now: Duration) -> bool {
        let mut servers = self.client.authentication_servers(now).peekable();
        servers.peek().is_some() && servers.all(|server| !server.alive)
    }
}

/// Limits that the configuration exceeds.
pub(crate) fn bounds(configuration: &Configuration) -> Vec<config::Fault> {
    let aaa = &configuration.aaa;
    let (groups, mappings) = (aaa.server_groups.len(), aaa.mappings.len());
    let limits = [
        ("server-groups", "server groups", groups, MAX_GROUPS),
        ("mappings", "mappings", mappings, MAX_MAPPINGS),
    ];
    let exceeded = limits.into_iter().filter(|(.., count, most)| count > most);
    let fault = |(name, what, count, most): (&str, &str, usize, usize)| config::Fault {
        line: 0,
        path: ["aaa", name].into_iter().collect(),
        message: format!("{count} {what}: expected at most {most}"),
    };
    exceeded.map(fault).collect()
}

impl AaaClients {
    pub fn new(start: &start::ControlPlane, dictionary: Arc<Dictionary>, seed: [u8; 32]) -> Self {
        AaaClients {
            node_id: start.node_id.clone(),
            addresses: start.address,
            random: StdRng::from_seed(seed),
            dictionary,
            mappings: Mappings::shipped(),
            groups: BTreeMap::new(),
            users: Users::default(),
            answers: VecDeque::new(),
            pending: Slab::new(),
            of_sessions: HashMap::new(),
            verifications: Verifications::default(),
            to_verify: VecDeque::new(),
        }
    }

    /// Dictionary of RADIUS attributes.
    pub fn dictionary(&self) -> &Arc<Dictionary> {
        &self.dictionary
    }

    /// Meaning of vendors' attributes.
    pub fn mappings(&self) -> &Arc<Mappings> {
        &self.mappings
    }

    /// Applies a configuration. `kept` are the group numbers in the store. A group that was removed from the configuration
    /// stays, without servers, while accounting records wait for it.
    pub fn update(
        &mut self,
        now: Duration,
        configuration: &Configuration,
        kept: &Numbers,
        is_owed: impl Fn(&str) -> bool,
    ) {
        let users = configuration.users.iter();
        self.users = users
            .map(|(name, user)| (name.clone(), crate::users::known(user)))
            .collect();
        let mappings = crate::mappings::mappings(&self.dictionary, configuration);
        self.mappings = mappings.expect("a configuration with wrong mappings is refused");
        let configured = &configuration.aaa.server_groups;
        let owed = kept.keys().filter_map(|name| name.strip_prefix("servers "));
        let owed = owed.filter(|name| is_owed(name)).map(str::to_owned);
        let names: BTreeSet<String> = configured.keys().cloned().chain(owed).collect();
        self.groups.retain(|name, _| names.contains(name));
        for name in names {
            let servers = &configuration.aaa.servers;
            let group = configured.get(&name).map(|group| (name.as_str(), group));
            let client = self.client_config(group, servers);
            if !self.groups.contains_key(&name) {
                let group = self.open(&name, kept);
                self.groups.insert(name.clone(), group);
            }
            let group = self.groups.get_mut(&name).expect("just there");
            let all = client.authentication.iter().chain(&client.accounting);
            let datagram = all.filter(|server| server.transport == Transport::Datagram);
            let families = datagram.map(|server| server.address.is_ipv6());
            group.families.extend(families);
            // a group that the configuration no longer contains has no servers
            if let Some(configured) = configured.get(&name) {
                group.source = Source::of(configured);
            }
            group.client.reconfigure(now, client);
        }
    }

    /// Whether a group remains that the configuration does not contain.
    pub fn has_retired(&self, configuration: &Configuration) -> bool {
        let configured = &configuration.aaa.server_groups;
        self.groups
            .keys()
            .any(|name| !configured.contains_key(name))
    }

    fn open(&mut self, name: &str, kept: &Numbers) -> Group {
        let taken: BTreeSet<u16> = self.groups.values().map(|group| group.number).collect();
        let kept_ones = kept.iter().filter(|(name, _)| name.starts_with("servers "));
        let kept_ones: BTreeSet<u16> = kept_ones.map(|(_, number)| *number).collect();
        let own = kept.get(&format!("servers {name}")).copied();
        let is_free = |number: &u16| !taken.contains(number) && !kept_ones.contains(number);
        let number = own.filter(|number| !taken.contains(number));
        let number = number.or_else(|| (0..).find(is_free)).unwrap_or_default();
        let mut seed = [0; 32];
        self.random.fill_bytes(&mut seed);
        Group {
            number,
            client: Client::new(self.client_config(None, &BTreeMap::new()), seed),
            families: BTreeSet::new(),
            source: Source::default(),
        }
    }

    /// Group numbers, for the store.
    pub fn numbers(&self) -> Numbers {
        let groups = self.groups.iter();
        groups
            .map(|(name, group)| (format!("servers {name}"), group.number))
            .collect()
    }

    /// Sockets in use, by address family (`true` is IPv6) and number.
    pub fn sockets(&self) -> BTreeMap<(bool, u16), RadiusBinding> {
        let mut sockets = BTreeMap::new();
        for (name, group) in &self.groups {
            for &ipv6 in &group.families {
                let (first, binding) = (
                    group.number * RADIUS_SOCKETS,
                    group.source.binding(name, ipv6),
                );
                let numbers = first..first + RADIUS_SOCKETS;
                sockets.extend(numbers.map(|number| ((ipv6, number), binding.clone())));
            }
        }
        sockets
    }

    /// Authenticates with a server group, or with the configured users if `servers` is `None`. With `Fallback::LocalUsers`, the
    /// configured users also answer if no server does.
    pub fn authenticate(
        &mut self,
        now: Duration,
        (servers, fallback): (Option<&str>, Fallback),
        auth: PendingAuth,
        request: AccessRequest,
    ) {
        let to_users = servers.is_some() && fallback == Fallback::LocalUsers;
        let seid = auth.session();
        let token = self.pending.insert(Pending {
            auth,
            fallback: to_users.then(|| Box::new(request.clone())),
        }) as u64;
        if let Some(seid) = seid {
            self.withdraw(seid); // its subscriber has begun anew
            self.of_sessions.insert(seid, token);
        }
        let Some(name) = servers else {
            return self.ask_users(now, token, AcceptedBy::Users, &request);
        };
        let none = match self.groups.get_mut(name) {
            // a subscriber who has something to fall back to does not wait for servers that are known not to answer
            Some(group) if fallback != Fallback::Reject && group.is_out(now) => {
                Unavailable::NoAnswer
            }
            Some(group) => return group.client.authenticate(now, token, request),
            None => Unavailable::NoServer,
        };
        self.on_servers_answer(now, token, Outcome::Unavailable(none));
    }

    /// Whether more authentications wait than the servers of a group answer soon, so that no new session should begin.
    pub fn is_congested(&self, now: Duration, servers: Option<&str>) -> bool {
        let group = servers.and_then(|name| self.groups.get(name));
        group.is_some_and(|group| group.client.is_congested(now))
    }

    /// Drops the authentication of a session that nobody waits for any more, if it was not sent yet.
    pub fn withdraw(&mut self, seid: Seid) {
        let Some(token) = self.of_sessions.remove(&seid) else {
            return;
        };
        let mut clients = self.groups.values_mut().map(|group| &mut group.client);
        if clients.any(|client| client.withdraw_authentication(token)) {
            self.pending.remove(token as usize);
        }
    }

    fn ask_users(&mut self, now: Duration, token: u64, by: AcceptedBy, request: &AccessRequest) {
        let (hash, password) = match self.users.authenticate(request) {
            Verdict::Known(outcome) => return self.answers.push_back((token, by, outcome)),
            Verdict::Verify { hash, password } => (hash, password),
        };
        let username = request.username.clone();
        match self.verifications.begin(now, token, by, username) {
            Some((ticket, deadline)) => self.to_verify.push_back(AaaEvent::Verify {
                ticket,
                deadline,
                hash,
                password,
            }),
            None => {
                let full = Outcome::Unavailable(Unavailable::TooManyPasswords);
                self.answers.push_back((token, by, full));
            }
        }
    }

    /// Takes the result of [`AaaEvent::Verify`]. After the deadline it counts no more.
    pub fn verified(&mut self, ticket: u64, is_right: bool) {
        if let Some(done) = self.verifications.end(ticket)
            && let Some(token) = done.token
        {
            let outcome = self.users.verified(&done.username, is_right);
            self.answers.push_back((token, done.by, outcome));
        }
    }

    /// Passes the servers' answer on. If there is none, the configured users may answer instead.
    fn on_servers_answer(&mut self, now: Duration, token: u64, outcome: Outcome) {
        let fallback = match fallback::has_no_server(&outcome) {
            true => self.pending[token as usize].fallback.take(),
            false => None,
        };
        match fallback {
            Some(request) => self.ask_users(now, token, AcceptedBy::UsersInstead, &request),
            None => (self.answers).push_back((token, AcceptedBy::Servers, outcome)),
        }
    }

    /// Encoded attributes of a record, for [`Client::account`].
    pub fn attributes(
        &mut self,
        servers: &str,
        record: &AccountingRecord,
    ) -> Result<Box<[u8]>, String> {
        let group = self
            .groups
            .get_mut(servers)
            .ok_or("its server group no longer exists")?;
        let attributes = group.client.accounting_attributes(record);
        attributes.map_err(|error| error.to_string())
    }

    /// Encoded attributes of an announcement to a group, for [`Client::account`]; `None` if the group is gone.
    pub fn announcement(&self, servers: &str, announcement: &Announcement) -> Option<Box<[u8]>> {
        let client = &self.groups.get(servers)?.client;
        client.announcement_attributes(announcement).ok()
    }

    /// Number of a group.
    pub fn number(&self, servers: &str) -> Option<u16> {
        self.groups.get(servers).map(|group| group.number)
    }

    /// RADIUS client of a group. [`AaaEvent::Accounted`] reports the end of an accounting record.
    pub fn client(&mut self, servers: &str) -> Option<&mut Client> {
        self.groups.get_mut(servers).map(|group| &mut group.client)
    }

    /// RADIUS clients of all groups, by group name.
    pub fn clients(&self) -> impl Iterator<Item = (&str, &Client)> {
        let groups = self.groups.iter();
        groups.map(|(name, group)| (name.as_str(), &group.client))
    }

    /// Group with the lowest number.
    pub fn first_group(&self) -> Option<&str> {
        let groups = self.groups.iter();
        let first = groups.min_by_key(|(_, group)| group.number);
        first.map(|(name, _)| name.as_str())
    }

    /// Pending authentications with their tokens.
    pub fn pending(&self) -> impl Iterator<Item = (u64, &PendingAuth)> {
        self.pending
            .iter()
            .map(|(token, pending)| (token as u64, &pending.auth))
    }

    /// Tokens of the authentications that a client works on or has answered.
    pub fn open_tokens(&self) -> Vec<u64> {
        let groups = self.groups.values();
        let with_servers = groups.flat_map(|group| group.client.open_tokens());
        let answers = self.answers.iter().map(|(token, ..)| *token);
        let passwords = self.verifications.tokens();
        with_servers.chain(answers).chain(passwords).collect()
    }

    /// Forgets a pending authentication that has no answer to come.
    pub fn forget(&mut self, token: u64) {
        self.pending.try_remove(token as usize);
    }

    pub fn handle(&mut self, now: Duration, socket: u16, from: SocketAddr, bytes: &[u8]) {
        let number = socket / RADIUS_SOCKETS;
        let mut groups = self.groups.values_mut();
        if let Some(group) = groups.find(|group| group.number == number) {
            let own = socket % RADIUS_SOCKETS;
            group.client.handle(now, own, from, bytes);
        }
    }

    /// Handles a packet that a connection has received.
    pub fn receive(&mut self, now: Duration, from: RadiusConnection, bytes: &[u8]) {
        if let Some(client) = self.client_of(from) {
            client.receive(now, from.connection, bytes);
        }
    }

    /// Handles that a connection has ended, or could not be opened.
    pub fn on_closed(&mut self, now: Duration, closed: RadiusConnection, reason: &str) {
        if let Some(client) = self.client_of(closed) {
            client.on_closed(now, closed.connection, reason);
        }
    }

    fn client_of(&mut self, connection: RadiusConnection) -> Option<&mut Client> {
        let mut groups = self.groups.values_mut();
        let group = groups.find(|group| group.number == connection.group);
        group.map(|group| &mut group.client)
    }

    pub fn poll(&mut self, now: Duration) -> Option<AaaEvent> {
        loop {
            if let Some(verify) = self.to_verify.pop_front() {
                return Some(verify);
            }
            if let Some((token, by, outcome)) = self.answers.pop_front() {
                let pending = self.pending.remove(token as usize);
                if let Some(seid) = pending.auth.session()
                    && self.of_sessions.get(&seid) == Some(&token)
                {
                    self.of_sessions.remove(&seid);
                }
                return Some(AaaEvent::Answer(pending.auth, by, outcome));
            }
            let mut groups = self.groups.values_mut();
            let (number, output) =
                groups.find_map(|group| Some((group.number, group.client.poll_output()?)))?;
            return Some(match output {
                Output::Transmit { socket, to, bytes } => AaaEvent::Transmit {
                    socket: number * RADIUS_SOCKETS + socket,
                    to,
                    bytes,
                },
                Output::Send { connection, bytes } => AaaEvent::Send {
                    connection: RadiusConnection {
                        group: number,
                        connection,
                    },
                    bytes,
                },
                Output::Close { connection } => AaaEvent::Close(RadiusConnection {
                    group: number,
                    connection,
                }),
                Output::Done { token, outcome } => {
                    self.on_servers_answer(now, token, outcome);
                    continue;
                }
                Output::Accounted { token, .. } => AaaEvent::Accounted(token),
            });
        }
    }

    pub fn poll_at(&self) -> Option<Duration> {
        let clients = self.groups.values().map(|group| &group.client);
        let deadline = self.verifications.next_deadline();
        clients.filter_map(Client::poll_at).chain(deadline).min()
    }

    pub fn on_timeout(&mut self, now: Duration) {
        for group in self.groups.values_mut() {
            group.client.on_timeout(now);
        }
        for (token, by) in self.verifications.take_late(now) {
            let late = Outcome::Unavailable(Unavailable::PasswordLate);
            self.answers.push_back((token, by, late));
        }
    }

    /// Counters of all clients for `show drops`.
    pub fn rows(&self) -> Vec<DropCounter> {
        let counters = self.groups.values().map(|group| group.client.counters());
        crate::counters::radius_rows(counters)
    }
}

#[cfg(test)]
impl AaaClients {
    /// Adds a pending authentication that no client works on.
    pub fn invent_pending(&mut self, auth: PendingAuth) {
        let fallback = None;
        self.pending.insert(Pending { auth, fallback });
    }
}

//! Authentication and accounting clients: one RADIUS client for each server group, and the configured users.

mod verifications;

use crate::alarms::{Condition, Fault};
use crate::fallback::{self, AcceptedBy};
use crate::radius_sockets::RadiusBinding;
use crate::topology::{Numbers, Seid};
use aaa::dictionary::Dictionary;
use aaa::mapping::Mappings;
use aaa::{
    AccessRequest, AccountingRecord, Client, ClientConfig, Nas, Outcome, Output, Secret,
    ServerConfig, Unavailable, Users, Verdict,
};
use config::model::{Fallback, NotEnforced, Selection, Server, ServerGroup};
use config::{Configuration, start};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;
use northbound::DropCounter;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use verifications::Verifications;

pub use verifications::MOST_VERIFICATIONS;

/// Who waits for the answer to an authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PendingAuth {
    /// A session. The attempt distinguishes it from earlier ones of the session.
    Session { seid: Seid, attempt: u8 },
    /// A call of the local API, which tests this access profile.
    Call { ticket: u64, access_profile: String },
}

/// Event that the control plane handles.
pub(crate) enum AaaEvent {
    Transmit {
        socket: u16,
        to: SocketAddr,
        bytes: Vec<u8>,
    },
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
    /// Address families that the group has used; `true` is IPv6.
    families: BTreeSet<bool>,
    source: Source,
}

/// Where requests of a server group come from.
#[derive(Default)]
struct Source {
    ipv4: Option<Ipv4Addr>,
    ipv6: Option<Ipv6Addr>,
    vrf: Option<String>,
}

impl Source {
    fn of(group: &ServerGroup) -> Self {
        Source {
            ipv4: group.source_ipv4,
            ipv6: group.source_ipv6,
            vrf: group.vrf.clone(),
        }
    }

    fn binding(&self, group: &str, ipv6: bool) -> RadiusBinding {
        RadiusBinding {
            group: group.to_owned(),
            source: match ipv6 {
                true => self.ipv6.map(IpAddr::from),
                false => self.ipv4.map(IpAddr::from),
            },
            vrf: self.vrf.clone(),
        }
    }
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
            let client = self.client_config(configured.get(&name), servers);
            if !self.groups.contains_key(&name) {
                let group = self.open(&name, kept);
                self.groups.insert(name.clone(), group);
            }
            let group = self.groups.get_mut(&name).expect("just there");
            let all = client.authentication.iter().chain(&client.accounting);
            group
                .families
                .extend(all.map(|server| server.address.is_ipv6()));
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

    /// Identity of the gateway towards the servers of a group; `None`: the control plane's own.
    pub fn nas(&self, group: Option<&ServerGroup>) -> Nas {
        let identifier = group.and_then(|group| group.nas_identifier.clone());
        let source = group.map(Source::of).unwrap_or_default();
        Nas {
            identifier: identifier.unwrap_or_else(|| self.node_id.clone()),
            ipv4: source.ipv4.or(self.addresses.ipv4),
            ipv6: source.ipv6.or(self.addresses.ipv6),
        }
    }

    fn client_config(
        &self,
        group: Option<&ServerGroup>,
        servers: &BTreeMap<String, Server>,
    ) -> ClientConfig {
        let mut client = ClientConfig::new(self.nas(group));
        client.selection = match group.map(|group| group.selection) {
            Some(Selection::Balanced) => aaa::Selection::Balanced,
            Some(Selection::Ordered) | None => aaa::Selection::Ordered,
        };
        client.max_sockets = RADIUS_SOCKETS;
        client.mappings = self.mappings.clone();
        client.not_enforced = match group.map(|group| group.not_enforced) {
            Some(NotEnforced::Reject) => aaa::NotEnforced::Reject,
            Some(NotEnforced::Accept) | None => aaa::NotEnforced::Accept,
        };
        let named = group.into_iter().flat_map(|group| &group.servers);
        for server in named.filter_map(|name| servers.get(name)) {
            let interval = Duration::from_secs(server.status_interval.into());
            let at = |port| ServerConfig {
                timeout: Duration::from_secs(server.timeout.into()),
                retries: server.retransmit_attempts.into(),
                dead_time: Duration::from_secs(server.dead_time.into()),
                require_message_authenticator: server.require_message_authenticator,
                status_interval: server.status_server.then_some(interval),
                ..ServerConfig::new(
                    SocketAddr::new(server.address, port),
                    Secret::new(server.secret_key.reveal()),
                )
            };
            client.authentication.push(at(server.auth_port));
            client.accounting.push(at(server.acct_port));
        }
        client
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
        let token = self.pending.insert(Pending {
            auth,
            fallback: to_users.then(|| Box::new(request.clone())),
        }) as u64;
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
        &self,
        servers: &str,
        record: &AccountingRecord,
    ) -> Result<Box<[u8]>, String> {
        let group = self
            .groups
            .get(servers)
            .ok_or("its server group no longer exists")?;
        let attributes = group.client.accounting_attributes(record);
        attributes.map_err(|error| error.to_string())
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

    pub fn poll(&mut self, now: Duration) -> Option<AaaEvent> {
        loop {
            if let Some(verify) = self.to_verify.pop_front() {
                return Some(verify);
            }
            if let Some((token, by, outcome)) = self.answers.pop_front() {
                let pending = self.pending.remove(token as usize);
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

    /// Servers that do not answer, and groups in which no server answers.
    pub fn outages(&self, configuration: &Configuration) -> Vec<Condition> {
        let mut found = Vec::new();
        for (name, group) in &self.groups {
            let Some(configured) = configuration.aaa.server_groups.get(name) else {
                continue;
            };
            let silent: BTreeSet<SocketAddr> = group
                .client
                .outages()
                .filter(|(_, silent)| *silent)
                .map(|(address, _)| address)
                .collect();
            let servers = configured.servers.iter();
            let servers = servers.filter_map(|s| Some((s, configuration.aaa.servers.get(s)?)));
            let mut asked = 0;
            let mut without = 0;
            for (server, at) in servers {
                let ports = [
                    (at.auth_port, "authentication"),
                    (at.acct_port, "accounting"),
                ];
                let out = ports.map(|(port, what)| {
                    let out = silent.contains(&SocketAddr::new(at.address, port));
                    out.then_some(what)
                });
                (asked, without) = (asked + 1, without + u32::from(out[0].is_some()));
                let out: Vec<&str> = out.into_iter().flatten().collect();
                if !out.is_empty() {
                    let text = format!(
                        "RADIUS server {server} at {} does not answer about {}",
                        at.address,
                        out.join(" and ")
                    );
                    found.push(out_of_reach(Fault::ServerOut, server, text));
                }
            }
            if asked > 0 && asked == without {
                let text = format!(
                    "no server of group {name} answers: subscribers whose access profile names it connect only by its `fallback`"
                );
                found.push(out_of_reach(Fault::ServerGroupOut, name, text));
            }
        }
        found
    }

    /// Counters of all clients for `show drops`.
    pub fn rows(&self) -> Vec<DropCounter> {
        let counters = self.groups.values().map(|group| group.client.counters());
        crate::counters::radius_rows(counters)
    }
}

fn out_of_reach(fault: Fault, resource: &str, text: String) -> Condition {
    Condition {
        fault,
        resource: resource.to_owned(),
        text,
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

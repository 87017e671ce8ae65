//! What is beside the sessions, for people: pools, associations and RADIUS servers.

use super::call::NTP_OFFSET;
use super::{ControlPlane, Now};
use crate::addresses::Shares;
use aaa::ServerStatus;
use config::model::{Aaa, Transport};
use northbound::{
    AaaRole, AaaServer, AaaServerState, Association, AssociationState, Pool, PoolShare,
};

impl ControlPlane {
    pub(super) fn pool_rows(&self) -> Vec<Pool> {
        let rows = self.addresses.shares().map(|pool| self.pool_row(pool));
        rows.collect()
    }

    fn pool_row(&self, pool: Shares) -> Pool {
        let shares = pool.by_group.iter().map(|(group, share)| {
            let group = self.topology.group(*group);
            PoolShare {
                user_plane: self.topology.user_plane(group.user_plane).node_id.clone(),
                group: group.name.clone(),
                nets: share.nets,
                used: share.used,
            }
        });
        let mut shares: Vec<PoolShare> = shares.collect();
        shares.sort_by(|a, b| (&a.user_plane, &a.group).cmp(&(&b.user_plane, &b.group)));
        let key = (pool.prefix.addr().is_ipv4(), pool.name);
        let trend = self.trends.of(&key);
        Pool {
            name: key.1,
            network_instance: self.topology.instance(pool.instance).name.clone(),
            prefix: pool.prefix.to_string(),
            net_length: pool.net_length.into(),
            prefix_length: pool.unit_length.into(),
            full_at: trend.and_then(|trend| trend.full_at(pool.size)),
            size: pool.size,
            used: pool.used,
            nets: pool.nets,
            lent_nets: shares.iter().map(|share| share.nets).sum(),
            shares,
        }
    }

    pub(super) fn association_rows(&self, now: Now) -> Vec<Association> {
        let mut rows: Vec<Association> = self
            .topology
            .user_planes()
            .map(|(id, plane)| {
                let standing = self.user_planes.standing(id);
                let path = self.user_planes.path(id);
                let since = |at| now.at.saturating_sub(at).as_secs();
                let (up, answers) = (self.user_planes.is_up(id), path.answering);
                Association {
                    node_id: plane.node_id.clone(),
                    address: path.address.to_string(),
                    state: match (up, answers) {
                        (false, _) => AssociationState::Down,
                        (true, true) => AssociationState::Up,
                        (true, false) => AssociationState::Silent,
                    }
                    .into(),
                    since_seconds: since(standing.since),
                    recovery_time_stamp: self
                        .user_planes
                        .recovery(id)
                        .map(|stamp| u64::from(stamp).saturating_sub(NTP_OFFSET)),
                    heard_seconds: path.heard.map(since),
                    heartbeat_interval: path.heartbeat_interval.as_secs() as u32,
                    pending: path.pending as u64,
                    restarts: standing.restarts,
                }
            })
            .collect();
        rows.sort_by(|a, b| a.node_id.cmp(&b.node_id));
        rows
    }

    pub(super) fn aaa_server_rows(&self, now: Now) -> Vec<AaaServer> {
        let aaa = &self.configuration.aaa;
        let mut rows = Vec::new();
        for (group, client) in self.aaa.clients() {
            // a group that is retired has none any more
            let named = aaa.server_groups.get(group).into_iter();
            let names: Vec<&String> = named
                .flat_map(|group| &group.servers)
                .filter(|name| aaa.servers.contains_key(*name))
                .collect();
            let mut of_role = |role: AaaRole, servers: Vec<ServerStatus>| {
                let servers = names.iter().zip(servers);
                rows.extend(servers.map(|(name, server)| {
                    AaaServer {
                        name: (*name).clone(),
                        group: group.into(),
                        role: role.into(),
                        address: server.address.to_string(),
                        state: state(&server).into(),
                        out_seconds: server
                            .out_since
                            .map(|since| now.at.saturating_sub(since).as_secs()),
                        requests: server.requests,
                        retransmissions: server.retransmissions,
                        answers: server.answers,
                        timeouts: server.timeouts,
                        round_trip_microseconds: server
                            .round_trip
                            .map(|took| took.as_micros().try_into().unwrap_or(u64::MAX)),
                        last_answer_seconds: server
                            .last_answer
                            .map(|at| now.at.saturating_sub(at).as_secs()),
                        probes: server.probes.sent,
                        probe_answers: server.probes.answered,
                        transport: transport(aaa, name).into(),
                        trouble: server.trouble.as_deref().map(str::to_owned),
                        window: server.window as u64,
                        waiting: server.waiting as u64,
                    }
                }));
            };
            let authentication = client.authentication_servers(now.at).collect();
            of_role(AaaRole::Authentication, authentication);
            of_role(
                AaaRole::Accounting,
                client.accounting_servers(now.at).collect(),
            );
        }
        rows
    }
}

/// Name of a server's transport.
fn transport(aaa: &Aaa, server: &str) -> &'static str {
    match aaa.servers.get(server).map(|server| server.transport) {
        Some(Transport::Tls) => "tls",
        Some(Transport::Tcp) => "tcp",
        Some(Transport::Udp) | None => "udp",
    }
}

fn state(server: &ServerStatus) -> AaaServerState {
    match (server.alive, server.out_since) {
        (false, _) if server.probes.active => AaaServerState::Probed,
        (false, _) => AaaServerState::Out,
        (true, Some(_)) => AaaServerState::OnTrial,
        (true, None) if server.last_answer.is_none() => AaaServerState::Untried,
        (true, None) => AaaServerState::Up,
    }
}

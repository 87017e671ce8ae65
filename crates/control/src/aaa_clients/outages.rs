//! RADIUS servers that do not answer, for the alarms.

use super::{AaaClients, Group};
use crate::alarms::{Condition, Fault};
use aaa::ServerStatus;
use config::Configuration;
use config::model::{Server, ServerGroup};
use core::time::Duration;

impl AaaClients {
    /// Servers that do not answer, and groups in which no server answers.
    pub fn outages(&self, now: Duration, configuration: &Configuration) -> Vec<Condition> {
        let aaa = &configuration.aaa;
        let groups = self.groups.iter();
        let configured = groups.filter_map(|(name, group)| {
            let configured = aaa.server_groups.get(name)?;
            Some((name, group, named(configured, configuration)))
        });
        configured
            .flat_map(|(name, group, servers)| of_group(now, name, group, &servers))
            .collect()
    }
}

fn named<'a>(
    group: &'a ServerGroup,
    configuration: &'a Configuration,
) -> Vec<(&'a String, &'a Server)> {
    let servers = &configuration.aaa.servers;
    let named = group.servers.iter();
    named
        .filter_map(|name| Some((name, servers.get(name)?)))
        .collect()
}

fn of_group(
    now: Duration,
    name: &str,
    group: &Group,
    servers: &[(&String, &Server)],
) -> Vec<Condition> {
    let authentication: Vec<ServerStatus> = group.client.authentication_servers(now).collect();
    let accounting: Vec<ServerStatus> = group.client.accounting_servers(now).collect();
    let mut found = Vec::new();
    let roles = authentication.iter().zip(&accounting);
    for ((server, configured), (auth, acct)) in servers.iter().zip(roles) {
        let roles = [(auth, "authentication"), (acct, "accounting")];
        let out = roles
            .into_iter()
            .filter(|(status, _)| status.out_since.is_some());
        let (out, about): (Vec<&ServerStatus>, Vec<&str>) = out.unzip();
        if out.is_empty() {
            continue;
        }
        let trouble = out.iter().find_map(|status| status.trouble.as_deref());
        let why = trouble.map(|why| format!(": {why}")).unwrap_or_default();
        let text = format!(
            "RADIUS server {server} at {} does not answer about {}{why}",
            configured.address,
            about.join(" and ")
        );
        found.push(out_of_reach(Fault::ServerOut, server, text));
    }
    if !authentication.is_empty() && authentication.iter().all(|s| s.out_since.is_some()) {
        let text = format!(
            "no server of group {name} answers: subscribers whose access profile names it connect only by its `fallback`"
        );
        found.push(out_of_reach(Fault::ServerGroupOut, name, text));
    }
    found
}

fn out_of_reach(fault: Fault, resource: &str, text: String) -> Condition {
    Condition {
        fault,
        resource: resource.to_owned(),
        text,
    }
}

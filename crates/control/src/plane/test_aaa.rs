//! Test of AAA by an administrator: a request as a session would make it, and what the session would get.

use super::{ControlPlane, Now};
use crate::aaa_clients::PendingAuth;
use crate::evaluate::{self, AaaAnswer, PolicyInputs};
use crate::fallback::AcceptedBy;
use crate::names::WrittenNames;
use aaa::{AccessAccept, AccessRequest, Credentials, NasPort, Outcome, Secret};
use config::TemplateValues;
use config::model::{AccessProfile, Authentication, Fallback};
use core::time::Duration;
use northbound::{AaaResult, Password, Refusal, Response, TestAaaResponse};
use policy::{Bindings, PPPOE_MTU};
use rand::Rng;
use wire::mschapv2::{self, Exchange};
use wire::radius::chap_response;

impl ControlPlane {
    /// Asks AAA about a user. The answer goes to the call.
    ///
    /// # Errors
    /// There is no such access profile.
    pub(super) fn begin_test(
        &mut self,
        now: Now,
        ticket: u64,
        (user, Password(password)): (String, Password),
        access_profile: String,
    ) -> Result<(), Refusal> {
        let (name, profile) = self.tested_profile(&access_profile)?;
        let allowed = profile.authentication.clone();
        let servers = profile.server_group.clone();
        let access_profile = name.to_owned();
        let challenges = [self.random.random(), self.random.random()];
        let credentials = credentials(&allowed, challenges, &user, password);
        let (sent_name, nas_port) = self.tested_names(servers.as_deref(), user.as_bytes());
        let request = AccessRequest {
            username: user.into_bytes(),
            sent_name,
            credentials,
            acct_session_id: format!("test-{ticket}"),
            nas_port,
            state: Vec::new(),
        };
        let pending = PendingAuth::Call {
            ticket,
            access_profile,
        };
        // what the servers say is to be seen, and not what is done without them
        let route = (servers.as_deref(), Fallback::Reject);
        self.aaa.authenticate(now.at, route, pending, request);
        Ok(())
    }

    /// User-Name and port of the test, by the templates of the server group as far as the test has values for them.
    fn tested_names(&self, servers: Option<&str>, user_name: &[u8]) -> (Option<Vec<u8>>, NasPort) {
        let mut port = NasPort {
            port_id: Some("test".into()),
            ..NasPort::default()
        };
        let groups = &self.configuration.aaa.server_groups;
        let group = servers.and_then(|name| groups.get(name));
        let values = TemplateValues {
            user_name,
            node: &self.start.node_id,
            port: "test",
            ..TemplateValues::default()
        };
        let names = group.and_then(|group| WrittenNames::of(&group.templates, &values));
        let Some(names) = names else {
            return (None, port);
        };
        names.apply(&mut port);
        (names.user_name.map(Vec::from), port)
    }

    fn tested_profile(&self, name: &str) -> Result<(&str, &AccessProfile), Refusal> {
        let profiles = &self.configuration.access_profiles;
        let named = profiles
            .iter()
            .filter(|(own, _)| name.is_empty() || *own == name);
        let named: Vec<_> = named.collect();
        match named[..] {
            [(name, profile)] => Ok((name, profile)),
            [] if name.is_empty() => {
                Err(Refusal::NotFound("no access profile is configured".into()))
            }
            [] => Err(Refusal::NotFound(format!(
                "access profile `{name}` does not exist"
            ))),
            [..] => {
                let names: Vec<&str> = profiles.keys().map(String::as_str).collect();
                Err(Refusal::NotFound(format!(
                    "there are several access profiles: expected `--access-profile` with one of {}",
                    names.join(", ")
                )))
            }
        }
    }

    /// Tells the call what AAA said.
    pub(super) fn on_tested(
        &mut self,
        ticket: u64,
        access_profile: &str,
        by: AcceptedBy,
        outcome: Outcome,
    ) {
        let access = self.configuration.access_profiles.get(access_profile);
        let servers = access.and_then(|profile| profile.server_group.clone());
        let asked = match (by.is_user(), servers) {
            (false, Some(servers)) => servers,
            _ => "local users".into(),
        };
        let refused = |reason: String, reply: Vec<u8>| TestAaaResponse {
            reason,
            reply: reply.escape_ascii().to_string(),
            ..TestAaaResponse::default()
        };
        let tested = match (outcome, access) {
            (Outcome::Accept(accept), Some(access)) => self.accepted_test(access, &accept),
            (Outcome::Accept(_), None) => refused("its access profile is gone".into(), Vec::new()),
            (Outcome::Reject(reject), _) => {
                refused(reject.reason.to_string(), reject.reply_message)
            }
            (Outcome::Unavailable(why), _) => refused(why.to_string(), Vec::new()),
        };
        let tested = TestAaaResponse { asked, ..tested };
        self.answer(ticket, Ok(Response::AaaTested(tested)));
    }

    /// What a session would get that AAA has accepted.
    fn accepted_test(&self, access: &AccessProfile, accept: &AccessAccept) -> TestAaaResponse {
        let answer = AaaAnswer::of(accept, Duration::ZERO);
        let inputs = PolicyInputs {
            configuration: &self.configuration,
            access,
            service: b"",
            servers: access.server_group.as_deref(),
            link_mtu: PPPOE_MTU,
            line_rate_down: None,
            answer: &answer,
            user: None,
        };
        let (profile, _) = evaluate::profile(&self.configuration, inputs.profile_name());
        let instance = self.topology.find_instance(&profile.network_instance);
        let usable = self.check_names(accept);
        let usable = usable.and_then(|()| inputs.check_rates(accept));
        let usable = usable.and_then(|()| match instance {
            Some(instance) => self.check_pools(instance, accept),
            None => Ok(()),
        });
        let (policy, origins) = inputs.evaluate(&profile.network_instance, &Bindings::default());
        let rows = policy.rows(&origins).into_iter();
        let rows = rows.filter(|row| !row.value.is_empty());
        let rows = rows.map(|row| result(row.setting.label, row.value, row.origin.name()));
        let mut results = given(accept);
        results.extend(rows);
        for (names, why) in [
            (&accept.ignored, "ignored"),
            (&accept.not_enforced, "not enforced"),
            (&accept.unknown, "unknown"),
        ] {
            results.extend(names.iter().map(|name| result(name, String::new(), why)));
        }
        TestAaaResponse {
            accepted: usable.is_ok(),
            reason: usable.err().unwrap_or_default(),
            reply: accept.reply_message.escape_ascii().to_string(),
            results,
            ..TestAaaResponse::default()
        }
    }
}

/// What a subscriber would prove itself with, by the simplest protocol that is allowed. `challenges`: that of the gateway, and the
/// subscriber's.
fn credentials(
    allowed: &[Authentication],
    [challenge, peer_challenge]: [[u8; 16]; 2],
    user: &str,
    password: String,
) -> Credentials {
    let allows = |method| allowed.contains(&method);
    if allows(Authentication::Pap) {
        return Credentials::Pap {
            password: Secret::new(password),
        };
    }
    let (id, password) = (1, password.as_bytes());
    if !allows(Authentication::MsChapV2) || allows(Authentication::Chap) {
        return Credentials::Chap {
            id,
            challenge: challenge.to_vec(),
            response: chap_response(id, password, &challenge),
        };
    }
    let exchange = Exchange {
        challenge,
        peer_challenge,
        username: user.as_bytes(),
    };
    Credentials::MsChapV2 {
        id,
        challenge,
        response: mschapv2::Response {
            peer_challenge,
            nt_response: exchange.nt_response(password),
        },
    }
}

fn result(name: &str, value: String, origin: &str) -> AaaResult {
    AaaResult {
        name: name.into(),
        value,
        origin: origin.into(),
    }
}

/// Addresses, pools and the like that AAA names.
fn given(accept: &AccessAccept) -> Vec<AaaResult> {
    let address = accept.framed_ipv6_address.map(|ip| ip.to_string());
    let interface = accept.framed_interface_id.map(|id| format!("{id:016x}"));
    let named = [
        ("profile", accept.filter_id.clone()),
        ("policy up", accept.policy_up.clone()),
        ("policy down", accept.policy_down.clone()),
        ("IPv4 address", accept.framed_ip.map(|ip| ip.to_string())),
        ("IPv4 pool", accept.framed_pool.clone()),
        ("IPv6 pool", accept.framed_ipv6_pool.clone()),
        ("IPv6 address", address),
        ("IPv6 address pool", accept.ipv6_address_pool.clone()),
        ("delegated pool", accept.delegated_pool.clone()),
        ("interface identifier", interface),
        ("session limit", accept.port_limit.map(|n| n.to_string())),
    ];
    let named = named.into_iter();
    let named = named.filter_map(|(name, value)| Some(result(name, value?, "aaa")));
    let prefixes = accept.framed_ipv6_prefixes.iter();
    let prefixes = prefixes.map(|net| result("IPv6 prefix", net.to_string(), "aaa"));
    let delegated = accept.delegated_prefixes.iter();
    let delegated = delegated.map(|net| result("delegated prefix", net.to_string(), "aaa"));
    let routes = accept.framed_routes.iter();
    let routes = routes.map(|route| result("route", route.to_string(), "aaa"));
    let classes = accept.class.iter();
    let classes = classes.map(|c| result("Class", c.escape_ascii().to_string(), "aaa"));
    named
        .chain(prefixes)
        .chain(delegated)
        .chain(routes)
        .chain(classes)
        .collect()
}

//! Destinations of events: syslog servers and webhooks. Each has a task and a call at the control plane of its own, so that one that hangs
//! holds back nobody else. What it has got is in a file ([`cursor`]); after a failure or a restart everything behind that is asked for
//! again. So each event arrives at least once, as long as the history has it.

mod connect;
mod cursor;
mod delivery;
mod standing;
mod stream;
mod syslog;
mod target;
mod webhook;

use crate::access::Caller;
use crate::api::{Site, parameters, told};
use crate::gateway::{Gateway, Page, cut};
use crate::problem::Problem;
use crate::query::Query;
use crate::role::Role;
use crate::scope::Scope;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use config::start::Web;
use cursor::CursorFile;
use delivery::Delivery;
use northbound::catalogue::DESTINATIONS;
use northbound::{EventKind, time};
use standing::Standing;
use std::path::Path;
use std::sync::Arc;
use target::{Protocol, Target};
use tokio_rustls::TlsConnector;
use webhook::Secret;

/// A destination as the start file has it, with the files that it names.
#[derive(Clone)]
pub struct Plan {
    name: String,
    target: Target,
    tls: Option<TlsConnector>,
    secret: Option<Secret>,
    kinds: Vec<EventKind>,
}

/// Reads what the start file says of destinations.
///
/// # Errors
/// Something of it cannot be; the text names the destination.
pub fn plans(start: &Web) -> Result<Vec<Plan>, String> {
    let named = start.destinations.iter().map(|(name, destination)| {
        plan(name, destination).map_err(|said| format!("destination `{name}`: {said}"))
    });
    named.collect()
}

fn plan(name: &str, destination: &config::start::Destination) -> Result<Plan, String> {
    let target = Target::parse(&destination.to).map_err(|said| format!("`to` has {said}"))?;
    let is_webhook = target.protocol == Protocol::Webhook;
    let secret = match &destination.secret {
        Some(file) if is_webhook => Some(Secret::read(file)?),
        None if !is_webhook => None,
        Some(_) => return Err("`secret` is for webhooks alone".into()),
        None => {
            return Err("`secret` is missing: expected the file with the secret that signs".into());
        }
    };
    if destination.authority.is_some() && !target.tls {
        return Err("`authority` is for destinations with TLS alone".into());
    }
    let tls = target
        .tls
        .then(|| connect::tls(destination.authority.as_deref()));
    Ok(Plan {
        name: name.to_owned(),
        tls: tls.transpose()?,
        target,
        secret,
        kinds: EventKind::list(&destination.kinds.join(","))?,
    })
}

/// How the destinations do.
#[derive(Debug, Default)]
pub struct Destinations(Vec<Arc<Standing>>);

impl Destinations {
    /// Begins to send.
    ///
    /// # Errors
    /// A file of the state folder cannot be used; the text names it.
    pub fn start(plans: Vec<Plan>, state: &Path, feed: &Gateway) -> Result<Self, String> {
        let folder = state.join("destinations");
        let is_configured = |name: &str| plans.iter().any(|plan| plan.name == name);
        let made =
            config::folder::make(&folder).and_then(|()| cursor::retain(&folder, is_configured));
        made.map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut standings = Vec::new();
        for plan in plans {
            let file = CursorFile::of(&folder, &plan.name);
            let cursor = file.read()?;
            let standing = Arc::new(Standing::new(&plan.name, plan.target.shown(), cursor));
            standings.push(standing.clone());
            tokio::spawn(Delivery::new(plan, feed.clone(), file, cursor, standing).run());
        }
        Ok(Destinations(standings))
    }

    /// A page of the table.
    pub fn page(&self, query: &Query) -> Page {
        let now = time::now();
        cut(self.0.iter().map(|standing| standing.row(now)), query)
    }
}

/// Lists the destinations.
///
/// # Errors
/// The caller may not, or asks for something else.
pub async fn list(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.may(Scope::Tables, Role::View)?;
    let query = Query::read(&DESTINATIONS, parameters(&uri)?).map_err(Problem::bad_request)?;
    told(&headers, &site.destinations.page(&query))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_destination_needs_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "0123456789abcdef").unwrap();
        let secret = file.display();
        for (text, says) in [
            ("to: 'syslog+udp://192.0.2.1:514'".to_owned(), None),
            (format!("to: 'http://localhost:1/', secret: {secret}"), None),
            (
                "to: 'http://localhost:1/'".into(),
                Some("`secret` is missing"),
            ),
            (
                "to: 'http://localhost:1/', secret: /nowhere".into(),
                Some("/nowhere"),
            ),
            (
                format!("to: 'syslog+udp://192.0.2.1:514', secret: {secret}"),
                Some("webhooks alone"),
            ),
            (
                format!("to: 'syslog+udp://192.0.2.1:514', authority: {secret}"),
                Some("with TLS alone"),
            ),
            (
                format!("to: 'syslog+tls://192.0.2.1', authority: {secret}"),
                Some("no certificate"),
            ),
            (
                "to: 'syslog+udp://192.0.2.1:514', kinds: [end]".into(),
                Some("`end` is no kind"),
            ),
            ("to: x".into(), Some("destination `noc`: `to` has")),
        ] {
            let start = format!("destinations: {{noc: {{{text}}}}}");
            let start: Web = config::parse(&start, "web.yaml").unwrap();
            let said = plans(&start).err();
            match says {
                None => assert_eq!(said, None, "{text}"),
                Some(says) => assert!(
                    said.as_ref().is_some_and(|s| s.contains(says)),
                    "{text}: {said:?}"
                ),
            }
        }
    }
}

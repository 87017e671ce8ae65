//! Questions about one thing: a session, a subscriber, an address, the configuration. They are answered as the command line answers them
//! with `--json`.

use crate::gateway::{Gateway, value};
use crate::query::Arguments;
use northbound::catalogue::{
    Action, EXPLAIN, SHOW_CONFIGURATION, SHOW_SESSION, SHOW_SUBSCRIBER, WHO,
};
use northbound::{
    Explanation, FindHoldersRequest, FindSubscriberRequest, FindSubscriberResponse,
    GetConfigurationRequest, GetConfigurationResponse, GetSessionPolicyRequest, GetSessionRequest,
    SessionDetails,
};
use serde_json::{Value, json};
use tonic::{Code, Status};

/// The questions that are answered.
pub const QUESTIONS: [&Action; 5] = [
    &SHOW_SESSION,
    &SHOW_SUBSCRIBER,
    &EXPLAIN,
    &WHO,
    &SHOW_CONFIGURATION,
];

/// Path of a question.
pub fn path(question: &Action) -> String {
    let name = question.name.trim_start_matches("show ");
    format!("/api/v1/{name}")
}

impl Gateway {
    /// Answers a question.
    ///
    /// # Errors
    /// What the control plane refuses, or why it does not answer.
    pub async fn ask(&self, question: &Action, arguments: &Arguments) -> Result<Value, Status> {
        let text = |name| arguments.text(name).unwrap_or_default().to_owned();
        match question.name {
            "show session" => Ok(value(&self.session(text("session")).await?)),
            "show subscriber" => self.sessions_of(text("subscriber")).await,
            "explain" => {
                let said = Explanation::of(self.channel(), &text("subscriber")).await?;
                Ok(value(&said))
            }
            "who" => {
                let request = FindHoldersRequest {
                    address: text("address"),
                    at: arguments.time("at"),
                };
                let found = self.history().find_holders(request).await?;
                Ok(value(&found.into_inner()))
            }
            "show configuration" => self.version(arguments.number("version")).await,
            other => Err(Status::not_found(format!("there is no question {other}"))),
        }
    }

    /// A session in detail. What cannot be asked beside the session itself is left out.
    ///
    /// # Errors
    /// There is no such session, or the control plane does not answer.
    pub async fn session(&self, id: String) -> Result<SessionDetails, Status> {
        let request = GetSessionRequest { id: id.clone() };
        let session = self.control_plane().get_session(request).await?;
        let session = session.into_inner().session.unwrap_or_default();
        let states = self.find(id.clone()).await;
        let states = states.map_or_else(|_| Vec::new(), |found| found.subscribers);
        let request = GetSessionPolicyRequest { id };
        let policy = self.control_plane().get_session_policy(request).await;
        let policy = policy.ok().and_then(|told| told.into_inner().policy);
        Ok(SessionDetails::of(session, states, policy))
    }

    async fn sessions_of(&self, subscriber: String) -> Result<Value, Status> {
        let sessions = self.find(subscriber.clone()).await?.into_sessions();
        if sessions.is_empty() {
            return Err(Status::not_found(format!(
                "`{subscriber}` has no session now: the tables `lines` and `events` know what was before"
            )));
        }
        Ok(value(&sessions))
    }

    async fn find(&self, subscriber: String) -> Result<FindSubscriberResponse, Status> {
        let request = FindSubscriberRequest { subscriber };
        let found = self.history().find_subscriber(request).await?;
        Ok(found.into_inner())
    }

    /// A version with its document.
    async fn version(&self, version: Option<u64>) -> Result<Value, Status> {
        let _one = self.document().await;
        let (told, tree) = self.in_force(version).await?;
        Ok(json!({"version": told.version, "document": told.document, "tree": tree}))
    }

    /// The configuration in force, or another version, with its tree. Secrets are hidden. The caller holds [`Gateway::document`].
    ///
    /// # Errors
    /// There is no such version, it is too large, or the control plane does not answer.
    pub async fn in_force(
        &self,
        version: Option<u64>,
    ) -> Result<(GetConfigurationResponse, Value), Status> {
        let request = GetConfigurationRequest { version };
        let told = self.configuration().get_configuration(request).await;
        let told = told.map_err(too_large)?.into_inner();
        let tree = serde_json::from_str(&told.tree)
            .map_err(|error| Status::internal(format!("its tree is no JSON: {error}")))?;
        Ok((told, tree))
    }
}

/// A configuration that is larger than this server takes has its own sentence.
fn too_large(status: Status) -> Status {
    match status.code() {
        Code::OutOfRange => Status::failed_precondition(
            "The configuration is too large to be shown here: use `sluice show configuration`.",
        ),
        _ => status,
    }
}

//! gNMI: Capabilities, Get, Set and Subscribe, for whom [`who`] lets in.

mod read;
mod set;
mod shared;
mod stream;
mod subscribe;
mod subscription;
mod who;

use crate::api::Site;
use crate::problem::Problem;
use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use futures_util::Stream;
use gnmi::model::{Model, models};
use gnmi::proto::g_nmi_server::{GNmi, GNmiServer};
use gnmi::proto::{
    CapabilityRequest, CapabilityResponse, GetRequest, GetResponse, ModelData, SetRequest,
    SetResponse, SubscribeRequest, SubscribeResponse,
};
use gnmi::value::Encoding;
use shared::Shared;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};
use who::Known;

/// Maximum size of a request, in octets. A larger change is committed by the command line or REST.
const LARGEST_REQUEST: usize = 4 << 20;
/// How long the control plane may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a call may take that is no subscription, with its request, which may come slowly.
const LONG_PATIENCE: Duration = Duration::from_secs(60);
/// Maximum length of the sentence of an error, in octets: it goes in a header, of which clients take little.
const SENTENCE: usize = 1024;
/// Maximum number of subscriptions that are served at once.
const STREAMS: usize = 32;
/// Maximum number of paths of a request.
const PATHS: usize = 64;

/// The service.
#[derive(Debug)]
struct Service {
    site: Arc<Site>,
    shared: Arc<Shared>,
    streams: Arc<Semaphore>,
    commits: Arc<set::Commits>,
}

/// The service behind the checks that all calls pass.
pub fn router(site: Arc<Site>) -> Router {
    let service = GNmiServer::new(Service {
        shared: Arc::new(Shared::new(site.clone())),
        site: site.clone(),
        streams: Arc::new(Semaphore::new(STREAMS)),
        commits: Arc::default(),
    });
    let service = service.max_decoding_message_size(LARGEST_REQUEST);
    let routes = Routes::new(service).into_axum_router();
    routes.layer(from_fn_with_state(site, who::authenticate))
}

/// Now, in nanoseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let since = since.map_or(0, |since| since.as_nanos());
    since.try_into().unwrap_or(i64::MAX)
}

/// A model as clients are told of it.
fn described(model: &Model) -> ModelData {
    ModelData {
        name: model.name.into(),
        organization: model.organization.into(),
        version: model.version.into(),
    }
}

/// Refuses a request for models that are not offered.
fn check_models(asked: &[ModelData]) -> Result<(), Status> {
    let offered = |asked: &&ModelData| models().iter().any(|model| model.name == asked.name);
    match asked.iter().find(|asked| !offered(asked)) {
        None => Ok(()),
        Some(_) => Err(Status::unimplemented(
            "use_models names a model that is not offered: Capabilities lists those that are",
        )),
    }
}

/// Refuses extensions: one that is ignored could change what the answer means.
fn refuse_extensions(extensions: &[gnmi::gnmi_ext::Extension]) -> Result<(), Status> {
    match extensions {
        [] => Ok(()),
        _ => Err(Status::unimplemented(
            "no extension is offered here: Set takes that of confirmed commits",
        )),
    }
}

impl From<Problem> for Status {
    fn from(problem: Problem) -> Self {
        let detail = problem.detail();
        match problem.code() {
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
                Status::invalid_argument(detail)
            }
            StatusCode::UNAUTHORIZED => Status::unauthenticated(detail),
            StatusCode::FORBIDDEN => Status::permission_denied(detail),
            StatusCode::NOT_FOUND => Status::not_found(detail),
            StatusCode::CONFLICT => Status::failed_precondition(detail),
            StatusCode::TOO_MANY_REQUESTS => Status::resource_exhausted(detail),
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY => {
                Status::unavailable(detail)
            }
            StatusCode::GATEWAY_TIMEOUT => Status::deadline_exceeded(detail),
            _ => Status::internal(detail),
        }
    }
}

/// An error whose sentence is not too long: what a client sent may be in it.
fn shortened(status: Status) -> Status {
    let text = status.message();
    match text.len() > SENTENCE {
        true => Status::new(status.code(), &text[..text.floor_char_boundary(SENTENCE)]),
        false => status,
    }
}

/// An answer, or that it takes too long.
async fn in_time<T>(
    patience: Duration,
    answer: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    timeout(patience, answer).await.unwrap_or_else(|_| {
        Err(Status::deadline_exceeded(
            "The call takes too long. What was ordered may be done yet: look before it is ordered again.",
        ))
    })
}

#[tonic::async_trait]
impl GNmi for Service {
    async fn capabilities(
        &self,
        request: Request<CapabilityRequest>,
    ) -> Result<Response<CapabilityResponse>, Status> {
        refuse_extensions(&request.get_ref().extension)?;
        Ok(Response::new(CapabilityResponse {
            supported_models: models().iter().map(described).collect(),
            supported_encodings: Encoding::ALL.map(|code| code.into()).into(),
            g_nmi_version: gnmi::VERSION.into(),
            extension: Vec::new(),
        }))
    }

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        let known = Known::of(&request)?;
        let answer = read::get(&self.site, &known, request.into_inner());
        let answer = in_time(PATIENCE, answer).await;
        answer.map(Response::new).map_err(shortened)
    }

    async fn set(&self, request: Request<SetRequest>) -> Result<Response<SetResponse>, Status> {
        let known = Known::of(&request)?;
        let answer = set::set(&self.site, &self.commits, &known, request.into_inner()).await;
        answer.map(Response::new).map_err(shortened)
    }

    type SubscribeStream =
        Pin<Box<dyn Stream<Item = Result<SubscribeResponse, Status>> + Send + 'static>>;

    async fn subscribe(
        &self,
        request: Request<Streaming<SubscribeRequest>>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let known = Known::of(&request)?;
        let Ok(room) = self.streams.clone().try_acquire_owned() else {
            tracing::warn!(who = known.caller.name, "too many subscriptions");
            return Err(Status::resource_exhausted(format!(
                "{STREAMS} subscriptions are served already: try again later"
            )));
        };
        let asked = request.into_inner();
        let answers = stream::begin(self.shared.clone(), known, asked, room);
        Ok(Response::new(Box::pin(answers)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_sentence_is_cut_between_two_characters() {
        let cut = shortened(Status::not_found("é".repeat(SENTENCE) + "x"));
        assert_eq!(cut.code(), tonic::Code::NotFound);
        assert_eq!(cut.message(), "é".repeat(SENTENCE / 2));
        let odd = shortened(Status::not_found("x".to_owned() + &"é".repeat(SENTENCE)));
        assert_eq!(odd.message().len(), SENTENCE - 1);
        assert_eq!(shortened(Status::not_found("x")).message(), "x");
    }
}

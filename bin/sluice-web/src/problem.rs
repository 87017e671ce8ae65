//! Errors as clients see them (RFC 9457), each with a sentence that says what to do.

use crate::scope::Scope;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use northbound::{CallError, ConfigurationFault};
use std::path::Path;
use tonic::{Code, Status};

/// An error.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    detail: String,
    header: Option<(HeaderName, HeaderValue)>,
    faults: Box<[ConfigurationFault]>,
}

impl Problem {
    /// An error with what to do about it.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Problem {
            status,
            detail: detail.into(),
            header: None,
            faults: Box::default(),
        }
    }

    /// A configuration that cannot be in force. Its faults are a member of their own (RFC 9457, section 3.2).
    pub fn of_faults(detail: String, faults: Vec<ConfigurationFault>) -> Self {
        Problem {
            faults: faults.into(),
            ..Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
        }
    }

    /// A request that cannot be understood.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    /// A request without a token that is in force (RFC 6750, section 3).
    pub fn unauthorized(detail: impl Into<String>) -> Self {
        let challenge = HeaderValue::from_static("Bearer realm=\"sluice\"");
        Problem {
            header: Some((WWW_AUTHENTICATE, challenge)),
            ..Problem::new(StatusCode::UNAUTHORIZED, detail)
        }
    }

    /// A request with a token that may not be used for it (RFC 6750, section 3.1).
    pub fn out_of_scope(scope: Scope, detail: impl Into<String>) -> Self {
        let scope = scope.word();
        let challenge =
            format!("Bearer realm=\"sluice\", error=\"insufficient_scope\", scope=\"{scope}\"");
        let challenge = HeaderValue::try_from(challenge).ok();
        Problem {
            header: challenge.map(|challenge| (WWW_AUTHENTICATE, challenge)),
            ..Problem::new(StatusCode::FORBIDDEN, detail)
        }
    }

    /// A request that may be made later.
    pub fn later(status: StatusCode, seconds: u64, detail: impl Into<String>) -> Self {
        Problem {
            header: Some((RETRY_AFTER, seconds.into())),
            ..Problem::new(status, detail)
        }
    }

    /// Its code.
    pub fn code(&self) -> StatusCode {
        self.status
    }

    /// The sentence that says what to do.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Why the control plane, which was asked at `socket`, gave no answer.
    pub fn of(status: &Status, socket: &Path) -> Self {
        let socket = socket.display();
        match CallError::from(status) {
            CallError::Refused(message) => {
                let code = match status.code() {
                    Code::NotFound => StatusCode::NOT_FOUND,
                    Code::InvalidArgument => StatusCode::BAD_REQUEST,
                    Code::Aborted | Code::FailedPrecondition => StatusCode::CONFLICT,
                    Code::PermissionDenied => StatusCode::FORBIDDEN,
                    Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
                    Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
                    _ => StatusCode::BAD_GATEWAY,
                };
                Problem::new(code, message)
            }
            CallError::Unknown(why) => Problem::new(
                StatusCode::BAD_GATEWAY,
                format!(
                    "What listens at {socket} does not answer as this version does ({why}): install sluice-cp and sluice-web of the \
                     same version."
                ),
            ),
            CallError::Broken(why) | CallError::Unreachable { source: why, .. } => Problem::later(
                StatusCode::SERVICE_UNAVAILABLE,
                5,
                format!(
                    "The control plane does not answer at {socket} ({why}): check that sluice-cp runs, and that sluice-web may \
                     use its socket."
                ),
            ),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut body = serde_json::json!({
            "type": "about:blank",
            "title": self.status.canonical_reason(),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        if !self.faults.is_empty() {
            body["faults"] = serde_json::json!(self.faults);
        }
        let head = [(CONTENT_TYPE, "application/problem+json")];
        let mut response = (self.status, head, body.to_string()).into_response();
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

//! Events as JSON by HTTP POST, with a signature. What a receiver answers beside the status is not read.

use super::connect::connect;
use super::target::Target;
use crate::secrets::hexadecimal;
use axum::body::Body;
use axum::http::header::{CONNECTION, CONTENT_TYPE, HOST, USER_AGENT};
use axum::http::{Request, StatusCode};
use hmac::{Hmac, KeyInit, Mac};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use sha2::Sha256;
use std::fmt;
use std::future::pending;
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Header with the time of the signature and the signature.
const SIGNATURE: &str = "Sluice-Signature";
/// How long a receiver may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum size of the head of an answer, in octets.
const HEAD: usize = 16 * 1024;
/// Least and largest size of a secret, in octets.
const SECRET: std::ops::RangeInclusive<usize> = 16..=1024;

/// The key of signatures.
#[derive(Clone)]
pub struct Secret(Hmac<Sha256>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Reads a file. White space around the secret does not count.
    ///
    /// # Errors
    /// The file cannot be read, or its secret is too short or long; the text names the file.
    pub fn read(file: &Path) -> Result<Self, String> {
        let said = |what: &dyn fmt::Display| format!("{}: {what}", file.display());
        let text = std::fs::read(file).map_err(|error| said(&error))?;
        let secret = text.trim_ascii();
        if !SECRET.contains(&secret.len()) {
            return Err(said(&"expected a secret of 16 to 1,024 octets"));
        }
        let key = Hmac::new_from_slice(secret).map_err(|error| said(&error))?;
        Ok(Secret(key))
    }

    /// Signature of a body at this time: HMAC-SHA256 over the time in decimal digits, a dot, and the body.
    fn sign(&self, unix: u64, body: &[u8]) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("{unix}.").as_bytes());
        mac.update(body);
        let signature = hexadecimal(&mac.finalize().into_bytes());
        format!("t={unix},v1={signature}")
    }
}

/// The way to a webhook.
pub struct Webhook {
    target: Target,
    tls: Option<TlsConnector>,
    secret: Secret,
}

impl Webhook {
    /// A connection is made for each POST.
    pub fn new(target: Target, tls: Option<TlsConnector>, secret: Secret) -> Self {
        Webhook {
            target,
            tls,
            secret,
        }
    }

    /// Posts a body. It has arrived if the status is one of success.
    ///
    /// # Errors
    /// Why it has not arrived.
    pub async fn post(&self, body: Vec<u8>, unix: u64) -> Result<(), String> {
        let status = timeout(PATIENCE, self.status(body, unix)).await;
        let status = status.map_err(|_| "no answer within 30 s".to_owned())??;
        match status.is_success() {
            true => Ok(()),
            false => Err(format!("the receiver answers {status}: expected 2xx")),
        }
    }

    async fn status(&self, body: Vec<u8>, unix: u64) -> Result<StatusCode, String> {
        let target = &self.target;
        let stream = connect(target, self.tls.as_ref()).await?;
        let mut http = http1::Builder::new();
        let handshake = http.max_buf_size(HEAD).handshake(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.map_err(|e| e.to_string())?;
        let request = Request::post(&target.path)
            .header(HOST, format!("{}:{}", target.host, target.port))
            .header(
                USER_AGENT,
                concat!("sluice-web/", env!("CARGO_PKG_VERSION")),
            )
            .header(CONTENT_TYPE, "application/json")
            .header(CONNECTION, "close")
            .header(SIGNATURE, self.secret.sign(unix, &body))
            .body(Body::from(body))
            .map_err(|error| error.to_string())?;
        let driven = async {
            // why it ends, the answer says
            let _ = connection.await;
            pending::<()>().await;
        };
        tokio::select! {
            answer = sender.send_request(request) => match answer {
                Ok(answer) => Ok(answer.status()),
                Err(error) => Err(format!("no answer: {error}")),
            },
            () = driven => Err("no answer".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Secret, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, text).unwrap();
        Secret::read(&file)
    }

    #[test]
    fn a_signature_is_over_time_and_body() {
        let secret = read("0123456789abcdef\n").unwrap();
        // printf '7.{}' | openssl dgst -sha256 -hmac 0123456789abcdef
        let right = "t=7,v1=3cd0ad802237a2c96b7ee3b06705b7350cc8cf0ba4123033d13eda91ad9c4ec2";
        assert_eq!(secret.sign(7, b"{}"), right);
        assert_ne!(secret.sign(8, b"{}")[4..], right[4..]);
        assert_eq!(format!("{secret:?}"), "Secret");
        assert!(read("short\n").unwrap_err().contains("16 to 1,024"));
    }
}

//! The daemons' side of the socket.

use crate::{MAX_REQUEST, Request, Response};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// Connections answered at once; more wait in the socket's backlog.
const MAX_CONNECTIONS: usize = 32;

/// A request with the place for its answer.
pub struct Call {
    /// What is asked.
    pub request: Request,
    /// Where the answer goes; dropping it answers with an error.
    pub reply: oneshot::Sender<Response>,
}

/// Binds `path` and hands every request to `calls`, until the receiver is dropped.
///
/// A socket file that nobody listens on any more is replaced; one that a living process answers on is an error
/// (`AddrInUse`), so that a second daemon does not take the first one's place unseen.
pub fn serve(
    path: &Path,
    calls: mpsc::Sender<Call>,
) -> io::Result<impl Future<Output = ()> + use<>> {
    if path.exists() {
        match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    format!("{} is in use by a running process", path.display()),
                ));
            }
            Err(_) => std::fs::remove_file(path)?,
        }
    }
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let listener = UnixListener::bind(path)?;
    let name = Name(path.to_owned());
    Ok(async move {
        accept(listener, calls).await;
        drop(name);
    })
}

/// The socket's name, which goes with the daemon: also when its start fails later.
struct Name(PathBuf);

impl Drop for Name {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::debug!(%error, "cannot remove the local API socket");
        }
    }
}

async fn accept(listener: UnixListener, calls: mpsc::Sender<Call>) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let calls = calls.clone();
                tokio::spawn(async move {
                    if let Err(error) = converse(stream, calls).await {
                        tracing::debug!(%error, "local API connection ended");
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept on the local API socket");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
        if calls.is_closed() {
            return;
        }
    }
}

async fn converse(stream: UnixStream, calls: mpsc::Sender<Call>) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let mut line = Vec::new();
    loop {
        line.clear();
        let n = (&mut read)
            .take(MAX_REQUEST as u64)
            .read_until(b'\n', &mut line)
            .await?;
        if n == 0 {
            return Ok(());
        }
        let complete = line.ends_with(b"\n");
        let response = if complete {
            answer(&line, &calls).await
        } else {
            Response::Error {
                message: format!("the request is not a line of at most {MAX_REQUEST} octets"),
            }
        };
        let mut out = serde_json::to_vec(&response)?;
        out.push(b'\n');
        write.write_all(&out).await?;
        if !complete {
            return Ok(());
        }
    }
}

async fn answer(line: &[u8], calls: &mpsc::Sender<Call>) -> Response {
    let request = match serde_json::from_slice(line) {
        Ok(request) => request,
        Err(error) => {
            return Response::Error {
                message: format!("not a request that this version knows: {error}"),
            };
        }
    };
    let (reply, response) = oneshot::channel();
    let gone = || Response::Error {
        message: "the daemon is shutting down".into(),
    };
    if calls.send(Call { request, reply }).await.is_err() {
        return gone();
    }
    response.await.unwrap_or_else(|_| gone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallError, call};
    use std::time::Duration;

    fn daemon(dir: &Path) -> std::path::PathBuf {
        let path = dir.join("x/test.sock");
        let (tx, mut rx) = mpsc::channel::<Call>(4);
        let served = path.clone();
        let (ready_tx, ready) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let rt = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            rt.block_on(async move {
                tokio::spawn(serve(&served, tx).unwrap());
                ready_tx.send(()).unwrap();
                while let Some(call) = rx.recv().await {
                    let answer = match call.request {
                        Request::ClearSession { id } => Response::Error { message: id },
                        _ => Response::Done,
                    };
                    let _ = call.reply.send(answer);
                }
            });
        });
        ready.recv().unwrap();
        path
    }

    #[test]
    fn a_request_meets_its_answer() {
        let dir = tempfile::tempdir().unwrap();
        let path = daemon(dir.path());
        let t = Duration::from_secs(5);
        assert_eq!(call(&path, &Request::ShowPorts, t).unwrap(), Response::Done);
        let refused = call(&path, &Request::ClearSession { id: "7".into() }, t);
        assert_eq!(
            refused.unwrap(),
            Response::Error {
                message: "7".into()
            }
        );
    }

    #[test]
    fn garbage_is_answered_and_the_daemon_lives() {
        use std::io::{BufRead, Write};
        let dir = tempfile::tempdir().unwrap();
        let path = daemon(dir.path());
        let mut s = std::os::unix::net::UnixStream::connect(&path).unwrap();
        s.write_all(b"{nonsense\n").unwrap();
        let mut line = String::new();
        std::io::BufReader::new(&s).read_line(&mut line).unwrap();
        assert!(line.contains("not a request"), "{line}");
        let mut s = std::os::unix::net::UnixStream::connect(&path).unwrap();
        s.write_all(&vec![b'a'; MAX_REQUEST]).unwrap();
        let mut line = String::new();
        std::io::BufReader::new(&s).read_line(&mut line).unwrap();
        assert!(line.contains("at most"), "{line}");
        assert!(call(&path, &Request::ShowDrops, Duration::from_secs(5)).is_ok());
    }

    #[test]
    fn a_second_daemon_does_not_take_the_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = daemon(dir.path());
        let (tx, _rx) = mpsc::channel(1);
        let error = serve(&path, tx).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[tokio::test]
    async fn the_socket_goes_with_the_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("test.sock");
        let (tx, _rx) = mpsc::channel(1);
        let served = serve(&path, tx).unwrap();
        assert!(path.exists());
        drop(served);
        assert!(!path.exists());
    }

    #[test]
    fn nobody_there_is_said_plainly() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("absent.sock");
        let error = call(&path, &Request::ShowPorts, Duration::from_secs(1)).unwrap_err();
        assert!(matches!(error, CallError::Unreachable { .. }), "{error}");
    }
}

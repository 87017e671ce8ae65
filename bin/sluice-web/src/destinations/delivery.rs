//! The task of a destination: it follows the events, sends them, and keeps how far it has got.

use super::cursor::{Cursor, CursorFile};
use super::standing::Standing;
use super::stream::Stream;
use super::target::{Protocol, Target};
use super::webhook::Webhook;
use super::{Plan, syslog};
use crate::gateway::Gateway;
use northbound::{Event, FollowEventsRequest, FollowEventsResponse, time};
use serde_json::json;
use std::convert::Infallible;
use std::future::pending;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UdpSocket, lookup_host};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

/// First and longest time from a failure to the next try. It doubles with each failure.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// Pause behind the datagrams of a part. Nobody says that a receiver is slow, and its socket has room for some hundred messages.
const PAUSE: Duration = Duration::from_millis(50);
/// How long the resolution of a name may take.
const NAME: Duration = Duration::from_secs(10);

/// A destination at work.
pub struct Delivery {
    plan: Plan,
    feed: Gateway,
    file: CursorFile,
    cursor: Option<Cursor>,
    standing: Arc<Standing>,
    /// Number behind which a loss was told: it is not told again with each try.
    told_lost: Option<u64>,
    /// The file could be written the last time.
    is_kept: bool,
    failures_in_a_row: u32,
}

/// Why nothing can be sent.
enum Trouble {
    /// The events do not come.
    Feed(String),
    /// They are not taken.
    Destination(String),
}

impl Delivery {
    /// Goes on behind a cursor, or begins with now.
    pub fn new(
        plan: Plan,
        feed: Gateway,
        file: CursorFile,
        cursor: Option<Cursor>,
        standing: Arc<Standing>,
    ) -> Self {
        Delivery {
            plan,
            feed,
            file,
            cursor,
            standing,
            told_lost: None,
            is_kept: true,
            failures_in_a_row: 0,
        }
    }

    /// Sends as long as the program runs.
    pub async fn run(mut self) {
        loop {
            let Err(trouble) = self.send_all().await;
            self.failed(trouble);
            let [first, longest] = AGAIN;
            let wait = first * (1 << self.failures_in_a_row.min(10));
            self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
            // destinations that failed together do not come back together
            sleep(wait.min(longest).mul_f64(rand::random_range(0.75..1.0))).await;
        }
    }

    /// Sends what is behind the cursor, and what happens.
    async fn send_all(&mut self) -> Result<Infallible, Trouble> {
        let mut way = Way::of(&self.plan);
        let mut request = FollowEventsRequest {
            after: self.cursor.map(|cursor| cursor.last),
            ..FollowEventsRequest::default()
        };
        self.plan
            .kinds
            .iter()
            .for_each(|kind| request.push_kinds(*kind));
        let parts = self.feed.follow(request).await;
        let told = |status: tonic::Status| Trouble::Feed(status.message().to_owned());
        let mut parts = parts.map_err(told)?;
        loop {
            let arrived = tokio::select! {
                part = parts.message() => {
                    let ended = || Trouble::Feed("the control plane has ended the events".into());
                    let part = part.map_err(told)?.ok_or_else(ended)?;
                    self.take(&mut way, part).await?
                }
                arrived = way.arrived() => Some(arrived.map_err(Trouble::Destination)?),
            };
            if let Some(last) = arrived {
                self.keep(last).await;
            }
        }
    }

    /// Sends a part. Returns the number of the last event that has arrived, if that is known.
    async fn take(
        &mut self,
        way: &mut Way,
        part: FollowEventsResponse,
    ) -> Result<Option<u64>, Trouble> {
        self.tell_lost(&part);
        let Some(first) = part.events.first() else {
            return Ok(way.pass(part.last));
        };
        self.standing.told().waiting.get_or_insert(first.at);
        let sent = way.send(&part.events, part.last).await;
        let arrived = sent.map_err(Trouble::Destination)?;
        let mut told = self.standing.told();
        told.sent += part.events.len() as u64;
        (told.waiting, told.sent_at) = (None, Some(time::now()));
        if told.error.take().is_some() {
            tracing::info!(destination = self.plan.name, "it takes events again");
        }
        self.failures_in_a_row = 0;
        Ok(arrived)
    }

    /// What the history does not have any more, or that it is another one.
    fn tell_lost(&mut self, part: &FollowEventsResponse) {
        let Some(cursor) = self.cursor else {
            return;
        };
        let destination = &self.plan.name;
        if part.last < cursor.last {
            tracing::warn!(
                destination,
                "the history has begun anew: it is sent from its beginning"
            );
        }
        if part.lost > 0 && self.told_lost.replace(cursor.last) != Some(cursor.last) {
            let (lost, since) = (part.lost, time::moment(cursor.at));
            tracing::warn!(
                destination,
                lost,
                since,
                "so many events at least left the history before they could be sent: \
                set `history keep` or `history size` higher, or have the destination back sooner"
            );
            self.standing.told().lost += lost;
        }
    }

    /// Keeps how far it has got. What cannot be written is sent again after a restart.
    async fn keep(&mut self, last: u64) {
        let cursor = Cursor {
            last,
            at: time::now(),
        };
        self.cursor = Some(cursor);
        self.standing.told().last = Some(last);
        let file = self.file.clone();
        let written = spawn_blocking(move || file.write(cursor)).await;
        let written = written.map_err(std::io::Error::other).flatten();
        let was_kept = std::mem::replace(&mut self.is_kept, written.is_ok());
        // a disk that is full would say it with each part
        if let (Err(error), true) = (written, was_kept) {
            let destination = &self.plan.name;
            tracing::warn!(
                destination,
                %error,
                "cannot keep how far it has got: what it gets from now on comes again after a restart"
            );
        }
    }

    fn failed(&self, trouble: Trouble) {
        let mut told = self.standing.told();
        let why = match trouble {
            Trouble::Feed(why) => format!("no events from the control plane: {why}"),
            Trouble::Destination(why) => {
                told.failures += 1;
                why
            }
        };
        if told.error.is_none() {
            tracing::warn!(
                destination = self.plan.name,
                why,
                "it gets no events now: they wait in the history"
            );
        }
        told.error = Some(why);
    }
}

/// The way to a destination.
enum Way {
    Udp { target: Target, host: String },
    Stream { stream: Stream, host: String },
    Webhook { webhook: Webhook, name: String },
}

impl Way {
    fn of(plan: &Plan) -> Self {
        let (target, tls) = (plan.target.clone(), plan.tls.clone());
        match (target.protocol, &plan.secret) {
            (Protocol::Webhook, Some(secret)) => Way::Webhook {
                webhook: Webhook::new(target, tls, secret.clone()),
                name: plan.name.clone(),
            },
            (Protocol::Stream, _) => Way::Stream {
                stream: Stream::new(target, tls),
                host: syslog::host(),
            },
            _ => Way::Udp {
                target,
                host: syslog::host(),
            },
        }
    }

    /// Sends events. Returns `last` if they have arrived, as far as that can be known.
    async fn send(&mut self, events: &[Event], last: u64) -> Result<Option<u64>, String> {
        match self {
            Way::Udp { target, host } => {
                let messages = events.iter().map(|event| syslog::message(event, host));
                datagrams(target, messages).await?;
                sleep(PAUSE).await;
            }
            Way::Stream { stream, host } => {
                let messages = events.iter().map(|event| syslog::message(event, host));
                let part: String = messages.map(|message| syslog::frame(&message)).collect();
                stream.send(part.as_bytes(), last).await?;
                return Ok(None);
            }
            Way::Webhook { webhook, name } => {
                let body = json!({"destination": name, "events": events}).to_string();
                webhook.post(body.into(), time::now()).await?;
            }
        }
        Ok(Some(last))
    }

    /// Nothing up to this number is for the destination. Returns what has arrived.
    fn pass(&mut self, last: u64) -> Option<u64> {
        match self {
            Way::Stream { stream, .. } => stream.pass(last),
            Way::Udp { .. } | Way::Webhook { .. } => Some(last),
        }
    }

    /// Waits until something of what was sent has arrived.
    async fn arrived(&mut self) -> Result<u64, String> {
        match self {
            Way::Stream { stream, .. } => stream.arrived().await,
            Way::Udp { .. } | Way::Webhook { .. } => pending().await,
        }
    }
}

/// Sends a message in each datagram (RFC 5426). Whether one arrives nobody says.
async fn datagrams(target: &Target, messages: impl Iterator<Item = String>) -> Result<(), String> {
    let found = timeout(NAME, lookup_host((target.host(), target.port))).await;
    let mut found = found
        .map_err(|_| "its name is not resolved within 10 s".to_owned())?
        .map_err(|error| format!("its name: {error}"))?;
    let to = found.next().ok_or("its name has no address")?;
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let send = async {
        let socket = UdpSocket::bind(any).await?;
        socket.connect(to).await?;
        for message in messages {
            socket.send(message.as_bytes()).await?;
        }
        Ok::<_, std::io::Error>(())
    };
    send.await.map_err(|error| format!("cannot send: {error}"))
}

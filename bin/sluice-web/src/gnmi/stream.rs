//! Subscriptions at work: each is a task that ends with its client, with its caller's right, or when its client reads too slowly.

use super::shared::Shared;
use super::subscribe::{Order, check_count};
use super::subscription::Subscription;
use super::who::Known;
use super::{PATIENCE, in_time, shortened};
use futures_util::Stream;
use futures_util::stream::unfold;
use gnmi::proto::subscription_list::Mode;
use gnmi::proto::{
    Notification, SubscribeRequest, SubscribeResponse, subscribe_request, subscribe_response,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tonic::{Status, Streaming};

/// Messages that wait for a client.
const WAITING: usize = 64;
/// How long a client may take to read one.
const READING: Duration = Duration::from_secs(10);
/// Changes are looked for so often.
const TICK: Duration = Duration::from_secs(1);

/// A message, or why the subscription ends.
type Message = Result<SubscribeResponse, Status>;

/// Begins to serve a Subscribe.
pub fn begin(
    shared: Arc<Shared>,
    known: Known,
    asked: Streaming<SubscribeRequest>,
    room: OwnedSemaphorePermit,
) -> impl Stream<Item = Message> + Send + 'static {
    let (to, from) = mpsc::channel(WAITING);
    let task = Task {
        shared,
        known,
        asked,
        to,
    };
    tokio::spawn(async move {
        let _room = room;
        task.run().await;
    });
    unfold(from, async |mut from| Some((from.recv().await?, from)))
}

struct Task {
    shared: Arc<Shared>,
    known: Known,
    asked: Streaming<SubscribeRequest>,
    to: mpsc::Sender<Message>,
}

impl Task {
    async fn run(mut self) {
        let who = self.known.caller.name.clone();
        let gone = self.to.clone();
        let ended = tokio::select! {
            ended = self.serve() => ended,
            // the client is gone
            () = gone.closed() => Ok(()),
        };
        let ended = ended.map_err(shortened);
        let result = ended.as_ref().map_or_else(Status::message, |()| "ended");
        tracing::info!(who, result, "a subscription ends");
        if let Err(status) = ended {
            // a client that does not read is not told
            let _ = timeout(READING, gone.send(Err(status))).await;
        }
    }

    async fn serve(&mut self) -> Result<(), Status> {
        let late = |_| Err(Status::deadline_exceeded("no subscription comes"));
        let first = timeout(PATIENCE, self.asked.message()).await;
        let Some(first) = first.unwrap_or_else(late)? else {
            return Ok(());
        };
        let order = Order::read(first, &self.known)?;
        let (who, mode) = (&self.known.caller.name, order.mode.as_str_name());
        tracing::info!(who, mode, paths = order.subscriptions.len(), "subscribes");
        match order.mode {
            // section 3.5.1.2 of the specification: without what is there at first, only that this was all
            Mode::Once if order.updates_only => self.synced().await,
            Mode::Once => self.snapshot(&order).await,
            Mode::Poll => self.poll(order).await,
            Mode::Stream => self.stream(order).await,
        }
    }

    /// Everything that is there, then that this was all.
    async fn snapshot(&self, order: &Order) -> Result<(), Status> {
        let mut count = 0;
        for subscription in &order.subscriptions {
            // each costs what a request costs
            self.known.admit(&self.shared.site)?;
            for watched in subscription.sources() {
                let source = watched.source;
                let part = source.read(&self.shared.site, &subscription.path);
                let part = in_time(PATIENCE, part).await?;
                let all = order.all(subscription, source, &part)?;
                count += all.iter().map(|row| row.update.len()).sum::<usize>();
                check_count(count)?;
                self.tell(all).await?;
            }
        }
        self.synced().await
    }

    async fn poll(&mut self, order: Order) -> Result<(), Status> {
        if order.updates_only {
            self.synced().await?;
        }
        while let Some(asked) = self.asked.message().await? {
            let Some(subscribe_request::Request::Poll(_)) = asked.request else {
                return Err(Status::invalid_argument("expected `poll`"));
            };
            self.check()?;
            self.snapshot(&order).await?;
        }
        Ok(())
    }

    async fn stream(&mut self, mut order: Order) -> Result<(), Status> {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut is_first, mut asks) = (true, true);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                // a client that has nothing more to ask goes on to listen
                asked = self.asked.message(), if asks => match asked? {
                    None => {
                        asks = false;
                        continue;
                    }
                    Some(_) => {
                        let why = "a stream takes no further request: begin another one";
                        return Err(Status::invalid_argument(why));
                    }
                },
            }
            self.check()?;
            for number in 0..order.subscriptions.len() {
                let now = Instant::now();
                if order.subscriptions[number].is_due(now) {
                    let told = !(is_first && order.updates_only);
                    self.news(&mut order, number, told, now).await?;
                    order.check_size()?;
                }
            }
            if is_first {
                self.synced().await?;
                is_first = false;
            }
        }
    }

    /// Tells what is due of a subscription now. What becomes due meanwhile, because its client reads slowly, is told the next time.
    async fn news(
        &self,
        order: &mut Order,
        number: usize,
        told: bool,
        now: Instant,
    ) -> Result<(), Status> {
        let sources = order.subscriptions[number].sources().len();
        for source in 0..sources {
            let subscription: &Subscription = &order.subscriptions[number];
            let watched = &subscription.sources()[source];
            let part = self.shared.part(watched.source).await?;
            let news = order.news(subscription, watched, &part, now)?;
            if told {
                self.tell(news).await?;
            }
            order.subscriptions[number].told(source, part)?;
        }
        order.subscriptions[number].is_told(now);
        Ok(())
    }

    /// Ends for a caller whose token or password is in force no more.
    fn check(&self) -> Result<(), Status> {
        self.known.lease.renew();
        match self.known.is_in_force(&self.shared.site) {
            true => Ok(()),
            false => Err(Status::unauthenticated(
                "the token or the user is in force no more: it has expired, or was changed or revoked",
            )),
        }
    }

    async fn tell(&self, notifications: Vec<Notification>) -> Result<(), Status> {
        for notification in notifications {
            let update = subscribe_response::Response::Update(notification);
            self.send(update).await?;
        }
        Ok(())
    }

    async fn synced(&self) -> Result<(), Status> {
        self.send(subscribe_response::Response::SyncResponse(true))
            .await
    }

    async fn send(&self, response: subscribe_response::Response) -> Result<(), Status> {
        let message = SubscribeResponse {
            response: Some(response),
            extension: Vec::new(),
        };
        let slow = |_| Status::resource_exhausted("the client reads too slowly");
        let sent = timeout(READING, self.to.send(Ok(message))).await;
        sent.map_err(slow)?
            .map_err(|_| Status::cancelled("the client is gone"))
    }
}

//! What is subscribed to, and what there is to tell of it.

use super::PATHS;
use super::read::{Part, Source, target};
use super::subscription::{Subscription, Watched, split, values};
use super::who::Known;
use super::{check_models, refuse_extensions};
use gnmi::path::Path;
use gnmi::proto::subscription_list::Mode;
use gnmi::proto::{self, Notification, SubscribeRequest, Update, subscribe_request};
use gnmi::select::Found;
use gnmi::value::Encoding;
use tokio::time::Instant;
use tonic::Status;

/// Maximum number of values of all subscriptions of a request.
pub const VALUES: usize = 20_000;

/// What a client subscribes to.
#[derive(Debug)]
pub struct Order {
    /// How it is told.
    pub mode: Mode,
    /// What is there at first is not told.
    pub updates_only: bool,
    /// Each path.
    pub subscriptions: Vec<Subscription>,
    encoding: Encoding,
    target: Option<proto::Path>,
}

impl Order {
    /// Reads the first request of a Subscribe.
    ///
    /// # Errors
    /// It is none, a path leads nowhere, the caller may not read it, or it cannot be told as it is asked for.
    pub fn read(request: SubscribeRequest, known: &Known) -> Result<Self, Status> {
        refuse_extensions(&request.extension)?;
        let Some(subscribe_request::Request::Subscribe(list)) = request.request else {
            let why = "the first request has to have `subscribe`";
            return Err(Status::invalid_argument(why));
        };
        check_models(&list.use_models)?;
        let mode = Mode::try_from(list.mode);
        let mode = mode.map_err(|_| Status::invalid_argument("the mode is not known"))?;
        let count = list.subscription.len();
        if !(1..=PATHS).contains(&count) {
            let why = format!("{count} paths are subscribed to: expected 1 to {PATHS}");
            return Err(Status::invalid_argument(why));
        }
        let prefix = list.prefix.as_ref();
        let subscription = |sent| Subscription::read(sent, prefix, mode, known);
        let subscriptions = list.subscription.iter().map(subscription);
        Ok(Order {
            mode,
            updates_only: list.updates_only,
            subscriptions: subscriptions.collect::<Result<_, _>>()?,
            encoding: Encoding::read(list.encoding).map_err(Status::unimplemented)?,
            target: target(prefix)?,
        })
    }

    /// Notifications of these values, one for each row, and of deleted ones, with the time when they were read (section 2.1 of the
    /// specification).
    fn notifications(
        &self,
        source: Source,
        at: i64,
        told: &[Found<'_>],
        gone: &[Path],
    ) -> Vec<Notification> {
        let mut rows: Vec<(Path, Vec<Update>)> = Vec::new();
        for found in told {
            let (row, rest) = split(&found.path);
            let update = Update {
                path: Some(rest.to_sent()),
                val: Some(
                    self.encoding
                        .encode(source.model().name, found.node, found.value),
                ),
                ..Update::default()
            };
            match rows.last_mut().filter(|(last, _)| *last == row) {
                Some((_, updates)) => updates.push(update),
                None => rows.push((row, vec![update])),
            }
        }
        let notification = |prefix: &Path| Notification {
            timestamp: at,
            prefix: Some(proto::Path {
                target: self
                    .target
                    .as_ref()
                    .map_or_else(String::new, |of| of.target.clone()),
                ..prefix.to_sent()
            }),
            ..Notification::default()
        };
        let mut all = Vec::new();
        if !gone.is_empty() {
            all.push(Notification {
                delete: gone.iter().map(Path::to_sent).collect(),
                ..notification(&Path::default())
            });
        }
        let rows = rows.into_iter().map(|(row, update)| Notification {
            update,
            ..notification(&row)
        });
        all.extend(rows);
        all
    }

    /// Whether all subscriptions together are not too much.
    ///
    /// # Errors
    /// They are.
    pub fn check_size(&self) -> Result<(), Status> {
        let sources = self.subscriptions.iter().flat_map(|of| of.sources());
        check_count(sources.map(Watched::count).sum())
    }

    /// Everything that is there of a part.
    ///
    /// # Errors
    /// There is too much.
    pub fn all(
        &self,
        of: &Subscription,
        source: Source,
        part: &Part,
    ) -> Result<Vec<Notification>, Status> {
        let values = values(source, &part.value, &of.path)?;
        Ok(self.notifications(source, part.at, &values, &[]))
    }

    /// What there is to tell of a part now, since it was told last.
    ///
    /// # Errors
    /// There is too much.
    pub fn news(
        &self,
        of: &Subscription,
        watched: &Watched,
        part: &Part,
        now: Instant,
    ) -> Result<Vec<Notification>, Status> {
        let (told, gone) = of.news(watched, part, now)?;
        Ok(self.notifications(watched.source, part.at, &told, &gone))
    }
}

/// Whether so many values are not too many for a request.
///
/// # Errors
/// They are.
pub fn check_count(count: usize) -> Result<(), Status> {
    match count {
        ..=VALUES => Ok(()),
        count => Err(Status::resource_exhausted(format!(
            "{count} values are subscribed to: expected at most {VALUES}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnmi::path::Step;
    use northbound::catalogue::PORTS;
    use serde_json::json;

    #[test]
    fn what_is_told_has_the_time_when_it_was_read() {
        let order = Order {
            mode: Mode::Stream,
            updates_only: false,
            subscriptions: Vec::new(),
            encoding: Encoding::Json,
            target: None,
        };
        let source = Source::Table(&PORTS);
        let rows = [json!({"user_plane": "up1", "name": "a"})];
        let part = Part::of_rows(&PORTS, &rows, true);
        let path = Path {
            steps: vec![Step::to("state"), Step::to("ports")],
        };
        let values = values(source, &part.value, &path).unwrap();
        let told = order.notifications(source, 7, &values, &[path]);
        let times = told.iter().map(|told| told.timestamp);
        assert!(times.eq([7, 7]), "a deletion and a row: {told:?}");
    }

    #[test]
    fn there_may_be_so_many_values_and_no_more() {
        assert!(check_count(VALUES).is_ok());
        let refused = check_count(VALUES + 1).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
    }
}

//! Data for all subscriptions together: each source is read once a second at most, however many subscribe to it.

use super::now;
use super::read::{self, Part, Source};
use crate::api::Site;
use crate::query::Query;
use gnmi::openconfig::{self, OpenConfig};
use northbound::catalogue::{TABLES, Table};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tonic::Status;

/// How long data is taken for new.
const FRESH: Duration = Duration::from_millis(900);
/// How long a table may take. A user plane that hangs does not take the other tables with it.
const PATIENCE: Duration = Duration::from_secs(3);

/// What was read last of each source.
#[derive(Debug)]
pub struct Shared {
    /// The control plane and the limits.
    pub site: Arc<Site>,
    tables: Vec<(&'static Table, Last)>,
    openconfig: Vec<(&'static OpenConfig, Last)>,
    configuration: Last,
}

/// What was read, and when. Whoever needs it meanwhile waits for who reads.
type Last = Mutex<Option<Read>>;

#[derive(Clone, Debug)]
struct Read {
    at: Instant,
    part: Part,
    /// Version of the configuration; 0 for tables.
    version: u64,
}

impl Shared {
    /// Nothing read so far.
    pub fn new(site: Arc<Site>) -> Self {
        let tables = TABLES.iter().filter(|table| table.has_metrics());
        Shared {
            site,
            tables: tables.map(|table| (*table, Last::default())).collect(),
            openconfig: openconfig::ALL.map(|one| (one, Last::default())).into(),
            configuration: Last::default(),
        }
    }

    /// Data of a source that may be read again and again, not older than a second. While it cannot be read, what was read before is
    /// told, as incomplete and with the time of then.
    ///
    /// # Errors
    /// It cannot be read, and was not read before.
    pub async fn part(&self, source: Source) -> Result<Part, Status> {
        let mut last = self.last(source)?.lock().await;
        if let Some(read) = last.as_ref().filter(|read| read.at.elapsed() < FRESH) {
            return Ok(read.part.clone());
        }
        match (self.read(source, last.as_ref()).await, &mut *last) {
            (Ok(mut read), last) => {
                if let Some(before) = last {
                    read.part.share(&before.part);
                }
                let part = read.part.clone();
                *last = Some(read);
                Ok(part)
            }
            (Err(status), Some(before)) => {
                tracing::debug!(?source, %status, "cannot be read");
                before.at = Instant::now();
                before.part.complete = false;
                Ok(before.part.clone())
            }
            (Err(status), None) => Err(status),
        }
    }

    /// Where it is kept what was read last of a source.
    fn last(&self, source: Source) -> Result<&Last, Status> {
        let found = match source {
            Source::Configuration => Some(&self.configuration),
            Source::Table(table) => {
                let mut tables = self.tables.iter();
                let found = tables.find(|(own, _)| own.name == table.name);
                found.map(|(_, last)| last)
            }
            Source::OpenConfig(of) => {
                let mut all = self.openconfig.iter();
                all.find(|(own, _)| own.top == of.top).map(|(_, last)| last)
            }
        };
        found.ok_or_else(|| Status::internal(format!("{source:?} is not shared")))
    }

    async fn read(&self, source: Source, last: Option<&Read>) -> Result<Read, Status> {
        let (part, version) = match source {
            Source::Configuration => in_time(self.configuration(last)).await?,
            Source::Table(table) => (in_time(self.rows(table)).await?, 0),
            Source::OpenConfig(of) => (self.made(of).await?, 0),
        };
        let at = Instant::now();
        Ok(Read { at, part, version })
    }

    async fn rows(&self, table: &'static Table) -> Result<Part, Status> {
        let page = self.site.gateway.page(table, &Query::all()).await;
        let page = page.map_err(|status| self.site.gateway.problem(&status))?;
        Ok(Part::of_rows(table, &page.rows, page.missing.is_empty()))
    }

    /// What it is made of is shared as well.
    async fn made(&self, of: &OpenConfig) -> Result<Part, Status> {
        let mut parts = Vec::new();
        for origin in of.origins {
            // whoever calls itself needs a box
            parts.push(Box::pin(self.part((*origin).into())).await?);
        }
        Ok(Part::made(of, &parts))
    }

    /// The configuration is read when there is another version.
    async fn configuration(&self, last: Option<&Read>) -> Result<(Part, u64), Status> {
        let newest = self.site.gateway.newest().await;
        let newest = newest.map_err(|status| self.site.gateway.problem(&status))?;
        if let Some(last) = last.filter(|last| last.version == newest) {
            let same = Part {
                value: last.part.value.clone(),
                at: now(),
                complete: true,
            };
            return Ok((same, newest));
        }
        let _one = self.site.gateway.document().await;
        let (version, value) = read::configuration(&self.site).await?;
        Ok((Part::new(value, true), version))
    }
}

async fn in_time<T>(read: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let late = |_| Err(Status::unavailable("The control plane takes too long."));
    timeout(PATIENCE, read).await.unwrap_or_else(late)
}

//! Data for all subscriptions together: each source is read once a second at most, however many subscribe to it.

use super::now;
use super::read::{self, Part, Source};
use crate::api::Site;
use crate::query::Query;
use gnmi::openconfig;
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
    interfaces: Last,
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
            interfaces: Last::default(),
            configuration: Last::default(),
        }
    }

    /// Data of a source that may be read again and again, not older than a second. While it cannot be read, what was read before is
    /// told, as incomplete and with the time of then.
    ///
    /// # Errors
    /// It cannot be read, and was not read before.
    pub async fn part(&self, source: Source) -> Result<Part, Status> {
        let last = match source {
            Source::Configuration => &self.configuration,
            Source::Interfaces => &self.interfaces,
            Source::Table(table) => {
                let mut tables = self.tables.iter();
                let last = tables.find(|(own, _)| own.name == table.name);
                let not_cheap = || Status::internal(format!("{} is not shared", table.name));
                &last.ok_or_else(not_cheap)?.1
            }
        };
        let mut last = last.lock().await;
        if let Some(read) = last.as_ref().filter(|read| read.at.elapsed() < FRESH) {
            return Ok(read.part.clone());
        }
        let read = timeout(PATIENCE, self.read(source, last.as_ref())).await;
        let late = |_| Err(Status::unavailable("The control plane takes too long."));
        match (read.unwrap_or_else(late), &mut *last) {
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

    async fn read(&self, source: Source, last: Option<&Read>) -> Result<Read, Status> {
        let (part, version) = match source {
            Source::Configuration => self.configuration(last).await?,
            Source::Table(table) => (self.rows(source, table).await?, 0),
            Source::Interfaces => (self.rows(source, openconfig::TABLE).await?, 0),
        };
        let at = Instant::now();
        Ok(Read { at, part, version })
    }

    async fn rows(&self, source: Source, table: &Table) -> Result<Part, Status> {
        let page = self.site.gateway.page(table, &Query::all()).await;
        let page = page.map_err(|status| self.site.gateway.problem(&status))?;
        Ok(source.part(&page.rows, page.missing.is_empty()))
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

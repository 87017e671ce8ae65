//! Sessions by a filter: the pages of their table, and the end of many of them.

use crate::gateway::{Gateway, Page, value};
use crate::query::{Arguments, Query};
use northbound::{ClearSessionsRequest, CountSessionsRequest, ListSessionsRequest, SessionFilter};
use serde_json::Value;
use tonic::Status;

impl Gateway {
    /// A page of the sessions, which the control plane cuts: at no number of sessions are all of them read for it. The first page says
    /// how many there are on all pages.
    pub async fn sessions(&self, query: &Query) -> Result<Page, Status> {
        let filter = filter(&query.arguments)?;
        let mut client = self.control_plane();
        let total = match query.cursor {
            0 => {
                let filter = Some(filter.clone());
                let counted = client
                    .count_sessions(CountSessionsRequest { filter })
                    .await?;
                Some(counted.into_inner().sessions)
            }
            _ => None,
        };
        let request = ListSessionsRequest {
            from: query.cursor,
            most: query.limit as u64,
            filter: Some(filter),
        };
        let mut listing = client.list_sessions(request).await?.into_inner();
        let mut page = Page {
            total,
            ..Page::default()
        };
        while let Some(part) = listing.message().await? {
            page.rows.extend(part.sessions.iter().map(value));
            page.next = part.next;
        }
        Ok(page)
    }

    /// Has the sessions that a filter matches end, or no more of them.
    pub async fn clear_sessions(
        &self,
        arguments: &Arguments,
        person: &str,
    ) -> Result<Value, Status> {
        let (expect, stop) = (arguments.number("expect"), arguments.flag("stop"));
        if expect.is_none() && !stop {
            return Err(Status::invalid_argument(
                "`expect` is missing: ask for the table `sessions` with the same filter, look at it, and give its `total`",
            ));
        }
        let rate = arguments.number("rate").unwrap_or_default();
        let request = ClearSessionsRequest {
            filter: Some(filter(arguments)?),
            expect: expect.unwrap_or_default(),
            rate: rate.try_into().unwrap_or(u32::MAX),
            stop,
        };
        let request = northbound::on_behalf_of(person, request);
        let told = self.control_plane().clear_sessions(request).await?;
        Ok(value(&told.into_inner()))
    }
}

fn filter(arguments: &Arguments) -> Result<SessionFilter, Status> {
    let given = |name: &str| arguments.text(name).map(str::to_owned);
    SessionFilter::read(given).map_err(Status::invalid_argument)
}

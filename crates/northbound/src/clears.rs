//! The server's side of counting sessions by a filter, and of ending them.
//!
//! The control plane looks at a bounded number of sessions for each request, so that nothing waits for long. Here the parts become one
//! answer.

use crate::calls::{Calls, Refusal, other_answer};
use crate::{
    CLEAR_RATE, ClearSessionsRequest, ClearSessionsResponse, MOST_CLEAR_RATE, Request, Response,
    SessionFilter,
};
use tonic::{Response as Reply, Status};

/// One in so many sessions may have come or gone since the caller has looked.
const TOLERATED: u64 = 100;

/// How many sessions a filter matches. All of them are known without looking at each.
pub(crate) async fn count(
    calls: &Calls<Request, Response>,
    filter: SessionFilter,
) -> Result<u64, Status> {
    if filter.is_empty() {
        return match calls.ask(Request::CountSessions).await? {
            Response::SessionCount(sessions) => Ok(sessions),
            other => Err(other_answer(other)),
        };
    }
    Ok(matching(calls, filter).await?.len() as u64)
}

/// Begins to end the sessions that a filter matches, or stops it.
pub(crate) async fn begin(
    calls: &Calls<Request, Response>,
    request: ClearSessionsRequest,
    by: String,
) -> Result<Reply<ClearSessionsResponse>, Status> {
    if request.stop {
        return told(calls.ask(Request::StopClear { by }).await?);
    }
    let filter = request.filter.unwrap_or_default();
    if filter.is_empty() {
        let all = "which sessions are to end is not said: give a filter, such as `state` for all that are online";
        return Err(Refusal::Invalid(all.into()).into());
    }
    let rate = match request.rate {
        0 => CLEAR_RATE,
        rate @ 1..=MOST_CLEAR_RATE => rate,
        rate => {
            let expected = format!("the rate is {rate}: expected 1 to {MOST_CLEAR_RATE}");
            return Err(Refusal::Invalid(expected).into());
        }
    };
    let ids = matching(calls, filter.clone()).await?;
    is_as_seen(ids.len() as u64, request.expect)?;
    told(
        calls
            .ask(Request::ClearSessions {
                ids,
                filter: Box::new(filter),
                rate,
                by,
            })
            .await?,
    )
}

/// Ids of the sessions that a filter matches.
async fn matching(
    calls: &Calls<Request, Response>,
    filter: SessionFilter,
) -> Result<Vec<u64>, Status> {
    let (mut all, mut from) = (Vec::new(), Some(0));
    while let Some(place) = from {
        let request = Request::MatchSessions {
            from: place,
            filter: Box::new(filter.clone()),
        };
        match calls.ask(request).await? {
            Response::Matches { ids, next } => {
                all.extend(ids);
                from = next;
            }
            other => return Err(other_answer(other)),
        }
    }
    Ok(all)
}

/// Whether the sessions are about those that the caller has seen. Homes connect and leave all the time: among many, a few more or fewer
/// are the same sessions to a person. Among less than a hundred they are not.
fn is_as_seen(now: u64, seen: u64) -> Result<(), Refusal> {
    if now.abs_diff(seen) > seen / TOLERATED {
        return Err(Refusal::Outdated(format!(
            "{now} sessions match now, and {seen} were seen: none ends. Look again, and give the number that is there now"
        )));
    }
    Ok(())
}

fn told(response: Response) -> Result<Reply<ClearSessionsResponse>, Status> {
    match response {
        Response::Clearing(told) => Ok(Reply::new(told)),
        other => Err(other_answer(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::is_as_seen;

    #[test]
    fn of_many_sessions_one_percent_may_differ_and_of_few_none() {
        for (now, seen, fits) in [
            (0, 0, true),
            (1, 0, false),
            (99, 99, true),
            (98, 99, false),
            (100, 99, false),
            (101, 100, true),
            (99, 100, true),
            (102, 100, false),
            (131_072, 130_000, true),
            (131_072, 100_000, false),
            (0, u64::MAX, false),
            (u64::MAX, 0, false),
        ] {
            assert_eq!(is_as_seen(now, seen).is_ok(), fits, "{now} of {seen}");
        }
    }
}

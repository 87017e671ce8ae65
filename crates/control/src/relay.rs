//! Questions that only a user plane itself can answer: they are passed on over its management interface, beside the loop.

use crate::management::Standings;
use mi::{Client, GetSessionPolicyRequest};
use northbound::{Answer, Refusal, Response, Session, UserPlaneTable};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::timeout;

/// How long a user plane may take to answer: less than whoever asks has patience for.
const PATIENCE: Duration = Duration::from_secs(4);
/// And to compare all of its tables.
const PATIENCE_FOR_A_CHECK: Duration = Duration::from_secs(55);
/// Questions that are under way at once.
const AT_ONCE: usize = 16;

/// Passes questions on.
pub(crate) struct Relay {
    standings: watch::Receiver<Standings>,
    turns: Arc<Semaphore>,
}

impl Relay {
    pub fn new(standings: watch::Receiver<Standings>) -> Self {
        Relay {
            standings,
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Asks a user plane, and passes on what it says.
    pub fn ask(&self, name: String, table: UserPlaneTable, reply: oneshot::Sender<Answer>) {
        let known = self
            .standings
            .borrow()
            .get(&name)
            .map(|(client, _)| client.clone());
        let Some(client) = known else {
            let why =
                format!("user plane `{name}` does not exist: `sluice show user-planes` lists them");
            let _ = reply.send(Err(Refusal::NotFound(why)));
            return;
        };
        let turns = self.turns.clone();
        let patience = match table {
            UserPlaneTable::Ledger { .. } => PATIENCE_FOR_A_CHECK,
            _ => PATIENCE,
        };
        tokio::spawn(async move {
            let asked = async {
                // it is never closed
                let _turn = turns.acquire().await;
                ask(client, &name, table).await
            };
            let answer = match timeout(patience, asked).await {
                Ok(answer) => answer,
                Err(_) => Err(unreachable(&name, "it took too long")),
            };
            let _ = reply.send(answer); // whoever asked may have gone
        });
    }
}

fn unreachable(name: &str, why: &str) -> Refusal {
    Refusal::Unreachable(format!(
        "user plane {name} does not answer on its management interface ({why}): check that sluice-up runs there, in this \
            version"
    ))
}

async fn ask(mut client: Client, name: &str, table: UserPlaneTable) -> Answer {
    let answer = match table {
        UserPlaneTable::Ports => {
            let ports = client.ports().await;
            ports.map(|ports| Response::Ports { ports })
        }
        UserPlaneTable::Routes { after } => {
            let answer = client.routes(after).await;
            answer.map(|answer| Response::Routes {
                routes: answer.routes,
                more: answer.more,
            })
        }
        UserPlaneTable::Neighbours { after } => {
            let answer = client.neighbours(after).await;
            answer.map(|answer| Response::Neighbours {
                neighbours: answer.neighbours,
                more: answer.more,
            })
        }
        UserPlaneTable::Drops => {
            let answer = client.drops().await;
            answer.map(|mut drops| {
                for drop in &mut drops {
                    drop.plane = name.into(); // it does not say which one it is
                }
                Response::Drops { drops }
            })
        }
        UserPlaneTable::AclRules { acl, after } => {
            let answer = client.acl_rules(acl, after).await;
            answer.map(|answer| Response::AclRules {
                rules: answer.rules,
                more: answer.more,
            })
        }
        UserPlaneTable::Policies => {
            let policies = client.policies().await;
            policies.map(|policies| Response::Policies { policies })
        }
        UserPlaneTable::QueueAggregates { after } => {
            let answer = client.queue_aggregates(after).await;
            answer.map(|answer| Response::QueueAggregates {
                aggregates: answer.aggregates,
                more: answer.more,
            })
        }
        UserPlaneTable::SessionPolicy { session } => {
            let policy = client.session_policy(named(*session)).await;
            policy.map(|policy| Response::SessionPolicy {
                policy: policy.into(),
            })
        }
        UserPlaneTable::WatchRules { session, seconds } => {
            let watched = client.watch_rules(named(*session), seconds).await;
            watched.map(|()| Response::Done)
        }
        UserPlaneTable::MoveAggregate(request) => {
            let moved = client.move_aggregate(aggregate(request)).await;
            moved.map(Response::Moved)
        }
        UserPlaneTable::Ledger { repair } => {
            let ledger = client.check_ledger(repair).await;
            ledger.map(|ledger| Response::Ledger { ledger })
        }
    };
    answer.map_err(|status| match status.message() {
        why if mi::is_busy(&status) => Refusal::Busy(format!("user plane {name}: {why}")),
        why if mi::is_absent(&status) => Refusal::NotFound(format!("user plane {name}: {why}")),
        _ => unreachable(name, &mi::reason(&status)),
    })
}

/// The same without the user plane, which is asked.
fn aggregate(request: northbound::MoveAggregateRequest) -> mi::MoveAggregateRequest {
    mi::MoveAggregateRequest {
        port: request.port,
        segment: request.segment,
        s_tag: request.s_tag,
        worker: request.worker,
    }
}

/// A session as its user plane finds it.
fn named(session: Session) -> GetSessionPolicyRequest {
    GetSessionPolicyRequest {
        port: session.port,
        s_tag: session.s_tag,
        c_tag: session.c_tag,
        mac: session.mac,
        pppoe_session_id: session.pppoe_session_id,
    }
}

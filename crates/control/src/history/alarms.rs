//! The alarms that stand at the end of the history.

use super::event::What;
use super::{Query, Reader};
use crate::alarms::{Acknowledgement, Alarm, Condition};
use core::ops::ControlFlow;
use std::collections::{HashMap, HashSet};

impl Reader {
    /// Alarms that were raised and not cleared, with their acknowledgements.
    pub fn alarms(&self) -> Vec<Alarm> {
        let query = Query {
            alarms: true,
            ..Query::default()
        };
        let (mut known, mut acknowledged) = (HashSet::new(), HashMap::new());
        let mut alarms = Vec::new();
        self.backward(&query, |event| {
            match event.what {
                // the latest one, which comes first here, after the alarm was raised
                What::Acknowledged {
                    fault,
                    resource,
                    by,
                    comment,
                } => {
                    let latest = acknowledged.entry((fault, resource.to_owned()));
                    latest.or_insert_with(|| Acknowledgement {
                        by: by.to_owned(),
                        at: event.unix,
                        comment: comment.to_owned(),
                    });
                }
                What::Alarm {
                    raised,
                    fault,
                    resource,
                    text,
                } => {
                    let of = (fault, resource.to_owned());
                    let acknowledged = acknowledged.remove(&of);
                    if known.insert(of) && raised {
                        let condition = Condition {
                            fault,
                            resource: resource.to_owned(),
                            text: text.to_owned(),
                        };
                        let mut alarm = Alarm::new(condition, event.unix);
                        alarm.acknowledged = acknowledged;
                        alarms.push(alarm);
                    }
                }
                What::System { .. } | What::Subscriber(..) => {}
            }
            ControlFlow::Continue(())
        });
        alarms
    }
}

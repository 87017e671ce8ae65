//! The planned end of the control plane.

use super::{Edge, sleep_until};
use crate::plane::Input;
use core::time::Duration;

/// Time for servers to answer Accounting-Off. What they miss, the next Accounting-On tells them.
const LAST_RECORDS: Duration = Duration::from_secs(3);

impl Edge {
    /// Sends Accounting-Off to the servers of groups that have no session, and waits for their answers.
    pub(super) async fn leave(&mut self) -> Result<(), String> {
        self.plane.handle(self.clock.now(), Input::Leave);
        let answered = tokio::time::timeout(LAST_RECORDS, self.off_answered()).await;
        answered.unwrap_or_else(|_| {
            tracing::warn!("no RADIUS server has answered Accounting-Off");
            Ok(())
        })
    }

    async fn off_answered(&mut self) -> Result<(), String> {
        loop {
            self.carry_out().await?;
            if !self.plane.is_leaving() {
                return Ok(());
            }
            let wake = self.plane.poll_at().map(|at| self.clock.instant(at));
            tokio::select! {
                Some((socket, replies)) = self.radius.replies.recv() => self.on_replies(socket, &replies),
                Some((connection, event)) = self.streams.next() => self.on_stream(connection, event),
                Ok(()) = self.durable.changed() => self.on_durable(),
                () = sleep_until(wake) => self.plane.on_timeout(self.clock.now()),
            }
        }
    }
}

//! The command line's side of the control plane's socket.

use crate::control_plane_client::ControlPlaneClient;
use crate::{
    AcknowledgeAlarmRequest, CallError, CheckLedgerRequest, CheckUserPlaneLedgerRequest,
    ClearBackOffRequest, ClearSessionRequest, ClearSessionsRequest, ClearSessionsResponse,
    Connection, CountSessionsRequest, DropCounter, GetSessionPolicyRequest, GetSessionRequest,
    Ledger, ListDropsRequest, ListSessionClearsRequest, ListSessionsRequest,
    ListUserPlaneDropsRequest, ListUserPlanesRequest, MoveAggregateRequest, MoveAggregateResponse,
    PATIENCE_FOR_A_CHECK, Session, SessionClear, SessionFilter, SessionPolicy, TestAaaRequest,
    TestAaaResponse, UserPlane, WatchRulesRequest,
};
use std::path::Path;
use std::time::Duration;
use tonic::transport::Channel;

/// A connection to a control plane. Each call waits for its answer.
pub struct Client {
    connection: Connection,
    client: ControlPlaneClient<Channel>,
}

impl Client {
    /// As [`Connection::open`].
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn connect(path: &Path, patience: Duration) -> Result<Self, CallError> {
        let connection = Connection::open(path, patience)?;
        let client = ControlPlaneClient::new(connection.channel());
        Ok(Client { connection, client })
    }

    /// Every session, in order of id.
    pub fn sessions(&mut self) -> Result<Vec<Session>, CallError> {
        self.sessions_of(ListSessionsRequest::default())
    }

    /// The sessions that are asked for, in order of id.
    pub fn sessions_of(&mut self, request: ListSessionsRequest) -> Result<Vec<Session>, CallError> {
        let Client { connection, client } = self;
        let mut listing = connection.wait(client.list_sessions(request))?.into_inner();
        let mut sessions = Vec::new();
        while let Some(more) = connection.wait(listing.message())? {
            sessions.extend(more.sessions);
        }
        sessions.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        Ok(sessions)
    }

    /// One session.
    pub fn session(&mut self, id: &str) -> Result<Session, CallError> {
        let request = GetSessionRequest { id: id.into() };
        let answer = self.connection.wait(self.client.get_session(request))?;
        Ok(answer.into_inner().session.unwrap_or_default())
    }

    /// What the policies of a session have done.
    pub fn session_policy(&mut self, id: &str) -> Result<SessionPolicy, CallError> {
        let request = GetSessionPolicyRequest { id: id.into() };
        let answer = self.client.get_session_policy(request);
        let answer = self.connection.wait(answer)?.into_inner();
        Ok(answer.policy.unwrap_or_default())
    }

    /// Counts for so many seconds how often the packets of a session hit each rule of its policies; 0 ends it.
    pub fn watch_rules(&mut self, id: &str, seconds: u32) -> Result<(), CallError> {
        let id = id.into();
        let request = WatchRulesRequest { id, seconds };
        self.connection.wait(self.client.watch_rules(request))?;
        Ok(())
    }

    /// Ends a session.
    pub fn clear_session(&mut self, id: &str) -> Result<(), CallError> {
        let request = ClearSessionRequest { id: id.into() };
        self.connection.wait(self.client.clear_session(request))?;
        Ok(())
    }

    /// How many sessions a filter matches.
    pub fn count_sessions(&mut self, filter: SessionFilter) -> Result<u64, CallError> {
        let filter = Some(filter);
        let answer = self.client.count_sessions(CountSessionsRequest { filter });
        Ok(self.connection.wait(answer)?.into_inner().sessions)
    }

    /// Begins to end the sessions that a filter matches, or stops it.
    pub fn clear_sessions(
        &mut self,
        request: ClearSessionsRequest,
    ) -> Result<ClearSessionsResponse, CallError> {
        let answer = self.client.clear_sessions(request);
        Ok(self.connection.wait(answer)?.into_inner())
    }

    /// The latest requests that ended sessions by a filter, the last one first.
    pub fn session_clears(&mut self) -> Result<Vec<SessionClear>, CallError> {
        let answer = self.client.list_session_clears(ListSessionClearsRequest {});
        Ok(self.connection.wait(answer)?.into_inner().clears)
    }

    /// Forgets the failed set-ups and logins of a MAC address, a circuit id, or a line.
    pub fn clear_back_off(&mut self, who: &str) -> Result<(), CallError> {
        let request = ClearBackOffRequest { who: who.into() };
        self.connection.wait(self.client.clear_back_off(request))?;
        Ok(())
    }

    /// Moves an aggregate to a worker.
    pub fn move_aggregate(
        &mut self,
        request: MoveAggregateRequest,
    ) -> Result<MoveAggregateResponse, CallError> {
        let answer = self.client.move_aggregate(request);
        Ok(self.connection.wait(answer)?.into_inner())
    }

    /// Acknowledges a raised alarm.
    pub fn acknowledge_alarm(&mut self, request: AcknowledgeAlarmRequest) -> Result<(), CallError> {
        let answer = self.client.acknowledge_alarm(request);
        self.connection.wait(answer)?;
        Ok(())
    }

    /// Asks AAA about a user, as a session of this access profile would; without a name, of the only one.
    pub fn test_aaa(
        &mut self,
        user: &str,
        password: &str,
        access_profile: Option<&str>,
    ) -> Result<TestAaaResponse, CallError> {
        let request = TestAaaRequest {
            user: user.into(),
            password: password.into(),
            access_profile: access_profile.unwrap_or_default().into(),
        };
        let answer = self.connection.wait(self.client.test_aaa(request))?;
        Ok(answer.into_inner())
    }

    /// Every user plane, in the order of the configuration.
    pub fn user_planes(&mut self) -> Result<Vec<UserPlane>, CallError> {
        let answer = self.client.list_user_planes(ListUserPlanesRequest {});
        Ok(self.connection.wait(answer)?.into_inner().user_planes)
    }

    /// The control plane's counters, those that are zero too.
    pub fn drops(&mut self) -> Result<Vec<DropCounter>, CallError> {
        let answer = self.client.list_drops(ListDropsRequest {});
        Ok(self.connection.wait(answer)?.into_inner().drops)
    }

    /// A user plane's counters, those that are zero too.
    pub fn user_plane_drops(&mut self, user_plane: &str) -> Result<Vec<DropCounter>, CallError> {
        let user_plane = user_plane.into();
        let request = ListUserPlaneDropsRequest { user_plane };
        let answer = self.client.list_user_plane_drops(request);
        Ok(self.connection.wait(answer)?.into_inner().drops)
    }

    /// Compares what the control plane holds with the owners of it, and puts right what differs if `repair` is set.
    pub fn check_ledger(&mut self, repair: bool) -> Result<Ledger, CallError> {
        let answer = self.client.check_ledger(CheckLedgerRequest { repair });
        let answer = self.connection.wait_for(PATIENCE_FOR_A_CHECK, answer)?;
        Ok(answer.into_inner().ledger.unwrap_or_default())
    }

    /// The same of a user plane.
    pub fn check_user_plane_ledger(
        &mut self,
        user_plane: &str,
        repair: bool,
    ) -> Result<Ledger, CallError> {
        let request = CheckUserPlaneLedgerRequest {
            user_plane: user_plane.into(),
            repair,
        };
        let answer = self.client.check_user_plane_ledger(request);
        let answer = self.connection.wait_for(PATIENCE_FOR_A_CHECK, answer)?;
        Ok(answer.into_inner().ledger.unwrap_or_default())
    }
}

//! A user plane's Unix socket, for those who wait: the lab and tests.

use crate::ListPortsRequest;
use crate::mi_client::MiClient;
use northbound::{CallError, CheckLedgerRequest, Connection, Ledger, PATIENCE_FOR_A_CHECK, Port};
use std::path::Path;
use std::time::Duration;
use tonic::transport::Channel;

/// A connection to a user plane on this machine. Each call waits for its answer.
pub struct Client {
    connection: Connection,
    client: MiClient<Channel>,
}

impl Client {
    /// As [`Connection::open`].
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn connect(path: &Path, patience: Duration) -> Result<Self, CallError> {
        let connection = Connection::open(path, patience)?;
        let client = MiClient::new(connection.channel());
        Ok(Client { connection, client })
    }

    /// The ports in the order of the configuration.
    pub fn ports(&mut self) -> Result<Vec<Port>, CallError> {
        let answer = self.client.list_ports(ListPortsRequest {});
        Ok(self.connection.wait(answer)?.into_inner().ports)
    }

    /// Compares what the user plane holds with the owners of it, and puts right what differs if `repair` is set.
    pub fn check_ledger(&mut self, repair: bool) -> Result<Ledger, CallError> {
        let answer = self.client.check_ledger(CheckLedgerRequest { repair });
        let answer = self.connection.wait_for(PATIENCE_FOR_A_CHECK, answer)?;
        Ok(answer.into_inner().ledger.unwrap_or_default())
    }
}

//! Rejections: PFCP causes and log messages.

use pfcp::bng::Rejection;
use tracing::info;
use wire::pfcp::{
    Cause, SessionDeletionResponse, SessionEstablishmentResponse, SessionModificationResponse,
};

use super::{Engine, Output, Wanted, own_seid, request_name};
use crate::table::Seid;

impl<T: Copy> Engine<T> {
    pub(super) fn respond(&mut self, to: T, seid: u64, message: impl Into<wire::pfcp::Message>) {
        self.outputs.push_back(Output::Respond {
            to,
            seid,
            message: message.into(),
        });
    }

    pub(super) fn refuse(&mut self, to: T, seid: u64, wanted: &Wanted, rejection: &Rejection) {
        match wanted {
            Wanted::Modify(_) => self.refuse_modification(to, seid, rejection),
            Wanted::Delete => {
                info!(%rejection, request = request_name(wanted), "PFCP request rejected");
                let message = SessionDeletionResponse {
                    cause: rejection.cause,
                    offending_ie: rejection.offending_kind(),
                    ..Default::default()
                };
                self.respond(to, seid, message);
            }
        }
    }

    pub(super) fn refuse_modification(&mut self, to: T, seid: u64, rejection: &Rejection) {
        info!(cp_seid = format_args!("{seid:#x}"), %rejection, "PFCP session modification rejected");
        let message = SessionModificationResponse {
            cause: rejection.cause,
            offending_ie: rejection.offending_kind(),
            failed_rule: rejection.failed_rule,
            ..Default::default()
        };
        self.respond(to, seid, message);
    }

    /// Rejects an establishment. `stays` is the session that it would have replaced.
    pub(super) fn refuse_establishment(
        &mut self,
        to: T,
        seid: u64,
        stays: Option<Seid>,
        rejection: &Rejection,
    ) {
        // These come in large numbers. They are counted and logged where they arise.
        let no_room = [Cause::NO_RESOURCES_AVAILABLE, Cause::ENTITY_IN_CONGESTION];
        if !no_room.contains(&rejection.cause) {
            info!(cp_seid = format_args!("{seid:#x}"), %rejection, "PFCP session establishment rejected");
        }
        let stays = stays.filter(|seid| {
            let session = self.table.resolve(*seid);
            session.is_some_and(|session| !session.is_leaving())
        });
        let message = SessionEstablishmentResponse {
            node_id: self.config.node_id.clone(),
            cause: rejection.cause,
            offending_ie: rejection.offending_kind(),
            up_f_seid: stays.map(|seid| own_seid(&self.config, seid)),
            failed_rule: rejection.failed_rule,
        };
        self.respond(to, seid, message);
    }
}

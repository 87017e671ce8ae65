//! Document state of one user plane: the wanted document, the one in force, and the next action. It is sans-IO; the control plane's task
//! for each user plane and the simulation both use it.

use super::here;
use config::Configuration;
use mi::{ApplyResponse, Document, InForce, State};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Time that a user plane may take for each megabyte of a document: to read, check and write it on a busy machine.
const EACH_MEGABYTE: Duration = Duration::from_secs(1);

/// Document that a user plane should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Version of the configuration from which the document was made.
    version: u64,
    hash: String,
    /// Shared: it may have many megabytes.
    text: Arc<str>,
}

impl Wanted {
    /// Makes the document of each user plane in this version of the configuration.
    pub fn all(configuration: &Configuration, version: u64) -> BTreeMap<String, Self> {
        let names = configuration.user_planes.keys();
        let documents = names.map(|name| (name.clone(), Wanted::new(configuration, name, version)));
        documents.collect()
    }

    /// Makes the document for a user plane in this version of the configuration.
    pub fn new(configuration: &Configuration, name: &str, version: u64) -> Self {
        let document = configuration.document_for(name).unwrap_or_default();
        let text = serde_json::to_string(&document).expect("a document has only names and values");
        let Document { hash, text, .. } = Document::new(version, text);
        Wanted {
            version,
            hash,
            text: text.into(),
        }
    }

    /// Time that the user plane may take for the document's size.
    pub(super) fn patience(&self) -> Duration {
        EACH_MEGABYTE * (self.text.len() as u32 / 1_000_000)
    }

    /// Whether two documents have the same content.
    pub fn is_same(&self, other: &Wanted) -> bool {
        self.hash == other.hash
    }

    /// Document for a validation before this version is in force.
    pub(super) fn candidate(&self) -> Document {
        self.document(0)
    }

    /// Document with a generation of at least `generation`.
    fn document(&self, generation: u64) -> Document {
        Document {
            generation: generation.max(self.version),
            hash: self.hash.clone(),
            text: self.text.to_string(),
        }
    }
}

/// Next action for a user plane.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Do nothing until something changes.
    Nothing,
    /// Notify the control plane's loop that the user plane has its document.
    HasIt,
    /// Send this document, then call [`Standing::answered`].
    Apply(Document),
}

/// State of a user plane.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Whether it answers.
    pub(crate) reached: bool,
    /// Document in force there.
    pub(crate) in_force: Option<InForce>,
    /// Hash of the last rejected document, with the reason.
    pub(super) refused: Option<(String, String)>,
    /// Whether to check the wanted document even if it is in force or was rejected.
    anew: bool,
    /// Last state message.
    pub(crate) state: Option<State>,
    /// Time of that message.
    pub(crate) told_at: Option<Instant>,
}

impl Standing {
    /// Notes that the user plane answers, with this document in force.
    pub fn met(&mut self, in_force: Option<InForce>) {
        (self.reached, self.anew) = (true, true);
        self.in_force = in_force;
    }

    /// Notes that the connection is lost.
    pub fn lost(&mut self) {
        self.reached = false;
        self.state = None;
    }

    /// Notes that another document is wanted, or that the rejected one is to be sent again.
    pub fn offer_again(&mut self) {
        self.anew = true;
    }

    /// Notes the document in force from a state message.
    pub fn told(&mut self, in_force: Option<InForce>) {
        self.in_force = in_force;
    }

    /// Next action. A rejected document is sent again only after [`Standing::offer_again`] or [`Standing::met`].
    pub fn next(&mut self, wanted: &Wanted) -> Next {
        let anew = std::mem::take(&mut self.anew);
        if self.has(wanted) {
            self.refused = None;
            return if anew { Next::HasIt } else { Next::Nothing };
        }
        if self.refuses(wanted).is_some() && !anew {
            return Next::Nothing;
        }
        let next = self.in_force.as_ref().map_or(0, |f| f.generation + 1);
        Next::Apply(wanted.document(next))
    }

    /// Handles the answer of the user plane with this name to a document from [`Standing::next`].
    pub fn answered(&mut self, name: &str, document: &Document, answer: ApplyResponse) -> Next {
        let faults = answer.faults.into_iter();
        let faults: Vec<String> = faults.map(|f| here(name, f).to_string()).collect();
        self.in_force = answer.in_force;
        self.refused = None;
        if faults.is_empty() {
            return Next::HasIt;
        }
        self.refused = Some((document.hash.clone(), faults.join("; ")));
        Next::Nothing
    }

    /// Document to validate; `None` if the user plane does not answer or already has it.
    pub fn to_validate(&self, candidate: &Wanted) -> Option<Document> {
        (self.reached && !self.has(candidate)).then(|| candidate.candidate())
    }

    /// Whether it has the wanted document.
    pub fn has(&self, wanted: &Wanted) -> bool {
        let in_force = self.in_force.as_ref();
        in_force.is_some_and(|in_force| in_force.hash == wanted.hash)
    }

    /// Reason for which it rejects the wanted document, if it does.
    pub fn refuses(&self, wanted: &Wanted) -> Option<&str> {
        let refused = self.refused.as_ref();
        let refused = refused.filter(|(hash, _)| *hash == wanted.hash);
        refused.map(|(_, why)| why.as_str())
    }

    /// Reason for which it does not have the wanted document.
    pub(super) fn why(&self, wanted: &Wanted) -> &str {
        match (self.refuses(wanted), self.reached) {
            (Some(why), _) => why,
            (None, true) => "it has not answered yet",
            (None, false) => "it cannot be reached; it hears of it when it can",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mi::DocumentFault;

    fn wanted(version: u64, text: &str) -> Wanted {
        let Document { hash, text, .. } = Document::new(version, text.into());
        Wanted {
            version,
            hash,
            text: text.into(),
        }
    }

    fn offered(next: Next) -> Document {
        match next {
            Next::Apply(document) => document,
            other => panic!("{other:?}"),
        }
    }

    fn refused(in_force: Option<InForce>) -> ApplyResponse {
        let fault = DocumentFault {
            path: "ports access0".into(),
            message: "no such device".into(),
        };
        ApplyResponse {
            faults: vec![fault],
            in_force,
        }
    }

    #[test]
    fn it_is_told_once_for_each_document_and_connection_that_it_has_it() {
        let (mut standing, wanted) = (Standing::default(), wanted(7, "{}"));
        standing.met(None);
        let document = offered(standing.next(&wanted));
        assert_eq!(document.generation, 7);
        let in_force = Some(document.in_force(0));
        let answer = ApplyResponse {
            faults: Vec::new(),
            in_force: in_force.clone(),
        };
        assert_eq!(standing.answered("up1", &document, answer), Next::HasIt);
        assert_eq!(standing.next(&wanted), Next::Nothing);
        standing.told(in_force.clone());
        assert_eq!(standing.next(&wanted), Next::Nothing);
        standing.lost();
        standing.met(in_force);
        assert_eq!(standing.next(&wanted), Next::HasIt);
        // It was another one in between, and this one came back before it was sent: ports of it may be new nevertheless.
        standing.offer_again();
        assert_eq!(standing.next(&wanted), Next::HasIt);
    }

    #[test]
    fn what_is_sent_is_later_than_what_is_in_force() {
        let (mut standing, wanted) = (Standing::default(), wanted(7, "{}"));
        standing.met(Some(Document::new(9, "[]".into()).in_force(0)));
        assert_eq!(offered(standing.next(&wanted)).generation, 10);
        // Somebody else brought another document meanwhile.
        standing.told(Some(Document::new(12, "[]".into()).in_force(0)));
        assert_eq!(offered(standing.next(&wanted)).generation, 13);
    }

    #[test]
    fn what_was_refused_is_offered_again_only_when_it_is_time() {
        let (mut standing, bad) = (Standing::default(), wanted(7, "{}"));
        standing.met(None);
        let document = offered(standing.next(&bad));
        assert_eq!(
            standing.answered("up1", &document, refused(None)),
            Next::Nothing
        );
        assert_eq!(standing.next(&bad), Next::Nothing);
        assert!(
            standing
                .refuses(&bad)
                .is_some_and(|why| why.contains("no such device"))
        );
        standing.offer_again();
        assert_eq!(offered(standing.next(&bad)), document);
    }

    #[test]
    fn what_was_refused_says_nothing_about_the_next_document() {
        let (mut standing, bad, cure) = (Standing::default(), wanted(7, "{}"), wanted(8, "[]"));
        standing.met(None);
        let document = offered(standing.next(&bad));
        standing.answered("up1", &document, refused(None));
        assert_eq!(
            standing.why(&bad),
            "user-planes up1 ports access0: no such device"
        );
        assert_eq!(standing.refuses(&cure), None);
        assert_eq!(standing.why(&cure), "it has not answered yet");
        offered(standing.next(&cure));
    }
}

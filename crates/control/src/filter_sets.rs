//! Rules that subscribers have from RADIUS (NAS-Filter-Rule): bounded, and kept once for all sessions that have the same.

use policy::FilterRules;
use std::collections::BTreeSet;

/// Maximum number of different sets of rules that sessions have at a time. A user plane compiles a policy of each, for each direction and
/// for each policy behind it, and has room for 4,096 policies.
const MOST: usize = 1024;

/// Sets of rules that sessions have.
#[derive(Default)]
pub(crate) struct FilterSets(BTreeSet<FilterRules>);

impl FilterSets {
    /// Lets a session's rules be those of other sessions that have the same.
    ///
    /// # Errors
    /// Text for the operator: the sessions have too many different sets already.
    pub fn share(&mut self, rules: &mut Option<FilterRules>) -> Result<(), String> {
        let Some(own) = rules else {
            return Ok(());
        };
        if let Some(known) = self.0.get(own) {
            *own = known.clone();
            return Ok(());
        }
        if self.0.len() >= MOST {
            self.0.retain(FilterRules::is_shared);
        }
        if self.0.len() >= MOST {
            return Err(format!(
                "sessions have {MOST} different sets of NAS-Filter-Rules, the most that there may be: let subscribers have the same \
                 rules, or name a policy by Filter-Id (`{own}`)"
            ));
        }
        // a copy, so that only sessions share it
        *own = own.unshared();
        self.0.insert(own.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(number: usize) -> Option<FilterRules> {
        FilterRules::new(&format!("deny in tcp from any to any {number}"))
    }

    #[test]
    fn sets_are_shared_bounded_and_freed_with_their_last_session() {
        let mut sets = FilterSets::default();
        let mut sessions: Vec<_> = (0..MOST).map(rules).collect();
        for session in &mut sessions {
            assert_eq!(sets.share(session), Ok(()));
        }
        let mut another = rules(7);
        assert_eq!(sets.share(&mut another), Ok(()), "it is known");
        let mut further = rules(MOST);
        let why = sets.share(&mut further).unwrap_err();
        assert!(
            why.starts_with("sessions have 1024 different sets"),
            "{why}"
        );
        assert!(why.contains("to any 1024"), "{why}");
        assert_eq!(sets.share(&mut None), Ok(()));
        sessions[7] = None;
        assert!(sets.share(&mut further).is_err(), "one more has it");
        drop(another);
        assert_eq!(sets.share(&mut further), Ok(()));
    }

    #[test]
    fn what_only_a_last_answer_has_takes_no_room() {
        let mut sets = FilterSets::default();
        let last_answer = rules(1);
        let mut session = last_answer.clone();
        assert_eq!(sets.share(&mut session), Ok(()));
        drop(session);
        sets.0.retain(FilterRules::is_shared);
        assert!(sets.0.is_empty());
    }
}

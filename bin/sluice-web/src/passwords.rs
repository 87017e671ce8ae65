//! Checks of passwords. Each takes memory and time, so that few are made at once, and few wait.

use crate::problem::Problem;
use crate::users::User;
use axum::http::StatusCode;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

/// Checks at once. Each takes 19 MiB.
const AT_ONCE: usize = 2;
/// Sign-ins that wait or are checked. One more is refused.
const ROOM: usize = 16;

/// Room for checks of passwords.
#[derive(Debug)]
pub struct Passwords {
    room: Arc<Semaphore>,
    turns: Arc<Semaphore>,
    /// Hash of a password that nobody knows.
    decoy: Arc<str>,
}

/// Turn of a sign-in. The next one has its turn when this is dropped, and no work of it goes on.
#[derive(Debug)]
pub struct Turn {
    held: Arc<[OwnedSemaphorePermit; 2]>,
    decoy: Arc<str>,
}

impl Passwords {
    /// Room for checks.
    ///
    /// # Errors
    /// The system has no random numbers, or no memory.
    pub fn new() -> Result<Self, String> {
        let decoy = config::password::hash(&rand::random::<[u8; 32]>())?;
        Ok(Passwords {
            room: Arc::new(Semaphore::new(ROOM)),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            decoy: decoy.into(),
        })
    }

    /// Waits for the turn of a sign-in.
    ///
    /// # Errors
    /// Too many wait.
    pub async fn turn(&self) -> Result<Turn, Problem> {
        let busy = || {
            let detail = "Too many sign in at once: try again in a moment.";
            Problem::later(StatusCode::SERVICE_UNAVAILABLE, 1, detail)
        };
        let room = self.room.clone().try_acquire_owned();
        let room = room.map_err(|_| busy())?;
        // nobody closes it
        let turn = self.turns.clone().acquire_owned().await;
        Ok(Turn {
            held: Arc::new([room, turn.map_err(|_| busy())?]),
            decoy: self.decoy.clone(),
        })
    }
}

impl Turn {
    /// Whether a password is that of a user. It takes as long without a user: how long an answer takes does not tell which users there are.
    pub async fn verify(&self, user: Option<&User>, password: &config::Secret) -> bool {
        let hash = user.map_or_else(|| self.decoy.to_string(), |user| user.hash().to_owned());
        let (password, held) = (password.clone(), self.held.clone());
        let checked = spawn_blocking(move || {
            // held until the work is done, also if nobody waits for it any more
            let _held = held;
            config::password::verify(&hash, password.reveal().as_bytes())
        });
        checked.await.unwrap_or(false) && user.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Role;
    use std::time::{Duration, Instant};

    fn secret(text: &str) -> config::Secret {
        serde_json::from_value(text.into()).unwrap()
    }

    #[tokio::test]
    async fn a_password_verify_for_its_user_alone() {
        let passwords = Passwords::new().unwrap();
        let alice = User::new("alice", Role::View, "correct horse battery", 0).unwrap();
        for (user, password, right) in [
            (Some(&alice), "correct horse battery", true),
            (Some(&alice), "correct horse batter", false),
            (Some(&alice), "", false),
            (None, "correct horse battery", false),
        ] {
            let turn = passwords.turn().await.unwrap();
            assert_eq!(turn.verify(user, &secret(password)).await, right);
        }
    }

    #[tokio::test]
    async fn an_unknown_user_costs_a_check() {
        let passwords = Passwords::new().unwrap();
        let alice = User::new("alice", Role::View, "correct horse battery", 0).unwrap();
        let mut took = [Duration::ZERO; 2];
        for _ in 0..5 {
            for (took, user) in took.iter_mut().zip([Some(&alice), None]) {
                let turn = passwords.turn().await.unwrap();
                let begun = Instant::now();
                turn.verify(user, &secret("wrong")).await;
                *took += begun.elapsed();
            }
        }
        // without the decoy, a thousandth
        assert!(took[1] * 5 > took[0], "{took:?}");
    }

    #[tokio::test]
    async fn few_are_checked_at_once_and_few_wait() {
        let passwords = Arc::new(Passwords::new().unwrap());
        let mut turns = Vec::new();
        for _ in 0..AT_ONCE {
            turns.push(passwords.turn().await.unwrap());
        }
        let wait = || {
            tokio::spawn({
                let passwords = passwords.clone();
                async move { passwords.turn().await }
            })
        };
        let waiting: Vec<_> = (AT_ONCE..ROOM).map(|_| wait()).collect();
        tokio::task::yield_now().await;
        assert!(waiting.iter().all(|waits| !waits.is_finished()));
        assert!(passwords.turn().await.is_err(), "there is no room");
        drop(turns);
        for waits in waiting {
            drop(waits.await.unwrap().unwrap());
        }
        assert!(passwords.turn().await.is_ok());
    }
}

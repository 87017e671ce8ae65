//! Threads that compare passwords of local users with their hashes. A comparison takes some 10 ms and megabytes of memory, so the loop
//! leaves it to them. The control plane bounds how many it hands over ([`MOST_VERIFICATIONS`]), and the configuration what one costs
//! ([`config::password`]).

use crate::plane::MOST_VERIFICATIONS;
use aaa::Secret;
use std::io;
use std::sync::mpsc::{Receiver as Queue, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;
use tokio::sync::mpsc;

/// Number of threads. Each has the memory of one hash.
const THREADS: usize = 2;

/// Password and hash to compare.
pub(super) struct Job {
    pub ticket: u64,
    /// Time after which nobody waits for the result.
    pub deadline: Instant,
    pub hash: Secret,
    pub password: Secret,
}

/// Handle of the threads. They end when it is dropped.
pub(super) struct PasswordThreads {
    jobs: SyncSender<Job>,
    /// Tickets of jobs that are done, and whether the password was right.
    pub done: mpsc::Receiver<(u64, bool)>,
}

impl PasswordThreads {
    pub fn start() -> io::Result<Self> {
        let (jobs, queue) = sync_channel(MOST_VERIFICATIONS);
        let (results, done) = mpsc::channel(MOST_VERIFICATIONS);
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..THREADS {
            let (queue, results) = (queue.clone(), results.clone());
            let thread = thread::Builder::new().name("password".into());
            thread.spawn(move || work(&queue, &results))?;
        }
        Ok(PasswordThreads { jobs, done })
    }

    /// Hands a job over. Every job is reported as done.
    pub fn verify(&self, job: Job) {
        // There is room, because the control plane never has more under way; the threads live as long as the handle.
        if self.jobs.try_send(job).is_err() {
            tracing::error!(
                "a password cannot be verified: its subscriber is rejected after the deadline"
            );
        }
    }
}

fn work(queue: &Mutex<Queue<Job>>, results: &mpsc::Sender<(u64, bool)>) {
    loop {
        let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(job) = queue.recv() else {
            return;
        };
        drop(queue);
        let is_right = job.deadline > Instant::now() && is_right(&job);
        if results.blocking_send((job.ticket, is_right)).is_err() {
            return;
        }
    }
}

fn is_right(job: &Job) -> bool {
    let hash = str::from_utf8(job.hash.expose());
    hash.is_ok_and(|hash| config::password::verify(hash, job.password.expose()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::time::Duration;

    #[test]
    fn every_job_is_done_and_one_that_is_late_is_not_computed() {
        let hash = config::password::hash(b"right").unwrap();
        let mut threads = PasswordThreads::start().unwrap();
        let now = Instant::now();
        let later = now + Duration::from_secs(3600);
        let jobs = [("right", later), ("wrong", later), ("right", now)];
        for (ticket, (password, deadline)) in jobs.into_iter().enumerate() {
            threads.verify(Job {
                ticket: ticket as u64,
                deadline,
                hash: Secret::new(hash.clone()),
                password: Secret::new(password),
            });
        }
        let done = (0..3).map(|_| threads.done.blocking_recv().unwrap());
        let done: BTreeMap<u64, bool> = done.collect();
        assert_eq!(done, [(0, true), (1, false), (2, false)].into());
    }
}

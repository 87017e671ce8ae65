//! RADIUS servers with a limited speed, and what may be wrong with them.

use crate::radius_checker::RadiusChecker;
use crate::server::{Health, serve};
use core::time::Duration;
use rand::Rng;
use rand::rngs::StdRng;
use std::collections::BTreeMap;

/// For so long a server knows a request again that it has answered, and repeats its answer (RFC 5080 §2.2.2).
const MEMORY: Duration = Duration::from_secs(5);

/// What is wrong with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It answers nothing.
    Dead,
    /// It serves so many requests a second.
    Slow(u32),
    /// It loses so many of a hundred requests and of a hundred answers.
    Lossy(u32),
    /// It answers for 5 s, and then nothing for 20 s, and so on.
    Flapping,
    /// It sends each answer twice, the second time a second later.
    Twice,
    /// It has another secret.
    WrongSecret,
    /// Its answers have a code that answers another kind of request.
    WrongCode,
    /// Its answers have the identifier of another request.
    WrongIdentifier,
    /// It answers after so long, when the next server has been asked.
    Late(Duration),
}

/// Datagram on its way to a server.
pub struct Request {
    /// Number of the control plane's socket.
    pub socket: u16,
    /// Port of the server.
    pub port: u16,
    /// The datagram.
    pub bytes: Vec<u8>,
}

/// Identity of a datagram: port, socket and first twenty octets.
type Key = (u16, u16, [u8; 20]);

/// A server.
pub struct Server {
    number: usize,
    /// Requests a second that it serves when nothing is wrong.
    speed: u32,
    /// So much of its work waits at most; what comes beyond that is lost.
    pub backlog: Duration,
    /// What is wrong now.
    pub trouble: Option<Trouble>,
    free_at: Duration,
    answered: BTreeMap<Key, (Duration, Vec<u8>)>,
    /// Datagrams that arrived in each second, by the second.
    pub arrivals: BTreeMap<u64, u32>,
    /// Requests that it has served.
    pub served: u64,
}

fn flips(now: Duration) -> bool {
    now.as_secs() % 25 >= 5
}

impl Server {
    /// A server of this speed.
    pub fn new(number: usize, speed: u32) -> Self {
        Server {
            number,
            speed,
            backlog: Duration::from_secs(2),
            trouble: None,
            free_at: Duration::ZERO,
            answered: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            served: 0,
        }
    }

    /// A datagram arrives. Returns its answers, and when each is sent.
    ///
    /// # Errors
    /// What is wrong with the request, or with a record.
    pub fn take(
        &mut self,
        now: Duration,
        request: &Request,
        checker: &mut RadiusChecker,
        random: &mut StdRng,
    ) -> Result<Vec<(Duration, Vec<u8>)>, String> {
        *self.arrivals.entry(now.as_secs()).or_default() += 1;
        let trouble = self.trouble;
        let mut lost = |percent| random.random_range(0..100) < percent;
        match trouble {
            Some(Trouble::Dead) => return Ok(Vec::new()),
            Some(Trouble::Flapping) if flips(now) => return Ok(Vec::new()),
            Some(Trouble::Lossy(percent)) if lost(percent) => return Ok(Vec::new()),
            _ => {}
        }
        let head = request.bytes[..20].try_into().expect("a whole header");
        let key = (request.port, request.socket, head);
        if let Some((at, bytes)) = self.answered.get(&key)
            && now < *at + MEMORY
        {
            // one that it works on is not begun again
            let answer = (*at <= now).then(|| (now, bytes.clone()));
            return Ok(answer.into_iter().collect());
        }
        let speed = match trouble {
            Some(Trouble::Slow(speed)) => speed,
            _ => self.speed,
        };
        if self.free_at > now + self.backlog {
            return Ok(Vec::new());
        }
        let at = self.free_at.max(now) + Duration::from_secs(1) / speed;
        self.free_at = at;
        self.served += 1;
        let health = match trouble {
            Some(Trouble::WrongSecret) => Health::Wrong,
            _ => Health::Well,
        };
        let from = (self.number, request.port, request.socket);
        let mut bytes = serve(now, from, health, checker, &|_| Vec::new(), &request.bytes)?;
        if let Some(Trouble::WrongCode) = trouble {
            bytes = crate::server::with_another_code(&bytes, &request.bytes);
        }
        if let Some(Trouble::WrongIdentifier) = trouble {
            bytes[1] ^= 1;
        }
        self.answered.insert(key, (at, bytes.clone()));
        if self.answered.len() > 65_536 {
            self.answered.retain(|_, (at, _)| now < *at + MEMORY);
        }
        Ok(match trouble {
            Some(Trouble::Lossy(percent)) if lost(percent) => Vec::new(),
            Some(Trouble::Twice) => vec![(at, bytes.clone()), (at + Duration::from_secs(1), bytes)],
            Some(Trouble::Late(late)) => vec![(at + late, bytes)],
            _ => vec![(at, bytes)],
        })
    }

    /// The most datagrams that arrived in one of these seconds.
    pub fn most_in_a_second(&self, from: Duration, to: Duration) -> u32 {
        let seconds = self.arrivals.range(from.as_secs()..to.as_secs());
        seconds.map(|(_, count)| *count).max().unwrap_or(0)
    }
}

//! Copies of packets on their way from the user plane's loop to whoever reads them.

use crate::{SampleRequest, SampleResponse};
use futures_util::Stream;
use futures_util::stream::unfold;
use std::ops::RangeInclusive;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tonic::Status;

/// Copies that may wait for whoever reads.
const QUEUE: usize = 256;
/// Copies in a second.
const PER_SECOND: RangeInclusive<u32> = 1..=1000;
/// How long, in seconds.
const SECONDS: RangeInclusive<u32> = 1..=3600;

/// What is to be sampled, and where the copies go.
#[derive(Clone, Debug)]
pub struct Sampling {
    /// The home's MAC address.
    pub mac: [u8; 6],
    /// Its access port.
    pub port: String,
    /// The VLAN ids of its line, the outer one first.
    pub vids: (Option<u16>, Option<u16>),
    /// One packet in so many.
    pub one_in: u32,
    /// At most so many in a second.
    pub per_second: u32,
    /// Where the copies go.
    pub to: Shown,
}

impl PartialEq for Sampling {
    fn eq(&self, other: &Self) -> bool {
        self.to.to.same_channel(&other.to.to)
    }
}

impl Eq for Sampling {}

/// The way of copies to whoever reads them.
#[derive(Clone, Debug)]
pub struct Shown {
    to: mpsc::Sender<SampleResponse>,
    /// When whoever reads has what was asked for.
    end: Instant,
}

impl Shown {
    /// Passes a copy on; false if it is missed.
    pub fn show(&self, copy: SampleResponse) -> bool {
        self.to.try_send(copy).is_ok()
    }

    /// Nobody reads any more, or the time is over that was asked for: whoever stays and does not read is not waited for.
    pub fn is_closed(&self) -> bool {
        self.to.is_closed() || Instant::now() >= self.end
    }
}

impl Sampling {
    /// What a request asks for, and the copies as they come, until its time is over.
    ///
    /// # Errors
    /// INVALID_ARGUMENT: a number is not within its limits, or it is no MAC address.
    pub fn of(
        request: &SampleRequest,
    ) -> Result<
        (
            Self,
            impl Stream<Item = Result<SampleResponse, Status>> + Send + use<>,
        ),
        Status,
    > {
        let wrong = |what: String| Err(Status::invalid_argument(what));
        let Some(mac) = config::mac(&request.mac) else {
            return wrong(format!("`{}` is no MAC address", request.mac));
        };
        if request.port.is_empty() {
            return wrong("no access port is named".into());
        }
        let vid = |tag: Option<u32>| tag.map(u16::try_from).transpose();
        let (Ok(s_tag), Ok(c_tag)) = (vid(request.s_tag), vid(request.c_tag)) else {
            return wrong("a VLAN id is too large".into());
        };
        if request.one_in == 0 {
            return wrong("one packet in 0: expected at least 1".into());
        }
        for (name, value, limits) in [
            ("packets a second", request.per_second, PER_SECOND),
            ("seconds", request.seconds, SECONDS),
        ] {
            if !limits.contains(&value) {
                let (least, most) = limits.into_inner();
                return wrong(format!("{value} {name}: expected {least} to {most}"));
            }
        }
        let (to, copies) = mpsc::channel(QUEUE);
        let end = Instant::now() + Duration::from_secs(request.seconds.into());
        let copies = unfold((copies, end), async |(mut copies, end)| {
            let copy = timeout_at(end, copies.recv()).await.ok()??;
            Some((Ok(copy), (copies, end)))
        });
        let sampling = Sampling {
            mac,
            port: request.port.clone(),
            vids: (s_tag, c_tag),
            one_in: request.one_in,
            per_second: request.per_second,
            to: Shown { to, end },
        };
        Ok((sampling, copies))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;

    fn request() -> SampleRequest {
        SampleRequest {
            mac: "02:00:00:00:00:09".into(),
            port: "access0".into(),
            s_tag: Some(100),
            c_tag: None,
            one_in: 1,
            per_second: 10,
            seconds: 60,
        }
    }

    #[tokio::test]
    async fn who_does_not_read_misses_copies_and_who_has_gone_is_noticed() {
        let (sampling, copies) = Sampling::of(&request()).unwrap();
        assert_eq!(sampling.mac, [2, 0, 0, 0, 0, 9]);
        assert_eq!(
            (&*sampling.port, sampling.vids),
            ("access0", (Some(100), None))
        );
        let shown = (0..QUEUE + 10).filter(|_| sampling.to.show(SampleResponse::default()));
        assert_eq!(shown.count(), QUEUE);
        let mut copies = Box::pin(copies);
        assert!(copies.next().await.is_some() && !sampling.to.is_closed());
        drop(copies);
        assert!(sampling.to.is_closed());
    }

    #[tokio::test]
    async fn who_stays_and_does_not_read_is_sampled_no_longer_than_asked_for() {
        let asked = SampleRequest {
            seconds: 1,
            ..request()
        };
        let (sampling, copies) = Sampling::of(&asked).unwrap();
        assert!(!sampling.to.is_closed());
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(sampling.to.is_closed());
        drop(copies);
    }

    #[test]
    fn what_is_beyond_the_limits_is_refused() {
        let changes: [fn(&mut SampleRequest); 8] = [
            |r| r.mac = "02:00:00:00:00".into(),
            |r| r.mac = "2:00:00:00:00:009".into(),
            |r| r.port = String::new(),
            |r| r.s_tag = Some(0x1_0000),
            |r| r.one_in = 0,
            |r| r.per_second = 0,
            |r| r.per_second = 1001,
            |r| r.seconds = 3601,
        ];
        for change in changes {
            let mut wrong = request();
            change(&mut wrong);
            assert!(Sampling::of(&wrong).is_err(), "{wrong:?}");
        }
    }
}

//! Datagrams by the batch: what goes to one peer in a row passes the system in one call, and so does what comes.
//!
//! A datagram costs a system call and a way through the IP stack on each side, several microseconds in all, however
//! small it is. Linux takes datagrams of one size as one buffer (UDP_SEGMENT, udp(7)) and cuts it up as late as it can, at
//! best in the network card; a receiver that asks for it (UDP_GRO) gets what came in a row as one buffer. On the wire, and
//! to a peer that knows nothing of all this, they are datagrams like any others.
//!
//! Cheaper still is one datagram for several messages, where the protocol and the peer allow that: [`Bundles`].
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! use tokio::net::UdpSocket;
//!
//! let (here, there) = (UdpSocket::bind("127.0.0.1:0").await?, UdpSocket::bind("127.0.0.1:0").await?);
//! udp::receive_batches(&there);
//! let mut batch = udp::Batch::default();
//! for datagram in [b"one", b"two"] {
//!     assert!(batch.push(there.local_addr()?, datagram));
//! }
//! assert_eq!(batch.send(&here).await, 0, "datagrams lost");
//! let mut receiver = udp::Receiver::default();
//! there.readable().await?;
//! let datagrams = receiver.try_recv(&there)?;
//! assert_eq!(datagrams.from, here.local_addr()?);
//! assert_eq!(datagrams.collect::<Vec<_>>(), [b"one", b"two"]);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod bundle;
mod receive;
mod send;

pub use bundle::{Bundles, Split, messages};
pub use receive::{Datagrams, Receiver, receive_batches, receive_times};
pub use send::Batch;

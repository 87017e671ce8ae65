//! A session as its peers see it: by scripts, and by recordings of real ones.

mod authentication;
mod dhcpv6;
mod exchange;
mod link;
mod network;
mod replay;
mod routers;
mod state;
mod support;

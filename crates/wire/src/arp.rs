//! arp.

//! Subscriber state machines.

//! The real graph, with ports in memory, against a model that was written independently.
mod bursts;
mod cases;
mod churn;
mod egress;
mod frames;
mod full;
mod inspect;
mod model;
mod mtu;
mod ports;
mod queues;
mod routed;
mod samples;
mod sources;
mod vlans;
mod workers;
mod world;

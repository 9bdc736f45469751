//! For tests only: a naive model of the engine and of monitors, generators of traffic from one seed, comparisons of the real engine with
//! the model and of our server with the reference server, and simulations in virtual time: of the server on its disk, and of clients
//! beside servers.
//!
//! Invariants: everything follows from the seed. The model is written from the protocol, not from the engine. The two share the JSON tree
//! and the UUID type and nothing else: the model's values, types, conditions, references and commit are its own, and every step is
//! computed from scratch over the whole database.
//!
//! The files, in the order in which data flows:
//!
//! ```text
//! dice --> generator --> model_check: the engine and its monitors, and model, replica    equal after normal
//!                    --> differential: our server and the reference server               equal after normal
//! dice --> server    (disk, machine, client; run)     the server, its storage and its disk, with crashes
//!      --> clients   (host, network, member; run)     replicas beside two servers and a network
//!      --> cluster   (host, network, registers; run)  members of a cluster, their disks and a network
//!      --> whole_cluster (host, wires, process; run)  servers of a cluster with clients, connections and files
//! relay_tree (node, plot)  a study: many clients below a tree of relays, with modelled cores and wires
//! host_faults: faults that both simulations of clusters draw
//! seeds: many runs on all cores, for tests and for the program `simulate`
//! ```

pub mod clients;
mod clock;
pub mod cluster;
pub mod dice;
pub mod differential;
pub mod generator;
mod host_faults;
pub mod model;
pub mod model_check;
pub mod normal;
pub mod relay_tree;
pub mod replica;
pub mod seeds;
pub mod server;
mod strangers;
pub mod whole_cluster;

//! For tests only: traffic generated from one seed, comparisons of the real engine with a naive
//! model (crate `model`) and of the Corvid server with the reference server, and simulations in
//! virtual time: of the server on its disk, of clients and servers, of clusters.
//!
//! Invariant: everything follows from the seed.
//!
//! The modules, in the order in which data flows:
//!
//! ```text
//! dice --> generator --> model_check: the engine and its monitors, and model, replica
//!                                     equal after normal
//!                    --> differential: Corvid and the reference server
//!                                     equal after normal
//! world --> server    (machine, client; run)     the server, its storage and disk, with crashes
//!       --> clients   (host; run, tree)          replicas, two servers or relays, and a network
//!       --> cluster   (host, registers; run)     members of a cluster, their disks and a network
//!       --> whole_cluster (host, process; run)   servers of a cluster, clients, links and files
//! relay_tree (node, plot)  a study: many clients below a tree of relays, cores and wires modelled
//! ```

pub mod clients;
pub mod cluster;
pub mod differential;
pub mod generator;
pub mod model_check;
pub mod normal;
pub mod relay_tree;
pub mod replica;
pub mod server;
mod strangers;
pub mod whole_cluster;
pub mod world;

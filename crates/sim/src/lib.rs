//! For tests only: generators of traffic from one seed, comparisons of the real engine with a naive model (crate `model`) and of our
//! server with the reference server, and simulations in virtual time: of the server on its disk, of clients beside servers, of clusters.
//!
//! Invariant: everything follows from the seed.
//!
//! The files, in the order in which data flows:
//!
//! ```text
//! dice --> generator --> model_check: the engine and its monitors, and model, replica    equal after normal
//!                    --> differential: our server and the reference server               equal after normal
//! world --> server    (machine, client; run)       the server, its storage and its disk, with crashes
//!       --> clients   (host, member; run)          replicas beside two servers and a network
//!       --> cluster   (host, registers; run)       members of a cluster, their disks and a network
//!       --> whole_cluster (host, process; run)     servers of a cluster with clients, connections and files
//! relay_tree (node, plot)  a study: many clients below a tree of relays, with modelled cores and wires
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

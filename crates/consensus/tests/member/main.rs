//! Whole clusters of members in one process: messages are values, disks are memory, time is a
//! number.

mod attention;
mod cluster;
mod disk;
mod diverging;
mod elections;
mod failing_files;
mod faults;
mod lagging;
mod membership;
mod opening;
mod outcomes;
mod receiving;
mod rehearsals;
mod remarks;
mod repairing;
mod replica;
mod search;
mod solitary;
mod succession;

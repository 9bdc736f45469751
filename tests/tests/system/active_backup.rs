//! Active-backup replication between real servers, ours and the reference's in every pairing: copies equal their source, roles change under
//! load, commands answer alike.
//!
//! | Variable | Meaning |
//! |---|---|
//! | `CORVID_BACKUP_SEED` | the seed of a run that is to be repeated |

mod copies;
pub(crate) mod node;
mod operators;
mod roles;

//! Active-backup replication between real servers, ours and the reference's in every pairing:
//! copies equal their source, roles change under load, and commands give the same replies.
//!
//! | Variable | Meaning |
//! |---|---|
//! | `CORVID_BACKUP_SEED` | the seed of a run to be repeated |

mod copies;
pub(crate) mod node;
mod operators;
mod roles;

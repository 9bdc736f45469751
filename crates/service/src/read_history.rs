//! `read_history` and `select_at`: what clients ask of a database's history, and which readings
//! there are (docs/reference/wire-extensions.md).
//!
//! A reading is made by a thread of its own, which opens the files itself, so no database knows
//! any of this. The thread of a relay's reading asks the relay's source instead ([`relayed`]).
//! [`request`] is what a client asks, [`Readings`] decides which reading may begin,
//! continue or must end, and [`page`] is what a reading answers. A page is short, and a reading
//! stands still until its client asks for the next one, so a client that reads slowly holds no more
//! than one page.
//!
//! Invariant: a session waits for one answer at a time, and gets exactly one.

pub mod newest;
pub mod page;
mod past;
mod readings;
pub mod relayed;
pub mod request;

pub use newest::Newest;
pub use page::Page;
pub use past::{AppliedEntry, PastOrder, PastRead, PastVersion};
pub use readings::{Action, Order, ReadingId, Readings, Start};
pub use request::{HistoryRequest, Query};

/// Readings of a server that may be under way at a time.
pub const READINGS_MAX: usize = 4;

/// Readings of one session at a time, besides `select_at` and differences. Fewer than all, so that
/// one client does not keep the others from reading.
pub const SESSION_READINGS_MAX: usize = 2;

/// Requests that may wait until another reading has ended, of all sessions.
pub const WAITING_MAX: usize = 16;

/// How long such a request waits at most, ms. A reading may last as long as its client asks for
/// pages, so a request could wait for ever.
pub const WAITING_MS: u64 = 30_000;

/// Bytes of the lines of a page, except that a page may have one longer line.
pub const PAGE_BYTES_MAX: usize = 256 << 10;

/// A page is answered after this time even if it has no line, ms.
pub const PAGE_MS: u64 = 500;

/// A reading ends if its client does not ask for the next page, ms.
pub const IDLE_MS: u64 = 60_000;

/// Bytes of the lines that a reading of the newest changes keeps until its end.
pub const NEWEST_BYTES_MAX: usize = 16 << 20;

/// Changes of rows in one line. Those of a larger commit continue on the next line.
pub const CHANGES_MAX: usize = 256;

//! Storage as far as it knows databases: the rows of a new file ([`content`], [`member_content`]),
//! building a database from its file ([`loading`], [`member_loading`]), when a file is compacted
//! without a command ([`growth`]), and what becomes of the files that a rewrite replaced
//! ([`keeping`]). How files are written, synced and replaced is the task
//! of `corvid_log::storage`, which knows no rows and no clock.

pub mod content;
pub mod growth;
pub mod keeping;
pub mod loading;
pub mod member_content;
pub mod member_loading;

pub use content::Content;
pub use growth::{FileState, Growth};
pub use keeping::{Keeper, ListedFile};
pub use member_content::MemberContent;

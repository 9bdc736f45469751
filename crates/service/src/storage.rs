//! The parts of storage that know databases: which rows a new file holds ([`content`], [`member_content`]), how a database is made of its
//! file ([`loading`], [`member_loading`]), and when a database's file is compacted without a request ([`growth`]). How files are written,
//! synced and replaced is `corvid_log::storage`, which knows no rows and no clock.

pub mod content;
pub mod growth;
pub mod loading;
pub mod member_content;
pub mod member_loading;

pub use content::Content;
pub use growth::{FileState, Growth};
pub use member_content::MemberContent;

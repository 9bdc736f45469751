//! The status of a server, as programs that watch servers read it (docs/reference/status.md).
//!
//! [`source`] reads it at a control socket or a page, [`document`] finds its members, [`address`]
//! tells which server an address reaches, and [`reference`] makes a part of a status of the texts
//! of a server of the reference. The programs `corvid` and `corvid-console` use them; nothing here
//! knows what they conclude.

pub mod address;
pub mod document;
pub mod reference;
pub mod source;

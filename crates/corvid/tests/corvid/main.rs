//! The client library's crate as its users get it: documentation, errors, what is published.

mod documentation;
mod errors;
mod publishing;

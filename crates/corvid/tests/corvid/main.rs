//! Tests of the client library as users get it: documentation, errors and published packages.

mod documentation;
mod errors;
mod publishing;

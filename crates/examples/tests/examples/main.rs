//! The examples against servers: programs, the tutorial, typed rows of packaged schemas.

mod programs;
mod schemas;
mod tutorial;

//! Tests of the examples with real servers: the programs, the tutorial, and typed rows of packaged
//! schemas.

mod programs;
mod schemas;
mod tutorial;

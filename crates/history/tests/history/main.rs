//! Histories that are made of random commits, with compactions and conversions at random moments,
//! read back and compared with what the database was.

mod damage;
mod past;
mod reading;
mod world;

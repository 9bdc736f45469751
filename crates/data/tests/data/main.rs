//! Data and schemas from outside: tables of cases, and laws that hold for generated data.

mod data;
mod properties;
mod schemas;

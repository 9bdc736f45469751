//! Checks of the repository that only read its files or ask Cargo about them. They do not start any
//! program of Corvid.

mod book;
mod bounds;
mod citations;
mod comment_width;
mod deviations;
mod documents;
mod drawings;
mod folders;
mod layering;
mod libraries;
mod links;
mod makefile;
mod output;
mod parts;
mod release;
mod tables;
mod words;

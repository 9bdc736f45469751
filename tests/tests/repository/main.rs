//! Checks of the repository that only read its files, or ask Cargo about them: nothing of Corvid is started here.

mod bounds;
mod citations;
mod deviations;
mod documents;
mod layering;
mod libraries;
mod links;
mod makefile;
mod output;
mod parts;
mod words;

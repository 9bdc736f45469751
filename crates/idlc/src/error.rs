//! Errors of the generator.

use thiserror::Error;

/// Why there is no code.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// It is no schema.
    #[error("not a schema: {0}")]
    Schema(String),
    /// Annotations are neither a JSON object nor assignments.
    #[error("annotations, line {0}: neither a JSON object nor an assignment to a member of `s`")]
    Annotations(usize),
    /// Annotations ask for code of another language.
    #[error("extensions of {0}: code in schemas is not supported")]
    Extension(String),
    /// Two names of a schema, or one and the generator's own, become one in Rust.
    #[error("names clash: {0}")]
    Clash(String),
    /// A bug of the generator.
    #[error("the generated code is wrong: {0}")]
    Generated(String),
}

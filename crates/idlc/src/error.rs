//! Errors of the generator.

use thiserror::Error;

/// The reason why no code was generated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A text is not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// A text is JSON but not a valid schema.
    #[error("not a schema: {0}")]
    Schema(String),
    /// The annotations are neither a JSON object nor assignments to the schema. The number is that
    /// of the line that was not understood.
    #[error("annotations, line {0}: neither a JSON object nor an assignment to a member of `s`")]
    Annotations(usize),
    /// The schema contains extensions, whose code is in another language.
    #[error("extensions of {0}: code in schemas is not supported")]
    Extension(String),
    /// Two names in the schema become one name in the generated code, or a name clashes with one of
    /// the generator's own.
    #[error("names clash: {0}")]
    Clash(String),
    /// The generator made code that does not parse, which is a bug of the generator.
    #[error("the generated code is wrong: {0}")]
    Generated(String),
}

//! Tests of pictures: interpretations of written databases, layouts, text.

mod large;
mod northbound;
mod svg;
mod written;

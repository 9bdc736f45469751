//! Tests of pictures: interpretations of written databases, layouts, text.

mod any;
mod damage;
mod difference;
mod graphs;
mod large;
mod layout;
mod northbound;
mod path;
mod southbound;
mod svg;
mod vswitch;
mod vtep;
mod written;

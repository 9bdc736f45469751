//! The symbols that a picture uses again and again: kinds of cards, cells of ports by shape and
//! state, marks of changes. Each copy of a symbol is a tree of its own, in which a style sheet
//! cannot name ancestors outside, so the classes of symbols stand alone.

use std::fmt::Write;

/// Symbols of cards, on a field of 18 by 18.
const CARDS: &[(&str, &str)] = &[
    (
        "router",
        "<circle cx=\"9\" cy=\"9\" r=\"8\"/>\
         <path d=\"M9 7.5V3M7.3 4.7 9 3l1.7 1.7M9 10.5V15M7.3 13.3 9 15l1.7-1.7\
         M2.8 9h4M5.2 7.3 6.9 9 5.2 10.7M15.2 9h-4M12.8 7.3 11.1 9l1.7 1.7\"/>",
    ),
    (
        "switch",
        "<rect x=\"1\" y=\"2.5\" width=\"16\" height=\"13\" rx=\"2.5\"/>\
         <path d=\"M4 6.8h9M11.2 5 13.2 6.8l-2 1.8M14 11.2H5M6.8 9.4 4.8 11.2l2 1.8\"/>",
    ),
    (
        "host",
        "<rect x=\"2\" y=\"1.5\" width=\"14\" height=\"6.5\" rx=\"1.5\"/>\
         <rect x=\"2\" y=\"10\" width=\"14\" height=\"6.5\" rx=\"1.5\"/>\
         <path d=\"M5 4.75h.01M5 13.25h.01M8.5 4.75h4.5M8.5 13.25h4.5\"/>",
    ),
    (
        "outside",
        "<circle cx=\"9\" cy=\"9\" r=\"8\"/>\
         <path d=\"M1 9h16M9 1c-5 4.5-5 11.5 0 16M9 1c5 4.5 5 11.5 0 16\"/>",
    ),
    (
        "fabric",
        "<path d=\"M5 14.5a3.8 3.8 0 0 1-.4-7.6 4.9 4.9 0 0 1 9.4-.7 4.2 4.2 0 0 1-.5 8.3z\"/>",
    ),
    (
        "remote",
        "<circle cx=\"9\" cy=\"9\" r=\"7.5\"/><circle cx=\"9\" cy=\"9\" r=\"2.5\"/>",
    ),
    (
        "table",
        "<rect x=\"1.5\" y=\"2.5\" width=\"15\" height=\"13\" rx=\"1.5\"/>\
         <path d=\"M1.5 7h15M6.5 7v8.5M1.5 11.2h15\"/>",
    ),
    (
        "gateway",
        "<path d=\"M2 16V6.5L9 2l7 4.5V16zM6.5 16v-5.5h5V16\"/>",
    ),
    ("more", "<path d=\"M3.5 9h.01M9 9h.01M14.5 9h.01\"/>"),
];

/// Outlines of cells, on a field of 9 by 9.
const SHAPES: [(&str, &str); 4] = [
    (
        "port",
        "<rect x=\"1\" y=\"1\" width=\"7\" height=\"7\" rx=\"1.2\"/>",
    ),
    ("inner", "<path d=\"M4.5.4 8.6 4.5 4.5 8.6.4 4.5z\"/>"),
    ("outer", "<path d=\"M4.5.9 8.5 8H.5z\"/>"),
    ("service", "<circle cx=\"4.5\" cy=\"4.5\" r=\"3.7\"/>"),
];

/// States of cells: what is drawn over the outline.
const STATES: [(&str, &str); 4] = [
    ("ok", ""),
    ("unknown", "<path class=\"sign\" d=\"M3.2 4.8h2.6\"/>"),
    (
        "warn",
        "<path class=\"sign\" d=\"M4.5 2.6v2.4M4.5 6.7v.1\"/>",
    ),
    (
        "down",
        "<path class=\"sign\" d=\"M2.2 2.2l4.6 4.6M6.8 2.2 2.2 6.8\"/>",
    ),
];

/// Marks of changes, on a field of 18 by 18.
const MARKS: [(&str, &str); 3] = [
    ("added", "<path d=\"M9 5v8M5 9h8\"/>"),
    ("removed", "<path d=\"M5 9h8\"/>"),
    (
        "changed",
        "<path d=\"M4.8 10.2c1.4-2.6 2.8-2.6 4.2-1.2s2.8 1.4 4.2-1.2\"/>",
    ),
];

/// Writes the definitions.
pub(super) fn write(out: &mut String, prefix: &str) {
    out.push_str("<defs>\n");
    for (name, lines) in CARDS {
        let _ = writeln!(
            out,
            "<symbol id=\"{prefix}-{name}\" class=\"picture-symbol\" viewBox=\"0 0 18 18\">{lines}</symbol>",
        );
    }
    for (shape, outline) in SHAPES {
        for (state, sign) in STATES {
            let _ = writeln!(
                out,
                "<symbol id=\"{prefix}-cell-{shape}-{state}\" class=\"picture-cell {shape} {state}\" \
                 viewBox=\"0 0 9 9\">{outline}{sign}</symbol>",
            );
        }
    }
    for (mark, sign) in MARKS {
        let _ = writeln!(
            out,
            "<symbol id=\"{prefix}-mark-{mark}\" class=\"picture-mark {mark}\" viewBox=\"0 0 18 18\">\
             <circle cx=\"9\" cy=\"9\" r=\"7.5\"/>{sign}</symbol>",
        );
    }
    let _ = writeln!(
        out,
        "<marker id=\"{prefix}-arrow\" class=\"picture-arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" \
         markerWidth=\"8\" markerHeight=\"8\" orient=\"auto-start-reverse\">\
         <path d=\"M1 1 7 4 1 7\"/></marker>\n</defs>",
    );
}

//! The table and the plot of the study: the times by which half, 99 % and all clients have a
//! change, for each level of each tree.
//!
//! Called by the program `simulate`. This module knows nothing of the simulation.

use std::fmt::Write as _;

use super::Level;

/// The result for a tree: its name, and a line for each level.
pub type Outcome = (String, Vec<Level>);

/// Returns the table, with a line for each level of each tree.
#[must_use]
pub fn table(outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "{:<34} {:>5} {:>8} {:>9} {:>9} {:>9} {:>9} {:>7}\n",
        "tree", "level", "clients", "half, ms", "99 %, ms", "all, ms", "worst, ms", "busy, %"
    );
    for (name, levels) in outcomes {
        for it in levels {
            let _ = writeln!(
                text,
                "{name:<34} {:>5} {:>8} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>7.1}",
                it.level,
                it.clients,
                it.half_ms,
                it.most_ms,
                it.all_ms,
                it.worst_ms,
                it.busy_percent
            );
        }
    }
    text
}

/// Returns the plot: a group of bars for each tree and a bar for each level, on a logarithmic axis.
#[must_use]
pub fn svg(outcomes: &[Outcome]) -> String {
    const COLORS: [&str; 4] = ["#B9D3E8", "#7FB0D6", "#3D82B8", "#1B4F7A"];
    const LEFT: f64 = 240.0;
    const TOP: f64 = 56.0;
    const BAR: f64 = 13.0;
    const GAP: f64 = 10.0;
    let bars: usize = outcomes.iter().map(|(_, levels)| levels.len()).sum();
    let bottom = TOP + BAR * bars as f64 + GAP * outcomes.len() as f64;
    let height = bottom + 30.0;
    let x = |ms: f64| LEFT + 140.0 * (ms.max(0.1) / 0.1).log10();
    let mut text = format!(
        "<svg width=\"1000\" height=\"{height}\" viewBox=\"0 0 1000 {height}\" xmlns=\"http://www.w3.org/2000/svg\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"1000\" height=\"{height}\" fill=\"#FFFFFF\"/>\n\
         <text x=\"500\" y=\"20\" text-anchor=\"middle\" font-size=\"14\">Time until all clients of a level have a change, ms</text>\n\
         <text x=\"500\" y=\"40\" text-anchor=\"middle\">median over the commits; the last bar of each tree is the level with the many clients</text>\n"
    );
    for power in -1..=4 {
        let ms = 10f64.powi(power);
        let _ = writeln!(
            text,
            "<line x1=\"{0:.0}\" y1=\"{TOP}\" x2=\"{0:.0}\" y2=\"{bottom}\" stroke=\"#CCCCCC\"/><text x=\"{0:.0}\" y=\"{1}\" text-anchor=\"middle\">{ms}</text>",
            x(ms),
            bottom + 18.0
        );
    }
    let mut y = TOP;
    for (name, levels) in outcomes {
        y += GAP;
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>",
            LEFT - 8.0,
            y + BAR * levels.len() as f64 / 2.0 + 4.0
        );
        for level in levels {
            let color = COLORS[level.level.min(COLORS.len() - 1)];
            let _ = writeln!(
                text,
                "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{:.1}\" height=\"{}\" fill=\"{color}\"/><text x=\"{:.1}\" y=\"{}\" font-size=\"10\">level {}: {:.2}</text>",
                x(level.all_ms) - LEFT,
                BAR - 2.0,
                x(level.all_ms) + 4.0,
                y + BAR - 4.0,
                level.level,
                level.all_ms
            );
            y += BAR;
        }
    }
    text + "</svg>\n"
}

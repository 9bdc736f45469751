//! Measures the pictures of 60 switches of 40 ports and of 1,000 such switches: `cargo run
//! --release -p corvid-picture --example figures`.

#[path = "../tests/picture/large.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod large;

use std::time::{Duration, Instant};

use corvid_data::{Atom, Datum};
use corvid_picture::{Picture, Texts, View, interpretations};

fn main() {
    let interpretation = interpretations::of("OVN_Northbound").expect("it is known");
    for switches in [60, 1000] {
        let mut tables = large::northbound(switches, 40);
        let mut before: Option<Picture> = None;
        let mut steps = [Duration::ZERO; 3];
        let mut first = Duration::ZERO;
        let mut bytes = 0;
        const CHANGES: u32 = 20;
        for change in 0..=CHANGES {
            let began = Instant::now();
            let port = large::uuid(4, 1 + change as usize);
            let up = Datum::one(Atom::Boolean(change % 2 == 0));
            tables.set("Logical_Switch_Port", port, [("up", up)]);
            let graph = (interpretation.read)(&tables);
            let read = began.elapsed();
            let picture = Picture::new(&graph, &View::default(), before.as_ref());
            let placed = began.elapsed();
            let svg = picture.svg(&graph, &Texts::new("Logical network"));
            let written = began.elapsed();
            bytes = svg.len();
            before = Some(picture);
            if change == 0 {
                first = written;
                continue;
            }
            for (sum, step) in steps
                .iter_mut()
                .zip([read, placed - read, written - placed])
            {
                *sum += step;
            }
        }
        let [read, placed, written] = steps.map(|sum| sum / CHANGES);
        println!(
            "{switches} switches of 40 ports: first {first:.1?}, then {:.1?} a change \
             (read {read:.1?}, place {placed:.1?}, write {written:.1?}), {} KiB",
            read + placed + written,
            bytes / 1024
        );
    }
}

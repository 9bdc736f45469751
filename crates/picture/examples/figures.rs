//! Measures the pictures of 60 switches of 40 ports and of 1,000 such switches: `cargo run
//! --release -p corvid-picture --example figures`. Of twenty changes it prints the fastest, because
//! other work of the machine can only add time.

#[path = "../tests/picture/large.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod large;

use std::time::{Duration, Instant};

use corvid_data::{Atom, Datum};
use corvid_picture::{Picture, Tables, Texts, View, interpretations};

const CHANGES: usize = 20;

fn main() {
    for switches in [60, 1000] {
        let mut tables = large::northbound(switches, 40);
        let first = draw(&tables, None);
        let mut best: Option<Drawn> = None;
        let mut before = first.picture;
        for change in 0..CHANGES {
            let port = large::uuid(4, 1 + change);
            let up = Datum::one(Atom::Boolean(change % 2 == 0));
            tables.set("Logical_Switch_Port", port, [("up", up)]);
            let drawn = draw(&tables, Some(&before));
            before = drawn.picture.clone();
            if best
                .as_ref()
                .is_none_or(|best| drawn.total() < best.total())
            {
                best = Some(drawn);
            }
        }
        let best = best.expect("there were changes");
        println!(
            "{switches} switches of 40 ports: first {:.1?}, then {:.1?} a change \
             (read {:.1?}, place {:.1?}, write {:.1?}), {} KiB",
            first.steps.iter().sum::<Duration>(),
            best.total(),
            best.steps[0],
            best.steps[1],
            best.steps[2],
            best.bytes / 1024
        );
    }
}

struct Drawn {
    picture: Picture,
    /// Reading rows, placing cards, writing text.
    steps: [Duration; 3],
    bytes: usize,
}

impl Drawn {
    fn total(&self) -> Duration {
        self.steps.iter().sum()
    }
}

fn draw(tables: &Tables, before: Option<&Picture>) -> Drawn {
    let interpretation = interpretations::of("OVN_Northbound").expect("it is known");
    let began = Instant::now();
    let graph = (interpretation.read)(tables);
    let read = began.elapsed();
    let picture = Picture::new(&graph, &View::default(), before);
    let placed = began.elapsed();
    let svg = picture.svg(&graph, &Texts::new("Logical network"));
    let written = began.elapsed();
    Drawn {
        picture,
        steps: [read, placed - read, written - placed],
        bytes: svg.len(),
    }
}

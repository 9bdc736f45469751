//! Properties of layouts: nothing overlaps, links end at their cards, the same input gives the same
//! positions, and a small change moves little.

use std::collections::BTreeSet;

use corvid_json::splitmix::SplitMix64;
use corvid_picture::layout::{Layout, Point, Problem, Size, lay_out};
use corvid_picture::{Picture, Tables, View, interpretations};

use crate::large;

/// A network of some cards with a tree through parts of it and some cycles.
fn random(seed: u64) -> Problem {
    let mut random = SplitMix64::new(seed);
    let mut below = |limit: usize| (random.draw() % limit.max(1) as u64) as usize;
    let count = 1 + below(80);
    let mut links = BTreeSet::new();
    for card in 1..count {
        // Some parts are not connected.
        if below(12) > 0 {
            let limit = card.min(1 + below(count));
            let near = below(limit);
            links.insert((near, card));
        }
    }
    for _ in 0..below(count / 2 + 1) {
        let (a, b) = (below(count), below(count));
        if a != b {
            links.insert((a.min(b), a.max(b)));
        }
    }
    Problem {
        sizes: (0..count)
            .map(|_| Size {
                width: 100 + below(200) as i32,
                height: 40 + below(300) as i32,
            })
            .collect(),
        ranks: (0..count).map(|_| u8::from(below(9) > 0)).collect(),
        links: links.into_iter().collect(),
        before: vec![None; count],
    }
}

fn assert_sound(problem: &Problem, layout: &Layout) {
    let rects: Vec<(Point, Size)> = layout
        .corners
        .iter()
        .copied()
        .zip(problem.sizes.iter().copied())
        .collect();
    for (index, &(a, a_size)) in rects.iter().enumerate() {
        assert!(a.x >= 0 && a.y >= 0);
        assert!(a.x + a_size.width <= layout.size.width);
        assert!(a.y + a_size.height <= layout.size.height);
        for &(b, b_size) in &rects[index + 1..] {
            let is_apart = a.x + a_size.width < b.x
                || b.x + b_size.width < a.x
                || a.y + a_size.height < b.y
                || b.y + b_size.height < a.y;
            assert!(is_apart, "{a:?} {a_size:?} overlaps {b:?} {b_size:?}");
        }
    }
    for (route, &(from, to)) in layout.routes.iter().zip(&problem.links) {
        let (first, last) = (route.points[0], route.points[route.points.len() - 1]);
        let touches = |point: Point, card: usize| {
            let (corner, size) = rects[card];
            (corner.x..=corner.x + size.width).contains(&point.x)
                && (point.y == corner.y || point.y == corner.y + size.height)
        };
        assert!(
            (touches(first, from) && touches(last, to))
                || (touches(first, to) && touches(last, from)),
            "{route:?} does not join {:?} and {:?}",
            rects[from],
            rects[to]
        );
    }
}

#[test]
fn random_networks_have_sound_layouts() {
    for seed in 0..400 {
        let problem = random(seed);
        let layout = lay_out(&problem);
        assert_sound(&problem, &layout);
        assert_eq!(lay_out(&problem), layout, "seed {seed}");
        // From its own positions too.
        let again = Problem {
            before: layout.corners.iter().copied().map(Some).collect(),
            ..problem
        };
        assert_sound(&again, &lay_out(&again));
    }
}

#[test]
fn a_layout_is_a_fixed_point() {
    let mut moved = 0;
    for seed in 0..100 {
        let mut problem = random(seed);
        let first = lay_out(&problem);
        problem.before = first.corners.iter().copied().map(Some).collect();
        moved += usize::from(lay_out(&problem).corners != first.corners);
    }
    assert!(moved <= 5, "{moved} of 100 layouts move without a change");
}

/// Pairs of cards that are side by side in both layouts, but in different orders.
fn swapped(a: &Layout, b: &Layout) -> usize {
    let mut count = 0;
    for i in 0..a.corners.len().min(b.corners.len()) {
        for j in 0..i {
            let [first, second] = [a, b].map(|layout| (layout.corners[i], layout.corners[j]));
            let is_level = first.0.y == first.1.y && second.0.y == second.1.y;
            count += usize::from(is_level && (first.0.x < first.1.x) != (second.0.x < second.1.x));
        }
    }
    count
}

#[test]
fn one_link_more_swaps_few_cards() {
    let (mut with, mut without) = (0, 0);
    for seed in 0..200 {
        let mut problem = random(seed);
        let first = lay_out(&problem);
        let last = problem.sizes.len() - 1;
        if last == 0 || problem.links.contains(&(0, last)) {
            continue;
        }
        problem.links.push((0, last));
        without += swapped(&first, &lay_out(&problem));
        problem.before = first.corners.iter().copied().map(Some).collect();
        with += swapped(&first, &lay_out(&problem));
    }
    assert!(
        with * 5 < without,
        "{with} with the positions before, {without} without"
    );
}

#[test]
fn trees_have_their_layers() {
    // 0 above 1 and 2, 1 above 3.
    let problem = Problem {
        sizes: vec![
            Size {
                width: 100,
                height: 50
            };
            4
        ],
        ranks: vec![0, 1, 1, 1],
        links: vec![(0, 1), (0, 2), (1, 3)],
        before: vec![None; 4],
    };
    let y: Vec<i32> = lay_out(&problem)
        .corners
        .iter()
        .map(|corner| corner.y)
        .collect();
    assert!(
        y[0] + 50 < y[1] && y[1] == y[2] && y[1] + 50 < y[3],
        "{y:?}"
    );
}

fn picture(tables: &Tables, before: Option<&Picture>) -> Picture {
    let interpretation = interpretations::of("OVN_Northbound").expect("it is known");
    Picture::new(&(interpretation.read)(tables), &View::default(), before)
}

#[test]
fn sixty_switches_fit_a_wide_screen() {
    for tables in [large::northbound(60, 40), large::doubled(60)] {
        let size = picture(&tables, None).layout.size;
        assert!(size.width < 3200 && size.height < 2000, "{size:?}");
    }
    for tables in [large::cluster(60), large::tenants(60)] {
        let size = picture(&tables, None).layout.size;
        assert!(size.width < 4000 && size.height < 3200, "{size:?}");
    }
}

/// How many cards of the first picture are elsewhere in the second.
fn moved(first: &Picture, second: &Picture) -> usize {
    // Cards come by name, and the ones that are added here come last.
    let cards = first.cards.iter().zip(&second.cards);
    cards.filter(|(a, b)| a.corner != b.corner).count()
}

#[test]
fn a_port_that_changes_moves_nothing() {
    for mut tables in [
        large::northbound(60, 40),
        large::cluster(20),
        large::doubled(20),
    ] {
        let first = picture(&tables, None);
        let port = tables
            .rows("Logical_Switch_Port")
            .next()
            .expect("a port")
            .uuid;
        tables.set(
            "Logical_Switch_Port",
            port,
            [("tag", large::text("changed"))],
        );
        let second = picture(&tables, Some(&first));
        assert_eq!(moved(&first, &second), 0);
        assert_eq!(first.layout, second.layout);
    }
}

#[test]
fn one_switch_more_moves_few_cards() {
    let first = picture(&large::northbound(60, 40), None);
    let second = picture(&large::northbound(61, 40), Some(&first));
    assert_eq!(second.cards.len(), first.cards.len() + 1);
    assert_eq!(moved(&first, &second), 0);
}

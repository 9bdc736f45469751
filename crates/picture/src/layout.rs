//! Positions: cards of given sizes, joined by links, in layers from the top.
//!
//! The method is Sugiyama's, after two reductions that keep wide networks readable:
//!
//! 1. Cards that hang on a card as a tree are one *block* below it: rows under a bus, wrapped to
//!    the shape of a screen (`blocks`). Sixty switches of one router are such a block.
//! 2. Chains of cards between the same two cards are one block too, if they are many: sixty gateway
//!    routers between a join switch and a physical network.
//! 3. The rest, where cycles are, is layered by distance from a root, ordered to cross little, and
//!    placed close to its neighbours (`layers`).
//!
//! A layout is a function of its input alone. Cards come in the order of their names, and rows keep
//! it, so one card more moves few others; where the order is a matter of crossings, the positions
//! of the last layout decide.

mod blocks;
mod layers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use blocks::{Block, Item, Second};

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Pixels from left to right.
    pub width: i32,
    /// Pixels from top to bottom.
    pub height: i32,
}

/// A point in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// From the left.
    pub x: i32,
    /// From the top.
    pub y: i32,
}

/// The cards and links to lay out.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// The sizes of the cards, in the order in which a person looks for them.
    pub sizes: Vec<Size>,
    /// The rank of each card: the least one of a connected part comes on top.
    pub ranks: Vec<u8>,
    /// Pairs of cards that are joined. No pair repeats, in either direction.
    pub links: Vec<(usize, usize)>,
    /// The upper left corners in the last layout, of cards that it had.
    pub before: Vec<Option<Point>>,
}

/// The way of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Its corners.
    pub points: Vec<Point>,
    /// The corner after which it goes to the next one in a curve, not straight.
    pub curve: Option<usize>,
    /// The pixels that a label at its end may take; 0 for none.
    pub label_room: i32,
}

/// Positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The upper left corner of each card.
    pub corners: Vec<Point>,
    /// The way of each link.
    pub routes: Vec<Route>,
    /// The size of the whole.
    pub size: Size,
}

/// Pixels between cards side by side.
const GAP: i32 = 20;
/// Pixels between connected parts.
const PART_GAP: i32 = 40;
/// The width at which parts are wrapped at least.
const WIDTH_MIN: i32 = 1200;
/// The number of chains between two cards from which on they become a block.
const CHAINS_MIN: usize = 5;

/// Finds positions.
///
/// # Panics
/// If a link names a card that is not there, or the lists of sizes, ranks and positions before
/// differ in length.
#[must_use]
pub fn lay_out(problem: &Problem) -> Layout {
    assert_eq!(problem.sizes.len(), problem.ranks.len());
    assert_eq!(problem.sizes.len(), problem.before.len());
    let net = Net::new(problem);
    let mut parts: Vec<Block> = Vec::new();
    for members in net.parts() {
        parts.push(Part::new(&net, &members).lay_out());
    }
    // Large parts first, then by name: a part's place depends on few others.
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&part| (parts[part].cards.len() == 1, part));
    let area: i64 = parts
        .iter()
        .map(|part| i64::from(part.size.width + PART_GAP) * i64::from(part.size.height + PART_GAP))
        .sum();
    let widest = parts.iter().map(|part| part.size.width).max().unwrap_or(0);
    let width = widest.max(blocks::ideal_width(area)).max(WIDTH_MIN);
    let mut layout = Layout {
        corners: vec![Point::default(); problem.sizes.len()],
        routes: vec![Route::default(); problem.links.len()],
        size: Size::default(),
    };
    let (mut x, mut y, mut row_height) = (0, 0, 0);
    for part in order {
        let part = &parts[part];
        let gap = if part.cards.len() == 1 { GAP } else { PART_GAP };
        if x > 0 && x + part.size.width > width {
            y += row_height + gap;
            (x, row_height) = (0, 0);
        }
        for &(card, corner) in &part.cards {
            layout.corners[card] = corner.moved(x, y);
        }
        for wire in &part.wires {
            layout.routes[wire.link] = Route {
                points: wire.points.iter().map(|point| point.moved(x, y)).collect(),
                curve: wire.curve,
                label_room: wire.label_room,
            };
        }
        layout.size.width = layout.size.width.max(x + part.size.width);
        layout.size.height = layout.size.height.max(y + part.size.height);
        row_height = row_height.max(part.size.height);
        x += part.size.width + gap;
    }
    layout
}

impl Point {
    fn moved(self, x: i32, y: i32) -> Point {
        Point {
            x: self.x + x,
            y: self.y + y,
        }
    }
}

/// The problem with its neighbours looked up.
struct Net<'a> {
    problem: &'a Problem,
    neighbours: Vec<Vec<usize>>,
    links: BTreeMap<(usize, usize), usize>,
}

impl<'a> Net<'a> {
    fn new(problem: &'a Problem) -> Net<'a> {
        let mut neighbours = vec![Vec::new(); problem.sizes.len()];
        let mut links = BTreeMap::new();
        for (link, &(a, b)) in problem.links.iter().enumerate() {
            if a == b || links.insert((a.min(b), a.max(b)), link).is_some() {
                continue;
            }
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        for list in &mut neighbours {
            list.sort_unstable();
        }
        Net {
            problem,
            neighbours,
            links,
        }
    }

    fn link(&self, a: usize, b: usize) -> usize {
        self.links[&(a.min(b), a.max(b))]
    }

    /// The connected parts, each sorted.
    fn parts(&self) -> Vec<Vec<usize>> {
        let mut seen = vec![false; self.neighbours.len()];
        let mut parts = Vec::new();
        for start in 0..self.neighbours.len() {
            if seen[start] {
                continue;
            }
            seen[start] = true;
            let mut part = vec![start];
            let mut next = 0;
            while next < part.len() {
                for &neighbour in &self.neighbours[part[next]] {
                    if !seen[neighbour] {
                        seen[neighbour] = true;
                        part.push(neighbour);
                    }
                }
                next += 1;
            }
            part.sort_unstable();
            parts.push(part);
        }
        parts
    }

    /// The card that comes on top of a part: of the least rank, and of those the one with the most
    /// neighbours. One that was on top stays there while it has half as many.
    fn root(&self, members: &[usize]) -> usize {
        let rank = |&card: &usize| self.problem.ranks[card];
        let degree = |card: usize| self.neighbours[card].len();
        let least = members.iter().map(rank).min().unwrap_or(0);
        let candidates = || members.iter().copied().filter(|card| rank(card) == least);
        let best = candidates()
            .max_by_key(|&card| (degree(card), std::cmp::Reverse(card)))
            .unwrap_or(members[0]);
        candidates()
            .filter_map(|card| Some((self.problem.before[card]?.y, card)))
            .min()
            .map(|(_, card)| card)
            .filter(|&card| 2 * degree(card) >= degree(best))
            .unwrap_or(best)
    }
}

/// A part on its way to a block: cards that hang on others are taken out as trees.
struct Part<'n, 'p> {
    net: &'n Net<'p>,
    root: usize,
    /// Cards of the core, where cycles are, and the root.
    core: Vec<usize>,
    /// For each card, the cards that hang on it.
    children: BTreeMap<usize, Vec<usize>>,
}

/// A node of the layered graph.
enum Unit {
    /// A card of the core.
    Card(usize),
    /// The cards that hang on a card of the core.
    Hanging(usize),
    /// Chains between two cards of the core. Each begins next to `upper`.
    Chains {
        upper: usize,
        lower: usize,
        chains: Vec<Vec<usize>>,
    },
}

impl<'n, 'p> Part<'n, 'p> {
    fn new(net: &'n Net<'p>, members: &[usize]) -> Part<'n, 'p> {
        let root = net.root(members);
        let mut degree: BTreeMap<usize, usize> = members
            .iter()
            .map(|&card| (card, net.neighbours[card].len()))
            .collect();
        let mut children: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut loose: VecDeque<usize> = members
            .iter()
            .copied()
            .filter(|&card| card != root && degree[&card] == 1)
            .collect();
        while let Some(card) = loose.pop_front() {
            degree.remove(&card);
            let Some(&parent) = net.neighbours[card]
                .iter()
                .find(|neighbour| degree.contains_key(neighbour))
            else {
                continue;
            };
            children.entry(parent).or_default().push(card);
            if let Some(left) = degree.get_mut(&parent) {
                *left -= 1;
                if *left == 1 && parent != root {
                    loose.push_back(parent);
                }
            }
        }
        for list in children.values_mut() {
            list.sort_unstable();
        }
        Part {
            net,
            root,
            core: degree.into_keys().collect(),
            children,
        }
    }

    fn lay_out(&self) -> Block {
        if self.core.len() == 1 {
            return self.tree(self.root);
        }
        let depths = self.depths();
        let mut units: Vec<Unit> = self.chains(&depths);
        let in_chains: BTreeSet<usize> = units
            .iter()
            .flat_map(|unit| match unit {
                Unit::Chains { chains, .. } => chains.concat(),
                _ => Vec::new(),
            })
            .collect();
        let mut unit_of: BTreeMap<usize, usize> = BTreeMap::new();
        for &card in &self.core {
            if !in_chains.contains(&card) {
                unit_of.insert(card, units.len());
                units.push(Unit::Card(card));
            }
        }
        for &card in &self.core {
            if self.children.contains_key(&card) {
                units.push(Unit::Hanging(card));
            }
        }
        self.layered(&units, &unit_of)
    }

    /// The distances of the core's cards from the root.
    fn depths(&self) -> BTreeMap<usize, usize> {
        let mut depths = BTreeMap::from([(self.root, 0)]);
        let mut queue = VecDeque::from([self.root]);
        while let Some(card) = queue.pop_front() {
            let depth = depths[&card];
            for &neighbour in &self.net.neighbours[card] {
                if self.core.binary_search(&neighbour).is_ok() && !depths.contains_key(&neighbour) {
                    depths.insert(neighbour, depth + 1);
                    queue.push_back(neighbour);
                }
            }
        }
        depths
    }

    fn core_neighbours(&self, card: usize) -> impl Iterator<Item = usize> + '_ {
        self.net.neighbours[card]
            .iter()
            .copied()
            .filter(|neighbour| self.core.binary_search(neighbour).is_ok())
    }

    /// Many chains between the same two cards, as blocks.
    fn chains(&self, depths: &BTreeMap<usize, usize>) -> Vec<Unit> {
        let is_inner = |card: usize| {
            card != self.root
                && !self.children.contains_key(&card)
                && self.core_neighbours(card).count() == 2
        };
        let mut found: BTreeMap<(usize, usize), Vec<Vec<usize>>> = BTreeMap::new();
        for &end in self.core.iter().filter(|&&card| !is_inner(card)) {
            for first in self.core_neighbours(end).filter(|&card| is_inner(card)) {
                let (mut chain, mut previous, mut card) = (Vec::new(), end, first);
                while is_inner(card) {
                    chain.push(card);
                    let next = self.core_neighbours(card).find(|&next| next != previous);
                    (previous, card) = (card, next.unwrap_or(end));
                }
                // Each chain is found from both ends. It counts from the one closer to the root.
                if (depths[&end], end) < (depths[&card], card) {
                    found.entry((end, card)).or_default().push(chain);
                }
            }
        }
        found
            .into_iter()
            .filter(|(_, chains)| chains.len() >= CHAINS_MIN)
            .map(|((upper, lower), chains)| Unit::Chains {
                upper,
                lower,
                chains,
            })
            .collect()
    }

    fn layered(&self, units: &[Unit], unit_of: &BTreeMap<usize, usize>) -> Block {
        // Distances of units: a block of chains counts as one step, however long they are.
        let mut joined: Vec<Vec<usize>> = vec![Vec::new(); units.len()];
        let mut join = |a: usize, b: usize| {
            joined[a].push(b);
            joined[b].push(a);
        };
        for (index, unit) in units.iter().enumerate() {
            match unit {
                Unit::Card(card) => {
                    for neighbour in self.core_neighbours(*card) {
                        match unit_of.get(&neighbour) {
                            Some(&other) if other > index => join(index, other),
                            _ => {}
                        }
                    }
                }
                Unit::Hanging(card) => join(index, unit_of[card]),
                Unit::Chains { upper, lower, .. } => {
                    join(index, unit_of[upper]);
                    join(index, unit_of[lower]);
                }
            }
        }
        let root = unit_of[&self.root];
        let mut layer_of = vec![usize::MAX; units.len()];
        layer_of[root] = 0;
        let mut queue = VecDeque::from([root]);
        while let Some(unit) = queue.pop_front() {
            for &other in &joined[unit] {
                if layer_of[other] == usize::MAX {
                    layer_of[other] = layer_of[unit] + 1;
                    queue.push_back(other);
                }
            }
        }
        let blocks: Vec<Block> = units
            .iter()
            .enumerate()
            .map(|(index, unit)| match unit {
                Unit::Card(card) => Block::card(*card, self.net.problem.sizes[*card]),
                Unit::Hanging(card) => blocks::rows(self.hanging(*card), Second::None),
                Unit::Chains {
                    upper,
                    lower,
                    chains,
                } => {
                    let second = match layer_of[unit_of[lower]] > layer_of[index] {
                        true => Second::Below,
                        false => Second::Above,
                    };
                    let items = chains.iter().map(|chain| self.chain(*upper, *lower, chain));
                    blocks::rows(items.collect(), second)
                }
            })
            .collect();
        let before: Vec<Option<f64>> = blocks
            .iter()
            .map(|block| self.center_before(block))
            .collect();
        let placed = layers::place(&layers::Units {
            sizes: blocks.iter().map(|block| block.size).collect(),
            layer_of: &layer_of,
            joined: &joined,
            before: &before,
        });
        self.assembled(units, unit_of, (&layer_of, &joined), blocks, &placed)
    }

    /// The centre of a block in the last layout, of the cards that were there.
    fn center_before(&self, block: &Block) -> Option<f64> {
        let before = &self.net.problem.before;
        let (mut sum, mut count) = (0.0, 0.0);
        for &(card, _) in &block.cards {
            if let Some(corner) = before[card] {
                sum += f64::from(corner.x) + f64::from(self.net.problem.sizes[card].width) / 2.0;
                count += 1.0;
            }
        }
        (count > 0.0).then(|| sum / count)
    }

    /// Puts the blocks where they belong and draws the links between them.
    fn assembled(
        &self,
        units: &[Unit],
        unit_of: &BTreeMap<usize, usize>,
        (layer_of, joined): (&[usize], &[Vec<usize>]),
        blocks: Vec<Block>,
        placed: &layers::Placed,
    ) -> Block {
        let mut whole = Block {
            size: placed.size,
            ..Block::default()
        };
        let sizes: Vec<Size> = blocks.iter().map(|block| block.size).collect();
        let slots = Slots::new(layer_of, placed, &sizes, joined, |unit| {
            matches!(units[unit], Unit::Card(_))
        });
        // Where a link leaves a card towards another unit, and where it may turn.
        let below = |unit: usize, other: usize| -> [Point; 2] {
            let corner = placed.corners[unit];
            let x = corner.x + sizes[unit].width / 2 + slots.offset(unit, other);
            [
                Point {
                    x,
                    y: corner.y + sizes[unit].height,
                },
                Point {
                    x,
                    y: placed.bottoms[layer_of[unit]],
                },
            ]
        };
        let above = |unit: usize, other: usize| -> Point {
            let corner = placed.corners[unit];
            corner.moved(sizes[unit].width / 2 + slots.offset(unit, other), 0)
        };
        // From a card to a point that belongs to another unit.
        let way = |from: usize, to: usize, point: Point, to_bottom: bool| -> (Vec<Point>, usize) {
            let mut points = match layer_of[from] > layer_of[to] {
                true => vec![above(from, to)],
                false => below(from, to).to_vec(),
            };
            let curve = points.len() - 1;
            if to_bottom {
                points.push(Point {
                    x: point.x,
                    y: placed.bottoms[layer_of[to]],
                });
            }
            points.push(point);
            (points, curve)
        };
        for (index, (unit, block)) in units.iter().zip(blocks).enumerate() {
            let corner = placed.corners[index];
            let block = block.moved(corner.x, corner.y);
            let (upper, lower) = match unit {
                Unit::Card(card) => {
                    for neighbour in self.core_neighbours(*card) {
                        let Some(&other) = unit_of.get(&neighbour) else {
                            continue;
                        };
                        let is_upper = (layer_of[index], index) < (layer_of[other], other);
                        if !is_upper {
                            continue;
                        }
                        let is_level = layer_of[index] == layer_of[other];
                        let end = match is_level {
                            true => below(other, index)[0],
                            false => above(other, index),
                        };
                        let (points, curve) = way(index, other, end, is_level);
                        whole.wires.push(blocks::Wire {
                            link: self.net.link(*card, neighbour),
                            points,
                            curve: Some(curve),
                            label_room: slots.label_room(other, index),
                            open: None,
                        });
                    }
                    (index, index)
                }
                Unit::Hanging(card) => (unit_of[card], unit_of[card]),
                Unit::Chains { upper, lower, .. } => (unit_of[upper], unit_of[lower]),
            };
            whole.cards.extend(block.cards);
            for mut wire in block.wires {
                let from = match wire.open {
                    None => {
                        whole.wires.push(wire);
                        continue;
                    }
                    Some(blocks::Open::First) => upper,
                    Some(blocks::Open::Second) => lower,
                };
                let first = wire.points[0];
                let is_bottom = first.y > corner.y;
                let (mut points, curve) = way(
                    from,
                    index,
                    first,
                    is_bottom && layer_of[from] <= layer_of[index],
                );
                points.pop();
                points.append(&mut wire.points);
                wire.points = points;
                wire.curve = Some(curve);
                wire.open = None;
                whole.wires.push(wire);
            }
        }
        whole
    }

    /// A card with everything that hangs on it.
    fn tree(&self, card: usize) -> Block {
        let own = Block::card(card, self.net.problem.sizes[card]);
        match self.children.contains_key(&card) {
            true => own.above(blocks::rows(self.hanging(card), Second::None)),
            false => own,
        }
    }

    fn hanging(&self, card: usize) -> Vec<Item> {
        let children = self.children.get(&card).into_iter().flatten();
        children
            .map(|&child| {
                let block = self.tree(child);
                Item {
                    top: block.card_center(child),
                    first: self.net.link(card, child),
                    second: None,
                    block,
                }
            })
            .collect()
    }

    /// A chain as a column of cards.
    fn chain(&self, upper: usize, lower: usize, chain: &[usize]) -> Item {
        let block = blocks::column(
            chain
                .iter()
                .map(|&card| (card, self.net.problem.sizes[card]))
                .collect(),
            chain
                .windows(2)
                .map(|pair| self.net.link(pair[0], pair[1]))
                .collect(),
        );
        Item {
            top: block.size.width / 2,
            first: self.net.link(upper, chain[0]),
            second: Some(self.net.link(chain[chain.len() - 1], lower)),
            block,
        }
    }
}

/// Where links end along the upper and the lower side of cards in layers: next to each other, in
/// the order of the other ends.
struct Slots {
    /// For a unit and a neighbour: pixels from the middle of the unit, and up to the next link.
    slots: BTreeMap<(usize, usize), (i32, i32)>,
}

/// Pixels between the ends of links at a side with few of them.
const SLOT: i32 = 84;
/// The least pixels between the ends of links that leave room for labels.
const LABEL_ROOM_MIN: i32 = 40;

impl Slots {
    fn new(
        layer_of: &[usize],
        placed: &layers::Placed,
        sizes: &[Size],
        joined: &[Vec<usize>],
        is_card: impl Fn(usize) -> bool,
    ) -> Slots {
        let center = |unit: usize| placed.corners[unit].x + sizes[unit].width / 2;
        let mut slots = BTreeMap::new();
        for unit in (0..joined.len()).filter(|&unit| is_card(unit)) {
            let is_below = |&other: &usize| layer_of[other] >= layer_of[unit];
            let (mut below, mut above): (Vec<usize>, Vec<usize>) =
                joined[unit].iter().copied().partition(is_below);
            for side in [&mut below, &mut above] {
                side.sort_by_key(|&other| (center(other), other));
                let count = i32::try_from(side.len()).unwrap_or(i32::MAX).max(1);
                let step = SLOT.min((sizes[unit].width - GAP) / count);
                for (place, &other) in (0..).zip(side.iter()) {
                    let offset = step * (2 * place - (count - 1)) / 2;
                    let room = if count > 1 { step } else { blocks::LABEL_ROOM };
                    slots.insert((unit, other), (offset, room));
                }
            }
        }
        Slots { slots }
    }

    fn offset(&self, unit: usize, other: usize) -> i32 {
        self.slots.get(&(unit, other)).map_or(0, |slot| slot.0)
    }

    fn label_room(&self, unit: usize, other: usize) -> i32 {
        let room = self.slots.get(&(unit, other)).map_or(0, |slot| slot.1);
        if room < LABEL_ROOM_MIN { 0 } else { room }
    }
}

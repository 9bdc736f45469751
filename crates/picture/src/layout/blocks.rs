//! Blocks: cards below a bus, in rows that are wrapped to the shape of a screen.
//!
//! ```text
//!            | entry
//!   +--------+-----------+        a bus for each row; more rows hang on a rail at the left
//!   |  +-----+  +-----+  |
//!   |  |  a  |  |  b  | ...
//!   |  +-----+  +-----+
//!   +-----+--------+              a second card that all are joined to has its buses below the
//!      +-----+  +-----+           rows, with a rail at the right, or above, if it is there
//!      |  c  |  |  d  |
//! ```
//!
//! Positions inside of a block are relative to its upper left corner.

use super::{GAP, Point, Size};

/// Pixels from the top of a row to its bus.
const BUS: i32 = 12;
/// Pixels from a bus to the cards below it: room for the label of a link.
const STUB: i32 = 26;
/// Pixels between cards of a column.
const COLUMN_GAP: i32 = 30;
/// Pixels left of the cards, or right of them, that a rail takes.
const RAIL: i32 = 20;
/// Pixels that the label of a link may take.
pub(super) const LABEL_ROOM: i32 = 132;
/// The width of a single row that is never wrapped.
const ROW_MIN: i32 = 1000;
/// Widths are multiples of this, so that one card more seldom changes the number of columns.
const STEP: i32 = 472;

/// Cards and links with relative positions.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) size: Size,
    pub(super) cards: Vec<(usize, Point)>,
    pub(super) wires: Vec<Wire>,
}

/// A link, or the part of it inside a block.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    pub(super) link: usize,
    pub(super) points: Vec<Point>,
    pub(super) curve: Option<usize>,
    pub(super) label_room: i32,
    /// Which card outside of the block it still has to reach, from its first point.
    pub(super) open: Option<Open>,
}

/// A card outside of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    First,
    Second,
}

/// Where the second card is to which everything in a block is joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Second {
    None,
    Above,
    Below,
}

/// A block inside of rows.
pub(super) struct Item {
    pub(super) block: Block,
    /// Where its upper card is joined, from its left.
    pub(super) top: i32,
    /// The link to the first card outside.
    pub(super) first: usize,
    /// The link to the second one.
    pub(super) second: Option<usize>,
}

/// The width at which things of an area fit on a screen.
pub(super) fn ideal_width(area: i64) -> i32 {
    // The root of an area of less than 2^62 fits.
    #[expect(clippy::cast_possible_truncation, reason = "see above")]
    let width = (area as f64 * 1.9).sqrt() as i32;
    width.div_euclid(STEP) * STEP + STEP
}

impl Block {
    /// A block of one card.
    pub(super) fn card(card: usize, size: Size) -> Block {
        Block {
            size,
            cards: vec![(card, Point::default())],
            wires: Vec::new(),
        }
    }

    /// The block elsewhere.
    pub(super) fn moved(mut self, x: i32, y: i32) -> Block {
        for (_, corner) in &mut self.cards {
            *corner = corner.moved(x, y);
        }
        for point in self.wires.iter_mut().flat_map(|wire| &mut wire.points) {
            *point = point.moved(x, y);
        }
        self
    }

    /// A block of one card above rows, to whose open wires it is joined.
    pub(super) fn above(self, rows: Block) -> Block {
        let width = self.size.width.max(rows.size.width);
        let center = width / 2;
        let own = self.size;
        let mut whole = self.moved(center - own.width / 2, 0);
        let rows_left = center - rows.size.width / 2;
        let size = Size {
            width,
            height: own.height + rows.size.height,
        };
        let rows = rows.moved(rows_left, own.height);
        whole.cards.extend(rows.cards);
        whole.wires.extend(rows.wires.into_iter().map(|mut wire| {
            wire.open = None;
            wire
        }));
        whole.size = size;
        whole
    }

    /// The middle of a card, from the left.
    pub(super) fn card_center(&self, card: usize) -> i32 {
        // The first card of a tree is its own, centred above the rest.
        debug_assert_eq!(self.cards[0].0, card);
        self.size.width / 2
    }
}

/// Cards below each other, joined by the given links.
pub(super) fn column(cards: Vec<(usize, Size)>, links: Vec<usize>) -> Block {
    let width = cards.iter().map(|(_, size)| size.width).max().unwrap_or(0);
    let center = width / 2;
    let mut block = Block::default();
    let mut y = 0;
    let mut links = links.into_iter();
    for (card, size) in cards {
        if y > 0 {
            let below = Point { x: center, y };
            let above = below.moved(0, -COLUMN_GAP);
            block.wires.extend(links.next().map(|link| Wire {
                link,
                points: vec![above, below],
                curve: None,
                label_room: LABEL_ROOM,
                open: None,
            }));
        }
        block.cards.push((
            card,
            Point {
                x: center - size.width / 2,
                y,
            },
        ));
        y += size.height;
        block.size = Size { width, height: y };
        y += COLUMN_GAP;
    }
    block
}

/// Items in rows under a bus. Wires to the first card outside begin at the middle of the top; those
/// to the second one at the middle of the bottom, or right of the middle of the top.
pub(super) fn rows(items: Vec<Item>, second: Second) -> Block {
    let rows = wrapped(&items);
    let is_wrapped = rows.len() > 1;
    let rail = if is_wrapped { RAIL } else { 0 };
    let right_rail = if second == Second::None { 0 } else { rail };
    let row_width = |row: &std::ops::Range<usize>| -> i32 {
        let items = &items[row.clone()];
        items
            .iter()
            .map(|item| item.block.size.width + GAP)
            .sum::<i32>()
            - GAP
    };
    let width = rail + rows.iter().map(row_width).max().unwrap_or(0) + right_rail;
    let entry = width / 2;
    let entry_second = if second == Second::Above {
        entry + 2 * BUS
    } else {
        entry
    };
    // A second bus above the rows lies below the first one.
    let top = if second == Second::Above {
        2 * BUS
    } else {
        BUS
    } + STUB;
    let bottom = if second == Second::Below {
        STUB + BUS
    } else {
        0
    };
    let mut tops = Vec::new();
    let mut height = 0;
    for row in &rows {
        tops.push(height);
        let tallest = items[row.clone()]
            .iter()
            .map(|item| item.block.size.height)
            .max();
        height += top + tallest.unwrap_or(0) + bottom + GAP / 2;
    }
    height -= GAP / 2;
    let first_bus = tops.first().map_or(0, |y| y + BUS);
    let mut block = Block {
        size: Size { width, height },
        ..Block::default()
    };
    let mut items = items.into_iter();
    for (index, row) in rows.into_iter().enumerate() {
        let (y, row_bottom) = (
            tops[index],
            tops.get(index + 1).map_or(height, |y| y - GAP / 2),
        );
        let mut x = rail;
        for item in items.by_ref().take(row.len()) {
            let center = x + item.top;
            // Far enough apart for two labels.
            let shift = match second {
                Second::Above => item.block.size.width / 4,
                _ => 0,
            };
            let item_top = y + top;
            let item_bottom = item_top + item.block.size.height;
            let mut points = vec![
                Point { x: entry, y: 0 },
                Point {
                    x: entry,
                    y: first_bus,
                },
            ];
            if index > 0 {
                points.push(Point {
                    x: rail / 2,
                    y: first_bus,
                });
                points.push(Point {
                    x: rail / 2,
                    y: y + BUS,
                });
            }
            points.push(Point {
                x: center - shift,
                y: y + BUS,
            });
            points.push(Point {
                x: center - shift,
                y: item_top,
            });
            let mut wire = Wire::open(item.first, points, Open::First);
            if second == Second::Above {
                wire.label_room = 2 * shift;
            }
            block.wires.push(wire);
            if let Some(link) = item.second {
                let side = width - right_rail / 2;
                let (start, bus, end) = match second {
                    Second::Below => (height, row_bottom - BUS, item_bottom),
                    _ => (0, y + 2 * BUS, item_top),
                };
                let near = match second {
                    Second::Below => height - BUS,
                    _ => first_bus + BUS,
                };
                let mut points = vec![
                    Point {
                        x: entry_second,
                        y: start,
                    },
                    Point {
                        x: entry_second,
                        y: near,
                    },
                ];
                if bus != near {
                    points.push(Point { x: side, y: near });
                    points.push(Point { x: side, y: bus });
                }
                points.push(Point {
                    x: center + shift,
                    y: bus,
                });
                points.push(Point {
                    x: center + shift,
                    y: end,
                });
                block.wires.push(Wire::open(link, points, Open::Second));
            }
            let width = item.block.size.width;
            let inner = item.block.moved(x, item_top);
            block.cards.extend(inner.cards);
            block.wires.extend(inner.wires);
            x += width + GAP;
        }
    }
    block
}

impl Wire {
    fn open(link: usize, points: Vec<Point>, open: Open) -> Wire {
        Wire {
            link,
            points,
            curve: None,
            label_room: LABEL_ROOM,
            open: Some(open),
        }
    }
}

/// Where rows of items end.
fn wrapped(items: &[Item]) -> Vec<std::ops::Range<usize>> {
    let sizes = || items.iter().map(|item| item.block.size);
    let total: i32 = sizes().map(|size| size.width + GAP).sum();
    let area: i64 = sizes()
        .map(|size| i64::from(size.width + GAP) * i64::from(size.height + GAP + BUS + STUB))
        .sum();
    let limit = match total <= ROW_MIN {
        true => ROW_MIN,
        false => ideal_width(area).max(ROW_MIN),
    };
    let mut rows = Vec::new();
    let (mut start, mut width) = (0, 0);
    for (index, size) in sizes().enumerate() {
        if index > start && width + size.width > limit {
            rows.push(start..index);
            (start, width) = (index, 0);
        }
        width += size.width + GAP;
    }
    if start < items.len() {
        rows.push(start..items.len());
    }
    rows
}

//! Layers: the order of units in each, so that few links cross, and their positions, close to their
//! neighbours and never over each other.
//!
//! Links join units of one layer or of two that follow each other, because layers are distances
//! from a root. The order follows the mean position of neighbours, in sweeps down and up; of all
//! orders seen, that with the fewest crossings stays. Positions in a layer are those of least
//! squares under the distances that the widths ask for: pools of units that would overlap share
//! the mean of what they ask for (pool adjacent violators).

use super::{GAP, Point, Size};

/// Pixels between layers.
const LAYER_GAP: i32 = 64;
/// Sweeps of the order, and of the positions.
const SWEEPS: usize = 8;

/// The units to place.
pub(super) struct Units<'a> {
    pub(super) sizes: Vec<Size>,
    pub(super) layer_of: &'a [usize],
    pub(super) joined: &'a [Vec<usize>],
    /// The centres in the last layout.
    pub(super) before: &'a [Option<f64>],
}

/// Positions of units.
pub(super) struct Placed {
    pub(super) corners: Vec<Point>,
    /// The lower end of each layer.
    pub(super) bottoms: Vec<i32>,
    pub(super) size: Size,
}

pub(super) fn place(units: &Units<'_>) -> Placed {
    let count = units.layer_of.iter().max().map_or(0, |last| last + 1);
    let mut layers: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (unit, &layer) in units.layer_of.iter().enumerate() {
        layers[layer].push(unit);
    }
    let known = units.before.iter().flatten().count();
    if known * 4 >= units.sizes.len() * 3 {
        order_as_before(units, &mut layers);
    } else {
        order(units, &mut layers);
    }
    let centers = centers(units, &layers);
    let mut corners = vec![Point::default(); units.sizes.len()];
    let mut bottoms = Vec::new();
    let mut size = Size::default();
    let left = |unit: usize| centers[unit] - f64::from(units.sizes[unit].width) / 2.0;
    let least = (0..corners.len()).map(left).fold(f64::INFINITY, f64::min);
    for layer in &layers {
        if size.height > 0 {
            size.height += LAYER_GAP;
        }
        let top = size.height;
        for &unit in layer {
            // Sums of widths, which are small integers.
            #[expect(clippy::cast_possible_truncation, reason = "see above")]
            let x = (left(unit) - least).round() as i32;
            corners[unit] = Point { x, y: top };
            size.width = size.width.max(x + units.sizes[unit].width);
            size.height = size.height.max(top + units.sizes[unit].height);
        }
        bottoms.push(size.height);
    }
    Placed {
        corners,
        bottoms,
        size,
    }
}

/// Orders each layer as it was; new units go next to their neighbours.
fn order_as_before(units: &Units<'_>, layers: &mut [Vec<usize>]) {
    for layer in layers {
        let mut keyed: Vec<(f64, usize)> = layer
            .iter()
            .map(|&unit| (wanted_before(units, unit), unit))
            .collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        *layer = keyed.into_iter().map(|(_, unit)| unit).collect();
    }
}

fn wanted_before(units: &Units<'_>, unit: usize) -> f64 {
    if let Some(center) = units.before[unit] {
        return center;
    }
    let known: Vec<f64> = units.joined[unit]
        .iter()
        .filter_map(|&other| units.before[other])
        .collect();
    match known.len() {
        0 => f64::MAX,
        count => known.iter().sum::<f64>() / count as f64,
    }
}

/// Orders each layer by the mean places of neighbours in the layer next to it.
fn order(units: &Units<'_>, layers: &mut Vec<Vec<usize>>) {
    let mut places = vec![0.0; units.sizes.len()];
    renumber(layers, &mut places);
    let mut best = (crossings(units, layers, &places), layers.clone());
    for sweep in 0..SWEEPS {
        let down = sweep % 2 == 0;
        for step in 1..layers.len() {
            let (layer, next_to) = match down {
                true => (step, step - 1),
                false => (layers.len() - 1 - step, layers.len() - step),
            };
            let mut keyed: Vec<(f64, f64, usize)> = layers[layer]
                .iter()
                .map(|&unit| {
                    let (mut sum, mut count) = (0.0, 0.0);
                    for &other in &units.joined[unit] {
                        if units.layer_of[other] == next_to {
                            sum += places[other];
                            count += 1.0;
                        }
                    }
                    let own = places[unit];
                    (if count > 0.0 { sum / count } else { own }, own, unit)
                })
                .collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
            layers[layer] = keyed.into_iter().map(|(.., unit)| unit).collect();
            renumber(&layers[layer..=layer], &mut places);
        }
        let now = crossings(units, layers, &places);
        if now < best.0 {
            best = (now, layers.clone());
        }
    }
    *layers = best.1;
}

/// Writes down the place of each unit: the middle of its layer is 0, so that layers of different
/// lengths compare.
fn renumber(layers: &[Vec<usize>], places: &mut [f64]) {
    for layer in layers {
        let middle = (layer.len() as f64 - 1.0) / 2.0;
        for (index, &unit) in layer.iter().enumerate() {
            places[unit] = index as f64 - middle;
        }
    }
}

/// The number of pairs of links between two layers that cross.
fn crossings(units: &Units<'_>, layers: &[Vec<usize>], places: &[f64]) -> usize {
    let mut count = 0;
    for layer in layers {
        // Links downwards, by their upper ends; inversions of the lower ends are crossings.
        let mut ends: Vec<f64> = Vec::new();
        for &unit in layer {
            let mut own: Vec<f64> = units.joined[unit]
                .iter()
                .filter(|&&other| units.layer_of[other] == units.layer_of[unit] + 1)
                .map(|&other| places[other])
                .collect();
            own.sort_by(f64::total_cmp);
            ends.extend(own);
        }
        count += inversions(&mut ends);
    }
    count
}

/// Sorts numbers and returns how many pairs were in the wrong order.
fn inversions(numbers: &mut [f64]) -> usize {
    if numbers.len() < 2 {
        return 0;
    }
    let (left, right) = numbers.split_at_mut(numbers.len() / 2);
    let mut count = inversions(left) + inversions(right);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut i, mut j) = (0, 0);
    while i < left.len() || j < right.len() {
        if j == right.len() || (i < left.len() && left[i] <= right[j]) {
            merged.push(left[i]);
            i += 1;
        } else {
            merged.push(right[j]);
            count += left.len() - i;
            j += 1;
        }
    }
    numbers.copy_from_slice(&merged);
    count
}

/// The centre of each unit.
fn centers(units: &Units<'_>, layers: &[Vec<usize>]) -> Vec<f64> {
    let width = |unit: usize| f64::from(units.sizes[unit].width);
    let mut centers = vec![0.0; units.sizes.len()];
    for layer in layers {
        let total: f64 = layer.iter().map(|&unit| width(unit) + f64::from(GAP)).sum();
        let mut x = -total / 2.0;
        for &unit in layer {
            centers[unit] = x + width(unit) / 2.0;
            x += width(unit) + f64::from(GAP);
        }
    }
    for sweep in 0..SWEEPS {
        let order: Box<dyn Iterator<Item = &Vec<usize>>> = match sweep % 2 == 0 {
            true => Box::new(layers.iter()),
            false => Box::new(layers.iter().rev()),
        };
        for layer in order {
            let wanted: Vec<(f64, f64)> = layer
                .iter()
                .map(|&unit| {
                    let near: Vec<f64> = units.joined[unit]
                        .iter()
                        .filter(|&&other| units.layer_of[other] != units.layer_of[unit])
                        .map(|&other| centers[other])
                        .collect();
                    match near.len() {
                        0 => (centers[unit], 0.1),
                        count => (near.iter().sum::<f64>() / count as f64, 1.0),
                    }
                })
                .collect();
            let widths: Vec<f64> = layer.iter().map(|&unit| width(unit)).collect();
            for (&unit, center) in layer.iter().zip(spread(&wanted, &widths)) {
                centers[unit] = center;
            }
        }
    }
    centers
}

/// Centres as close as possible to what is wanted (with a weight each), in the given order and
/// without overlaps.
fn spread(wanted: &[(f64, f64)], widths: &[f64]) -> Vec<f64> {
    // Less the least distance from the first one, centres only must not decrease.
    let mut offsets = Vec::with_capacity(wanted.len());
    let mut offset = 0.0;
    for index in 0..wanted.len() {
        if index > 0 {
            offset += (widths[index - 1] + widths[index]) / 2.0 + f64::from(GAP);
        }
        offsets.push(offset);
    }
    // Pools: weighted sum, weight, number of members.
    let mut pools: Vec<(f64, f64, usize)> = Vec::new();
    for (&(center, weight), offset) in wanted.iter().zip(&offsets) {
        let mut pool = ((center - offset) * weight, weight, 1);
        while let Some(&(sum, weight, count)) = pools.last() {
            if sum / weight <= pool.0 / pool.1 {
                break;
            }
            pool = (pool.0 + sum, pool.1 + weight, pool.2 + count);
            pools.pop();
        }
        pools.push(pool);
    }
    let values = pools
        .into_iter()
        .flat_map(|(sum, weight, count)| std::iter::repeat_n(sum / weight, count));
    values
        .zip(offsets)
        .map(|(value, offset)| value + offset)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wants_the_same_place_is_spread_around_it() {
        let gap = f64::from(GAP);
        let centers = spread(&[(100.0, 1.0), (100.0, 1.0), (500.0, 1.0)], &[40.0; 3]);
        assert_eq!(centers, [80.0 - gap / 2.0, 120.0 + gap / 2.0, 500.0]);
    }

    #[test]
    fn inversions_are_counted() {
        assert_eq!(inversions(&mut [3.0, 1.0, 2.0, 2.0]), 3);
    }
}

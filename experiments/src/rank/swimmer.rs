//! The swimmer: 256 images of a torso and four limbs, each limb in one of four positions, every combination once.

use super::data::{Data, Part, Trouble, Truth};
use bpnmf::Counts;

const SIDE: usize = 32;
const IMAGES: usize = 256;
const INTENSITY: f64 = 10.0;
const LIMB_LENGTH: isize = 6;

/// Where a limb is fixed (row, column; not itself a pixel of the limb) and the directions it can point in.
struct Limb {
    joint: (isize, isize),
    directions: [(isize, isize); 4],
}

/// Arms left and right, legs left and right.
const LIMBS: [Limb; 4] = [
    Limb { joint: (10, 15), directions: [(-1, 0), (-1, -1), (0, -1), (1, -1)] },
    Limb { joint: (10, 17), directions: [(-1, 0), (-1, 1), (0, 1), (1, 1)] },
    Limb { joint: (21, 15), directions: [(1, 0), (1, -1), (0, -1), (-1, -1)] },
    Limb { joint: (21, 17), directions: [(1, 0), (1, 1), (0, 1), (-1, 1)] },
];

fn limb(limb: &Limb, position: usize) -> Vec<usize> {
    let ((row, column), (down, right)) = (limb.joint, limb.directions[position]);
    (1..=LIMB_LENGTH).map(|i| ((row + i * down) as usize) * SIDE + (column + i * right) as usize).collect()
}

fn torso() -> Vec<usize> {
    (10..=21).map(|row| row * SIDE + 16).collect()
}

/// The position of a limb in an image.
fn position(image: usize, limb: usize) -> usize {
    image >> (2 * limb) & 3
}

/// Poisson counts around the images, 1024 x 256. The truth counts the limbs alone: a torso that is always there may
/// as well be a share of one limb's four positions.
pub(super) fn draw(seed: u64) -> Result<Data, Trouble> {
    let mut stream = bpnmf::bench::stream(seed);
    let mut values = Vec::with_capacity(SIDE * SIDE * IMAGES);
    for image in 0..IMAGES {
        let mut lit = vec![false; SIDE * SIDE];
        for pixel in torso() {
            lit[pixel] = true;
        }
        for (i, parts) in LIMBS.iter().enumerate() {
            for pixel in limb(parts, position(image, i)) {
                lit[pixel] = true;
            }
        }
        values.extend(lit.iter().map(|&lit| if lit { stream.poisson(INTENSITY) } else { 0.0 }));
    }
    let parts: Vec<Part> = LIMBS
        .iter()
        .flat_map(|parts| (0..4).map(move |position| limb(parts, position)))
        .map(|pixels| {
            let mut column = vec![0.0; SIDE * SIDE];
            for pixel in pixels {
                column[pixel] = 1.0;
            }
            Part { column, usage: IMAGES / 4 }
        })
        .collect();
    Ok(Data {
        name: format!("swimmer, seed {seed}"),
        counts: Counts::from_dense(SIDE * SIDE, IMAGES, values)?,
        truth: Some(Truth { components: parts.len(), parts }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pixel_belongs_to_two_parts() {
        let mut pixels: Vec<usize> = torso();
        pixels.extend(LIMBS.iter().flat_map(|parts| (0..4).flat_map(|position| limb(parts, position))));
        let all = pixels.len();
        assert_eq!(all, 12 + 16 * LIMB_LENGTH as usize);
        pixels.sort_unstable();
        pixels.dedup();
        assert_eq!(pixels.len(), all);
    }

    #[test]
    fn every_limb_position_is_in_a_quarter_of_the_images() {
        let data = draw(1).unwrap();
        for part in data.truth.unwrap().parts {
            let images = (0..IMAGES)
                .filter(|&t| data.counts.column(t).positive().any(|(pixel, _)| part.column[pixel] > 0.0))
                .count();
            assert_eq!(images, part.usage);
        }
    }
}

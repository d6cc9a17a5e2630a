//! Grids of numbers as small PNG pictures. Knows no axes and no page.

use crate::grid::Grid;
use crate::text::base64;

/// The colours from nothing to the most: lightness grows evenly, so the map also reads without colour. Twelve steps of
/// OKLCH lightness 0.13 to 0.98, the hue going from blue over red to yellow.
const COLOURS: [[u8; 3]; 12] = [
    [5, 6, 21],
    [31, 0, 68],
    [64, 1, 91],
    [103, 3, 103],
    [145, 3, 104],
    [190, 0, 92],
    [230, 27, 63],
    [250, 87, 23],
    [254, 139, 31],
    [253, 182, 76],
    [247, 221, 145],
    [250, 251, 221],
];

/// Different colours in a picture. More are not seen, and cost bytes.
const LEVELS: usize = 40;

/// The share of the positive pixels that is brighter than the end of the scale: one giant value must not darken all others.
const BRIGHTER: f64 = 0.001;

/// The most that the end of a scale may be above its knee.
const RANGE: f64 = 1e4;

/// From numbers to levels: even below the knee, logarithmic above it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    knee: f64,
    /// The number of the last colour.
    pub(crate) top: f64,
    /// There are larger numbers than that.
    pub(crate) exceeded: bool,
}

impl Scale {
    /// One that suits the numbers: the knee at their median.
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut positive: Vec<f64> = values.iter().copied().filter(|&v| v > 0.0 && v.is_finite()).collect();
        if positive.is_empty() {
            return Self { knee: 1.0, top: 1.0, exceeded: false };
        }
        let last = positive.len() - 1;
        let end = last - (positive.len() as f64 * BRIGHTER) as usize;
        let (_, &mut top, above) = positive.select_nth_unstable_by(end, f64::total_cmp);
        let exceeded = above.iter().any(|&v| v > top * 1.001);
        let (_, &mut median, _) = positive.select_nth_unstable_by(last / 2, f64::total_cmp);
        Self { knee: median.max(top / RANGE), top, exceeded }
    }

    /// Where a number is on the scale, from 0 to 1.
    pub(crate) fn position(&self, value: f64) -> f64 {
        ((value / self.knee).ln_1p() / (self.top / self.knee).ln_1p()).clamp(0.0, 1.0)
    }

    /// The number at a place of the scale.
    pub(crate) fn value(&self, position: f64) -> f64 {
        self.knee * (position * (self.top / self.knee).ln_1p()).exp_m1()
    }
}

/// One of the colours, `position` from 0 to 1.
fn colour(position: f64) -> [u8; 3] {
    let place = position * (COLOURS.len() - 1) as f64;
    let i = (place as usize).min(COLOURS.len() - 2);
    let part = place - i as f64;
    let mix = |c: usize| f64::from(COLOURS[i][c]) * (1.0 - part) + f64::from(COLOURS[i + 1][c]) * part;
    [0, 1, 2].map(|c| mix(c).round() as u8)
}

/// A picture of a grid as the address of an image.
pub(crate) fn address(grid: &Grid, scale: &Scale) -> String {
    let level = |&value: &f64| (scale.position(value) * (LEVELS - 1) as f64).round() as u8;
    let levels: Vec<u8> = grid.values.iter().map(level).collect();
    let bytes =
        encoded(grid.columns as u32, grid.rows as u32, &levels).expect("nothing is written to a file");
    format!("data:image/png;base64,{}", base64(&bytes))
}

fn encoded(width: u32, height: u32, levels: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let palette = (0..LEVELS).flat_map(|i| colour(i as f64 / (LEVELS - 1) as f64)).collect::<Vec<u8>>();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(palette);
    encoder.set_compression(png::Compression::High);
    // Differences of indices are no smaller than indices.
    encoder.set_filter(png::Filter::NoFilter);
    encoder.write_header()?.write_image_data(levels)?;
    Ok(bytes)
}

/// The colours of the map as a CSS gradient from left to right.
pub(crate) fn gradient() -> String {
    let stops = COLOURS.map(|[r, g, b]| format!("#{r:02x}{g:02x}{b:02x}"));
    format!("linear-gradient(90deg,{})", stops.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_grow_lighter_all_the_way() {
        let light = |[r, g, b]: [u8; 3]| {
            let linear = |c: u8| (f64::from(c) / 255.0).powf(2.2);
            0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
        };
        let all: Vec<f64> = (0..LEVELS).map(|i| light(colour(i as f64 / (LEVELS - 1) as f64))).collect();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
    }

    #[test]
    fn one_giant_value_does_not_darken_all_others() {
        let mut values: Vec<f64> = (1..=5000).map(|i| (i % 10) as f64).collect();
        values[17] = 1e15;
        let scale = Scale::of(&values);
        assert_eq!((scale.top, scale.exceeded), (9.0, true));
        assert_eq!(scale.position(1e15), 1.0);
        assert!(scale.position(5.0) > 0.4);
        assert_eq!(scale.position(0.0), 0.0);
        assert!((scale.position(scale.value(0.3)) - 0.3).abs() < 1e-12);
    }

    #[test]
    fn a_scale_of_nothing_or_of_one_value_is_a_scale() {
        assert_eq!(Scale::of(&[0.0, 0.0]).position(0.0), 0.0);
        assert_eq!(Scale::of(&[0.0, 7.0]).position(7.0), 1.0);
        assert_eq!(Scale::of(&[f64::NAN, f64::INFINITY]).top, 1.0);
    }

    #[test]
    fn a_picture_decodes_to_the_levels_it_was_made_of() {
        let levels: Vec<u8> = (0..35).map(|i| i % LEVELS as u8).collect();
        let bytes = encoded(7, 5, &levels).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (7, 5));
        assert_eq!(&pixels[..35], levels);
    }
}

//! Parts that several stems share, split between them: by references, or event by event.

use rayon::prelude::*;

use crate::parts::Parts;
use crate::transcription::Event;

/// A reference with at least this share of a part gets a piece of it.
const LEAST_SHARE: f64 = 0.2;

/// Frames whose sums are taken together, whatever the threads.
const BLOCK: usize = 64;

/// Parts of which each belongs to one reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Pieces {
    /// The pieces: what each reference has of a part, as a spectrum and activations of its own.
    pub parts: Parts,
    /// The reference of every piece.
    pub owner: Vec<usize>,
    /// The part that every piece comes from.
    pub origin: Vec<usize>,
}

impl Pieces {
    /// The pieces of each of `references` references, increasing.
    pub fn by_owner(&self, references: usize) -> Vec<Vec<usize>> {
        let mut pieces = vec![Vec::new(); references];
        self.owner.iter().enumerate().for_each(|(piece, &owner)| pieces[owner].push(piece));
        pieces
    }
}

/// Gives every part to a reference, and splits those that several share.
///
/// Part k has the Wiener gain g_k(f, t) = W_fk H_kt / sum_j W_fj H_jt, and reference r with the magnitudes R_r the share
/// sum_ft g_k R_r of it. References with at least a fifth of a part get a piece each, with the spectrum
/// W_f = sum_t g_k(f, t) R_r(f, t) and the activation H_t = sum_f g_k(f, t) R_r(f, t), the first brought to a sum of one:
/// what they play where the part is on. `references`: magnitudes, bins x frames each, in the units of W H.
pub fn pick_all(parts: &Parts, references: &[Vec<f32>]) -> Pieces {
    let (bins, many) = (parts.bins, references.len());
    let blocks: Vec<Overlap> = (0..parts.frames.div_ceil(BLOCK))
        .into_par_iter()
        .map(|block| overlap(parts, references, block * BLOCK..((block + 1) * BLOCK).min(parts.frames)))
        .collect();
    let mut spectra = vec![0.0f64; parts.components * many * bins];
    for block in &blocks {
        spectra.iter_mut().zip(&block.spectra).for_each(|(sum, &value)| *sum += value);
    }
    let shares: Vec<f64> = spectra.chunks_exact(bins).map(|spectrum| spectrum.iter().sum()).collect();
    let mut pieces = Pieces {
        parts: Parts {
            components: 0,
            spectra: Vec::new(),
            starts: vec![0],
            active: vec![],
            strength: vec![],
            ..*parts
        },
        owner: Vec::new(),
        origin: Vec::new(),
    };
    let mut piece_of = vec![None; parts.components * many];
    for k in 0..parts.components {
        let of_part = &shares[k * many..(k + 1) * many];
        let whole: f64 = of_part.iter().sum();
        // The first of equal ones; it has a piece whatever happens.
        let most = (0..many).rev().max_by(|&r, &s| of_part[r].total_cmp(&of_part[s])).unwrap_or(0);
        for r in (0..many).filter(|&r| r == most || (of_part[r] > 0.0 && of_part[r] >= LEAST_SHARE * whole)) {
            piece_of[k * many + r] = Some(pieces.owner.len() as u32);
            pieces.owner.push(r);
            pieces.origin.push(k);
            let (share, spectrum) = (of_part[r], &spectra[(k * many + r) * bins..][..bins]);
            if share > 0.0 {
                pieces.parts.spectra.extend(spectrum.iter().map(|w| (w / share) as f32));
            } else {
                // No reference plays where this part is on: it stays as it is.
                pieces.parts.spectra.extend_from_slice(parts.spectrum(k));
            }
        }
    }
    pieces.parts.components = pieces.owner.len();
    for block in blocks {
        for frame in block.activations {
            let on = frame.into_iter().filter_map(|(place, h)| piece_of[place].map(|piece| (piece, h)));
            for (piece, h) in on.filter(|(_, h)| *h > 0.0) {
                pieces.parts.active.push(piece);
                pieces.parts.strength.push(h as f32);
            }
            pieces.parts.starts.push(pieces.parts.active.len());
        }
    }
    pieces
}

/// Gives every event to the stem that `of` says: a part is split by when its events are, and every piece has its spectrum.
pub fn by_events(parts: &Parts, events: &[Event], of: &[usize]) -> Pieces {
    let mut pairs: Vec<(usize, usize)> =
        events.iter().zip(of).map(|(event, &stem)| (event.part, stem)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let mut of_frame: Vec<Vec<(usize, usize)>> = vec![Vec::new(); parts.frames];
    for (event, &stem) in events.iter().zip(of) {
        let piece = pairs.binary_search(&(event.part, stem)).expect("it is among all pairs");
        of_frame[event.first..event.end].iter_mut().for_each(|frame| frame.push((event.part, piece)));
    }
    let mut pieces = Parts {
        components: pairs.len(),
        spectra: pairs.iter().flat_map(|&(k, _)| parts.spectrum(k).iter().copied()).collect(),
        starts: vec![0],
        active: Vec::new(),
        strength: Vec::new(),
        ..*parts
    };
    for (t, frame) in of_frame.iter_mut().enumerate() {
        // By part, as `on` gives them: pieces of one part are never on together.
        frame.sort_unstable();
        for ((_, piece), (_, h)) in frame.iter().zip(parts.on(t).filter(|&(_, h)| h > 0.0)) {
            pieces.active.push(*piece as u32);
            pieces.strength.push(h);
        }
        pieces.starts.push(pieces.active.len());
    }
    let (origin, owner) = pairs.into_iter().unzip();
    Pieces { parts: pieces, owner, origin }
}

/// What references have of parts in some frames.
struct Overlap {
    /// sum_t g_k R_r, bins after bins, references within parts.
    spectra: Vec<f64>,
    /// For every frame, (part and reference, sum_f g_k R_r) of the parts that are on.
    activations: Vec<Vec<(usize, f64)>>,
}

fn overlap(parts: &Parts, references: &[Vec<f32>], frames: core::ops::Range<usize>) -> Overlap {
    let (bins, many) = (parts.bins, references.len());
    let mut spectra = vec![0.0f64; parts.components * many * bins];
    let mut activations = Vec::with_capacity(frames.len());
    let mut whole = vec![0.0; bins];
    for t in frames {
        parts.expected(t, |_| true, &mut whole);
        whole.iter_mut().for_each(|whole| *whole = if *whole > 0.0 { 1.0 / *whole } else { 0.0 });
        let mut on = Vec::new();
        for (k, h) in parts.on(t) {
            for (r, reference) in references.iter().enumerate() {
                let place = k * many + r;
                let sums = spectra[place * bins..][..bins].iter_mut();
                let frame = parts.spectrum(k).iter().zip(&whole).zip(&reference[t * bins..][..bins]);
                let mut total = 0.0;
                for (sum, ((&w, reciprocal), &m)) in sums.zip(frame) {
                    let value = f64::from(h) * f64::from(w) * reciprocal * f64::from(m);
                    *sum += value;
                    total += value;
                }
                on.push((place, total));
            }
        }
        activations.push(on);
    }
    Overlap { spectra, activations }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two parts, bins 0 and 1 against bins 2 and 3, on in turns and together.
    fn two_parts() -> Parts {
        let dictionary = [1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0];
        let (activations, inclusion) = ([5.0, 0.0, 5.0, 0.0, 5.0, 5.0], [1.0, 0.0, 1.0, 0.0, 1.0, 1.0]);
        Parts::new(&dictionary, &activations, &inclusion, 2)
    }

    #[test]
    fn parts_go_to_the_reference_that_sounds_where_they_do() {
        let low = vec![5.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 5.0, 0.0, 0.0];
        let high = vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 5.0, 0.0, 0.0, 5.0, 5.0];
        let pieces = pick_all(&two_parts(), &[low.clone(), high.clone()]);
        assert_eq!((pieces.owner, pieces.origin), (vec![0, 1], vec![0, 1]));
        assert_eq!(pick_all(&two_parts(), &[high, low]).owner, [1, 0]);
    }

    #[test]
    fn a_part_that_two_references_share_is_split_and_its_pieces_add_up() {
        // The first reference plays the low part in frame 0, the second in frame 2 and an octave richer.
        let first = vec![5.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let second = vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 5.0, 2.0, 8.0, 5.0, 5.0];
        let pieces = pick_all(&two_parts(), &[first, second]);
        assert_eq!((&pieces.owner[..], &pieces.origin[..]), (&[0, 1, 1][..], &[0, 0, 1][..]));
        let on: Vec<Vec<usize>> = (0..3).map(|t| pieces.parts.on(t).map(|(k, _)| k).collect()).collect();
        assert_eq!(on, [vec![0], vec![2], vec![1, 2]]);
        let mut sum = vec![0.0; 4];
        pieces.parts.expected(2, |_| true, &mut sum);
        for (found, expected) in sum.iter().zip([2.0, 8.0, 5.0, 5.0]) {
            assert!((found - expected).abs() < 2e-2, "{sum:?}");
        }
    }

    #[test]
    fn events_go_where_somebody_says_and_all_that_sounds_stays() {
        let parts = two_parts();
        let events = parts.events(&[1.0, 0.0, 1.0, 0.0, 1.0, 1.0]);
        assert_eq!(events.len(), 3);
        let pieces = by_events(&parts, &events, &[1, 0, 1]);
        assert_eq!((&pieces.origin[..], &pieces.owner[..]), (&[0, 0, 1][..], &[0, 1, 1][..]));
        let on: Vec<Vec<(usize, f32)>> = (0..3).map(|t| pieces.parts.on(t).collect()).collect();
        assert_eq!(on, [vec![(1, 5.0)], vec![(2, 5.0)], vec![(0, 5.0), (2, 5.0)]]);
        for t in 0..3 {
            let (mut one, mut other) = (vec![0.0; 4], vec![0.0; 4]);
            parts.expected(t, |_| true, &mut one);
            pieces.parts.expected(t, |_| true, &mut other);
            assert_eq!(one, other);
        }
    }

    #[test]
    fn a_part_that_nobody_plays_is_kept_whole() {
        let silence = vec![0.0; 12];
        let pieces = pick_all(&two_parts(), &[silence.clone(), silence]);
        assert_eq!((pieces.owner, pieces.origin), (vec![0, 0], vec![0, 1]));
        assert_eq!(pieces.parts.spectrum(0), two_parts().spectrum(0));
    }
}

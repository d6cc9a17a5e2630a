//! How well notes that were found are those that were played: precision, recall and F1 as mir_eval.transcription 0.8 has them.

use super::Played;

/// Seconds that an onset may be off.
const ONSET: f64 = 0.05;

/// Cents that a pitch may be off: half a semitone.
const CENTS: f64 = 50.0;

/// An offset may be off by this share of the note that was played, or by [`ONSET`], whichever is more.
const OFFSET: f64 = 0.2;

/// Precision, recall and their harmonic mean; all 0 if there are no notes on one of the two sides.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Agreement {
    /// The share of the notes found that were played.
    pub precision: f64,
    /// The share of the notes played that were found.
    pub recall: f64,
    /// 2 precision recall / (precision + recall).
    pub f1: f64,
}

/// Scores of notes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NoteScores {
    /// A note is found if one of its pitch, to half a semitone, begins within 50 ms.
    pub onset: Agreement,
    /// And ends within 50 ms or a fifth of its length.
    pub offset: Agreement,
}

/// Scores the notes found; each of them is found, and finds, at most once, and as many as possible do.
///
/// ```
/// use bpnmf_audio::{Played, note_scores};
/// let note = |onset, offset, midi| Played { onset, offset, midi };
/// let scores = note_scores(&[note(0.0, 1.0, 69.0), note(1.0, 2.0, 71.0)], &[note(0.04, 0.5, 69.0)]);
/// assert_eq!((scores.onset.precision, scores.onset.recall, scores.offset.f1), (1.0, 0.5, 0.0));
/// ```
pub fn note_scores(played: &[Played], found: &[Played]) -> NoteScores {
    let logarithm = |notes: &[Played]| -> Vec<f64> { notes.iter().map(|note| note.hertz().log2()).collect() };
    let (of_played, of_found) = (logarithm(played), logarithm(found));
    let begins = |i: usize, j: usize| {
        rounded((played[i].onset - found[j].onset).abs()) <= ONSET
            && (1200.0 * (of_played[i] - of_found[j])).abs() <= CENTS
    };
    let ends = |i: usize, j: usize| {
        let allowed = (OFFSET * (played[i].offset - played[i].onset)).max(ONSET);
        rounded((played[i].offset - found[j].offset).abs()) <= allowed
    };
    // By onset, so that only notes nearby are looked at.
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by(|&i, &j| found[i].onset.total_cmp(&found[j].onset).then(i.cmp(&j)));
    let near = |i: usize| {
        let from = order.partition_point(|&j| found[j].onset < played[i].onset - 2.0 * ONSET);
        order[from..].iter().copied().take_while(move |&j| found[j].onset <= played[i].onset + 2.0 * ONSET)
    };
    let onset: Vec<Vec<usize>> =
        (0..played.len()).map(|i| near(i).filter(|&j| begins(i, j)).collect()).collect();
    let offset: Vec<Vec<usize>> = onset
        .iter()
        .enumerate()
        .map(|(i, near)| near.iter().copied().filter(|&j| ends(i, j)).collect())
        .collect();
    NoteScores { onset: agreement(&onset, found.len()), offset: agreement(&offset, found.len()) }
}

/// To four decimals, ties to even: as numpy rounds.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e4).round_ties_even() / 1e4
}

fn agreement(candidates: &[Vec<usize>], found: usize) -> Agreement {
    if candidates.is_empty() || found == 0 {
        return Agreement::default();
    }
    let pairs = most_pairs(candidates, found) as f64;
    let (precision, recall) = (pairs / found as f64, pairs / candidates.len() as f64);
    let sum = precision + recall;
    Agreement { precision, recall, f1: if sum > 0.0 { 2.0 * precision * recall / sum } else { 0.0 } }
}

/// The most pairs such that nothing is in two of them: augmenting paths, found breadth first, so that no stack grows.
fn most_pairs(candidates: &[Vec<usize>], found: usize) -> usize {
    let mut partner: Vec<Option<usize>> = vec![None; found];
    let mut pairs = 0;
    for start in 0..candidates.len() {
        // From which note on the left every one on the right was reached.
        let mut reached: Vec<Option<usize>> = vec![None; found];
        let (mut queue, mut next, mut free) = (vec![start], 0, None);
        'search: while next < queue.len() {
            let i = queue[next];
            next += 1;
            for &j in &candidates[i] {
                if reached[j].is_some() {
                    continue;
                }
                reached[j] = Some(i);
                match partner[j] {
                    None => {
                        free = Some(j);
                        break 'search;
                    }
                    Some(other) => queue.push(other),
                }
            }
        }
        let Some(mut j) = free else { continue };
        pairs += 1;
        // Back along the path, every note on it takes the next one.
        while let Some(i) = reached[j] {
            let before = partner.iter().position(|&other| other == Some(i));
            partner[j] = Some(i);
            match before {
                Some(before) if i != start => j = before,
                _ => break,
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_pairs_as_there_can_be_are_found() {
        // The greedy choice of the first for 0 has to be taken back twice.
        assert_eq!(most_pairs(&[vec![0, 1], vec![0], vec![1, 2]], 3), 3);
        assert_eq!(most_pairs(&[vec![0], vec![0], vec![]], 2), 1);
        // Against all ways to choose, on small graphs.
        let mut state = 1u64;
        for _ in 0..500 {
            let graph: Vec<Vec<usize>> = (0..5)
                .map(|_| {
                    (0..5)
                        .filter(|_| {
                            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                            state >> 62 == 0
                        })
                        .collect()
                })
                .collect();
            assert_eq!(most_pairs(&graph, 5), best(&graph, 0, &mut [false; 5]), "{graph:?}");
        }
    }

    fn best(graph: &[Vec<usize>], at: usize, taken: &mut [bool; 5]) -> usize {
        let Some(choices) = graph.get(at) else { return 0 };
        let mut most = best(graph, at + 1, taken);
        for &j in choices {
            if !taken[j] {
                taken[j] = true;
                most = most.max(1 + best(graph, at + 1, taken));
                taken[j] = false;
            }
        }
        most
    }
}

//! What the number of parts by resolution says, in one sentence. Knows no page.

use crate::text::{grouped, resolution};

/// A number that stays at so many resolutions in a row is a plateau: with those of the search, over a factor of ten.
const PLATEAU: usize = 3;

/// What (power of the likelihood, number of parts), coarsest first, says about the number; `None` if there are fewer than
/// three resolutions.
///
/// ```
/// let path = [(0.03, 15), (0.1, 16), (0.3, 16), (1.0, 16)];
/// let told = "A plateau: the number stays at 16 from 1/10 of the resolution to the full one.";
/// assert_eq!(bpnmf_report::plateau_sentence(&path).as_deref(), Some(told));
/// ```
pub fn plateau_sentence(path: &[(f64, usize)]) -> Option<String> {
    if path.len() < PLATEAU {
        return None;
    }
    let Some(plateau) = longest_run(path).filter(|run| run.len() >= PLATEAU) else {
        return Some("No plateau: the number depends on how finely the data are read.".to_owned());
    };
    let (first, last) = (plateau[0], plateau[plateau.len() - 1]);
    let whole = last.0 == path[path.len() - 1].0;
    let to = match resolution(last.0).as_str() {
        "full" => "the full one".to_owned(),
        part => format!("{part} of it"),
    };
    let beyond = if whole { "" } else { " Beyond, it depends on how finely the data are read." };
    let number = grouped(first.1);
    Some(format!(
        "A plateau: the number stays at {number} from {} of the resolution to {to}.{beyond}",
        resolution(first.0)
    ))
}

/// The longest run of equal numbers, of equally long ones the finest.
fn longest_run(path: &[(f64, usize)]) -> Option<&[(f64, usize)]> {
    path.chunk_by(|x, y| x.1 == y.1).max_by_key(|run| run.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plateau_is_told_only_where_there_is_one() {
        let told = |numbers: [usize; 4]| {
            let path: Vec<(f64, usize)> = [0.03, 0.1, 0.3, 1.0].into_iter().zip(numbers).collect();
            plateau_sentence(&path).unwrap()
        };
        let all = "A plateau: the number stays at 8 from 1/33 of the resolution to the full one.";
        assert_eq!(told([8, 8, 8, 8]), all);
        assert_eq!(
            told([5, 5, 5, 12]),
            "A plateau: the number stays at 5 from 1/33 of the resolution to 1/3 of it. Beyond, it depends on how finely the \
             data are read."
        );
        for numbers in [[18, 20, 20, 21], [3, 9, 14, 23], [7, 7, 9, 9]] {
            assert!(told(numbers).starts_with("No plateau: "), "{numbers:?}");
        }
        assert_eq!(plateau_sentence(&[(0.3, 2), (1.0, 2)]), None);
        assert_eq!(plateau_sentence(&[]), None);
    }
}

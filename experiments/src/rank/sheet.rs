//! The lines of the file of fits, for pictures.

use super::rules::Outcome;
use std::fmt::Display;

pub(super) const HEAD: &str = "row,set,change,truncation,data_seed,fit_seed,truth,found,seconds";

/// One fit of a row.
pub(super) fn line(row: &str, outcome: &Outcome) -> String {
    let Outcome { case, truth, found, seconds, .. } = outcome;
    let (change, truncation, truth) = (or_empty(case.change), or_empty(case.truncation), or_empty(*truth));
    let (set, data_seed, fit_seed) = (case.set, case.data_seed, case.fit_seed);
    format!("{row},{set},{change},{truncation},{data_seed},{fit_seed},{truth},{found},{seconds:.3}")
}

fn or_empty(value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::data::Set;
    use super::super::rows::Case;
    use super::*;

    #[test]
    fn a_line_has_a_value_a_column_even_where_there_is_none() {
        let case = Case { truncation: Some(20), ..Case::new(Set::Digits, 3) };
        let outcome = Outcome { case, truth: None, found: 40, cosine: None, seconds: 1.5 };
        assert_eq!(line("seeds_digits", &outcome), "seeds_digits,digits,,20,3,3,,40,1.500");
        assert_eq!(HEAD.split(',').count(), 9);
    }
}

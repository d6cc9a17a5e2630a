//! The middle and the ends of a few figures.

/// The median and the range of figures that were measured several times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Of at least one figure.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let many = sorted.len();
        Self {
            median: f64::midpoint(sorted[(many - 1) / 2], sorted[many / 2]),
            least: sorted[0],
            most: sorted[many - 1],
        }
    }

    /// `3.21 (2.90..3.40)`, or the median alone if nothing varies.
    pub(crate) fn told(&self, digits: usize) -> String {
        let Self { median, least, most } = self;
        if least == most {
            format!("{median:.digits$}")
        } else {
            format!("{median:.digits$} ({least:.digits$}..{most:.digits$})")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 8.0]).told(1), "3.0 (1.0..8.0)");
        assert_eq!(Spread::of([2.0, 2.0]).told(0), "2");
    }
}

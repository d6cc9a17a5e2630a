//! How long a run will still take: from the chains that are complete, and from the iterations of those that are not.

/// How far a chain is, in seconds from the start of the run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Chain {
    /// Its number of components, once it has begun.
    pub(super) components: Option<usize>,
    pub(super) begun: Option<f64>,
    /// When the search was over and the iterations began.
    pub(super) searched: Option<f64>,
    pub(super) over: Option<f64>,
    pub(super) done: usize,
    /// Iterations that an earlier run had done.
    pub(super) before: usize,
}

impl Chain {
    fn runs(&self) -> bool {
        self.begun.is_some() && self.over.is_none()
    }

    /// Seconds an iteration takes.
    fn iteration(&self, now: f64) -> Option<f64> {
        let done = self.done.checked_sub(self.before).filter(|done| *done > 0)?;
        Some((self.over.unwrap_or(now) - self.searched?) / done as f64)
    }
}

/// The chains of a run and their clocks.
#[derive(Debug)]
pub(super) struct Pace {
    iterations: usize,
    chains: Vec<Chain>,
}

impl Pace {
    /// Of chains that have at most so many iterations.
    pub(super) fn new(iterations: usize, chains: usize) -> Self {
        Self { iterations, chains: vec![Chain::default(); chains] }
    }

    pub(super) fn chains(&self) -> &[Chain] {
        &self.chains
    }

    /// Whether any chain has begun.
    pub(super) fn begun(&self) -> bool {
        self.chains.iter().any(|chain| chain.begun.is_some())
    }

    pub(super) fn chains_over(&self) -> usize {
        self.chains.iter().filter(|chain| chain.over.is_some()).count()
    }

    /// Iterations done, or that will not be done, of all chains.
    pub(super) fn so_far(&self) -> usize {
        let done = |chain: &Chain| if chain.over.is_some() { self.iterations } else { chain.done };
        self.chains.iter().map(done).sum()
    }

    pub(super) fn search(&mut self, chain: usize, components: usize, now: f64) {
        let begins = self.begins(now);
        let chain = self.chain(chain);
        chain.components = Some(components);
        chain.begun.get_or_insert(begins);
    }

    pub(super) fn step(&mut self, chain: usize, iteration: usize, components: usize, now: f64) {
        let begins = self.begins(now);
        let chain = self.chain(chain);
        chain.components = Some(components);
        if chain.searched.is_none() {
            // The first one is not timed: nobody saw it begin.
            (chain.searched, chain.before) = (Some(now), iteration);
        }
        chain.begun.get_or_insert(begins);
        chain.done = iteration;
    }

    pub(super) fn over(&mut self, chain: usize, now: f64) {
        let begins = self.begins(now);
        let chain = self.chain(chain);
        chain.begun.get_or_insert(begins);
        chain.over = Some(now);
    }

    /// Seconds that are left; `None` while nothing tells how long a search takes.
    pub(super) fn left(&self, now: f64) -> Option<f64> {
        let whole = self.whole_chain(now);
        let of = |chain: &Chain| match (chain.begun, chain.over) {
            (_, Some(_)) => Some(0.0),
            (None, None) => whole,
            (Some(begun), None) => match chain.iteration(now) {
                Some(iteration) => {
                    Some(iteration * (self.iterations - chain.done.min(self.iterations)) as f64)
                }
                None => whole.map(|whole| (whole - (now - begun)).max(0.0)),
            },
        };
        let each: Option<Vec<f64>> = self.chains.iter().map(of).collect();
        let each = each?;
        let side_by_side = self.chains.iter().filter(|chain| chain.runs()).count().max(1);
        let longest = each.iter().copied().fold(0.0, f64::max);
        Some(longest.max(each.iter().sum::<f64>() / side_by_side as f64))
    }

    /// Seconds that a chain takes, by those that are over, else by those that iterate.
    fn whole_chain(&self, now: f64) -> Option<f64> {
        let mean = |seconds: Vec<f64>| {
            (!seconds.is_empty()).then(|| seconds.iter().sum::<f64>() / seconds.len() as f64)
        };
        let over = self.chains.iter().filter_map(|chain| Some(chain.over? - chain.begun?)).collect();
        mean(over).or_else(|| {
            let expected = |chain: &Chain| {
                let left = self.iterations - chain.before.min(self.iterations);
                Some(chain.searched? - chain.begun? + chain.iteration(now)? * left as f64)
            };
            mean(self.chains.iter().filter_map(expected).collect())
        })
    }

    /// When a chain that is first heard of now has begun: with the run, or when another one made room for it.
    fn begins(&self, now: f64) -> f64 {
        let room = self.chains.iter().filter_map(|chain| chain.over).fold(0.0, f64::max);
        room.min(now)
    }

    /// A chain, counted from 0: there may be more than there were to begin with.
    fn chain(&mut self, chain: usize) -> &mut Chain {
        if chain >= self.chains.len() {
            self.chains.resize(chain + 1, Chain::default());
        }
        &mut self.chains[chain]
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    #[test]
    fn one_chain_is_estimated_by_its_iterations_alone() {
        let mut pace = Pace::new(11, 1);
        pace.search(0, 8, 3.0);
        assert_eq!(pace.left(4.0), None);
        pace.step(0, 1, 8, 10.0);
        assert_eq!(pace.left(10.0), None);
        pace.step(0, 3, 8, 12.0);
        assert_eq!((pace.left(12.0), pace.so_far()), (Some(8.0), 3));
        pace.over(0, 13.0);
        assert_eq!((pace.left(13.0), pace.so_far(), pace.chains_over()), (Some(0.0), 11, 1));
    }

    #[test]
    fn chains_to_come_take_as_long_as_those_that_are_over() {
        let mut pace = Pace::new(10, 4);
        pace.search(0, 8, 1.0);
        pace.search(1, 8, 1.0);
        assert_eq!(pace.left(9.0), None);
        pace.over(0, 10.0);
        pace.over(1, 20.0);
        pace.search(2, 8, 21.0);
        // The mean is 15 s: 14 s of the third are left, and all of the fourth.
        assert_eq!(pace.left(21.0), Some(29.0));
        pace.search(3, 8, 21.0);
        assert_eq!(pace.left(24.0), Some(11.0));
        // A chain that takes longer than the others is no reason for a time below zero.
        assert_eq!(pace.left(90.0), Some(0.0));
    }

    #[test]
    fn a_chain_that_goes_on_is_timed_from_where_it_went_on() {
        let mut pace = Pace::new(100, 1);
        pace.step(0, 51, 8, 0.1);
        pace.step(0, 61, 8, 10.1);
        assert_eq!(pace.left(10.1), Some(39.0));
    }
}

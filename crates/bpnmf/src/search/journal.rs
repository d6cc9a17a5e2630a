//! What a search has done so far: the name and the verdict of every stage, and the model after the last one. With it a search
//! goes on from there: the stages that were done are passed over, by their verdicts. One that has other stages is refused.

use super::Run;
use crate::checkpoint::bytes::{Reader, Writer, bad};
use crate::error::Error;
use crate::kernel::Simd;
use crate::meanfield::model::{Layouts, Model, Part};
use std::io;
use std::sync::Arc;

/// The version of the search: another one is begun again rather than misread. To be raised with every change of what stages do,
/// or of what their verdicts mean.
const VERSION: u64 = 4;

/// What came of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Done<Name> {
    /// A stable one: it is written.
    name: Name,
    verdict: u64,
}

/// A search that was stopped.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    done: Vec<Done<String>>,
    model: Model,
}

/// A search that goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stage<'a> {
    done: &'a [Done<&'static str>],
    model: &'a Model,
    /// Somebody asked to stop.
    pub(crate) stopped: bool,
}

impl Run<'_> {
    /// Does `work` on the model, or knows what came of it. What decides how the search goes on must be in the verdict: while
    /// stages are passed over the model is not there yet.
    pub(super) fn stage(
        &mut self,
        name: &'static str,
        model: &mut Model,
        work: impl FnOnce(&mut Self, &mut Model) -> u64,
    ) -> u64 {
        let step = self.done.len();
        if let Some(past) = self.past.take() {
            if self.astray.is_some() || past.done[step].name != name {
                // Nothing is done any more: what was done is not what this search does.
                self.astray.get_or_insert(name);
                (self.past, self.stopped) = (Some(past), true);
                return 0;
            }
            let verdict = past.done[step].verdict;
            self.done.push(Done { name, verdict });
            if step + 1 == past.done.len() {
                *model = Model { simd: model.simd, sizes: Arc::clone(&model.sizes), ..past.model };
            } else {
                self.past = Some(past);
            }
            return verdict;
        }
        let before = self.stopped;
        let verdict = work(self, model);
        self.done.push(Done { name, verdict });
        if self.workers.late() {
            // This one may not be whole: it is not kept.
            self.stopped = true;
        } else if !before {
            // A request to stop ends a search between stages: this one is whole.
            let stage = Stage { done: &self.done, model, stopped: self.stopped };
            self.stopped |= !self.watch.stands(&stage);
        }
        verdict
    }
}

impl Run<'_> {
    /// Errors if the stages of the past are not those of this search.
    pub(super) fn check_past(&self) -> Result<(), Error> {
        let (Some(past), Some(name)) = (&self.past, self.astray) else { return Ok(()) };
        let other = &past.done[self.done.len()].name;
        Err(bad(&format!("its search went another way: to the stage {other:?}, not {name:?}")))
    }
}

impl Journal {
    /// Errors unless it is of counts of this shape.
    pub(crate) fn check(&self, features: usize, observations: usize) -> Result<(), Error> {
        // The search may have begun with every so manieth column.
        let columns = self.model.observations();
        let some = (1..=observations).any(|step| observations.div_ceil(step) == columns);
        if self.model.features == features && some {
            return Ok(());
        }
        Err(bad("its search is of counts of another shape"))
    }
}

impl Stage<'_> {
    pub(crate) fn write(&self, out: &mut Writer<'_>) -> io::Result<()> {
        out.u64(VERSION)?;
        out.length(self.done.len())?;
        for Done { name, verdict } in self.done {
            out.text(name)?;
            out.u64(*verdict)?;
        }
        let Model {
            simd: _,
            features,
            prior,
            alpha,
            sizes: _,
            shape,
            rate,
            unseen,
            geometric,
            sum,
            layouts: _,
            // Models of some of the columns do not outlive a stage.
            elsewhere: _,
            parts,
        } = self.model;
        out.prior(prior)?;
        out.f64(*alpha)?;
        out.length(*features)?;
        out.length(rate.len())?;
        out.length(parts.len())?;
        [shape, rate, geometric, sum].into_iter().try_for_each(|values| out.f64s(values))?;
        out.length(unseen.len())?;
        out.f64s(unseen)?;
        for column in parts {
            out.length(column.len())?;
            for Part { k, shape, rate, geometric } in column {
                out.length(*k)?;
                [shape, rate, geometric].into_iter().try_for_each(|number| out.f64(*number))?;
            }
        }
        Ok(())
    }
}

impl Journal {
    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        let version = from.u64()?;
        if version != VERSION {
            return Err(bad(&format!("it is of version {version} of the search, this is {VERSION}")));
        }
        let stages = from.length()?;
        from.room(stages, 1, 16)?;
        let stage = |_| Ok(Done { name: from.text()?, verdict: from.u64()? });
        let done = (0..stages).map(stage).collect::<Result<Vec<_>, Error>>()?;
        if done.is_empty() {
            return Err(bad("a search without a stage"));
        }
        let (prior, alpha) = (from.prior()?, from.f64()?);
        if alpha.is_nan() || alpha <= 0.0 {
            return Err(bad("an alpha out of its range"));
        }
        let (features, components, observations) = (from.length()?, from.length()?, from.length()?);
        let of_w = from.room(features, components, 8)?;
        let (shape, rate) = (from.f64s(of_w)?, from.f64s(components)?);
        let (geometric, sum) = (from.f64s(of_w)?, from.f64s(components)?);
        let unseen = match from.length()? {
            0 => Vec::new(),
            length if length == of_w => from.f64s(of_w)?,
            _ => return Err(bad("what was not observed is of another shape")),
        };
        from.room(observations, 1, 8)?;
        let mut parts = Vec::with_capacity(observations);
        for _ in 0..observations {
            let on = from.length()?;
            let mut column = Vec::with_capacity(from.room(on, 1, 32)?);
            for _ in 0..on {
                let k = from.length()?;
                if k >= components {
                    return Err(bad("a component that is not there is on"));
                }
                column.push(Part { k, shape: from.f64()?, rate: from.f64()?, geometric: from.f64()? });
            }
            parts.push(column);
        }
        // The instructions are those of whoever goes on.
        let layouts = Layouts::default();
        // They are known from the counts.
        let sizes = Arc::new([]);
        let model = Model {
            simd: Simd::Auto,
            features,
            prior,
            alpha,
            sizes,
            shape,
            rate,
            unseen,
            geometric,
            sum,
            layouts,
            elsewhere: None,
            parts,
        };
        Ok(Self { done, model })
    }
}

//! Who does the work, and until when: threads, instructions, block size, and the memory they reuse. Results depend on none of it
//! but the time that there is, if it is limited.

use crate::error::Error;
use crate::infer::local::{Scratch, Workspace};
use crate::kernel::Simd;
use crate::run::StopReason;
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Threads and their memory.
#[derive(Debug)]
pub struct Workers {
    pub(crate) simd: Simd,
    /// Columns between two merges; `None` to choose.
    pub(crate) block: Option<usize>,
    /// When the work shall end.
    deadline: Option<Instant>,
    /// Set by somebody who wants the work to end.
    stop: Option<Arc<AtomicBool>>,
    pool: Option<rayon::ThreadPool>,
    scratch: Vec<Mutex<Scratch>>,
    workspace: Mutex<Workspace>,
}

impl Workers {
    /// One thread, the caller's own.
    pub fn serial() -> Self {
        Self {
            simd: Simd::Auto.resolved(),
            block: None,
            deadline: None,
            stop: None,
            pool: None,
            scratch: vec![Mutex::default()],
            workspace: Mutex::default(),
        }
    }

    /// `threads` threads (0: as many as the machine has).
    pub fn new(threads: usize) -> Result<Self, Error> {
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n if n > 1024 => {
                return Err(Error::BadOption { name: "threads", value: n as f64, range: "at most 1024" });
            }
            n => n,
        };
        if threads == 1 {
            return Ok(Self::serial());
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|error| Error::Threads { threads, reason: error.to_string() })?;
        Ok(Self {
            pool: Some(pool),
            scratch: (0..threads).map(|_| Mutex::default()).collect(),
            ..Self::serial()
        })
    }

    /// The same workers with other instructions.
    pub fn with_simd(mut self, simd: Simd) -> Self {
        self.simd = simd.resolved();
        self
    }

    /// The same workers handling `block` columns between two merges, rounded up to a multiple of 64.
    pub fn with_block(mut self, block: usize) -> Self {
        self.block = Some(block.max(1));
        self
    }

    /// The same workers, who end runs at this time, also in a search, but not before the first iteration; the components that
    /// are there are judged after that. Such a run has [`crate::StopReason::TimeBudget`], and what it found depends on the machine.
    pub fn with_deadline(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    /// The same workers, who end runs soon after `stop` is set, in the middle of a search, too. Such a run has
    /// [`crate::StopReason::Interrupted`]; the stage of the search it was in is not kept.
    pub fn with_stop(mut self, stop: Option<Arc<AtomicBool>>) -> Self {
        self.stop = stop;
        self
    }

    /// Whether the work shall end: the time is over, or somebody asked for it.
    pub fn late(&self) -> bool {
        self.ends().is_some()
    }

    /// Why it shall end, if it shall.
    pub(crate) fn ends(&self) -> Option<StopReason> {
        if self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Some(StopReason::Interrupted);
        }
        self.deadline.filter(|deadline| Instant::now() >= *deadline).map(|_| StopReason::TimeBudget)
    }

    /// One of them, on the caller's own thread.
    pub(crate) fn alone(&self) -> Self {
        Self { simd: self.simd, deadline: self.deadline, stop: self.stop.clone(), ..Self::serial() }
    }

    /// The threads dealt out among `parts` new workers with the same instructions and blocks; at least one each.
    pub(crate) fn shared(&self, parts: usize) -> Result<Vec<Self>, Error> {
        let share = |part: usize| {
            let threads = self.threads() / parts + usize::from(part < self.threads() % parts);
            let Self { simd, block, deadline, .. } = *self;
            Ok(Self { simd, block, deadline, stop: self.stop.clone(), ..Self::new(threads.max(1))? })
        };
        (0..parts).map(share).collect()
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.scratch.len()
    }

    /// Runs `work` on every item. The items must be independent of each other.
    pub(crate) fn for_each<T: Send>(
        &self,
        items: impl Iterator<Item = T>,
        work: impl Fn(T, &mut Scratch) + Sync + Send,
    ) {
        let with_scratch = |item| {
            let thread = self.pool.as_ref().and_then(rayon::ThreadPool::current_thread_index).unwrap_or(0);
            work(item, &mut locked(&self.scratch[thread]));
        };
        match &self.pool {
            None => items.for_each(with_scratch),
            Some(pool) => {
                let items: Vec<T> = items.collect();
                pool.install(|| items.into_par_iter().with_max_len(1).for_each(with_scratch));
            }
        }
    }

    /// `work` of every item, in the order of the items. The items must be independent of each other.
    pub(crate) fn map<T: Send, R: Send>(
        &self,
        items: impl Iterator<Item = T>,
        work: impl Fn(T) -> R + Sync + Send,
    ) -> Vec<R> {
        match &self.pool {
            None => items.map(work).collect(),
            Some(pool) => {
                let items: Vec<T> = items.collect();
                pool.install(|| items.into_par_iter().map(work).collect())
            }
        }
    }

    /// The buffers of the local step.
    pub(crate) fn workspace(&self) -> MutexGuard<'_, Workspace> {
        locked(&self.workspace)
    }
}

/// The buffers behind a lock hold nothing that a panic elsewhere could have broken: they are filled before use.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

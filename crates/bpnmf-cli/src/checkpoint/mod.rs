//! Checkpoints of a run, in the folder of its results: when they are written, and how a run goes on from them.
//!
//! Every chain has a file of its own and the one before it: chains are independent, so their files need not be of the same
//! moment. A chain without a file, or with one that says nothing but the job, starts from the beginning; that gives the
//! same bits.

mod file;
mod hash;
mod job;
#[cfg(test)]
mod tests;

use crate::args::ModelArgs;
use crate::failure::Failure;
use crate::folder::Folder;
use bpnmf::{Checkpoint, Standing, StopReason};
use file::Unusable;
pub(crate) use file::sync_folder;
pub(crate) use job::Job;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The folder of the checkpoints, in that of the results.
const FOLDER: &str = "checkpoint";

/// The first letters of their names.
const PREFIX: &str = "chain-";

/// Seconds between two of them that are meant as they are; from here on the next one waits for at least
/// [`SHARE`] times as long as the last one took.
const LITERAL: Duration = Duration::from_secs(1);

/// Checkpoints take at most one part in so many of the time.
const SHARE: u32 = 100;

/// At the end of its iterations a run that has done so much since the last one keeps another.
const LAST: Duration = Duration::from_secs(10);

/// How a run begins.
#[derive(Debug)]
pub(crate) enum Start {
    /// With a command line.
    Fresh(Vec<OsString>),
    /// From the checkpoint of a job.
    Resumed(Job),
}

impl Start {
    /// Errors if `folder` holds a run that could go on, unless that is what shall be done.
    pub(crate) fn check(&self, folder: &Path, force: bool) -> Result<(), Failure> {
        if force || matches!(self, Self::Resumed(_)) || files(folder).is_empty() {
            return Ok(());
        }
        let folder = folder.display();
        Err(Failure::Request(format!(
            "{folder} holds an unfinished run: go on with it by bpnmf resume {folder}, or start again with --force"
        )))
    }
}

/// The job whose checkpoint is in `folder`.
pub(crate) fn job(folder: &Path) -> Result<Job, Failure> {
    let files = files(folder);
    if files.is_empty() {
        let over = folder.join("summary.json").exists();
        let why = if over { "its run is complete" } else { "there is no checkpoint in it" };
        return Err(Failure::Request(format!("{}: {why}, nothing to go on with", folder.display())));
    }
    let mut reasons = Vec::new();
    for path in &files {
        match file::read_job(path) {
            Ok(job) => {
                job.check_version(folder)?;
                return Ok(job);
            }
            Err(Unusable::OtherFormat(format)) => {
                return Err(Failure::Request(format!(
                    "{} was begun by another version of bpnmf, whose checkpoints have format {format}: go on with that \
                     version, or start again with --force",
                    folder.display()
                )));
            }
            Err(why) => reasons.push(format!("{}: {why}", path.display())),
        }
    }
    Err(Failure::Request(format!(
        "no checkpoint in {} can be read ({}): start again with --force",
        folder.display(),
        reasons.join("; ")
    )))
}

/// Whether bytes are a checkpoint, once it has the checksum that belongs to it if `mend`: for tests.
pub(crate) fn reads(bytes: &[u8], mend: bool) -> bool {
    let mut bytes = bytes.to_vec();
    if mend {
        file::mend(&mut bytes);
    }
    file::parse(bytes).is_ok()
}

/// A checkpoint with what the library wrote in it: for tests.
pub(crate) fn sample(standing: &[u8]) -> Vec<u8> {
    file::sample(&Job::of_version(bpnmf::VERSION), standing)
}

/// Keeps the checkpoints of a run.
#[derive(Debug)]
pub(crate) struct Keeper {
    folder: PathBuf,
    out: PathBuf,
    /// `None` for a run that could not go on from one.
    job: Option<Job>,
    /// Zero for none.
    every: Duration,
    chains: usize,
    verbose: bool,
    fresh: bool,
    /// Whether there is one with work in it.
    worth: AtomicBool,
    failure: Mutex<Option<String>>,
}

impl Keeper {
    /// For a run that begins; the folder must be [claimed](Folder::claim). `inputs` are the files it reads, `chains` how many there are.
    pub(crate) fn new(
        folder: &Folder,
        start: &Start,
        inputs: &[&Path],
        args: &ModelArgs,
        chains: usize,
    ) -> Result<Self, Failure> {
        let every = Duration::try_from_secs_f64(args.checkpoint_every).unwrap_or(Duration::MAX);
        let mut keeper = Self {
            folder: folder.file(FOLDER),
            out: folder.path().to_owned(),
            job: None,
            every,
            chains,
            verbose: args.verbose,
            fresh: matches!(start, Start::Fresh(_)),
            worth: AtomicBool::new(matches!(start, Start::Resumed(_))),
            failure: Mutex::new(None),
        };
        match start {
            Start::Resumed(job) => {
                keeper.remove_unfinished();
                keeper.job = Some(job.clone());
            }
            Start::Fresh(arguments) => {
                keeper.remove().map_err(|error| keeper.explain(&error))?;
                if !every.is_zero() {
                    keeper.job = Job::new(arguments, inputs)?;
                }
                if !keeper.keeps() {
                    keeper.say("no checkpoints are kept");
                }
                keeper.save(0, None).map_err(|error| keeper.explain(&error))?;
            }
        }
        Ok(keeper)
    }

    /// For a run that keeps none.
    pub(crate) fn none() -> Self {
        let nowhere = PathBuf::new();
        Self {
            folder: nowhere.clone(),
            out: nowhere,
            job: None,
            every: Duration::ZERO,
            chains: 1,
            verbose: false,
            fresh: true,
            worth: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    /// Where a chain, counted from 0, goes on; `None` for its beginning.
    pub(crate) fn load(&self, chain: usize) -> Option<Checkpoint> {
        if self.fresh {
            return None;
        }
        let (newest, before) = (self.file(chain, ""), self.file(chain, ".before"));
        let begun = |path: &Path| match file::read(path) {
            Ok(saved) if self.job.as_ref() == Some(&saved.job) => Ok(saved.checkpoint),
            Ok(_) => Err(Some(format!("{} is of another run", path.display()))),
            Err(Unusable::Missing) => Err(None),
            Err(why) => Err(Some(format!("{} is damaged ({why})", path.display()))),
        };
        let found = match begun(&newest) {
            Ok(found) => found,
            Err(why) => {
                let found = begun(&before);
                if let Some(why) = why {
                    let from = match &found {
                        Ok(Some(found)) => {
                            format!("going on from the one before, {}", place(found.iteration()))
                        }
                        _ => format!("chain {} starts again", chain + 1),
                    };
                    eprintln!("warning: {why}: {from}");
                    // It must not take the place of the good one when the next is written.
                    let _ = fs::remove_file(&newest);
                }
                found.ok().flatten()
            }
        };
        if let Some(found) = &found {
            self.say(&format!("chain {} goes on {}", chain + 1, place(found.iteration())));
        }
        found
    }

    /// The one who keeps those of one chain, counted from 0.
    pub(crate) fn chain(&self, chain: usize) -> ChainKeeper<'_> {
        ChainKeeper { keeper: self, chain, last: Instant::now(), wait: self.every }
    }

    /// Whether one could not be written: the run shall end.
    pub(crate) fn failed(&self) -> bool {
        self.failure().is_some()
    }

    /// The fit is done, but what shall be made of it cannot be: a long one is kept, for a better request.
    pub(crate) fn refused(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Request(sentence) if self.worth.load(Ordering::Relaxed) => {
                Failure::Request(sentence + &self.how_to_go_on())
            }
            Failure::Request(_) => {
                self.over();
                failure
            }
            other => other,
        }
    }

    fn keeps(&self) -> bool {
        self.job.is_some() && !self.every.is_zero()
    }

    /// What to add to a sentence about a run that ends now.
    pub(crate) fn how_to_go_on(&self) -> String {
        if files(&self.out).is_empty() {
            return String::new();
        }
        format!("; go on with bpnmf resume {}", self.out.display())
    }

    /// The run is complete: its checkpoints go.
    pub(crate) fn over(&self) {
        // One that stays can only be found to be complete again.
        let _ = self.remove();
    }

    /// The run cannot be done at all. What an earlier one had kept stays.
    pub(crate) fn abandon(&self) {
        if self.fresh {
            self.over();
        }
    }

    /// Errors if one could not be written.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match &*self.failure() {
            None => Ok(()),
            Some(sentence) => Err(Failure::Other(sentence.clone())),
        }
    }

    /// Removes all of them. What is not ours stays.
    fn remove(&self) -> io::Result<()> {
        for path in files(&self.out) {
            fs::remove_file(path)?;
        }
        self.remove_unfinished();
        let _ = fs::remove_dir(&self.folder);
        Ok(())
    }

    /// What a run that was killed while it wrote has left.
    fn remove_unfinished(&self) {
        let ours = |name: &str| name.starts_with(PREFIX) && name.ends_with(".tmp");
        for path in entries(&self.folder, ours) {
            // It has no name that anybody reads.
            let _ = fs::remove_file(path);
        }
    }

    fn save(&self, chain: usize, standing: Option<&Standing<'_>>) -> io::Result<()> {
        let Some(job) = self.job.as_ref().filter(|_| self.keeps()) else {
            return Ok(());
        };
        let start = Instant::now();
        match fs::create_dir(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let (path, before) = (self.file(chain, ""), self.file(chain, ".before"));
        let temporary = path.with_extension("tmp");
        let bytes = file::write(&path, &temporary, Some(&before), job, standing)?;
        if let Some(standing) = standing {
            self.worth.store(true, Ordering::Relaxed);
            self.say(&format!(
                "checkpoint of chain {} {}: {:.3} MB in {:.4} s",
                chain + 1,
                place(standing.iteration()),
                bytes as f64 * 1e-6,
                start.elapsed().as_secs_f64()
            ));
        }
        Ok(())
    }

    fn file(&self, chain: usize, which: &str) -> PathBuf {
        self.folder.join(format!("{PREFIX}{}{which}.bin", chain + 1))
    }

    fn say(&self, line: &str) {
        if self.verbose {
            eprintln!("{line}");
        }
    }

    fn failure(&self) -> MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn explain(&self, error: &io::Error) -> Failure {
        let folder = self.out.display();
        let why = match error.kind() {
            io::ErrorKind::NotFound => "the folder is gone".to_owned(),
            io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "no space is left".to_owned(),
            _ => error.to_string(),
        };
        Failure::Other(format!("cannot write a checkpoint to {folder}: {why}{}", self.how_to_go_on()))
    }
}

/// Keeps the checkpoints of one chain.
#[derive(Debug)]
pub(crate) struct ChainKeeper<'a> {
    keeper: &'a Keeper,
    chain: usize,
    last: Instant,
    wait: Duration,
}

impl ChainKeeper<'_> {
    /// Writes one if it is time. `false` if that failed.
    pub(crate) fn stands(&mut self, standing: &Standing<'_>) -> bool {
        let keeper = self.keeper;
        if !keeper.keeps() {
            return true;
        }
        let now = match standing.ended() {
            None => self.last.elapsed() >= self.wait,
            Some(StopReason::Interrupted) => true,
            // What comes after the last iteration can take its time, too.
            Some(_) => keeper.chains > 1 || self.last.elapsed() >= LAST.min(self.wait),
        };
        if !now || keeper.failed() {
            return true;
        }
        let begin = Instant::now();
        if let Err(error) = keeper.save(self.chain, Some(standing)) {
            let (Failure::Other(sentence) | Failure::Request(sentence)) = keeper.explain(&error) else {
                return false;
            };
            keeper.failure().get_or_insert(sentence);
            return false;
        }
        self.last = Instant::now();
        self.wait = wait(keeper.every, begin.elapsed());
        true
    }
}

/// Where a chain is.
fn place(iteration: usize) -> String {
    if iteration == 0 { "in its search".to_owned() } else { format!("after iteration {iteration}") }
}

/// The time to the next one when the last one took `took`.
fn wait(every: Duration, took: Duration) -> Duration {
    if every < LITERAL { every } else { every.max(took.saturating_mul(SHARE)) }
}

/// All checkpoints of a folder of results, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        entries(&folder.join(FOLDER), |name| name.starts_with(PREFIX) && name.ends_with(".bin")).collect();
    files.sort();
    files
}

fn entries(folder: &Path, ours: impl Fn(&str) -> bool) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(move |entry| entry.file_name().to_str().is_some_and(&ours)).map(|entry| entry.path())
}

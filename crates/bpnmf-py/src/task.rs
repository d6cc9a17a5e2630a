//! Long work beside Python: without its lock, watched by its thread, and ended by Ctrl-C within a second.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

/// How often signals are looked for.
const TICK: Duration = Duration::from_millis(50);

/// How long work that was asked to end may take to do so; then it is left to itself, and ends when it looks up.
const GRACE: Duration = Duration::from_millis(700);

/// What work tells whoever started it.
pub(crate) enum Message<E, T> {
    /// Something to show; the work waits until it was seen.
    Event(E, SyncSender<()>),
    /// The end.
    Done(T),
}

/// The side of the work.
pub(crate) struct Link<E, T> {
    stop: Arc<AtomicBool>,
    sender: mpsc::Sender<Message<E, T>>,
    watched: bool,
}

impl<E, T> Clone for Link<E, T> {
    fn clone(&self) -> Self {
        Self { stop: self.stop.clone(), sender: self.sender.clone(), watched: self.watched }
    }
}

impl<E, T> Link<E, T> {
    /// Whether to go on.
    pub(crate) fn go_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// What is set when the work shall end.
    pub(crate) fn stop(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// Shows an event if anybody watches; whether to go on.
    pub(crate) fn show(&self, event: impl FnOnce() -> E) -> bool {
        if self.watched && self.go_on() {
            let (seen, wait) = mpsc::sync_channel(1);
            if self.sender.send(Message::Event(event(), seen)).is_ok() {
                // An error, if nobody waits for us any more.
                let _ = wait.recv();
            }
        }
        self.go_on()
    }
}

/// What came of it: the result, if there is one, and what cut it short.
pub(crate) type Outcome<T> = (Option<T>, Option<PyErr>);

/// Does `work` in a thread of its own. `watch` sees its events, in the thread of Python; `false` asks it to end.
pub(crate) fn run<E: Send + 'static, T: Send + 'static>(
    py: Python<'_>,
    watch: Option<&dyn Fn(E) -> PyResult<bool>>,
    work: impl FnOnce(&Link<E, T>) -> T + Send + 'static,
) -> PyResult<Outcome<T>> {
    let (sender, mut receiver) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let link = Link { stop: stop.clone(), sender, watched: watch.is_some() };
    thread::Builder::new().name("bpnmf".to_owned()).spawn(move || {
        let done = work(&link);
        let _ = link.sender.send(Message::Done(done));
    })?;
    let mut error: Option<PyErr> = None;
    let mut deadline: Option<Instant> = None;
    loop {
        let (message, back) = py.detach(move || receive(receiver));
        receiver = back;
        match message {
            Ok(Message::Done(done)) => return Ok((Some(done), error)),
            Ok(Message::Event(event, seen)) => {
                if error.is_none()
                    && let Some(watch) = watch
                {
                    match watch(event) {
                        Ok(true) => {}
                        Ok(false) => stop.store(true, Ordering::Relaxed),
                        Err(raised) => error = Some(raised),
                    }
                }
                if error.is_some() {
                    stop.store(true, Ordering::Relaxed);
                }
                let _ = seen.send(());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err(
                    "the work ended without a result: this is a bug in bpnmf",
                ));
            }
        }
        if error.is_none()
            && let Err(raised) = py.check_signals()
        {
            stop.store(true, Ordering::Relaxed);
            error = Some(raised);
        }
        if error.is_some() {
            let deadline = deadline.get_or_insert_with(|| Instant::now() + GRACE);
            if Instant::now() > *deadline {
                return Ok((None, error));
            }
        }
    }
}

type Received<M> = (Result<M, RecvTimeoutError>, Receiver<M>);

fn receive<M>(receiver: Receiver<M>) -> Received<M> {
    (receiver.recv_timeout(TICK), receiver)
}

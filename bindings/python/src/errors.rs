//! Errors: one Python exception for each status, made from the core's table.

use adead::{Error, Status};
use pyo3::exceptions::{PyException, PyMemoryError, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of a method.
pub type Result<T, E = Fault> = std::result::Result<T, E>;

/// The error of a method.
pub enum Fault {
    /// An error of the runtime.
    Core(Error),
    /// An error of Python: a wrong type, or an exception in a callback.
    Python(PyErr),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Core(error)
    }
}

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Fault {
        Fault::Python(error)
    }
}

impl From<Fault> for PyErr {
    #[cold]
    fn from(fault: Fault) -> PyErr {
        match fault {
            Fault::Python(error) => error,
            Fault::Core(error) => Python::attach(|py| match class(py, error.status()) {
                Ok(class) => PyErr::from_type(class, error.message().to_string()),
                Err(failed) => failed,
            }),
        }
    }
}

/// Returns `Err` with a status and a formatted text, for errors that only a binding can find.
macro_rules! fail {
    ($status:ident, $($text:tt)*) => {
        return Err(adead::Error::formatted(adead::Status::$status, format_args!($($text)*)).into())
    };
}
pub(crate) use fail;

/// Makes a `TypeError`, for an object that can't be an operand, an attribute or a name.
#[cold]
pub fn wrong_type(text: String) -> Fault {
    Fault::Python(PyTypeError::new_err(text))
}

/// The classes, by status. The first one is the base of all.
static CLASSES: PyOnceLock<Vec<Py<PyType>>> = PyOnceLock::new();

/// Returns the name of a status's class: `ShapeMismatchError` for `shape_mismatch`, `Error` for `ok`.
fn class_name(status: Status) -> String {
    if status == Status::Ok {
        return "Error".into();
    }
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    status.name().split('_').map(capital).chain(["Error".into()]).collect()
}

fn classes(py: Python<'_>) -> PyResult<&Vec<Py<PyType>>> {
    CLASSES.get_or_try_init(py, || {
        let mut classes: Vec<Py<PyType>> = Vec::new();
        for &status in Status::ALL {
            let namespace = PyDict::new(py);
            namespace.set_item("__module__", "adead")?;
            namespace.set_item("__doc__", documentation(status))?;
            namespace.set_item("status", status as i32)?;
            namespace.set_item("code", status.name())?;
            let base = match classes.first() {
                Some(base) => base.bind(py).clone(),
                None => py.get_type::<PyException>(),
            };
            // Python programs also catch these built-in classes.
            let also = match status {
                Status::Io => Some(py.get_type::<PyOSError>()),
                Status::OutOfMemory => Some(py.get_type::<PyMemoryError>()),
                Status::InvalidArgument | Status::ShapeMismatch => Some(py.get_type::<PyValueError>()),
                Status::DtypeMismatch => Some(py.get_type::<PyTypeError>()),
                _ => None,
            };
            let bases = PyTuple::new(py, [base].into_iter().chain(also).collect::<Vec<_>>())?;
            let class = py.get_type::<PyType>().call1((class_name(status), bases, namespace))?;
            classes.push(class.cast_into::<PyType>()?.unbind());
        }
        Ok(classes)
    })
}

fn documentation(status: Status) -> String {
    match status {
        Status::Ok => "The base of adead's errors: `status` is the number and `code` the name.".into(),
        status => format!("adead's status {}, {}.", status as i32, status.name()),
    }
}

fn class(py: Python<'_>, status: Status) -> PyResult<Bound<'_, PyType>> {
    let place = Status::ALL.iter().position(|&known| known == status).unwrap_or_default();
    Ok(classes(py)?[place].bind(py).clone())
}

/// Adds the classes to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for (class, &status) in classes(module.py())?.iter().zip(Status::ALL) {
        module.add(class_name(status), class.clone_ref(module.py()))?;
    }
    Ok(())
}

/// Runs work of the runtime, and turns a panic into an error.
#[inline]
pub fn guard<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(panic)))
}

#[cold]
fn panicked(panic: Box<dyn Any + Send>) -> Fault {
    let text = match panic.downcast_ref::<String>() {
        Some(text) => text.as_str(),
        None => panic.downcast_ref::<&str>().copied().unwrap_or("a panic without a message"),
    };
    Error::new(Status::Internal, format!("a bug in adead, please report it: {text}")).into()
}

/// Silences panics unless `ADEAD_LOG` is set, because an exception reports them. The module has its own Rust runtime.
pub fn keep_panics_quiet() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::env::var_os("ADEAD_LOG").is_some_and(|value| !value.is_empty() && value != "off") {
            print(info);
        }
    }));
}

/// Runs work of the runtime without the GIL. For work that takes longer than releasing and taking the GIL, about 100
/// ns.
pub fn detached<T>(py: Python<'_>, work: impl FnOnce() -> adead::Result<T>) -> Result<T> {
    let work = Movable(work);
    guard(|| {
        py.detach(move || {
            // Move the whole value, not only the closure inside.
            let work = work;
            Movable((work.0)())
        })
        .0
        .map_err(Fault::Core)
    })
}

thread_local! {
    /// Whether this thread handles signals, once that is known.
    static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Runs work that may take long, as [`detached`] does. A signal whose handler raises, as Ctrl-C's does, ends it within
/// about 20 ms, and then nothing has changed. The work must hold no lock that a handler may want.
pub fn interruptible<T>(py: Python<'_>, work: impl FnOnce() -> adead::Result<T>) -> Result<T> {
    let raised = RefCell::new(None);
    let check = || {
        // Other threads handle no signals, so they need not wait for the GIL.
        if IS_MAIN.get() == Some(false) {
            return false;
        }
        Python::attach(|py| match handle_signals(py) {
            Ok(()) => false,
            Err(error) => {
                *raised.borrow_mut() = Some(error);
                true
            }
        })
    };
    let result = detached(py, || adead::interruptible(&check, work));
    match raised.take() {
        Some(error) => Err(Fault::Python(error)),
        None => result,
    }
}

fn handle_signals(py: Python<'_>) -> PyResult<()> {
    if IS_MAIN.get().is_none() {
        let threading = py.import("threading")?;
        let is_main = threading.call_method0("current_thread")?.is(&threading.call_method0("main_thread")?);
        IS_MAIN.set(Some(is_main));
    }
    py.check_signals()
}

/// Runs a copy as [`detached`] does if it has a megabyte or more, which takes longer than the GIL's release.
pub fn detached_copy<T>(py: Python<'_>, bytes: usize, work: impl FnOnce() -> adead::Result<T>) -> Result<T> {
    if bytes < 1 << 20 { guard(|| Ok(work()?)) } else { detached(py, work) }
}

/// `detach` requires `Send`, because another thread might run the work; here it runs on this thread.
struct Movable<T>(T);

// SAFETY: nothing moves to another thread. The work touches only Rust's data: it holds no Python object that it would
// use without the GIL.
unsafe impl<T> Send for Movable<T> {}

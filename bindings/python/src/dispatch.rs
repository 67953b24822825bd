//! Explanations of why an operation runs on a device.

use adead::Context;
use adead::dispatch::{Estimate, Explanation};
use pyo3::prelude::*;

/// A choice of device, its reason, and every device's estimate. `str()` returns it as readable text.
#[pyclass(frozen, get_all, module = "adead", name = "Explanation")]
pub struct PyExplanation {
    /// The id of the chosen device.
    device: String,
    /// Why it was chosen.
    reason: String,
    /// The family whose costs were used.
    family: &'static str,
    /// Elements of the largest operand or result. The threshold is compared with this number.
    elements: usize,
    /// Floating-point operations; a multiply-add counts as two.
    flops: f64,
    /// Bytes read and written.
    bytes: f64,
    /// Each device's estimate, in the order of `Context.devices`.
    estimates: Vec<PyEstimate>,
    /// If the operation is divided: the rows of the result for each device, in the same order; else None.
    rows: Option<Vec<usize>>,
    /// Nanoseconds until all devices have finished their part; None if the operation is not divided.
    split_ns: Option<f64>,
    text: String,
}

impl PyExplanation {
    /// Makes an explanation for Python.
    pub fn new(it: &Explanation<'_>, ctx: &Context) -> PyExplanation {
        let profiles = ctx.dispatcher().profiles();
        let estimate = |(id, from): (&str, &Estimate)| PyEstimate {
            device: id.to_string(),
            compute_ns: from.compute_ns,
            launch_ns: from.launch_ns,
            transfer_ns: from.transfer_ns,
            total_ns: from.total_ns(),
            fits: from.fits,
        };
        PyExplanation {
            device: it.id().to_string(),
            reason: it.reason.clone(),
            family: it.family.name(),
            elements: it.elements,
            flops: it.cost.flops,
            bytes: it.cost.bytes,
            estimates: profiles.iter().map(|profile| profile.id.as_str()).zip(&it.estimates).map(estimate).collect(),
            rows: it.split.as_ref().map(|split| split.rows.clone()),
            split_ns: it.split.as_ref().map(|split| split.ns),
            text: it.to_string(),
        }
    }
}

#[pymethods]
impl PyExplanation {
    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("Explanation({}: {})", self.device, self.reason)
    }
}

/// A device's estimate for an operation, in nanoseconds.
#[pyclass(frozen, get_all, from_py_object, module = "adead", name = "Estimate")]
#[derive(Clone)]
pub struct PyEstimate {
    /// The device's id.
    device: String,
    /// The computation.
    compute_ns: f64,
    /// Starting it.
    launch_ns: f64,
    /// Moving operands to the device and the result back.
    transfer_ns: f64,
    /// The sum of these.
    total_ns: f64,
    /// Whether operands and result fit in the device's memory.
    fits: bool,
}

#[pymethods]
impl PyEstimate {
    fn __repr__(&self) -> String {
        format!("Estimate({}: {} ns)", self.device, self.total_ns.round())
    }
}

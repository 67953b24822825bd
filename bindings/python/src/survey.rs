//! Programs, priced.

use crate::errors::Result;
use adead::program::{Finding, Survey, SurveyStep};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A program, priced.
#[pyclass(frozen, module = "adead", name = "Survey")]
pub struct PySurvey {
    pub survey: Survey,
    /// The devices that it was priced on.
    pub devices: Vec<String>,
}

#[pymethods]
impl PySurvey {
    /// Nanoseconds of all steps where the dispatcher sends them.
    #[getter]
    fn chosen_ns(&self) -> f64 {
        self.survey.chosen_ns
    }

    /// Nanoseconds of all steps on one device, by its id.
    #[getter]
    fn alone_ns<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let alone = PyDict::new(py);
        for (device, ns) in self.devices.iter().zip(&self.survey.alone_ns) {
            alone.set_item(device, ns)?;
        }
        Ok(alone)
    }

    /// What computes or moves data, in order: instruction, operation (None for a copy), shapes, device, reason, nanoseconds.
    #[getter]
    fn steps(&self) -> Vec<PyStep> {
        let step = |step: &SurveyStep| PyStep {
            instruction: step.instruction,
            op: step.op.map(|op| op.name()),
            shapes: step.shapes.clone(),
            device: self.devices[step.device].clone(),
            reason: step.reason.clone(),
            total_ns: step.estimate.total_ns(),
        };
        self.survey.steps.iter().map(step).collect()
    }

    /// What would waste a GPU, the costliest first.
    #[getter]
    fn findings(&self) -> Vec<PyFinding> {
        let finding = |finding: &Finding| PyFinding {
            waste: finding.waste.name(),
            device: self.devices[finding.device].clone(),
            steps: finding.steps,
            lost_ns: finding.lost_ns,
            reason: finding.reason.clone(),
        };
        self.survey.findings.iter().map(finding).collect()
    }

    fn __repr__(&self) -> String {
        format!("Survey({} steps, {} findings)", self.survey.steps.len(), self.survey.findings.len())
    }
}

/// A step of a program, priced.
#[pyclass(frozen, get_all, module = "adead", name = "SurveyStep")]
pub struct PyStep {
    /// The instruction that it belongs to.
    instruction: usize,
    /// The operation; None for a copy.
    op: Option<&'static str>,
    /// Operands and result, or the bytes of a copy.
    shapes: String,
    /// The chosen device.
    device: String,
    /// Why.
    reason: String,
    /// What it takes there.
    total_ns: f64,
}

/// What would waste a GPU.
#[pyclass(frozen, get_all, module = "adead", name = "Finding")]
pub struct PyFinding {
    /// How.
    waste: &'static str,
    /// The device.
    device: String,
    /// The first and the last step.
    steps: (usize, usize),
    /// What it loses.
    lost_ns: f64,
    /// In words.
    reason: String,
}

//! Cost estimates of programs.

use crate::errors::Result;
use adead::program::{Finding, Survey, SurveyStep};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The estimated costs of a program.
#[pyclass(frozen, module = "adead", name = "Survey")]
pub struct PySurvey {
    pub survey: Survey,
    /// The devices whose costs were estimated.
    pub devices: Vec<String>,
}

#[pymethods]
impl PySurvey {
    /// Nanoseconds of all steps on the devices that the dispatcher chooses.
    #[getter]
    fn chosen_ns(&self) -> f64 {
        self.survey.chosen_ns
    }

    /// Returns the nanoseconds of all steps on one device, by its id.
    #[getter]
    fn alone_ns<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let alone = PyDict::new(py);
        for (device, ns) in self.devices.iter().zip(&self.survey.alone_ns) {
            alone.set_item(device, ns)?;
        }
        Ok(alone)
    }

    /// The steps that compute or move data, in order: instruction, operation (None for a copy), shapes, device, reason,
    /// nanoseconds.
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

    /// The steps that would waste a GPU, the costliest first.
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

/// The estimated cost of a program's step.
#[pyclass(frozen, get_all, module = "adead", name = "SurveyStep")]
pub struct PyStep {
    /// The index of its instruction.
    instruction: usize,
    /// The operation; None for a copy.
    op: Option<&'static str>,
    /// Operands and result, or the bytes of a copy.
    shapes: String,
    /// The chosen device.
    device: String,
    /// Why it was chosen.
    reason: String,
    /// The estimated time there.
    total_ns: f64,
}

/// Steps that would waste a GPU.
#[pyclass(frozen, get_all, module = "adead", name = "Finding")]
pub struct PyFinding {
    /// The kind of waste.
    waste: &'static str,
    /// The device.
    device: String,
    /// The first and the last step.
    steps: (usize, usize),
    /// The estimated loss of time.
    lost_ns: f64,
    /// A description for people.
    reason: String,
}

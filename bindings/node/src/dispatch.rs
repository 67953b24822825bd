//! Which device an operation runs on, and why.

use adead::dispatch;
use napi_derive::napi;

/// A device's estimate for an operation, in nanoseconds.
#[napi(object)]
pub struct Estimate {
    /// The device.
    pub device: String,
    /// The computation.
    pub compute_ns: f64,
    /// Starting it.
    pub launch_ns: f64,
    /// Moving operands to the device and the result back.
    pub transfer_ns: f64,
    /// The sum of these.
    pub total_ns: f64,
    /// Whether operands and result fit in the device's memory.
    pub fits: bool,
}

impl Estimate {
    /// Makes the estimate of a device.
    pub fn new(device: &str, estimate: &dispatch::Estimate) -> Estimate {
        Estimate {
            device: device.into(),
            compute_ns: estimate.compute_ns,
            launch_ns: estimate.launch_ns,
            transfer_ns: estimate.transfer_ns,
            total_ns: estimate.total_ns(),
            fits: estimate.fits,
        }
    }
}

/// A choice of device, its reason, and every device's estimate.
#[napi(object)]
pub struct Explanation {
    /// The chosen device.
    pub device: String,
    /// Why it was chosen, as text with numbers.
    pub reason: String,
    /// The family whose costs were used.
    #[napi(ts_type = "Family")]
    pub family: String,
    /// Elements of the largest operand or result. The threshold is compared with this number.
    pub elements: f64,
    /// Floating-point operations; a multiply-add counts as two.
    pub flops: f64,
    /// Bytes read and written.
    pub bytes: f64,
    /// Each device's estimate.
    pub estimates: Vec<Estimate>,
    /// If the operation is divided: the rows of the result for each device, in the same order.
    pub rows: Option<Vec<f64>>,
    /// If it is divided: nanoseconds until all devices have finished their part.
    pub split_ns: Option<f64>,
    /// The whole explanation as text.
    pub text: String,
}

impl Explanation {
    /// Makes an explanation from a dispatcher's.
    pub fn new(it: &dispatch::Explanation<'_>, dispatcher: &dispatch::AutoDispatcher) -> Explanation {
        let estimates = dispatcher.profiles().iter().zip(&it.estimates);
        Explanation {
            device: it.id().into(),
            reason: it.reason.clone(),
            family: it.family.name().into(),
            elements: it.elements as f64,
            flops: it.cost.flops,
            bytes: it.cost.bytes,
            estimates: estimates.map(|(profile, estimate)| Estimate::new(&profile.id, estimate)).collect(),
            rows: it.split.as_ref().map(|split| split.rows.iter().map(|&rows| rows as f64).collect()),
            split_ns: it.split.as_ref().map(|split| split.ns),
            text: it.to_string(),
        }
    }
}

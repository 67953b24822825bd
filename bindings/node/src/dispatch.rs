//! Which device an operation runs on, and why.

use adead::dispatch;
use napi_derive::napi;

/// What a device would take for an operation, in nanoseconds.
#[napi(object)]
pub struct Estimate {
    /// Which device.
    pub device: String,
    /// The work itself.
    pub compute_ns: f64,
    /// Getting it started.
    pub launch_ns: f64,
    /// Moving operands there and the result back.
    pub transfer_ns: f64,
    /// All of it.
    pub total_ns: f64,
    /// Whether operands and result fit in its memory.
    pub fits: bool,
}

impl Estimate {
    /// An estimate for a device.
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

/// A choice with its reason and what every device would take.
#[napi(object)]
pub struct Explanation {
    /// The chosen device.
    pub device: String,
    /// Why it was chosen, in words with numbers.
    pub reason: String,
    /// The family that it was priced as.
    #[napi(ts_type = "Family")]
    pub family: String,
    /// Elements of the largest operand or result: what a threshold is compared with.
    pub elements: f64,
    /// Floating-point operations; a multiply-add is two.
    pub flops: f64,
    /// Bytes read and written.
    pub bytes: f64,
    /// What every device would take.
    pub estimates: Vec<Estimate>,
    /// Where it is divided: rows of the result for each device, in the same order.
    pub rows: Option<Vec<f64>>,
    /// Nanoseconds until all have theirs done, where it is divided.
    pub split_ns: Option<f64>,
    /// All of it as text.
    pub text: String,
}

impl Explanation {
    /// An explanation of a dispatcher's.
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

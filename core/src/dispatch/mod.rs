//! Which device an operation should run on, or how many rows of it on which: a cost model for each device and family of
//! operations, thresholds that the caller may set, a device that the caller may force, and explanations.
//!
//! Every device returns the same bits, so nothing here can change a result: not a wrong figure, not a calibration.
//! Figures come from tables of what makers document ([`DeviceProfile`]) until `adead calibrate` has measured this
//! machine; nothing measures on its own.

pub mod calibration;
mod cost;
mod dispatcher;
mod explain;
mod profile;
mod split;
#[cfg(test)]
mod tests;

pub use cost::{Estimate, Item, Places, Task};
pub use dispatcher::{AutoDispatcher, Decision, Why};
#[cfg(feature = "profile")]
pub(crate) use explain::Tenths;
pub use explain::{Explanation, Time};
pub use profile::{DeviceProfile, Kind, Link, Rate, Source};
pub use split::Split;

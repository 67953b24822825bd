//! Choosing devices: a cost model for each device and family of operations, thresholds that the caller may set, a device that the
//! caller may force, division of an operation's rows among devices, and explanations.
//!
//! Every device returns the same bits, so a wrong figure or calibration can't change a result. Figures come from tables of what
//! makers document ([`DeviceProfile`]) until `adead calibrate` has measured this machine. Nothing is measured automatically.

pub mod calibration;
mod cost;
mod dispatcher;
mod exact;
mod explain;
mod profile;
mod split;
mod steps;
#[cfg(test)]
mod tests;
pub mod tiles;

pub use cost::{Estimate, Item, Places, Task};
pub use dispatcher::{AutoDispatcher, Decision, Why};
pub use exact::Exact;
#[cfg(feature = "profile")]
pub(crate) use explain::Tenths;
#[cfg(feature = "programs")]
pub(crate) use explain::name_unit;
pub use explain::{Explanation, Time};
pub use profile::{DeviceProfile, Kind, Link, Rate, Source};
pub use split::Split;

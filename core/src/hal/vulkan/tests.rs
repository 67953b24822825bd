//! The device layer on this machine's GPU, software or not, and on one whose driver fails.

use super::*;
use crate::error::Status;

/// The first GPU, or nothing and why.
fn device(opening: &Opening) -> Option<VulkanDevice> {
    match VulkanDevice::open(0, opening) {
        Ok(device) => Some(device),
        Err(error) if error.status() == Status::BackendUnavailable => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn conformance() {
    for plain in [false, true] {
        let Some(device) = device(&Opening { plain, ..Opening::default() }) else { return };
        let device = Arc::new(device);
        crate::hal::cts::run(device.clone());
        assert_eq!(device.live(), 0, "memory that is still in use");
    }
}

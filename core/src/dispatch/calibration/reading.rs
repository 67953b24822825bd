//! Reads a calibration's text.

use super::VERSION;
use crate::config::{Fault, entries};
use crate::dispatch::profile::{COUNT, DeviceProfile, NAMES, check};
use crate::ops::parse_f32;

/// Implements `super::decode`.
pub fn read(text: &str, machine: &str, profile: &mut DeviceProfile) -> Result<(), Fault> {
    let (mut version, mut about) = (None, None);
    let (mut figures, mut missing) = ([0.0; COUNT], (1u32 << COUNT) - 1);
    let all = entries(text)?;
    for entry in &all {
        let fault = |what: &'static str| Err(Fault { line: entry.line, what: what.into() });
        if entry.table.is_empty() {
            match &*entry.key {
                "version" => version = Some(entry.text),
                "machine" => about = entry.string(),
                _ => return fault("the keys here are version and machine"),
            }
        } else if entry.table == profile.id {
            let place = NAMES.split(' ').position(|name| name == entry.key);
            let (Some(i), Some(number)) = (place, parse_f32(entry.text)) else {
                return fault("it is not a device figure");
            };
            figures[i] = f64::from(number);
            missing &= !(1 << i);
        }
        // Tables of other devices are ignored.
    }
    let fault = |what: &'static str| Err(Fault { line: 0, what: what.into() });
    if version != Some(VERSION) {
        return fault("it has another version");
    }
    if about != Some(machine) {
        return fault("it is from another machine");
    }
    if missing != 0 {
        return fault(if missing == (1 << COUNT) - 1 {
            "it has no figures for this device"
        } else {
            "it is not complete"
        });
    }
    if check(&figures).is_some() {
        return fault("a figure is out of range");
    }
    profile.set_figures(&figures);
    Ok(())
}

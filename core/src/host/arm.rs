//! Names of Arm processors. The processors report only numbers, those of the MIDR register; Linux prints them.

/// The maker, by `CPU implementer`.
const IMPLEMENTERS: [(u32, &str); 12] = [
    (0x41, "Arm"),
    (0x42, "Broadcom"),
    (0x43, "Cavium"),
    (0x46, "Fujitsu"),
    (0x48, "HiSilicon"),
    (0x4e, "NVIDIA"),
    (0x50, "APM"),
    (0x51, "Qualcomm"),
    (0x53, "Samsung"),
    (0x61, "Apple"),
    (0x6d, "Microsoft"),
    (0xc0, "Ampere"),
];

/// Arm's own designs, by `CPU part`. Most makers license them and keep the numbers.
const ARM_PARTS: [(u32, &str); 31] = [
    (0xd03, "Cortex-A53"),
    (0xd04, "Cortex-A35"),
    (0xd05, "Cortex-A55"),
    (0xd06, "Cortex-A65"),
    (0xd07, "Cortex-A57"),
    (0xd08, "Cortex-A72"),
    (0xd09, "Cortex-A73"),
    (0xd0a, "Cortex-A75"),
    (0xd0b, "Cortex-A76"),
    (0xd0c, "Neoverse-N1"),
    (0xd0d, "Cortex-A77"),
    (0xd0e, "Cortex-A76AE"),
    (0xd40, "Neoverse-V1"),
    (0xd41, "Cortex-A78"),
    (0xd42, "Cortex-A78AE"),
    (0xd44, "Cortex-X1"),
    (0xd46, "Cortex-A510"),
    (0xd47, "Cortex-A710"),
    (0xd48, "Cortex-X2"),
    (0xd49, "Neoverse-N2"),
    (0xd4a, "Neoverse-E1"),
    (0xd4b, "Cortex-A78C"),
    (0xd4d, "Cortex-A715"),
    (0xd4e, "Cortex-X3"),
    (0xd4f, "Neoverse-V2"),
    (0xd80, "Cortex-A520"),
    (0xd81, "Cortex-A720"),
    (0xd82, "Cortex-X4"),
    (0xd84, "Neoverse-V3"),
    (0xd85, "Cortex-X925"),
    (0xd8e, "Neoverse-N3"),
];

fn named(table: &[(u32, &str)], number: u32) -> Option<String> {
    table.iter().find(|&&(known, _)| known == number).map(|&(_, name)| name.to_string())
}

fn number(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// The maker, from `CPU implementer`; an unknown number is returned as it is.
pub(super) fn vendor(implementer: &str) -> String {
    number(implementer).and_then(|number| named(&IMPLEMENTERS, number)).unwrap_or_else(|| implementer.into())
}

/// The designs in the machine, each once, in the kernel's order: `Cortex-A55 + Cortex-A76`. `None` if /proc/cpuinfo has no `CPU
/// part`.
pub(super) fn model(cpuinfo: &str) -> Option<String> {
    let mut models: Vec<String> = Vec::new();
    let mut implementer = "";
    for line in cpuinfo.lines() {
        let part = match line.split_once(':').map(|(key, value)| (key.trim(), value.trim())) {
            Some(("CPU implementer", value)) => {
                implementer = value;
                continue;
            }
            Some(("CPU part", part)) => part,
            _ => continue,
        };
        let arms_own = number(part).filter(|_| implementer == "0x41").and_then(|part| named(&ARM_PARTS, part));
        let model = arms_own.unwrap_or_else(|| format!("{} part {part}", vendor(implementer)));
        if !models.contains(&model) {
            models.push(model);
        }
    }
    (!models.is_empty()).then(|| models.join(" + "))
}

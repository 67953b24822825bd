//! `adead explain`: shows where the steps of a program would run, and which of them would waste a GPU.

use crate::args::{DeviceArgs, ExplainArgs};
use crate::asm::load;
use crate::failure::{Result, line, write};
use crate::files::name;
use crate::format::table;
use adead::dispatch::{AutoDispatcher, DeviceProfile, Estimate, Family, Kind, Time};
use adead::program::{Finding, Program, Survey, SurveyStep};
use serde_json::{Value, json};

/// The data of the report.
struct Report<'a> {
    program: &'a Program,
    name: String,
    dispatcher: AutoDispatcher,
    /// Whether the GPUs are references that this machine does not have.
    reference: bool,
    survey: Survey,
}

/// Estimates the program and runs nothing.
pub fn run(args: &ExplainArgs, device: &DeviceArgs) -> Result<()> {
    let program = load(&args.program)?;
    program.validate(usize::MAX)?;
    let ctx = device.open()?;
    let opened = ctx.dispatcher();
    let mut profiles = opened.profiles().to_vec();
    let reference = args.gpu.is_some() || profiles.iter().all(|profile| profile.kind == Kind::Cpu);
    if reference {
        profiles.retain(|profile| profile.kind == Kind::Cpu);
        profiles.push(DeviceProfile::reference(args.gpu.as_deref().unwrap_or("mid"))?);
    }
    let dispatcher = AutoDispatcher::new(profiles)?;
    for family in Family::ALL {
        dispatcher.set_threshold(family, opened.threshold(family));
    }
    dispatcher.set_hybrid(opened.is_hybrid());
    // A reference GPU is not opened, so no device of the machine is forced beside it.
    if let Some(forced) = opened.forced().filter(|_| !reference) {
        dispatcher.force(Some(&opened.profiles()[forced].id))?;
    }
    let survey = program.survey(&dispatcher)?;
    let report = Report { program: &program, name: name(&args.program), dispatcher, reference, survey };
    if args.json { line(format_args!("{:#}", report.to_json())) } else { write(report.to_text().as_bytes()) }
}

impl Report<'_> {
    fn id(&self, device: usize) -> &str {
        &self.dispatcher.profiles()[device].id
    }

    fn operation(step: &SurveyStep) -> String {
        step.op.map_or("copy".into(), |op| op.to_string())
    }

    fn to_text(&self) -> String {
        let Survey { steps, chosen_ns, alone_ns, findings } = &self.survey;
        let profiles = self.dispatcher.profiles();
        let format = self.program.format().name();
        let mut head =
            vec![vec!["program".into(), format!("{} ({format}, {} instructions)", self.name, self.program.len())]];
        head.extend(profiles.iter().map(|profile| vec![profile.id.clone(), profile.source.to_string()]));
        if self.reference {
            let gpu = self.id(profiles.len() - 1);
            let text = format!("{gpu} is not in this machine; its figures are the manufacturer's");
            head.push(vec!["note".into(), text]);
        }
        let mut rows =
            vec![["step", "operation", "operands and result", "device", "estimate"].map(String::from).to_vec()];
        rows[0].extend(profiles.iter().map(|profile| format!("on {}", profile.id)));
        rows[0].push("reason".into());
        for (i, step) in steps.iter().enumerate() {
            let mut row = vec![(i + 1).to_string(), Self::operation(step), step.shapes.clone()];
            row.extend([self.id(step.device).to_string(), Time(step.estimate.total_ns()).to_string()]);
            // The times that the reason compares. Operands are where the previous steps left them.
            row.extend((0..profiles.len()).map(|device| match step.compared.get(device) {
                Some(estimate) => Time(estimate.total_ns()).to_string(),
                None => String::new(),
            }));
            row.push(step.reason.clone());
            rows.push(row);
        }
        rows.push(vec!["".into(), "all".into(), "".into(), "".into(), Time(*chosen_ns).to_string()]);
        let mut text = format!("{}\n{}\n", table(&head, 2), table(&rows, usize::MAX));
        for (profile, &ns) in profiles.iter().zip(alone_ns) {
            text += &format!("all steps on {}: {}\n", profile.id, Time(ns));
        }
        for (device, profile) in profiles.iter().enumerate().filter(|(_, profile)| profile.kind != Kind::Cpu) {
            let wasted: Vec<&Finding> = findings.iter().filter(|finding| finding.device == device).collect();
            if wasted.is_empty() {
                text += &format!("\nno step would waste {}\n", profile.id);
                continue;
            }
            text += &format!("\nsteps that would waste {} if they ran there:\n", profile.id);
            let row = |finding: &&Finding| {
                let (first, last) = finding.steps;
                let (steps, operation) = if first == last {
                    (format!("step {}", first + 1), Self::operation(&self.survey.steps[first]))
                } else {
                    (format!("steps {} to {}", first + 1, last + 1), String::new())
                };
                vec![steps, operation, format!("loses {}", Time(finding.lost_ns)), finding.to_string()]
            };
            let rows: Vec<Vec<String>> = wasted.iter().map(row).collect();
            text += &table(&rows, usize::MAX);
        }
        text
    }

    fn to_json(&self) -> Value {
        let estimate = |estimate: &Estimate| {
            json!({
                "compute_ns": estimate.compute_ns,
                "launch_ns": estimate.launch_ns,
                "transfer_ns": estimate.transfer_ns,
                "transfer_bytes": estimate.transfer_bytes,
                "total_ns": estimate.total_ns(),
                "fits": estimate.fits,
            })
        };
        let profiles = self.dispatcher.profiles();
        let by_device = |estimates: &[Estimate]| -> Value {
            profiles.iter().zip(estimates).map(|(profile, it)| (profile.id.clone(), estimate(it))).collect()
        };
        let steps = self.survey.steps.iter().enumerate().map(|(i, step)| {
            json!({
                "step": i + 1,
                "instruction": step.instruction,
                "line": self.program.line(step.instruction),
                "operation": Self::operation(step),
                "shapes": step.shapes,
                "device": self.id(step.device),
                "reason": step.reason,
                "estimate": estimate(&step.estimate),
                "compared": by_device(&step.compared),
                "alone": by_device(&step.alone),
            })
        });
        let findings = self.survey.findings.iter().map(|finding| {
            json!({
                "waste": finding.waste.name(),
                "device": self.id(finding.device),
                "first_step": finding.steps.0 + 1,
                "last_step": finding.steps.1 + 1,
                "lost_ns": finding.lost_ns,
                "reason": finding.reason,
            })
        });
        let devices = profiles.iter().map(|profile| {
            let reference = self.reference && profile.kind != Kind::Cpu;
            json!({"id": profile.id, "figures": profile.source.to_string(), "reference": reference})
        });
        let alone: Value =
            profiles.iter().zip(&self.survey.alone_ns).map(|(profile, ns)| (profile.id.clone(), json!(ns))).collect();
        json!({
            "program": self.name,
            "format": self.program.format().name(),
            "devices": devices.collect::<Vec<_>>(),
            "steps": steps.collect::<Vec<_>>(),
            "chosen_ns": self.survey.chosen_ns,
            "alone_ns": alone,
            "findings": findings.collect::<Vec<_>>(),
        })
    }
}

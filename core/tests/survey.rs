//! Programs priced without running: choices, transfers, and what would waste a GPU.

use adead_core::dispatch::{AutoDispatcher, DeviceProfile, Kind, Link, Rate};
use adead_core::program::{Program, Survey, Waste};
use adead_core::{Family, Op, Status};

/// Every rate 100 GFLOP/s and 10 GB/s, a call 100 ns.
fn cpu() -> DeviceProfile {
    let mut cpu = DeviceProfile::reference("mid").unwrap();
    (cpu.id, cpu.kind, cpu.launch_ns) = ("cpu".into(), Kind::Cpu, 100.0);
    cpu.rates = [Rate { gflops: 100.0, gbytes: 10.0 }; Family::COUNT];
    cpu
}

/// A hundred times as fast, a launch 10 µs, the bus 10 GB/s after 1 µs.
fn gpu() -> DeviceProfile {
    let mut gpu = DeviceProfile::reference("mid").unwrap();
    (gpu.id, gpu.launch_ns) = ("gpu".into(), 10_000.0);
    gpu.rates = [Rate { gflops: 10_000.0, gbytes: 1_000.0 }; Family::COUNT];
    (gpu.upload, gpu.download) = (Link { latency_ns: 1000.0, gbytes: 10.0 }, Link { latency_ns: 1000.0, gbytes: 10.0 });
    gpu
}

fn survey_on(profiles: Vec<DeviceProfile>, source: &str) -> Survey {
    Program::assemble(source).unwrap().survey(&AutoDispatcher::new(profiles).unwrap()).unwrap()
}

fn survey(source: &str) -> Survey {
    survey_on(vec![cpu(), gpu()], source)
}

fn devices(survey: &Survey) -> Vec<usize> {
    survey.steps.iter().map(|step| step.device).collect()
}

fn found(survey: &Survey) -> Vec<(Waste, (usize, usize))> {
    survey.findings.iter().map(|finding| (finding.waste, finding.steps)).collect()
}

const MEGABYTE_4: f64 = 4.0 * 1024.0 * 1024.0;

#[test]
fn a_large_product_goes_to_the_gpu_and_what_it_makes_stays_there() {
    let survey = survey(
        ".adead 1\ninput a f32[1024,1024]\ninput w f32[1024,1024]\ntemp t f32[1024,1024]\ntemp u f32[1024,1024]\n\
         output c f32[1024,1024]\nt = matmul a w\nu = relu t\nc = matmul u w\nhalt\n",
    );
    assert_eq!(devices(&survey), [1, 1, 1]);
    assert_eq!(found(&survey), []);
    let moved: Vec<f64> = survey.steps.iter().map(|step| step.estimate.transfer_bytes).collect();
    assert_eq!(moved, [2.0 * MEGABYTE_4, 0.0, MEGABYTE_4], "both operands, nothing, and only the result back");
    assert_eq!(survey.steps[0].op, Some(Op::Matmul));
    assert_eq!(survey.steps[1].shapes, "f32[1024, 1024] -> f32[1024, 1024]");
    assert!(survey.steps[0].reason.starts_with("cpu would take "), "{}", survey.steps[0].reason);
    let sum = |device: usize| survey.steps.iter().map(|step| step.alone[device].total_ns()).sum::<f64>();
    for device in 0..2 {
        assert!((survey.alone_ns[device] - sum(device)).abs() < 1e-6);
    }
    assert_eq!(survey.chosen_ns, survey.alone_ns[1]);
    assert!(survey.steps.iter().all(|step| step.alone[0].transfer_ns == 0.0), "the processor is where the data is");
}

#[test]
fn work_that_only_passes_through_is_bound_by_its_transfers() {
    let survey = survey(".adead 1\ninput x f32[1048576]\noutput y f32[1048576]\ny = relu x\nhalt\n");
    assert_eq!(devices(&survey), [0]);
    assert_eq!(found(&survey), [(Waste::Transfers, (0, 0))]);
    let finding = &survey.findings[0];
    assert_eq!(finding.reason, "moving 8388608 bytes takes 841 µs, the work 8.4 µs; the processor takes 839 µs");
    let step = &survey.steps[0];
    assert_eq!(finding.lost_ns, step.alone[1].total_ns() - step.alone[0].total_ns());
}

#[test]
fn small_steps_waste_launches_and_should_be_one() {
    let survey = survey(
        ".adead 1\ninput x f32[64]\ntemp a f32[64]\ntemp b f32[64]\noutput y f32[64]\na = relu x\nb = exp a\ny = neg b\nhalt\n",
    );
    assert_eq!(devices(&survey), [0, 0, 0]);
    let mut found = found(&survey);
    assert_eq!(found.remove(0), (Waste::Unfused, (0, 2)), "the costliest first");
    found.sort_by_key(|finding| finding.1);
    assert_eq!(found, [(Waste::TooSmall, (0, 0)), (Waste::TooSmall, (1, 1)), (Waste::TooSmall, (2, 2))]);
    let text = survey.findings[0].to_string();
    assert_eq!(text, "unfused: 3 launches take 30 µs for 1.5 ns of work; fused, they need one");
}

#[test]
fn a_gpu_that_is_no_faster_is_wasted_too() {
    let mut slow = gpu();
    (slow.launch_ns, slow.upload.latency_ns, slow.download.latency_ns) = (0.0, 0.0, 0.0);
    slow.rates = [Rate { gflops: 50.0, gbytes: 5.0 }; Family::COUNT];
    let source = ".adead 1\ninput a f32[256,256]\noutput c f32[256,256]\nc = matmul a a\nhalt\n";
    let survey = survey_on(vec![cpu(), slow], source);
    assert_eq!(found(&survey), [(Waste::NoFaster, (0, 0))]);
}

#[test]
fn data_that_comes_and_goes_back_is_a_round_trip() {
    let mut gpu = gpu();
    gpu.rates[Family::Function as usize] = Rate { gflops: 0.1, gbytes: 0.1 };
    let survey = survey_on(
        vec![cpu(), gpu],
        ".adead 1\ninput a f32[1024,1024]\ntemp t f32[1024,1024]\ntemp u f32[1024,1024]\noutput c f32[1024,1024]\n\
         t = matmul a a\nu = tanh t\nc = matmul u a\nhalt\n",
    );
    assert_eq!(devices(&survey), [1, 0, 1]);
    let round = survey.findings.iter().find(|finding| finding.waste == Waste::RoundTrip).unwrap();
    assert_eq!((round.steps, round.device), ((1, 2), 1));
    assert!((round.lost_ns - 2.0 * (1000.0 + MEGABYTE_4 / 10.0)).abs() < 1.0, "{}", round.lost_ns);
}

#[test]
fn copies_of_an_agpu_program_move_only_what_has_to() {
    let source = include_bytes!("../../examples/programs/matmul_1024.hex");
    let program = Program::decode(source).unwrap();
    let dispatcher = AutoDispatcher::new(vec![cpu(), gpu()]).unwrap();
    let survey = program.survey(&dispatcher).unwrap();
    assert_eq!(survey.steps.iter().map(|step| step.op).collect::<Vec<_>>(), [None, None, Some(Op::Matmul), None]);
    assert_eq!(devices(&survey), [0, 0, 1, 1]);
    let moved: Vec<f64> = survey.steps.iter().map(|step| step.estimate.transfer_bytes).collect();
    assert_eq!(moved, [0.0, 0.0, 2.0 * MEGABYTE_4, MEGABYTE_4]);
    assert!(program.line(survey.steps[2].instruction).unwrap().starts_with("matmul "));
    // A threshold of the caller's is the dispatcher's, here as everywhere.
    dispatcher.set_threshold(Family::Matmul, Some(1 << 21));
    assert_eq!(devices(&program.survey(&dispatcher).unwrap()), [0; 4]);
    dispatcher.force(Some("gpu")).unwrap();
    assert_eq!(program.survey(&dispatcher).unwrap().steps[2].reason, "gpu was forced");
}

#[test]
fn a_machine_without_a_gpu_wastes_none() {
    let survey = survey_on(vec![cpu()], ".adead 1\ninput x f32[4]\noutput y f32[4]\ny = relu x\nhalt\n");
    assert_eq!((devices(&survey), found(&survey)), (vec![0], vec![]));
    assert_eq!(survey.steps[0].reason, "cpu is the only device");
}

#[test]
fn a_program_that_can_not_run_has_no_survey() {
    let program = Program::assemble(".adead 1\ninput a f32[2,3]\noutput c f32[2,2]\nc = matmul a a\nhalt\n").unwrap();
    let error = program.survey(&AutoDispatcher::new(vec![cpu()]).unwrap()).unwrap_err();
    assert_eq!(error.status(), Status::InvalidProgram);
}

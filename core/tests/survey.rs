//! Programs estimated without running: choices, transfers, and wastes of a GPU.

use adead_core::dispatch::{AutoDispatcher, DeviceProfile, Kind, Link, Rate};
use adead_core::program::{Program, Survey, Waste};
use adead_core::{Family, Op, Status};

/// Rates of 100 GFLOP/s and 10 GB/s, and a call of 100 ns.
fn cpu() -> DeviceProfile {
    let mut cpu = DeviceProfile::reference("mid").unwrap();
    (cpu.id, cpu.kind, cpu.launch_ns) = ("cpu".into(), Kind::Cpu, 100.0);
    cpu.rates = [Rate { gflops: 100.0, gbytes: 10.0 }; Family::COUNT];
    cpu.exact.gflops = [40.0, 80.0];
    cpu
}

/// A hundred times as fast, a launch of 10 µs, a bus with 10 GB/s after 1 µs.
fn gpu() -> DeviceProfile {
    let mut gpu = DeviceProfile::reference("mid").unwrap();
    (gpu.id, gpu.launch_ns) = ("gpu".into(), 10_000.0);
    gpu.rates = [Rate { gflops: 10_000.0, gbytes: 1_000.0 }; Family::COUNT];
    gpu.exact.gflops = [20_000.0, 40_000.0];
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
    assert!(survey.steps[0].reason.starts_with("all steps as one take "), "{}", survey.steps[0].reason);
    assert!(survey.steps[0].reason.contains(", on cpu "), "{}", survey.steps[0].reason);
    assert_eq!(survey.steps[1].reason, "done with step 1", "the product applies the activation");
    assert_eq!((survey.steps[1].estimate.total_ns(), survey.steps[1].compared.len()), (0.0, 0));
    let launches: Vec<f64> = survey.steps.iter().map(|step| step.estimate.launch_ns).collect();
    assert_eq!(launches, [10_000.0, 0.0, 0.0], "one submission");
    let sum = |device: usize| survey.steps.iter().map(|step| step.alone[device].total_ns()).sum::<f64>();
    for device in 0..2 {
        assert!((survey.alone_ns[device] - sum(device)).abs() < 1e-6);
    }
    assert_eq!(survey.chosen_ns, survey.alone_ns[1]);
    assert!(survey.steps.iter().all(|step| step.alone[0].transfer_ns == 0.0), "the processor is where the data is");
}

#[test]
fn products_are_priced_by_their_precision() {
    let priced = |precision: &str| {
        let survey = survey(&format!(
            ".adead 1\ninput a f32[1024,1024]\ninput w f32[1024,1024]\noutput c f32[1024,1024]\nc = matmul a w {precision}\nhalt\n"
        ));
        // The reason names the unit that computes it.
        let reason = &survey.steps[0].reason;
        match precision.strip_prefix("precision=") {
            Some(precision) => assert!(reason.contains(&format!("; {precision} by ")), "{reason}"),
            None => assert!(!reason.contains(" by "), "{reason}"),
        }
        survey.steps[0].alone.iter().map(|estimate| estimate.compute_ns).collect::<Vec<_>>()
    };
    let ns = |gflops: f64| 2.0 * 1024f64.powi(3) / gflops;
    for (precision, gflops) in
        [("", [100.0, 10_000.0]), ("precision=fixed24", [40.0, 20_000.0]), ("precision=fixed16", [80.0, 40_000.0])]
    {
        for (priced, gflops) in priced(precision).into_iter().zip(gflops) {
            assert!((priced - ns(gflops)).abs() < 1e-6 * priced, "{precision}: {priced} ns at {gflops} GFLOP/s");
        }
    }
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
        ".agpu 1\nalloc 256 r0\nalloc 256 r1\ncopy_h2d 0x1 r0 256\nrelu r0 r1 64\nsigmoid r1 r0 64\ntanh r0 r1 64\n\
         copy_d2h r1 0x2 256\nend\n",
    );
    assert_eq!(devices(&survey), [0; 5]);
    let mut found = found(&survey);
    assert_eq!(found.remove(0), (Waste::Unfused, (1, 3)), "the costliest first");
    found.sort_by_key(|finding| finding.1);
    assert_eq!(found, [(Waste::TooSmall, (1, 1)), (Waste::TooSmall, (2, 2)), (Waste::TooSmall, (3, 3))]);
    let text = survey.findings[0].to_string();
    assert!(text.starts_with("unfused: 3 launches take 30 µs for "), "{text}");
    assert!(text.ends_with(" of work; fused, they need one"), "{text}");
}

#[test]
fn a_small_program_is_too_small_as_a_whole() {
    let survey = survey(
        ".adead 1\ninput x f32[64]\ntemp a f32[64]\ntemp b f32[64]\noutput y f32[64]\na = relu x\nb = exp a\ny = neg b\nhalt\n",
    );
    assert_eq!(devices(&survey), [0, 0, 0]);
    assert_eq!(found(&survey), [(Waste::TooSmall, (0, 2))], "it would be one submission");
    let lost = survey.alone_ns[1] - survey.alone_ns[0];
    assert!((survey.findings[0].lost_ns - lost).abs() < 1e-6, "{} {lost}", survey.findings[0].lost_ns);
}

#[test]
fn what_nobody_needs_and_what_is_empty_costs_nothing() {
    let survey = survey(
        ".adead 1\ninput x f32[64]\ninput n f32[0,1000000]\ntemp t f32[64]\noutput y f32[64]\noutput z f32[0,1000000]\n\
         t = exp x\ny = relu x\nz = tanh n\nhalt\n",
    );
    let reasons: Vec<&str> = survey.steps.iter().map(|step| step.reason.as_str()).collect();
    assert_eq!([reasons[0], reasons[2]], ["nothing needs its result", "its result is empty"]);
    assert_eq!([0, 2].map(|i: usize| survey.steps[i].estimate.total_ns()), [0.0, 0.0]);
    assert!(survey.chosen_ns > 0.0);
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
fn raw_registers_come_to_the_host_and_go_back() {
    let survey = survey(
        ".agpu 1\nalloc 4194304 r0\nalloc 4194304 r1\nalloc 4194304 r2\ncopy_h2d 0x1 r0 4194304\n\
         matmul r0 r0 r1 1024 1024 1024\nmatmul r1 r0 r2 1024 1024 1024\ncopy_d2h r2 0x2 4194304\nend\n",
    );
    assert_eq!(devices(&survey), [0, 1, 1, 0]);
    let moved: Vec<f64> = survey.steps.iter().map(|step| step.estimate.transfer_bytes).collect();
    assert_eq!(moved, [0.0, 3.0 * MEGABYTE_4, 3.0 * MEGABYTE_4, 0.0]);
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
    assert_eq!(devices(&survey), [0, 0, 1, 0]);
    let moved: Vec<f64> = survey.steps.iter().map(|step| step.estimate.transfer_bytes).collect();
    assert_eq!(moved, [0.0, 0.0, 3.0 * MEGABYTE_4, 0.0]);
    assert!(program.line(survey.steps[2].instruction).unwrap().starts_with("matmul "));
    // A threshold that the caller set applies here too.
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

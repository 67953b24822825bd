//! Processes that fork or end with work in flight.

use super::*;
use std::process::Command;

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

#[test]
fn a_child_never_calls_the_driver() {
    let fake = Fake::new(&[Card::default()]);
    // The device has the only reference to the workers: a child that drops it drops threads that the child doesn't
    // have.
    let device = transfers::open_with(&fake, &transfers::threads(3));
    let mut stream = device.clone().stream().unwrap();
    let buffer = device.allocate(1 << 20).unwrap();
    stream.write(&*buffer, 0, &vec![0; 1 << 20]).unwrap();
    let bump = device.kernel(&entry("bump")).unwrap();
    stream.dispatch(&*bump, &[whole(&*buffer)], &bump_by(100, 1), [2, 1, 1]).unwrap();
    let event = stream.event().unwrap();
    let calls = fake.all_calls();
    // SAFETY: the child uses only what this thread owns, takes no lock of another thread, and leaves by _exit.
    let child = unsafe { fork() };
    assert!(child >= 0);
    if child == 0 {
        let refused = [
            status(device.allocate(16)),
            status(device.clone().stream()),
            status(stream.clear(whole(&*buffer))),
            status(stream.synchronize()),
            status(event.is_done()),
            status(CudaDevice::open(0, &fake.opening())),
        ];
        let all = refused.iter().all(|status| *status == Some(Status::BackendUnavailable));
        drop((event, bump, buffer, stream));
        drop(device);
        let quiet = fake.all_calls() == calls;
        // SAFETY: it ends the child process.
        unsafe { _exit(if all && quiet { 0 } else { 1 }) };
    }
    let mut status = -1;
    // SAFETY: a child of this process, and the call writes one number.
    assert_eq!(unsafe { waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    stream.synchronize().unwrap();
    drop((event, bump, buffer, stream));
    clean(&fake, device);
}

/// Ends a process with work in flight; the next test runs it.
fn leave() -> ! {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let mut stream = device.clone().stream().unwrap();
    let buffer = device.allocate(1 << 20).unwrap();
    stream.clear(whole(&*buffer)).unwrap();
    std::process::exit(0);
}

#[test]
fn a_process_may_end_with_work_under_way() {
    const LEAVE: &str = "ADEAD_TEST_LEAVE";
    if std::env::var_os(LEAVE).is_some() {
        leave();
    }
    let own = std::env::current_exe().unwrap();
    let name = "hal::cuda::tests::processes::a_process_may_end_with_work_under_way";
    let ended = Command::new(own).args(["--exact", name]).env(LEAVE, "1").output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    // The process ended at the call, before its test was over.
    assert!(!String::from_utf8_lossy(&ended.stdout).contains("test result"), "{ended:?}");
}

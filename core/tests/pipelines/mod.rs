//! What tests of pipelines share.

use crate::backend;
use crate::draws::plain;
use adead_core::{Context, Error, Status};

/// The contexts that tests of pipelines run on: without vectors, the CPU, and the GPU that `ADEAD_TEST_BACKEND` names.
pub fn contexts() -> Vec<Context> {
    let mut all = vec![plain(), Context::open("cpu").unwrap()];
    let backend = backend::backend();
    match Context::open(&backend) {
        Ok(gpu) => all.push(gpu),
        Err(error) if error.status() == Status::BackendUnavailable => backend::skip(&backend, &error),
        Err(error) => panic!("{error}"),
    }
    all
}

/// The status of a call that fails.
pub fn status<T>(result: Result<T, Error>) -> Option<Status> {
    result.err().map(|error| error.status())
}

"""Fixtures that several test files share."""

import os
import pathlib

import pytest

import adead

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def kernels():
    return ROOT / "examples/kernels"


@pytest.fixture(scope="session")
def programs():
    return ROOT / "examples/programs"


@pytest.fixture(scope="session")
def gpu():
    """The GPU of ADEAD_TEST_BACKEND, which must exist; without the variable Vulkan's, or the test is skipped."""
    if backend := os.environ.get("ADEAD_TEST_BACKEND"):
        return adead.GPU(backend)
    try:
        return adead.GPU("vulkan")
    except adead.BackendUnavailableError as error:
        pytest.skip(f"no GPU: {error}")


@pytest.fixture(scope="session")
def vulkan(gpu):
    """A GPU that accepts SPIR-V."""
    if gpu.device.id.startswith("vulkan"):
        return gpu
    try:
        return adead.GPU("vulkan")
    except adead.BackendUnavailableError as error:
        pytest.skip(f"no Vulkan: {error}")

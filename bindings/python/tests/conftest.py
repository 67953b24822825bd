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
    """The best GPU, or that of ADEAD_TEST_BACKEND; without one the test is skipped with the reason."""
    try:
        return adead.GPU(os.environ.get("ADEAD_TEST_BACKEND", "vulkan"))
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

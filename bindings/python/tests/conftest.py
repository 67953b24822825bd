"""What several test files need."""

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
    """The best GPU; without one the test is left out with the reason."""
    try:
        return adead.GPU()
    except adead.BackendUnavailableError as error:
        pytest.skip(f"no GPU: {error}")

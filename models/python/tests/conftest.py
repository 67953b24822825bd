"""Fixtures of the tests of clusters."""

import shutil

import cluster_shared as shared
import pytest


@pytest.fixture
def folder(tmp_path):
    """A folder with inputs."""
    shared.write_inputs(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    shared.write_inputs(folder)
    shared.assert_embedded(folder / "done", shared.embed(folder, folder / "done"))
    return folder / "done"


@pytest.fixture
def done(folder, finished):
    """The folder of a finished job, computed by one process of this machine."""
    return shutil.copytree(finished, folder / "done")

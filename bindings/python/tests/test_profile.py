"""Profiles of contexts."""

import gc
import json
import threading

import numpy
import pytest

import adead

N = 64


def worked(ctx, times=3):
    x = adead.Tensor(numpy.linspace(-1, 1, N * N, dtype=numpy.float32).reshape(N, N))
    for _ in range(times):
        ctx.softmax(ctx.matmul(x, x))


def test_what_is_recorded():
    ctx = adead.Context("cpu", threads=2)
    with ctx.profile() as profile:
        assert isinstance(profile, adead.Profile)
        with pytest.raises(adead.NotReadyError, match="under way"):
            profile.report
        worked(ctx)
    report = profile.report
    assert isinstance(report, adead.ProfileReport) and profile.finish() is report
    assert [record.name for record in report.records] == ["matmul", "softmax"] * 3
    first = report.records[0]
    assert (first.activity, first.device, first.reason, first.stream) == ("operation", "cpu", "only device", 0)
    assert first.operands == f"f32[{N}, {N}], f32[{N}, {N}] -> f32[{N}, {N}]"
    assert (first.flops, first.bytes, first.thread) == (2 * N**3, 3 * 4 * N * N, 0)
    assert isinstance(first.host, adead.ProfileSpan) and first.work == first.host
    assert 0 <= first.host.begin_ns <= first.host.end_ns <= report.ns
    assert first.host.ns == first.host.end_ns - first.host.begin_ns
    total = next(total for total in report.totals if total.name == "matmul")
    spans = [record.work.ns for record in report.records if record.name == "matmul"]
    assert (total.count, total.timed, total.flops) == (3, 3, 3 * 2 * N**3)
    assert (total.ns, total.min_ns, total.max_ns) == (sum(spans), min(spans), max(spans))
    assert total.mean_ns == pytest.approx(sum(spans) / 3, abs=1e-6)
    assert total.gflops == pytest.approx(total.flops / total.ns, abs=1e-6) and total.of_peak > 0
    (device,) = report.devices
    assert (device.id, device.uploaded, device.downloaded) == ("cpu", 0, 0) and device.peak_gflops > 0
    assert device.work_ns == sum(record.work.ns for record in report.records)
    assert device.calibrated == device.figures.startswith("calibrated")
    assert (report.dropped, report.overlap, report.overlapped_ns) == (0, 0, 0) and 0 < report.busy_ns <= report.ns


def test_texts():
    ctx = adead.Context("cpu")
    with ctx.profile() as profile:
        worked(ctx)
    report = profile.report
    assert str(report).startswith("name ") and "6 records" in str(report)
    data = json.loads(report.to_json())
    assert data["ns"] == report.ns and len(data["records"]) == 6
    names = [event["name"] for event in json.loads(report.to_trace())["traceEvents"] if event["ph"] == "X"]
    assert names == ["matmul", "softmax"] * 3


def test_the_limit():
    ctx = adead.Context("cpu")
    with ctx.profile(records=2) as profile:
        worked(ctx)
    assert (len(profile.report.records), profile.report.dropped) == (2, 4)
    with pytest.raises(OverflowError):
        ctx.profile(records=-1)


def test_one_at_a_time():
    ctx = adead.Context("cpu")
    profile = ctx.profile()
    with pytest.raises(adead.InvalidArgumentError, match="under way"):
        ctx.profile()
    adead.Context("cpu").profile().finish()
    worked(ctx, 1)
    assert len(profile.finish().records) == 2
    # The next profile can begin, because a dropped one ends.
    profile = ctx.profile()
    del profile
    gc.collect()
    with ctx.profile() as last:
        pass
    assert last.report.records == [] and last.report.totals == [] and last.report.devices == []


def test_an_exception_ends_it():
    ctx = adead.Context("cpu")
    profile = ctx.profile()
    with pytest.raises(ZeroDivisionError), profile:
        worked(ctx, 1)
        1 / 0
    assert len(profile.report.records) == 2
    ctx.profile().finish()


def test_threads():
    ctx = adead.Context("cpu")
    with ctx.profile() as profile:
        threads = [threading.Thread(target=worked, args=(ctx, 5)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(profile.report.records) == 30
    assert {record.thread for record in profile.report.records} == {0, 1, 2}
    # Every thread gets the same report, whichever finishes the profile.
    profile, reports = ctx.profile(), []
    threads = [threading.Thread(target=lambda: reports.append(profile.finish().to_json())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == 4 and len(set(reports)) == 1

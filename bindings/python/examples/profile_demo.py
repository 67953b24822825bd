import json

import numpy as np

import adead

ctx = adead.Context()
x = np.full((256, 256), 0.5, np.float32)
with ctx.profile() as profile:
    for _ in range(10):
        ctx.softmax(ctx.matmul(x, x))
report = profile.report
print(report)
matmul = next(total for total in report.totals if total.name == "matmul")
assert (matmul.count, matmul.flops) == (10, 10 * 2 * 256**3)
assert sum(record.bytes for record in report.records) > 0 and report.dropped == 0
assert json.loads(report.to_json())["ns"] == report.ns  # to_trace() gives a trace for Perfetto

import adead

gpu = adead.GPU()  # the best GPU of this machine
kernel = gpu.load_spirv("examples/kernels/vecadd.spv")
n = 1000
a = gpu.buffer([1.0] * n)
b = gpu.buffer([0.5 * i for i in range(n)])
c = gpu.buffer(size=n)  # n elements, f32 by default
gpu.dispatch(kernel, a, b, c, groups=(n + 255) // 256, push={"n": n})
sums = c.read()  # waits for the kernel
assert sums.tolist() == [1.0 + 0.5 * i for i in range(n)]
print(gpu.device.name, sums[0:4].tolist())

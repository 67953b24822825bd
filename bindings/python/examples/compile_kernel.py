import adead

SOURCE = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { float x[]; };
void main() {
    if (gl_GlobalInvocationID.x < x.length()) x[gl_GlobalInvocationID.x] *= 2.0;
}
"""

try:
    gpu = adead.GPU("vulkan")
    kernel = gpu.compile_kernel(SOURCE, name="double.comp")
except adead.BackendUnavailableError as error:
    print(f"no Vulkan GPU, or no compiler: {error}")
else:
    x = gpu.buffer([1.0, 2.0, 3.0])
    gpu.dispatch(kernel, x, groups=1)
    print(x.read().tolist())  # [2.0, 4.0, 6.0]

#version 450
// Writes wherever it is told: to its buffer and far out of it. Compiled by
// glslangValidator --target-env vulkan1.2 -o stray.spv stray.comp
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Y { uint y[]; };
layout(push_constant) uniform P { uint first; uint stride; };
void main() { y[first + gl_GlobalInvocationID.x * stride] = 0xdeadbeef; }

#version 450
// The sum of each run of 512 elements: y[i] = x[512 i] + … + x[512 i + 511]; the last run may be shorter. Dispatch
// (ceil(n / 512), 1, 1) workgroups, and again on y until one sum is left. The order of the additions is fixed, and so are
// the bits of the result.
layout(local_size_x_id = 0) in;
layout(local_size_x = 256) in;

layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Size { uint n; };

shared float partial[gl_WorkGroupSize.x];

void main() {
    uint lane = gl_LocalInvocationID.x, width = gl_WorkGroupSize.x;
    uint i = gl_WorkGroupID.x * width * 2 + lane;
    uint end = min(n, x.length());
    float sum = i < end ? x[i] : 0.0;
    partial[lane] = i + width < end ? sum + x[i + width] : sum;
    for (uint half_width = width / 2; half_width > 0; half_width /= 2) {
        barrier();
        if (lane < half_width) {
            partial[lane] += partial[lane + half_width];
        }
    }
    if (lane == 0 && gl_WorkGroupID.x < y.length()) {
        y[gl_WorkGroupID.x] = partial[0];
    }
}

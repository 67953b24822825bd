// Computes one primitive of the contract for each of a list of operands: the known-answer test of a device.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "contract.glsl"
#include "memory.glsl"

layout(local_size_x = 64) in;

layout(push_constant, scalar) uniform Push {
    // Four words per case: the primitive (0 add, 1 sub, 2 mul, 3 div, 4 sqrt, 5 fmaz), then its operands.
    uvec2 x;
    uvec2 y;
    uint n;
};

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) {
        return;
    }
    uvec4 v = Word4(at(x, i, 4u)).v;
    float a = f(v.y), b = f(v.z);
    precise float r = 0.0;
    if (v.x == 0u) {
        r = a + b;
    } else if (v.x == 1u) {
        r = a - b;
    } else if (v.x == 2u) {
        r = a * b;
    } else if (v.x == 3u) {
        r = divide(a, b);
    } else if (v.x == 4u) {
        r = root(a);
    } else {
        r = fmaz(a, b, f(v.w));
    }
    store(y, i, r);
}

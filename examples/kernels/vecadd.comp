#version 450
// c = a + b, elementwise, for the first n elements that all three buffers have. Dispatch (ceil(n / 256), 1, 1) workgroups.
layout(local_size_x = 256) in;

layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };
layout(push_constant) uniform Size { uint n; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n && i < a.length() && i < b.length() && i < c.length()) {
        c[i] = a[i] + b[i];
    }
}

#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_buffer_reference : require
// Push constants of every kind, one in another.
layout(local_size_x = 1) in;

layout(buffer_reference, std430) buffer Far { float x[]; };
struct Part { int16_t small; float16_t fraction; uint8_t bytes[3]; };

layout(set = 0, binding = 0, std430) buffer Data { double y[]; };
layout(push_constant, std430) uniform Push {
    uint64_t big;
    double exact;
    layout(row_major) mat2x3 turn;
    Part parts[2];
    ivec3 at;
    Far far;
};

void main() {
    y[0] = exact + double(big) + turn[1].x + float(parts[1].small) + parts[0].fraction + float(parts[1].bytes[2]) + at.z + far.x[0];
}

#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
// Specialization constants of every type, and sizes that depend on them.
layout(constant_id = 1) const bool TURN = true;
layout(constant_id = 2) const int SHIFT = -3;
layout(constant_id = 3) const uint WIDTH = 4;
layout(constant_id = 4) const float FACTOR = 0.5;
layout(constant_id = 5) const double EXACT = 0.25;
layout(constant_id = 6) const int64_t LONG = -5L;
layout(constant_id = 7) const uint16_t SHORT = 7us;
layout(local_size_x_id = 10, local_size_y = 2, local_size_z_id = 12) in;

const uint AREA = WIDTH * WIDTH + (TURN ? 1u : 0u);
shared float tile[AREA * 2];

layout(set = 0, binding = 0, std430) buffer Data { vec4 head[WIDTH]; double last; };
layout(push_constant, std430) uniform Push { layout(offset = 16) vec2 origin; mat2x3 turn; int flags[3]; };

void main() {
    uint i = gl_LocalInvocationIndex;
    tile[i % AREA] = float(LONG) * FACTOR + float(SHORT) + origin.x + float(flags[SHIFT + 4]);
    barrier();
    head[i % WIDTH].xyz += turn * vec2(tile[(i + 1) % AREA]);
    if (i == 0) {
        last = EXACT * double(gl_NumWorkGroups.x);
    }
}

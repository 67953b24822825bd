#version 450
// Storage buffers as SPIR-V 1.0 has them: structures in uniform storage, decorated BufferBlock.
layout(local_size_x = 8, local_size_y = 4, local_size_z = 2) in;

struct Particle {
    vec3 place;
    float mass;
    mat3 frame;
};

layout(set = 1, binding = 3, std430) buffer Particles { uint count; Particle particles[]; };
layout(set = 0, binding = 1, std140) uniform Settings {
    vec4 gravity;
    layout(row_major) mat4x3 view[2];
    int steps;
};
layout(set = 0, binding = 7) coherent writeonly buffer Log { uint lines; uvec2 line[4]; };
layout(set = 5, binding = 5) buffer Unused { int unused[]; };

float energy(const in Particle particle, inout vec3 velocity) {
    velocity += gravity.xyz * particle.mass;
    return dot(velocity, velocity) * 0.5 + length(view[1] * vec4(particle.place, 1.0));
}

void main() {
    uint i = gl_GlobalInvocationID.x + gl_LocalInvocationIndex;
    if (i >= count) {
        return;
    }
    vec3 velocity = vec3(0.0);
    for (int step = 0; step < steps; step++) {
        switch (step % 4) {
        case 0:
            velocity = particles[i].frame * velocity;
            break;
        case 2:
            velocity.xz = velocity.zx;
        default:
            particles[i].place += velocity * float(step);
        }
    }
    if (energy(particles[i], velocity) > 1e3) {
        atomicAdd(lines, 1u);
        line[i & 3u] = uvec2(i, floatBitsToUint(velocity.y));
    }
}

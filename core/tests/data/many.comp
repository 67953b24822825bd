#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_nonuniform_qualifier : require
#extension GL_EXT_control_flow_attributes : require
// Many kinds of instructions, types and bindings.
layout(local_size_x = 64) in;

layout(buffer_reference, std430, buffer_reference_align = 8) buffer Node;
layout(buffer_reference, std430, buffer_reference_align = 8) buffer Node { Node next; float value; };

layout(set = 0, binding = 0) buffer Lists { Node lists[]; };
layout(set = 0, binding = 1) readonly buffer Small { float16_t halves[16]; uint8_t bytes[]; };
layout(set = 0, binding = 2) buffer Several { uint numbers[]; } several[3];
layout(set = 0, binding = 3) writeonly buffer Result { vec4 result[]; };

shared uint total;
shared struct { ivec4 a; bool b; } both;

bool odd(uint x) { return (x & 1u) != 0u; }
uint collatz(uint x) {
    uint steps = 0;
    [[dont_unroll]] while (x > 1u && steps < 1000u) {
        x = odd(x) ? 3u * x + 1u : x >> 1;
        steps++;
        if (steps == 500u) continue;
    }
    return steps;
}

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (gl_LocalInvocationIndex == 0) {
        total = 0;
        both.a = ivec4(1, -2, 3, 4);
        both.b = true;
    }
    barrier();
    Node node = lists[i];
    float sum = 0.0;
    do {
        sum += node.value;
        node = node.next;
    } while (sum < 100.0);
    sum = subgroupAdd(sum) + subgroupShuffle(sum, 3) + float(subgroupBallot(sum > 0.0).x);
    atomicMax(total, collatz(several[nonuniformEXT(i % 3)].numbers[i]));
    memoryBarrierShared();
    barrier();
    mat4 m = transpose(outerProduct(vec4(sum), vec4(1, 2, 3, 4))) * 2.0;
    vec4 v = inverse(m) * vec4(both.a) * m;
    v.x += float(halves[i & 15u]) + float(uint(bytes[i]));
    mat3x2 narrow = matrixCompMult(mat3x2(v.x), mat3x2(v, v.xy)) * mat3(m);
    v.xy += narrow * v.yzw + v.x * determinant(m) * reflect(v.zw, normalize(v.xy));
    int exponent;
    v.y = frexp(v.y, exponent) + ldexp(v.z, exponent) + unpackHalf2x16(packHalf2x16(v.xy)).x;
    uint high, low;
    umulExtended(i, total, high, low);
    v.w += modf(v.w, v.z) + float(findMSB(high) + bitCount(low)) + clamp(v.x, -1.0, 1.0) + mix(v.x, v.y, 0.3);
    if (any(lessThan(v, vec4(0.0))) && !both.b || isnan(v.x)) {
        v = -abs(v.wzyx);
    }
    result[i] = v;
}

// Barriers in shared memory, and the bulk copy engine, of compute capability 9.0 and later.
#pragma once
#include "contract.cuh"

#if __CUDA_ARCH__ >= 900
INLINE uint shared_at(const void *p) {
    return static_cast<uint>(__cvta_generic_to_shared(p));
}

// A barrier in shared memory. A phase ends after all arrivals and all bytes that copies bring.
struct Barrier {
    INLINE static void start(const uint at, const uint arrivals) {
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(arrivals));
    }
    INLINE static void expect(const uint at, const uint bytes) {
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
    }
    INLINE static void arrive(const uint at) {
        asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at) : "memory");
    }
    INLINE static void wait(const uint at, const uint phase) {
        asm volatile("{.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@p bra done;\nbra again;\ndone:\n}" ::"r"(at),
                     "r"(phase)
                     : "memory");
    }
};

// Copies `bytes` from global to shared memory, both at multiples of 16. The barrier counts the bytes.
INLINE void copy_bulk(const uint to, const void *from, const uint bytes, const uint barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
                 "r"(bytes), "r"(barrier)
                 : "memory");
}
#endif

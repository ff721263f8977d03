// The entries that the host launches, in blocks of 128 threads. `src/device.rs` names them with their arguments.

#include "keys.h"
#include "packets.h"
#include "parts.h"
#include "single.h"

constexpr u32 THREADS = 128;

/// The number of this thread's group of `G` lanes among all groups of the launch.
template <int G>
SEALWAY_FN u32 group_of_launch() {
    return (blockIdx.x * THREADS + threadIdx.x) / G;
}

template <int G>
SEALWAY_FN void lanes_entry(const Desc* descs, u32 count, const Piece* src, Piece* dst, const Piece* keys, const Aad* aad, u8* status) {
    const u32 index = group_of_launch<G>();
    if (index < count) lanes<G>(descs, index, Memory{src, dst, keys, aad}, status);
}

extern "C" __global__ void __launch_bounds__(THREADS) sealway_lanes1(const Desc* descs, u32 count, const Piece* src, Piece* dst,
                                                                    const Piece* keys, const Aad* aad, u8* status) {
    __shared__ Stage stages[THREADS / WARP];
    const u32 warp = group_of_launch<WARP>();
    if (warp * WARP < count) single(descs, count, warp, Memory{src, dst, keys, aad}, status, stages[threadIdx.x / WARP]);
}

#define SEALWAY_LANES(G)                                                                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS) sealway_lanes##G(const Desc* descs, u32 count, const Piece* src, Piece* dst, \
                                                                           const Piece* keys, const Aad* aad, u8* status) {            \
        lanes_entry<G>(descs, count, src, dst, keys, aad, status);                                                                     \
    }

SEALWAY_LANES(4)
SEALWAY_LANES(8)
SEALWAY_LANES(16)
SEALWAY_LANES(32)

extern "C" __global__ void __launch_bounds__(THREADS) sealway_parts(const Desc* descs, const Part* parts, u32 count, const Piece* src,
                                                                   Piece* dst, const Piece* keys, u32* sums) {
    const u32 index = group_of_launch<WARP>();
    if (index < count) run_part(descs, parts, index, Memory{src, dst, keys, nullptr}, sums);
}

extern "C" __global__ void __launch_bounds__(THREADS) sealway_ends(const Desc* descs, const Part* parts, u32 count, const u32* first_part,
                                                                  const Piece* src, Piece* dst, const Piece* keys, const Aad* aad,
                                                                  u8* status, const u32* sums) {
    const u32 index = group_of_launch<WARP>();
    if (index < count) run_end(descs, parts, index, first_part, Memory{src, dst, keys, aad}, status, sums);
}

extern "C" __global__ void __launch_bounds__(THREADS) sealway_spread(const Desc* descs, const u32* places, u32 count, const u8* packets,
                                                                    Piece* src) {
    const u32 index = group_of_launch<WARP>();
    if (index < count) spread_packet(descs, places, index, packets, src);
}

extern "C" __global__ void __launch_bounds__(THREADS) sealway_join(const Desc* descs, const u32* places, u32 count, const Piece* dst,
                                                                  u8* packets) {
    const u32 index = group_of_launch<WARP>();
    if (index < count) join_packet(descs, places, index, dst, packets);
}

extern "C" __global__ void __launch_bounds__(THREADS) sealway_set_keys(Piece* keys, const KeyUpdate* updates, u32 count) {
    const u32 index = group_of_launch<1>();
    if (index < count) set_key(keys, updates[index]);
}

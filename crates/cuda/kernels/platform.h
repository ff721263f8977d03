// What differs between a GPU and plain C++. The arithmetic and the walk over memory above this file are the same source on
// both, so that a machine without a GPU can test them.
//
// Code is written for a group of G lanes. `Per<T, G>` is one value a lane, and `each<G>` runs a function for each lane: on a
// GPU every thread runs it once for itself and holds its own value in registers; in C++ a loop runs it for all of them. Between
// two `each`, lanes see each other's values through `broadcast` and `below`, which are shuffles on a GPU.
#pragma once

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#ifdef __CUDACC__
#define SEALWAY_FN __device__ __forceinline__
#define SEALWAY_PRAGMA(text) _Pragma(#text)
#define SEALWAY_UNROLL(times) SEALWAY_PRAGMA(unroll times)
#else
#define SEALWAY_FN inline
#define SEALWAY_UNROLL(times)
#endif

/// Lanes that run together.
constexpr int WARP = 32;

/// Sixteen bytes: the unit of every access to memory.
struct alignas(16) Piece {
    u32 w[4];
};

#ifdef __CUDACC__

SEALWAY_FN Piece load(const Piece* from) {
    const uint4 v = *reinterpret_cast<const uint4*>(from);
    return Piece{{v.x, v.y, v.z, v.w}};
}

SEALWAY_FN void store(Piece* to, const Piece& piece) {
    *reinterpret_cast<uint4*>(to) = make_uint4(piece.w[0], piece.w[1], piece.w[2], piece.w[3]);
}

/// Bytes move by a permutation, other distances by the funnel shifter.
template <int N>
SEALWAY_FN u32 rotate(u32 x) {
    if constexpr (N == 16) return __byte_perm(x, 0, 0x1032);
    if constexpr (N == 8) return __byte_perm(x, 0, 0x2103);
    return __funnelshift_l(x, x, N);
}

template <class T, int G>
struct Per {
    T own;
    SEALWAY_FN T& operator[](int) { return own; }
};

template <int G, class F>
SEALWAY_FN void each(F f) {
    f(static_cast<int>(threadIdx.x % G));
}

/// The threads of this group within the warp. Groups of a warp may be at different places.
template <int G>
SEALWAY_FN u32 group_mask() {
    return (0xffffffffu >> (WARP - G)) << (threadIdx.x % WARP / G * G);
}

/// Every lane gets what lane `lane` holds.
template <int G>
SEALWAY_FN void broadcast(Per<u32, G>& x, int lane) {
    x.own = __shfl_sync(group_mask<G>(), x.own, lane, G);
}

/// Every lane gets what the lane `distance` below it holds, counted around.
template <int G>
SEALWAY_FN void below(Per<u32, G>& x, int distance) {
    x.own = __shfl_sync(group_mask<G>(), x.own, (threadIdx.x + G - distance) % G, G);
}

/// What lanes of a group wrote to shared memory is there for the others.
template <int G>
SEALWAY_FN void meet() {
    __syncwarp(group_mask<G>());
}

/// The largest of all lanes.
template <int G>
SEALWAY_FN u32 largest(Per<u32, G>& x) {
    u32 most = x.own;
    for (int distance = G / 2; distance > 0; distance /= 2) {
        const u32 other = __shfl_xor_sync(group_mask<G>(), most, distance, G);
        most = most > other ? most : other;
    }
    return most;
}

#else

SEALWAY_FN Piece load(const Piece* from) { return *from; }

SEALWAY_FN void store(Piece* to, const Piece& piece) { *to = piece; }

template <int N>
SEALWAY_FN u32 rotate(u32 x) {
    return x << N | x >> (32 - N);
}

template <class T, int G>
struct Per {
    T all[G];
    T& operator[](int lane) { return all[lane]; }
};

template <int G, class F>
SEALWAY_FN void each(F f) {
    for (int lane = 0; lane < G; lane++) f(lane);
}

template <int G>
SEALWAY_FN void broadcast(Per<u32, G>& x, int lane) {
    const u32 value = x[lane];
    for (u32& other : x.all) other = value;
}

template <int G>
SEALWAY_FN void below(Per<u32, G>& x, int distance) {
    const Per<u32, G> before = x;
    for (int lane = 0; lane < G; lane++) x[lane] = before.all[(lane + G - distance) % G];
}

template <int G>
SEALWAY_FN void meet() {}

template <int G>
SEALWAY_FN u32 largest(Per<u32, G>& x) {
    u32 most = 0;
    for (u32 other : x.all) most = most > other ? most : other;
    return most;
}

#endif

/// As above, for values of several words.
template <class T, int G, class Exchange>
SEALWAY_FN void exchange_words(Per<T, G>& x, Exchange exchange) {
    constexpr int words = sizeof(T) / sizeof(u32);
SEALWAY_UNROLL()
    for (int i = 0; i < words; i++) {
        Per<u32, G> word;
        each<G>([&](int lane) { word[lane] = x[lane].w[i]; });
        exchange(word);
        each<G>([&](int lane) { x[lane].w[i] = word[lane]; });
    }
}

template <class T, int G>
SEALWAY_FN void broadcast_words(Per<T, G>& x, int lane) {
    exchange_words(x, [lane](Per<u32, G>& word) { broadcast<G>(word, lane); });
}

template <class T, int G>
SEALWAY_FN void below_words(Per<T, G>& x, int distance) {
    exchange_words(x, [distance](Per<u32, G>& word) { below<G>(word, distance); });
}

template <class T>
SEALWAY_FN T least(T a, T b) {
    return a < b ? a : b;
}

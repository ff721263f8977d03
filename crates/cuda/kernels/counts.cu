// Steps of the kernels, once and twice, so that the difference in their machine code is what a step costs.
// `scripts/count-gpu-instructions` compiles and counts them; nothing runs them.

#define SEALWAY_CHACHA_TURN 10
#include "message.h"

template <int TIMES>
SEALWAY_FN void count_block(const u32* in, u32* out) {
    Block sum{};
SEALWAY_UNROLL()
    for (int time = 0; time < TIMES; time++) {
        // Nothing in common, so that nothing is shared.
        u32 key[8], nonce[3];
        for (int i = 0; i < 8; i++) key[i] = in[12 * time + i];
        for (int i = 0; i < 3; i++) nonce[i] = in[12 * time + 8 + i];
        const Block block = chacha20(key, in[12 * time + 11], nonce);
SEALWAY_UNROLL()
        for (int i = 0; i < 16; i++) sum.w[i] ^= block.w[i];
    }
    for (int i = 0; i < 16; i++) out[i] = sum.w[i];
}

/// By r, as every piece of text is; the piece lies in registers.
template <int TIMES>
SEALWAY_FN void count_absorb(const u32* in, u32* out) {
    const u32 words[8] = {in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7]};
    const PolyKey key = poly_key(words);
    const Piece piece{{in[8], in[9], in[10], in[11]}};
    Sum sum{{in[12], in[13], in[14], in[15], in[16] & 7}};
SEALWAY_UNROLL()
    for (int time = 0; time < TIMES; time++) absorb(sum, piece, key);
    for (int i = 0; i < 5; i++) out[i] = sum.w[i];
}

/// By a power of r, as once a round or a step of the ladder.
template <int TIMES>
SEALWAY_FN void count_power(const u32* in, u32* out) {
    Sum sum{{in[0], in[1], in[2], in[3], in[4] & 7}};
    const Power power{{in[5], in[6], in[7], in[8], in[9]}};
SEALWAY_UNROLL()
    for (int time = 0; time < TIMES; time++) sum = multiply(sum, power);
    for (int i = 0; i < 5; i++) out[i] = sum.w[i];
}

/// What the last piece of a message costs more than another.
template <int TIMES>
SEALWAY_FN void count_head(const u32* in, u32* out) {
    Piece piece{{in[0], in[1], in[2], in[3]}};
SEALWAY_UNROLL()
    for (int time = 0; time < TIMES; time++) piece = head(piece, in[4 + time]);
    for (int i = 0; i < 4; i++) out[i] = piece.w[i];
}

#define SEALWAY_COUNT(step)                                                                        \
    extern "C" __global__ void step##_once(const u32* in, u32* out) { count_##step<1>(in, out); }  \
    extern "C" __global__ void step##_twice(const u32* in, u32* out) { count_##step<2>(in, out); }

SEALWAY_COUNT(block)
SEALWAY_COUNT(absorb)
SEALWAY_COUNT(power)
SEALWAY_COUNT(head)

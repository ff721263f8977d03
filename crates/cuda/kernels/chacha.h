// ChaCha20 (RFC 8439 section 2.3), one block a call, all in registers.
#pragma once

#include "platform.h"

struct Block {
    u32 w[16];
};

SEALWAY_FN void quarter_round(u32& a, u32& b, u32& c, u32& d) {
    a += b, d = rotate<16>(d ^ a);
    c += d, b = rotate<12>(b ^ c);
    a += b, d = rotate<8>(d ^ a);
    c += d, b = rotate<7>(b ^ c);
}

/// The block `counter` of the keystream of a key and a nonce.
SEALWAY_FN Block chacha20(const u32 (&key)[8], u32 counter, const u32 (&nonce)[3]) {
    const u32 start[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, key[0],  key[1],   key[2],   key[3],
                           key[4],     key[5],     key[6],     key[7],     counter, nonce[0], nonce[1], nonce[2]};
    Block x;
SEALWAY_UNROLL()
    for (int i = 0; i < 16; i++) x.w[i] = start[i];
    // Two double rounds a turn: long enough to hide the loop, short enough for the nearest instruction cache.
SEALWAY_UNROLL(2)
    for (int i = 0; i < 10; i++) {
        quarter_round(x.w[0], x.w[4], x.w[8], x.w[12]);
        quarter_round(x.w[1], x.w[5], x.w[9], x.w[13]);
        quarter_round(x.w[2], x.w[6], x.w[10], x.w[14]);
        quarter_round(x.w[3], x.w[7], x.w[11], x.w[15]);
        quarter_round(x.w[0], x.w[5], x.w[10], x.w[15]);
        quarter_round(x.w[1], x.w[6], x.w[11], x.w[12]);
        quarter_round(x.w[2], x.w[7], x.w[8], x.w[13]);
        quarter_round(x.w[3], x.w[4], x.w[9], x.w[14]);
    }
SEALWAY_UNROLL()
    for (int i = 0; i < 16; i++) x.w[i] += start[i];
    return x;
}

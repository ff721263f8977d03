// Poly1305 (RFC 8439 section 2.5) in 32-bit limbs.
//
// A sum is four limbs of 32 bits and a top limb of a few: h = w0 + 2^32 w1 + … + 2^128 w4. Clamping makes words 1 to 3 of r
// multiples of 4, so a product with weight 2^128 folds without a remainder: 2^128 r_i = 2^130 r_i / 4 = 5 r_i / 4. That takes 16 wide
// multiplies. Powers of r are not clamped; products with those go through five limbs of 26 bits.
#pragma once

#include "platform.h"

/// A number mod 2^130 - 5, not reduced: the top limb stays below 8.
struct Sum {
    u32 w[5];
};

/// r as the multiplication wants it, and s.
struct PolyKey {
    u32 r[4];
    /// 5/4 of r[1] to r[3].
    u32 folded[3];
    u32 s[4];
};

/// The first eight words of block 0 (RFC 8439 section 2.6), clamped.
SEALWAY_FN PolyKey poly_key(const u32 (&w)[8]) {
    PolyKey key;
    key.r[0] = w[0] & 0x0fffffff;
SEALWAY_UNROLL()
    for (int i = 1; i < 4; i++) {
        key.r[i] = w[i] & 0x0ffffffc;
        key.folded[i - 1] = key.r[i] + (key.r[i] >> 2);
    }
SEALWAY_UNROLL()
    for (int i = 0; i < 4; i++) key.s[i] = w[4 + i];
    return key;
}

SEALWAY_FN u64 wide(u32 a, u32 b) { return static_cast<u64>(a) * b; }

/// h r. With h below 2^131, every sum of products stays below 2^63 and the fold below 2^32.
SEALWAY_FN void multiply_r(Sum& h, const PolyKey& key) {
    const u32 h0 = h.w[0], h1 = h.w[1], h2 = h.w[2], h3 = h.w[3], h4 = h.w[4];
    const u32 r0 = key.r[0], r1 = key.r[1], r2 = key.r[2], r3 = key.r[3];
    const u32 f1 = key.folded[0], f2 = key.folded[1], f3 = key.folded[2];
    const u64 d0 = wide(h0, r0) + wide(h1, f3) + wide(h2, f2) + wide(h3, f1);
    const u64 d1 = wide(h0, r1) + wide(h1, r0) + wide(h2, f3) + wide(h3, f2) + wide(h4, f1) + (d0 >> 32);
    const u64 d2 = wide(h0, r2) + wide(h1, r1) + wide(h2, r0) + wide(h3, f3) + wide(h4, f2) + (d1 >> 32);
    const u64 d3 = wide(h0, r3) + wide(h1, r2) + wide(h2, r1) + wide(h3, r0) + wide(h4, f3) + (d2 >> 32);
    const u32 d4 = h4 * r0 + static_cast<u32>(d3 >> 32);
    // What is above 2^130 comes back five times: d4 / 4 and d4 with its two low bits off make 5 (d4 / 4).
    u64 t = static_cast<u32>(d0) + static_cast<u64>((d4 >> 2) + (d4 & ~3u));
    h.w[0] = static_cast<u32>(t);
    t = static_cast<u32>(d1) + (t >> 32);
    h.w[1] = static_cast<u32>(t);
    t = static_cast<u32>(d2) + (t >> 32);
    h.w[2] = static_cast<u32>(t);
    t = static_cast<u32>(d3) + (t >> 32);
    h.w[3] = static_cast<u32>(t);
    h.w[4] = (d4 & 3) + static_cast<u32>(t >> 32);
}

/// h + piece + 2^128. The AEAD pads with zeros, so every piece is a whole one.
SEALWAY_FN void add_piece(Sum& h, const Piece& piece) {
    u64 t = 0;
SEALWAY_UNROLL()
    for (int i = 0; i < 4; i++) {
        t += static_cast<u64>(h.w[i]) + piece.w[i];
        h.w[i] = static_cast<u32>(t);
        t >>= 32;
    }
    h.w[4] += static_cast<u32>(t) + 1;
}

/// One step of Horner's rule.
SEALWAY_FN void absorb(Sum& h, const Piece& piece, const PolyKey& key) {
    add_piece(h, piece);
    multiply_r(h, key);
}

/// h + other. Six products may be added before the next multiplication by a power, two before one by r.
SEALWAY_FN void add(Sum& h, const Sum& other) {
    u64 t = 0;
SEALWAY_UNROLL()
    for (int i = 0; i < 4; i++) {
        t += static_cast<u64>(h.w[i]) + other.w[i];
        h.w[i] = static_cast<u32>(t);
        t >>= 32;
    }
    h.w[4] += other.w[4] + static_cast<u32>(t);
}

/// A factor in limbs of 26 bits; of a sum, the last has up to 29.
struct Power {
    u32 w[5];
};

SEALWAY_FN Power to_power(const Sum& h) {
    const u32 low = 0x3ffffff;
    return Power{{
        h.w[0] & low,
        (h.w[0] >> 26 | h.w[1] << 6) & low,
        (h.w[1] >> 20 | h.w[2] << 12) & low,
        (h.w[2] >> 14 | h.w[3] << 18) & low,
        h.w[3] >> 8 | h.w[4] << 24,
    }};
}

SEALWAY_FN Sum to_sum(const Power& p) {
    Sum h;
    u64 t = p.w[0] + (static_cast<u64>(p.w[1]) << 26);
    h.w[0] = static_cast<u32>(t);
    t = (t >> 32) + (static_cast<u64>(p.w[2]) << 20);
    h.w[1] = static_cast<u32>(t);
    t = (t >> 32) + (static_cast<u64>(p.w[3]) << 14);
    h.w[2] = static_cast<u32>(t);
    t = (t >> 32) + (static_cast<u64>(p.w[4]) << 8);
    h.w[3] = static_cast<u32>(t);
    h.w[4] = static_cast<u32>(t >> 32);
    return h;
}

/// a b, limbs of 26 bits again. A top limb of 29 bits and fivefold ones of 30 keep every sum below 2^62.
SEALWAY_FN Power multiply(const Power& a, const Power& b) {
    u64 d[5];
SEALWAY_UNROLL()
    for (int k = 0; k < 5; k++) {
        d[k] = 0;
SEALWAY_UNROLL()
        for (int i = 0; i < 5; i++) {
            const int j = k - i;
            d[k] += j >= 0 ? wide(a.w[i], b.w[j < 0 ? 0 : j]) : wide(a.w[i], 5 * b.w[j < 0 ? j + 5 : 0]);
        }
    }
    const u32 low = 0x3ffffff;
    Power p;
SEALWAY_UNROLL()
    for (int k = 0; k < 4; k++) {
        d[k + 1] += d[k] >> 26;
        p.w[k] = static_cast<u32>(d[k]) & low;
    }
    p.w[4] = static_cast<u32>(d[4]) & low;
    const u64 t = p.w[0] + 5 * (d[4] >> 26);
    p.w[0] = static_cast<u32>(t) & low;
    p.w[1] += static_cast<u32>(t >> 26);
    return p;
}

/// h p.
SEALWAY_FN Sum multiply(const Sum& h, const Power& p) { return to_sum(multiply(to_power(h), p)); }

/// (h mod 2^130 - 5) + s mod 2^128, without a branch on the value.
SEALWAY_FN Piece tag_of(Sum h, const PolyKey& key) {
    // Below 2^130 first: what is above comes back five times.
    u64 t = static_cast<u64>(h.w[0]) + 5 * (h.w[4] >> 2);
    h.w[0] = static_cast<u32>(t);
SEALWAY_UNROLL()
    for (int i = 1; i < 4; i++) {
        t = static_cast<u64>(h.w[i]) + (t >> 32);
        h.w[i] = static_cast<u32>(t);
    }
    h.w[4] = (h.w[4] & 3) + static_cast<u32>(t >> 32);
    // h + 5 reaches 2^130 just if h is at least 2^130 - 5. Its top bits are dropped by the modulus 2^128 anyway.
    u32 g[4];
    t = 5;
SEALWAY_UNROLL()
    for (int i = 0; i < 4; i++) {
        t += h.w[i];
        g[i] = static_cast<u32>(t);
        t >>= 32;
    }
    const u32 take = 0u - ((h.w[4] + static_cast<u32>(t)) >> 2);
    Piece tag;
    t = 0;
SEALWAY_UNROLL()
    for (int i = 0; i < 4; i++) {
        t += static_cast<u64>((h.w[i] & ~take) | (g[i] & take)) + key.s[i];
        tag.w[i] = static_cast<u32>(t);
        t >>= 32;
    }
    return tag;
}

// Many warps a message: for messages that would keep one warp busy after all others are done.
//
// A first kernel seals or opens parts of messages and leaves the sum of each; a second one puts the sums of a message together. Parts
// have the same number of blocks but for the last, so the way from one sum to the next is one power of r.
#pragma once

#include "lanes.h"

/// Blocks of every part but a message's last; `src/plan.rs` has the same number.
constexpr u32 PART_BLOCKS = 256;

/// A part of a message.
struct alignas(16) Part {
    /// Which message, counted from the first of the launch.
    u32 desc;
    u32 first_block;
    u32 blocks;
    /// Where its sum goes.
    u32 sum;
};

/// Words from one sum to the next.
constexpr u32 SUM_WORDS = 8;

/// The full blocks and the tail of a part.
SEALWAY_FN Span span_of(const Part& part, u32 len) {
    const u32 pieces = least(pieces_of(len) - 4 * part.first_block, 4 * part.blocks);
    return Span{part.first_block, pieces / 4, pieces % 4};
}

SEALWAY_FN Part load_part(const Part* from) {
    const Piece piece = load(reinterpret_cast<const Piece*>(from));
    return Part{piece.w[0], piece.w[1], piece.w[2], piece.w[3]};
}

/// Seals or opens part `index`, and leaves the sum of its full blocks.
SEALWAY_FN void run_part(const Desc* descs, const Part* parts, u32 index, const Memory& memory, u32* sums) {
    const Part part = load_part(parts + index);
    const Desc desc = load_desc(descs + part.desc);
    Per<Walk, WARP> state;
    Per<Sum, WARP> sum;
    walk<WARP, false>(desc, memory, span_of(part, desc.len), state, sum);
    each<WARP>([&](int lane) {
        if (lane != WARP - 2) return;
        for (u32 i = 0; i < 5; i++) sums[static_cast<u64>(part.sum) * SUM_WORDS + i] = sum[lane].w[i];
    });
}

SEALWAY_FN Sum load_sum(const u32* sums, u32 index) {
    Sum sum;
SEALWAY_UNROLL()
    for (u32 i = 0; i < 5; i++) sum.w[i] = sums[static_cast<u64>(index) * SUM_WORDS + i];
    return sum;
}

/// `base` to the power of `exponent`, which is public and not 0.
SEALWAY_FN Power power_of(Power base, u32 exponent) {
    Power result = base;
    u32 bit = 31;
    while (!(exponent >> bit & 1)) bit--;
    while (bit-- > 0) {
        result = multiply(result, result);
        if (exponent >> bit & 1) result = multiply(result, base);
    }
    return result;
}

/// What a lane holds while it puts parts together.
struct End {
    PolyKey key;
    Power stride;
    u32 aad;
};

/// Ends message `index`: its sums lie from `first_part[index]` on.
///
/// The row is the associated data, then every part but the last; it ends at the last lane of the last round.
SEALWAY_FN void run_end(const Desc* descs, const Part* parts, u32 index, const u32* first_part, const Memory& memory, u8* status,
                        const u32* sums) {
    const Desc desc = load_desc(descs + index);
    const u32 first = first_part[index], last = first_part[index + 1] - 1;
    const u32 items = last - first + 1;
    const u32 rounds = (items + WARP - 1) / WARP;
    const u32 idle = rounds * WARP - items;
    Per<End, WARP> state;
    Per<Sum, WARP> part;
    Per<Power, WARP> factor;
    each<WARP>([&](int lane) {
        End& own = state[lane];
        u32 words[8];
        load_key(words, memory.keys, desc.slot);
        own.key = one_time_key(chacha20(words, 0, desc.nonce));
        own.aad = aad_len(desc, memory);
        factor[lane] = power_of(to_power(r_of(own.key)), 4 * PART_BLOCKS);
        if (rounds > 1) own.stride = power_of_lanes<WARP>(factor[lane]);
        part[lane] = Sum{};
    });
    for (u32 round = 0; round < rounds; round++) {
        each<WARP>([&](int lane) {
            const int item = static_cast<int>(round * WARP + lane) - static_cast<int>(idle);
            if (item < 0) return;
            Sum sum{};
            if (item == 0) {
                absorb_aad(sum, state[lane].key, desc, memory);
            } else {
                sum = load_sum(sums, parts[first + item - 1].sum);
            }
            if (round > 0) add(sum, multiply(part[lane], state[lane].stride));
            part[lane] = sum;
        });
    }
    ladder(part, factor);
    Per<u32, WARP> right;
    each<WARP>([&](int lane) {
        right[lane] = 0;
        if (lane != WARP - 1) return;
        const PolyKey& key = state[lane].key;
        const Span span = span_of(load_part(parts + last), desc.len);
        Sum sum = part[lane];
        if (span.full > 0) {
            sum = multiply(sum, power_of(to_power(r_of(key)), 4 * span.full));
            add(sum, load_sum(sums, parts[last].sum));
        }
        // The text that is left is read again where it is sealed. The kernel of the parts has written it with zeros behind its end.
        const u32 tail = pieces_of(desc.len) - span.tail;
        // Few products have been added, but more than a product with r allows for.
        sum = to_sum(multiply(to_power(sum), Power{{1, 0, 0, 0, 0}}));
        for (u32 i = 0; i < span.tail; i++) {
            const u32 at = tail + i;
            const Piece sealed = opens(desc) ? load(memory.src + desc.src + at) : load(memory.dst + desc.dst + at);
            absorb(sum, within(sealed, desc.len - 16 * at), key);
        }
        absorb_lengths(sum, key, state[lane].aad, desc.len);
        right[lane] = settle(desc, tag_of(sum, key), memory);
        status[index] = right[lane] ? DONE : UNAUTHENTIC;
    });
    broadcast<WARP>(right, WARP - 1);
    meet<WARP>();
    each<WARP>([&](int lane) {
        for (u32 i = lane; !right[lane] && i < pieces_of(desc.len); i += WARP) store(memory.dst + desc.dst + i, Piece{});
    });
}

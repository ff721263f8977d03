// Several lanes a message: each makes a block of the keystream at a time.
//
// A message is a row of items: the block of the one-time key, the blocks of four pieces, and last the piece or three that are left
// with the lengths of the message. The row ends at the last lane of the last round; lanes before its first item have nothing to do in
// the first. So the last lane ends the message, and the distance of all other lanes from the end is the same for any length.
#pragma once

#include "ladder.h"

/// Blocks of a message that a group works on.
struct Span {
    /// Number of its first block within the message.
    u32 first;
    /// Blocks of four pieces, the last of which may end within a piece.
    u32 full;
    /// Pieces after those, at most three.
    u32 tail;
};

/// The whole of a message.
SEALWAY_FN Span whole(u32 len) {
    const u32 pieces = pieces_of(len);
    return Span{0, pieces / 4, pieces % 4};
}

/// What a lane holds while its group walks through a span.
struct Walk {
    u32 words[8];
    Block block;
    PolyKey key;
    /// r to the power of four times the number of lanes: from one round to the next.
    Power stride;
    /// The sum of the pieces that are left, with the lengths; r to the number of those.
    Sum tail;
    Power after;
};

/// r in its powers.
SEALWAY_FN Sum r_of(const PolyKey& key) { return Sum{{key.r[0], key.r[1], key.r[2], key.r[3], 0}}; }

/// Seals or opens the text of a block of which `pieces` are there; `sum` absorbs them.
SEALWAY_FN void text_block(const Desc& desc, const Memory& memory, u32 number, u32 pieces, const Block& block, const PolyKey& key,
                           Sum& sum) {
SEALWAY_UNROLL()
    for (u32 i = 0; i < 4; i++) {
        const u32 piece = 4 * number + i;
        if (i < pieces) {
            Piece sealed;
            const Piece in = load(memory.src + desc.src + piece);
            const Piece out = xor_piece(in, block, i, desc.len - 16 * piece, opens(desc), sealed);
            store(memory.dst + desc.dst + piece, out);
            absorb(sum, sealed, key);
        }
    }
}

/// Seals or opens a span. `part` becomes, in the last lane but one, the sum of its full blocks, with that of the associated data
/// before them if `FINISH`; then the last lane holds what comes after in `tail` and `after`.
template <int G, bool FINISH>
SEALWAY_FN void walk(const Desc& desc, const Memory& memory, const Span& span, Per<Walk, G>& lanes, Per<Sum, G>& part) {
    const u32 items = span.full + 2;
    const u32 rounds = (items + G - 1) / G;
    const u32 idle = rounds * G - items;
    Per<Power, G> factor;
    each<G>([&](int lane) {
        load_key(lanes[lane].words, memory.keys, desc.slot);
        part[lane] = Sum{};
        lanes[lane].tail = Sum{};
    });
    for (u32 round = 0; round < rounds; round++) {
        each<G>([&](int lane) {
            const int item = static_cast<int>(round * G + lane) - static_cast<int>(idle);
            const int last = static_cast<int>(span.full + (span.tail > 0));
            if (item < 0 || item > last) return;
            lanes[lane].block = chacha20(lanes[lane].words, item == 0 ? 0 : span.first + item, desc.nonce);
        });
        if (round == 0) {
            Per<Piece, G> low, high;
            each<G>([&](int lane) {
SEALWAY_UNROLL()
                for (int i = 0; i < 4; i++) {
                    low[lane].w[i] = lanes[lane].block.w[i];
                    high[lane].w[i] = lanes[lane].block.w[4 + i];
                }
            });
            broadcast_words(low, idle);
            broadcast_words(high, idle);
            each<G>([&](int lane) {
                const Piece &a = low[lane], &b = high[lane];
                const u32 words[8] = {a.w[0], a.w[1], a.w[2], a.w[3], b.w[0], b.w[1], b.w[2], b.w[3]};
                Walk& own = lanes[lane];
                own.key = poly_key(words);
                Sum power = r_of(own.key);
SEALWAY_UNROLL()
                for (u32 i = 0; i < 4; i++) {
                    if (i == span.tail) own.after = to_power(power);
                    if (i < 3) multiply_r(power, own.key);
                }
                factor[lane] = to_power(power);
                if (rounds > 1) own.stride = power_of_lanes<G>(factor[lane]);
            });
        }
        each<G>([&](int lane) {
            Walk& own = lanes[lane];
            const int item = static_cast<int>(round * G + lane) - static_cast<int>(idle);
            if (item == 0) {
                if (FINISH) absorb_aad(part[lane], own.key, desc, memory);
            } else if (item > static_cast<int>(span.full)) {
                text_block(desc, memory, span.first + span.full, span.tail, own.block, own.key, own.tail);
                if (FINISH) absorb_lengths(own.tail, own.key, aad_len(desc, memory), desc.len);
            } else if (item > 0) {
                Sum sum{};
                text_block(desc, memory, span.first + item - 1, 4, own.block, own.key, sum);
                if (round > 0) add(sum, multiply(part[lane], own.stride));
                part[lane] = sum;
            }
        });
    }
    ladder(part, factor);
}

/// Runs message `index`.
template <int G>
SEALWAY_FN void lanes(const Desc* descs, u32 index, const Memory& memory, u8* status) {
    const Desc desc = load_desc(descs + index);
    Per<Walk, G> state;
    Per<Sum, G> part;
    walk<G, true>(desc, memory, whole(desc.len), state, part);
    below_words(part, 1);
    Per<u32, G> right;
    each<G>([&](int lane) {
        right[lane] = 0;
        if (lane != G - 1) return;
        Sum sum = multiply(part[lane], state[lane].after);
        add(sum, state[lane].tail);
        right[lane] = settle(desc, tag_of(sum, state[lane].key), memory);
        status[index] = right[lane] ? DONE : UNAUTHENTIC;
    });
    broadcast<G>(right, G - 1);
    meet<G>();
    each<G>([&](int lane) {
        for (u32 i = lane; !right[lane] && i < pieces_of(desc.len); i += G) store(memory.dst + desc.dst + i, Piece{});
    });
}

// One lane a message: the least work there is, for many short messages.
//
// The lanes of a warp read and write together: four lanes move the four pieces of a block of one message, so an access covers eight
// messages instead of 32. In between the pieces lie in shared memory.
#pragma once

#include "message.h"

/// Pieces from one message's block to the next in shared memory. Five instead of four, so that lanes do not meet in a bank.
constexpr int STRIDE = 5;

/// What a warp shares.
struct Stage {
    Piece text[WARP * STRIDE];
    u32 src[WARP];
    u32 dst[WARP];
    /// Pieces of text.
    u32 pieces[WARP];
};

/// The messages whose pieces a lane moves, one a turn.
struct Moved {
    u32 src[4], dst[4], pieces[4];
};

/// What a lane knows about its message.
struct Own {
    Moved moved;
    Desc desc;
    PolyKey key;
    Sum sum;
    u32 aad;
    bool there;
};

/// Runs the messages from `warp * 32` on.
SEALWAY_FN void single(const Desc* descs, u32 count, u32 warp, const Memory& memory, u8* status, Stage& stage) {
    Per<Own, WARP> own;
    Per<u32, WARP> blocks;
    each<WARP>([&](int lane) {
        Own& o = own[lane];
        const u32 index = warp * WARP + lane;
        o.there = index < count;
        o.desc = o.there ? load_desc(descs + index) : Desc{};
        const u32 pieces = pieces_of(o.desc.len);
        stage.src[lane] = o.desc.src;
        stage.dst[lane] = o.desc.dst;
        stage.pieces[lane] = pieces;
        blocks[lane] = (pieces + 3) / 4;
        o.sum = Sum{};
        if (!o.there) return;
        u32 words[8];
        load_key(words, memory.keys, o.desc.slot);
        o.key = one_time_key(chacha20(words, 0, o.desc.nonce));
        o.aad = absorb_aad(o.sum, o.key, o.desc, memory);
    });
    const u32 most = largest<WARP>(blocks);
    meet<WARP>();
    each<WARP>([&](int lane) {
        Moved& moved = own[lane].moved;
SEALWAY_UNROLL()
        for (int turn = 0; turn < 4; turn++) {
            const int message = 8 * turn + lane / 4;
            moved.src[turn] = stage.src[message] + lane % 4;
            moved.dst[turn] = stage.dst[message] + lane % 4;
            moved.pieces[turn] = stage.pieces[message];
        }
    });
    for (u32 block = 0; block < most; block++) {
        meet<WARP>();
        each<WARP>([&](int lane) {
SEALWAY_UNROLL()
            for (int turn = 0; turn < 4; turn++) {
                if (4 * block + lane % 4 < own[lane].moved.pieces[turn]) {
                    stage.text[(8 * turn + lane / 4) * STRIDE + lane % 4] = load(memory.src + own[lane].moved.src[turn] + 4 * block);
                }
            }
        });
        meet<WARP>();
        each<WARP>([&](int lane) {
            Own& o = own[lane];
            if (16 * 4 * block >= o.desc.len) return;
            u32 words[8];
            load_key(words, memory.keys, o.desc.slot);
            const Block stream = chacha20(words, block + 1, o.desc.nonce);
SEALWAY_UNROLL()
            for (int i = 0; i < 4; i++) {
                const u32 start = 64 * block + 16 * i;
                if (start < o.desc.len) {
                    Piece& place = stage.text[lane * STRIDE + i];
                    Piece sealed;
                    place = xor_piece(place, stream, i, o.desc.len - start, opens(o.desc), sealed);
                    absorb(o.sum, sealed, o.key);
                }
            }
        });
        meet<WARP>();
        each<WARP>([&](int lane) {
SEALWAY_UNROLL()
            for (int turn = 0; turn < 4; turn++) {
                if (4 * block + lane % 4 < own[lane].moved.pieces[turn]) {
                    store(memory.dst + own[lane].moved.dst[turn] + 4 * block, stage.text[(8 * turn + lane / 4) * STRIDE + lane % 4]);
                }
            }
        });
    }
    // All text is written before any of it may have to be taken back.
    meet<WARP>();
    each<WARP>([&](int lane) {
        Own& o = own[lane];
        if (!o.there) return;
        absorb_lengths(o.sum, o.key, o.aad, o.desc.len);
        const bool right = settle(o.desc, tag_of(o.sum, o.key), memory);
        for (u32 i = 0; !right && i < pieces_of(o.desc.len); i++) store(memory.dst + o.desc.dst + i, Piece{});
        status[warp * WARP + lane] = right ? DONE : UNAUTHENTIC;
    });
}

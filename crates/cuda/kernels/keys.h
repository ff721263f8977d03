// The table of resident keys: 32 bytes a slot.
#pragma once

#include "platform.h"

/// A key for a slot. A slot is cleared by a key of zeros.
struct alignas(16) KeyUpdate {
    u32 slot;
    u32 unused[3];
    Piece key[2];
};

SEALWAY_FN void set_key(Piece* keys, const KeyUpdate& update) {
    Piece* at = keys + static_cast<u64>(update.slot) * 2;
    store(at, load(&update.key[0]));
    store(at + 1, load(&update.key[1]));
}

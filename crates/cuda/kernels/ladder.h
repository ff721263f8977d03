// Horner's rule over lanes: each lane has a part of a sum, and a lane's part is to be multiplied once for every place that it stands
// before the last.
#pragma once

#include "message.h"

/// Puts the parts together: x[last] becomes the sum of all parts, each times `factor` to the power of its distance from the last
/// place. Places are counted around from the lane after `last`. `factor` becomes its own G-th power. What other lanes hold
/// afterwards means nothing.
template <int G>
SEALWAY_FN void ladder(Per<Sum, G>& x, Per<Power, G>& factor) {
SEALWAY_UNROLL(1)
    for (int distance = 1; distance < G; distance *= 2) {
        Per<Sum, G> other = x;
        below_words(other, distance);
        each<G>([&](int lane) {
            Sum sum = multiply(other[lane], factor[lane]);
            add(sum, x[lane]);
            x[lane] = sum;
            factor[lane] = multiply(factor[lane], factor[lane]);
        });
    }
}

/// The G-th power.
template <int G>
SEALWAY_FN Power power_of_lanes(Power factor) {
SEALWAY_UNROLL(1)
    for (int lanes = 1; lanes < G; lanes *= 2) factor = multiply(factor, factor);
    return factor;
}

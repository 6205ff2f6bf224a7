// How fast the hosts of a run reach each other.
#pragma once

#include "core/base/json_fwd.h"
#include "parallel/comm/select.h"

namespace trainctl {

// All-reduces of 4 KiB and of 16 MiB between each two hosts, by the first rank of each: a list of {hosts: [a, b],
// small_seconds, large_seconds, large_bytes} on rank 0, empty on the others and where there is one host. Pairs that
// have no host in common are measured at the same time. Collective.
Json measure_network(World& world, Stream& stream);

}  // namespace trainctl

// The speeds of replicas, by which `share: auto` cuts batches.
#pragma once

#include <cstdint>
#include <vector>

#include "core/backend/communicator.h"
#include "core/exec/engine.h"

namespace trainctl {

// Samples per second of each replica, by its number. Every replica runs whole steps of a program of its own on one
// batch, at the same time as the others and without waiting for them, for about `seconds` by the clock. The engine's
// ranks are those of `own`: this replica's, of which each runs as many steps as the others; `replica` is its number.
// Collective over the world; the weights stay as they are.
std::vector<double> replica_speeds(Engine& engine, int program, const Batch& batch, int replica, int replicas,
                                   double seconds, Communicator& own, Communicator& world, Stream& stream);

// Cuts `samples` into parts in proportion to the speeds, each a multiple of `unit` with at least one unit where there
// are as many, by largest remainders. `unit` divides `samples`.
std::vector<std::int64_t> parts_by_speed(std::int64_t samples, std::int64_t unit, const std::vector<double>& speeds);

}  // namespace trainctl

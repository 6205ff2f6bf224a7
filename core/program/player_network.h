// The part of a network that belongs to a player: the losses that it minimizes, the ops that these need, and the
// parameters that it trains.
#pragma once

#include <cstddef>
#include <vector>

#include "core/metrics/result.h"
#include "core/program/network.h"
#include "core/program/program_spec.h"

namespace trainctl {

// Returns the numbers of the player's losses among the outputs of a network, ascending.
std::vector<std::size_t> losses_of(const ProgramSpec::Player& player, const std::vector<ResolvedOutput>& outputs);

// Whether the player trains the parameter with this name.
bool trains(const ProgramSpec::Player& player, const std::string& parameter);

// Reports mistakes of the players: losses and layers that the network does not have, losses that no player minimizes,
// and layers that two players train. Adds a warning if no player trains a layer.
void check_players(const ProgramSpec& spec, Network& network, Reader& reader);

// Leaves only the losses of the player and the ops that they need, and freezes all parameters that it does not train.
// Layers of other players compute as in training: unlike layers that `freeze` names, they drop out and normalize by the
// batch.
Network network_of(const ProgramSpec::Player& player, Network network);

// The results of outputs and added losses and, for each player, the sum of its losses: "generator_loss".
std::vector<MetricResult> results_of(const std::vector<ProgramSpec::Player>& players,
                                     const std::vector<ResolvedOutput>& outputs);

}  // namespace trainctl

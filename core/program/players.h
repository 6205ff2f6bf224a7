// Joins the updates of players to the training step of a run with several optimizers.
//
// In a step, each player updates its own parameters, one player after the other: forward, backward and update of the
// first, then of the next, which reads the parameters that the first has changed. All read the same batch, and each
// update has random numbers of its own. If a loss or a gradient of an update is not finite, neither it nor the later
// updates of the step change anything; those before it stay.
#pragma once

#include <cstddef>
#include <vector>

#include "core/program/finish.h"
#include "core/program/network.h"
#include "core/program/program_spec.h"

namespace trainctl {

// One update of a player: the program of its losses alone, distributed over the ranks and not finished.
struct PlayerPass {
  const ProgramSpec::Player* player = nullptr;
  int number = 0;                   // number of the update among the player's updates of a step
  std::vector<std::size_t> losses;  // the numbers of its losses among the outputs of the whole network
  Program program;
  std::vector<StatisticUpdate> statistics;
  std::vector<TeacherParameter> teachers;
  std::vector<GraphSpectralNorm> spectral_norms;
};

// The spec of an update: of its player alone, with random numbers that only update number `number` of a step draws.
ProgramSpec spec_of(const ProgramSpec& spec, const ProgramSpec::Player& player, std::size_t number);

// Throws Error{config} if the losses of the player do not depend on some of the parameters that it trains. `whole`: the
// network of all players.
void require_gradients(const PlayerPass& pass, const Network& whole);

// Finishes the updates and joins them in their order. The parameters of a player are one bucket of the common layout,
// and the sums of all updates follow the gradients. `whole`: the network of all players.
Program join_passes(std::vector<PlayerPass> passes, const ProgramSpec& spec, const Network& whole,
                    const MeshRank& rank);

}  // namespace trainctl

// The players of a run with several optimizers: `train.players`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/layers/model/reference.h"
#include "core/optim/choices.h"
#include "core/spec/one_or_more.h"
#include "core/spec/ordered.h"
#include "core/spec/values.h"

namespace trainctl {

struct TrainOptions;

// A player changes the parameters of some layers to minimize the sum of some losses.
struct PlayerOptions {
  OneOrMore<Reference> trains;            // patterns of the names of layers
  OneOrMore<Reference> loss;              // names of added losses and outputs; empty: the player's own name
  ChoiceOf<optimizer_choices> optimizer;  // not set: train.optimizer
  std::int64_t steps = 1;                 // number of updates in each step of the run

  static Keys<PlayerOptions> keys();
};

// In the order of their updates.
using PlayerList = Ordered<PlayerOptions>;

// Returns the names of a player's losses.
std::vector<Reference> losses_of(const PlayerList::Item& player);

// Returns the names of the players' results, except those that losses of the model have, too: "generator_loss".
// `losses`: the names of the model's outputs and added losses.
std::vector<std::string> result_names(const PlayerList& players, const std::vector<std::string>& losses);

// Reports keys of the `train` section that cannot be combined with players, and names that cannot be names of players.
void check_players(const TrainOptions& train, const Node& node, Reader& reader);

}  // namespace trainctl

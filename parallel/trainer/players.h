// The players of a run with several optimizers, and teachers: `train.players` and `train.teachers`.
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

// Layers whose weights are moving averages of those of other layers.
struct TeacherOptions {
  Reference of;  // the beginning of the names of the other layers
  double momentum = 0.99;

  static Keys<TeacherOptions> keys();
};

// In the order of their updates.
using PlayerList = Ordered<PlayerOptions>;

// Returns the names of a player's losses.
std::vector<Reference> losses_of(const PlayerList::Item& player);

// Appends the names of the players' results, such as "generator_loss", to those of the outputs and added losses. The
// result of a player whose only loss has its name is that of the loss.
void add_result_names(const PlayerList& players, std::vector<std::string>& names);

// Reports losses of players that are not among `losses`, the names of the model's outputs and added losses.
void check_losses_of(const PlayerList& players, const std::vector<std::string>& losses, Reader& reader);

// Reports keys of the `train` section that cannot be combined with players, and names that cannot be names of players.
void check_players(const TrainOptions& train, const Node& node, Reader& reader);

}  // namespace trainctl

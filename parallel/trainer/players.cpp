// The keys of players, and the rules between them and other keys of the `train` section.
#include "parallel/trainer/players.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/graph/ops/optimizers/optimizers.h"
#include "core/layers/model/names.h"
#include "core/optim/optimizer.h"
#include "core/spec/suggestion.h"
#include "parallel/trainer/options.h"

namespace trainctl {

Keys<PlayerOptions> PlayerOptions::keys() {
  using O = PlayerOptions;
  return Keys<O>("player", "A player of a run with several optimizers, such as the generator of a GAN.")
      .required("trains", &O::trains,
                "Patterns of the names of the layers that this player trains (`generator*`; a block's name means all "
                "its layers). It leaves all other layers as they are. Two players cannot train the same layer.")
      .key("loss", &O::loss,
           "The losses whose weighted sum the player minimizes: names of `model.add_loss` and of outputs; `output` is "
           "the only output. Absent: the loss that has the player's name.")
      .key("optimizer", &O::optimizer,
           "The player's optimizer; if not set, one like train.optimizer with a state of its own. The schedule changes "
           "the learning rates of all players by the same factor.")
      .key("steps", &O::steps,
           "Number of the player's updates in each step of the run, on the same batch with other random numbers.",
           between(1, 100));
}

Keys<TeacherOptions> TeacherOptions::keys() {
  using O = TeacherOptions;
  return Keys<O>("teacher", "Layers whose weights are moving averages of those of other layers.")
      .required("of", &O::of,
                "The beginning of the names of the layers that the teacher follows: `teacher_conv/kernel` follows "
                "`student_conv/kernel` with `{teacher: {of: student}}`.")
      .key("momentum", &O::momentum,
           "Share of the teacher's weights that stays in a step: w = momentum w + (1 - momentum) v, with the weights v "
           "after their update. Both begin with the initial values of v.",
           from_zero_to_below(1));
}

std::vector<Reference> losses_of(const PlayerList::Item& player) {
  if (player.value.loss.empty()) return {{player.name, player.location}};
  return player.value.loss.items;
}

void add_result_names(const PlayerList& players, std::vector<std::string>& names) {
  for (const PlayerList::Item& player : players.items) {
    const std::vector<Reference> own = losses_of(player);
    const std::string name = player.name + "_loss";
    const bool is_loss = own.size() == 1 && own[0].name == player.name && std::ranges::find(names, name) != names.end();
    if (!is_loss) names.push_back(name);
  }
}

void check_losses_of(const PlayerList& players, const std::vector<std::string>& losses, Reader& reader) {
  for (const PlayerList::Item& player : players.items) {
    for (const Reference& loss : losses_of(player)) {
      if (std::ranges::find(losses, loss.name) != losses.end()) continue;
      std::string hint = suggestion(loss.name, losses);
      if (hint.empty()) hint = "; there is " + join_or(losses);
      reader.error(loss.location, format("player '{}': the model has no loss '{}'{}", player.name, loss.name, hint));
    }
  }
}

void check_players(const TrainOptions& train, const Node& node, Reader& reader) {
  if (train.players.empty()) return;
  const auto refuse = [&](const char* key, const std::string& why) {
    if (const Node* given = node.find(key)) reader.error(given->location, format("{}: {}", key, why));
  };
  if (!train.phases.empty()) refuse("phases", "a run with players has one phase: leave out `phases` or `players`");
  if (train.gradient_accumulation > 1) {
    refuse("gradient_accumulation", "players compute the whole batch at once: leave it out, or lower batch_size");
  }
  if (train.precision == Precision::float16) {
    refuse("precision", "the players of a run have no loss scale: use bfloat16 or float32");
  }
  for (const PlayerList::Item& player : train.players.items) {
    if (!is_name(player.name) || player.name == "val" || player.name.starts_with("val_")) {
      reader.error(player.location, format("player '{}': a name consists of letters, digits, '_', '-' and '.', and "
                                           "does not begin with 'val'",
                                           player.name));
    }
    const Choice& optimizer = player.value.optimizer ? player.value.optimizer : train.optimizer;
    if (!optimizer) continue;  // a mistake that was reported
    if (is_factored(optimizer.as<OptimizerOptions>().rule())) {
      reader.error(optimizer.location, format("player '{}': the state of {} does not fit a player, use another "
                                              "optimizer, such as adamw",
                                              player.name, optimizer.name));
    }
  }
  if (train.optimizer && train.optimizer.as<OptimizerOptions>().learning_rate == 0) {
    reader.error(train.optimizer.location,
                 "the rates of the players follow the schedule of this rate, and it is 0: set another learning_rate");
  }
}

}  // namespace trainctl

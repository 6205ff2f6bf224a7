// The keys of the `train` section and the rules between them.
#include "parallel/trainer/options.h"

#include <algorithm>
#include <set>

#include "core/base/format.h"
#include "core/layers/model/model_options.h"
#include "core/metrics/loss.h"
#include "core/metrics/metric.h"
#include "core/optim/optimizer.h"
#include "core/optim/schedule.h"
#include "core/spec/suggestion.h"

namespace trainctl {
namespace {

void check_batch(const TrainOptions& train, const Node& node, Reader& reader) {
  const char* batch_key = train.batch_size ? "batch_size" : "batch_size_per_rank";
  const auto batch = train.batch_size ? train.batch_size : train.batch_size_per_rank;
  const Node* accumulation = node.find("gradient_accumulation");
  if (accumulation && batch && *batch % train.gradient_accumulation != 0) {
    reader.error(
        accumulation->location,
        format("gradient_accumulation {} does not divide {} {}", train.gradient_accumulation, batch_key, *batch),
        node.find(batch_key)->location, batch_key);
  }
}

void check_schedule(const TrainOptions& train, const Node& node, Reader& reader) {
  const bool known = train.epochs || train.max_steps || !train.phases.empty() ||
                     !train.max_time;  // if all limits are missing, another error reports it
  if (known || !train.schedule || !train.schedule.as<ScheduleOptions>().needs_length()) return;
  reader.error(
      node.find("schedule")->location,
      format(
          "the {} schedule needs to know how many steps the run has: set epochs or max_steps, with or without max_time",
          train.schedule.name));
}

void check_phases(const TrainOptions& train, const Node& node, Reader& reader) {
  const std::int64_t epochs = epochs_of(train.phases);
  if (train.phases.empty() || !train.epochs || *train.epochs == epochs) return;
  reader.error(node.find("epochs")->location,
               format("epochs is {}, but the phases have {} together: leave epochs out, or make them equal",
                      *train.epochs, epochs),
               node.find("phases")->location, "phases");
}

void check_scaling(const TrainOptions& train, const Node& node, Reader& reader) {
  const auto* scaling = std::get_if<RateScaling>(&train.scale_learning_rate);
  if (!scaling || *scaling == RateScaling::off || !train.batch_size) return;
  reader.error(node.find("scale_learning_rate")->location,
               "scale_learning_rate: true scales with the ranks, but batch_size is the same for any number of them: "
               "set the batch that learning_rate is meant for (scale_learning_rate: 256), or use batch_size_per_rank",
               node.find("batch_size")->location, "batch_size");
}

// Reports clip_norm if an optimizer of the run has a limit of its own.
void check_clipping(const TrainOptions& train, const Node& node, Reader& reader) {
  if (!train.clip_norm) return;
  const auto check = [&](const Choice& optimizer) {
    if (!optimizer || !optimizer.as<OptimizerOptions>().clips()) return;
    reader.error(node.find("clip_norm")->location,
                 "clip_norm and the optimizer both limit the gradients: set only one of clip_norm and the optimizer's "
                 "clipnorm, global_clipnorm and clipvalue",
                 optimizer.location, "optimizer");
  };
  check(train.optimizer);
  for (const PhaseOptions& phase : train.phases) check(phase.optimizer);
  for (const PlayerList::Item& player : train.players.items) check(player.value.optimizer);
}

// The names by which players refer to the losses of a model.
std::vector<std::string> loss_names(const ModelOptions& model) {
  std::vector<std::string> names = output_names(model);
  if (names.size() == 1) names.insert(names.begin() + (names[0].empty() ? 0 : 1), "output");
  std::erase(names, "");
  for (const auto& [name, loss] : model.add_loss) names.push_back(name);
  return names;
}

// The samples of a batch are counted in float32 across ranks, which is exact up to this number.
constexpr double max_samples = 1 << 24;

}  // namespace

Keys<MovingAverageOptions> MovingAverageOptions::keys() {
  return Keys<MovingAverageOptions>("moving_average",
                                    "An average of the weights over the steps, as Keras' use_ema (Polyak and Juditsky, "
                                    "1992). Validation, eval and predict use it, and weights.safetensors holds it; "
                                    "state.safetensors holds the weights of the last step, from which a resumed run "
                                    "continues. Running statistics of batch normalisation are not averaged.")
      .key("momentum", &MovingAverageOptions::momentum,
           "Keras' ema_momentum: average = momentum * average + (1 - momentum) * weight after every step; it starts "
           "with the weights of the first step.",
           from_zero_to_below(1))
      .shorthand("momentum");
}

double TrainOptions::rate_factor() const {
  const auto* meant_for = std::get_if<std::int64_t>(&scale_learning_rate);
  return meant_for && batch_size ? static_cast<double>(*batch_size) / static_cast<double>(*meant_for) : 1;
}

DType TrainOptions::compute() const {
  switch (precision) {
    case Precision::bfloat16:
      return DType::bfloat16;
    case Precision::float16:
      return DType::float16;
    case Precision::float32:
      break;
  }
  return DType::float32;
}

bool TrainOptions::reads_choices_of(const std::vector<std::string>& outputs) const {
  return std::all_of(outputs.begin(), outputs.end(), [this](const std::string& output) {
    const std::vector<Choice>& own = metrics.of(output);
    return loss.of(output) && std::all_of(own.begin(), own.end(), [](const Choice& metric) { return !!metric; });
  });
}

std::vector<std::string> TrainOptions::result_names(const ModelOptions& model) const {
  const std::vector<std::string> outputs = output_names(model);
  std::vector<std::string> names{"loss"};
  const bool several = outputs.size() > 1;
  for (const std::string& output : outputs) {
    if (!loss.of(output).as<LossOptions>().trains()) continue;
    if (several || !model.add_loss.empty()) names.push_back(several ? output + "_loss" : "output_loss");
  }
  for (const auto& [name, loss] : model.add_loss) names.push_back(name + "_loss");
  for (const std::string& output : outputs) {
    const std::string prefix = several ? output + "_" : "";
    for (const Choice& metric : metrics.of(output)) {
      const auto rule = metric.as<MetricOptions>().rule();
      if (!rule || columns_of(*rule) == 0) names.push_back(prefix + result_name(metric));
    }
  }
  add_result_names(players, names);
  return names;
}

GivenModes TrainOptions::given_modes(const std::vector<std::string>& outputs) const {
  GivenModes modes;
  for (const std::string& output : outputs) {
    for (const Choice& metric : metrics.of(output)) {
      const auto expression = metric.as<MetricOptions>().expression();
      const std::string prefix = outputs.size() > 1 ? output + "_" : "";
      if (expression != nullptr) modes[prefix + expression->name.value] = expression->mode;
    }
  }
  return modes;
}

void TrainOptions::check_names_of(const ModelOptions& model, const Node& node, Reader& reader) const {
  const std::vector<std::string> outputs = output_names(model);
  check_names(loss, outputs, "output", Coverage::all, reader);
  // A run's resolved config has an empty list if the user set no metrics.
  if (metrics.named() || !metrics.of("").empty()) {
    check_names(metrics, outputs, "output", Coverage::some, reader);
  }
  for (const auto& [name, weight] : loss_weights) {
    if (std::find(outputs.begin(), outputs.end(), name) != outputs.end()) continue;
    std::string hint = suggestion(name, outputs);
    if (hint.empty()) hint = outputs.front().empty() ? "; its outputs have no names" : "; there is " + join_or(outputs);
    reader.error(node.find("loss_weights")->location, format("the model has no output '{}'{}", name, hint));
  }
  const std::size_t before = reader.count();
  check_losses_of(players, loss_names(model), reader);
  if (reader.count() > before) return;
  if ((outputs.size() < 2 && model.add_loss.empty() && players.empty()) || !reads_choices_of(outputs)) return;
  std::set<std::string> names;
  for (const std::string& name : result_names(model)) {
    if (names.insert(name).second) continue;
    const Node* list = node.find("metrics");
    reader.error(
        list != nullptr ? list->location : node.location,
        format("two results have the name '{}': give one of the metrics, losses or players another name", name));
  }
}

Keys<TrainOptions> TrainOptions::keys() {
  return Keys<TrainOptions>("train", "How the network is trained.")
      .key("batch_size", &TrainOptions::batch_size, "Number of samples of a step, all ranks together, as in Keras.",
           between(1, max_samples))
      .key("batch_size_per_rank", &TrainOptions::batch_size_per_rank,
           "Number of samples of a step on each rank, instead of batch_size. It is resolved when the run begins and "
           "kept when the run is resumed.",
           between(1, max_samples))
      .key("epochs", &TrainOptions::epochs, "Ends the run after this number of passes over the data.", between(1, 1e9))
      .key("max_steps", &TrainOptions::max_steps, "Ends the run after this number of steps.", between(1, 1e15))
      .key("max_time", &TrainOptions::max_time, "Ends the run after this time; a bare number is in seconds.",
           more_than(0))
      .key("steps_per_epoch", &TrainOptions::steps_per_epoch,
           "Number of steps that count as one epoch; none: one pass over the data.", between(1, 1e12))
      .required("loss", &TrainOptions::loss,
                "The function that training minimizes; with several outputs, one for each by name.")
      .key("loss_weights", &TrainOptions::loss_weights,
           "With several outputs: the factor of each one's loss in the sum; 1 if not set.", at_least(0))
      .key("metrics", &TrainOptions::metrics,
           "Values that are reported in addition to the loss; with several outputs, by name.")
      .required("optimizer", &TrainOptions::optimizer, "How gradients change the weights.")
      .key("players", &TrainOptions::players,
           "Optimizers that train different layers, in turn: in each step of the run, every player updates its layers "
           "on the same batch, in this order, as in `{discriminator: {trains: discriminator}, generator: {trains: "
           "generator}}`. The results have the sum of a player's losses as PLAYER_loss.")
      .key(
          "teachers", &TrainOptions::teachers,
          "Layers whose weights are moving averages of those of other layers, as in BYOL and mean teachers: `{teacher: "
          "{of: student, momentum: 0.99}}` for all layers whose names begin with `teacher`. They are not trained "
          "otherwise.")
      .key("schedule", &TrainOptions::schedule, "How the learning rate changes over the run.")
      .key("scale_learning_rate", &TrainOptions::scale_learning_rate,
           "The batch size that learning_rate is meant for: the schedule's rates are multiplied by the batch size of "
           "all ranks divided by it (the linear scaling rule of Goyal et al., 2017; begin with a warmup). true: the "
           "batch size of one rank, so that rates grow with the ranks; it requires batch_size_per_rank.",
           at_least(1))
      .key("precision", &TrainOptions::precision,
           "Dtype of activations and of the weights that kernels read; master weights and their update are always "
           "float32. float16 scales the loss as far as the gradients allow; it requires a GPU.")
      .key("gradient_accumulation", &TrainOptions::gradient_accumulation,
           "Number of micro-batches into which a rank's share of the batch is divided; they are computed one after the "
           "other, to save memory.",
           between(1, 65536))
      .key("clip_norm", &TrainOptions::clip_norm,
           "Scales the gradient down if its norm over all parameters is larger than this, as Keras' global_clipnorm "
           "does. Keras' clipnorm, for each parameter by itself, is an option of the optimizer.",
           more_than(0))
      .key("class_weights", &TrainOptions::class_weights,
           "Weight of a sample in training, by its class: balanced, so that all classes have the same total weight, or "
           "a map of names or numbers of classes; 1 if not set. With several outputs, only one may have classes, and "
           "the weights are its. The "
           "training loss is divided according to "
           "loss_reduction, training metrics are means by these weights; validation does not use class weights.",
           at_least(0))
      .key(
          "loss_reduction", &TrainOptions::loss_reduction,
          "Divisor of the sum of the samples' losses, each times its weight (class_weights, weights of the data). "
          "sum_over_batch_size: the number of samples, as in Keras, or the number of positions if positions have "
          "weights. mean_with_sample_weight: the sum of the weights, as in PyTorch's cross-entropy with class weights.")
      .key("moving_average", &TrainOptions::moving_average, "Evaluates and saves an average of the weights over steps.")
      .key("early_stopping", &TrainOptions::early_stopping, "Ends the run when a value no longer improves.")
      .key("reduce_on_plateau", &TrainOptions::reduce_on_plateau,
           "Lowers the learning rate when a value no longer improves.")
      .key("phases", &TrainOptions::phases,
           "Phases of the run, one after the other, instead of `epochs`: fine-tuning trains a new head on frozen "
           "layers, then more of the layers. Each phase begins like compile and fit in Keras, on the weights of the "
           "previous one: the optimizer's state, the schedule, reduce_on_plateau and early_stopping are reset, and "
           "early_stopping ends the phase. Steps, epochs and `checkpoints/best` continue through the run.")
      .key(
          "on_not_finite", &TrainOptions::on_not_finite,
          "What happens after a step whose loss or gradient is NaN or Inf on any rank; its update is left out on all "
          "ranks. stop: the run ends with exit code 4 and keeps the state before the step, for `trainctl replay`. "
          "skip: "
          "the run goes on with the next batch; the step counts for epochs, schedule and optimizer. rollback: the run "
          "goes back to its newest checkpoint with finite values and skips the batch when it comes to it again, also "
          "after a restart. In float16, steps whose gradient only exceeds the range of the loss scale are not counted.")
      .key("max_skipped", &TrainOptions::max_skipped,
           "With `on_not_finite: skip`, the largest number of steps in a row whose updates are skipped; with "
           "`rollback`, "
           "of skipped batches since a checkpoint. After one more such step the run ends.",
           between(0, 1e9))
      .key("deterministic", &TrainOptions::deterministic,
           "Computes the same bits in every run on the same processors or GPUs, at some cost in speed: kernels are "
           "chosen by the device, the shapes and the libraries' versions instead of by timing, and GPUs add in a fixed "
           "order. `strategy: auto` and measured shares are also chosen by timing: set them explicitly instead.")
      .key("tf32", &TrainOptions::tf32,
           "On GPUs: computes float32 products and convolutions with 10 bits of mantissa, which is several times "
           "faster.")
      .key("cuda_graphs", &TrainOptions::cuda_graphs,
           "On GPUs: records a step once and replays it as a whole; false: operations are started one by one.")
      .key("kernel_timing", &TrainOptions::kernel_timing,
           "Finds the fastest kernels by timing, before the first step, and stores the choices for later runs of the "
           "user; false: fixed rules and the libraries' heuristics choose them. `deterministic` and "
           "`strategy.reproducible` switch it off.")
      .exclusive({"batch_size", "batch_size_per_rank"})
      .one_of({"batch_size", "batch_size_per_rank"}, "samples of a step, of all ranks together or of each")
      .one_of({"epochs", "max_steps", "max_time", "phases"}, "when the run ends")
      .check(check_batch)
      .check(check_scaling)
      .check(check_clipping)
      .check(check_schedule)
      .check(check_phases)
      .check(check_players);
}

}  // namespace trainctl

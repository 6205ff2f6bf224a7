// The training loop.
#include "parallel/trainer/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "core/exec/observe/not_finite.h"
#include "core/metrics/monitor.h"
#include "parallel/comm/text.h"
#include "parallel/health/replicas.h"
#include "parallel/trainer/evaluate.h"

namespace trainctl {
namespace {

// The shortest text that reads back as the same values.
std::string exact(std::span<const double> values) {
  std::string text;
  for (double value : values) text += format("{}{}", text.empty() ? "" : " ", value);
  return text;
}

// Appends so many values; zeros where the text, which may be null, has fewer.
void parse_exact(const std::string* text, int count, std::vector<double>& values) {
  const char* at = text == nullptr ? "" : text->c_str();
  for (int i = 0; i < count; ++i) {
    char* end = nullptr;
    values.push_back(std::strtod(at, &end));
    at = end;
  }
}

// The weights of which every replica holds the same elements.
std::vector<NamedTensor> replicated_weights(const TrainerParts& parts) {
  std::vector<NamedTensor> weights = parts.engine.weights();
  const Program& program = parts.programs.programs().front();
  if (!program.flat.sharding.parameters) return weights;
  std::set<std::string> shared;
  for (const FlatEntry& entry : program.flat.parameters) {
    if (entry.offset < program.flat.trainable_count) shared.insert(program.tensor(entry.parameter).name);
  }
  std::erase_if(weights, [&](const NamedTensor& tensor) { return shared.contains(tensor.name); });
  return weights;
}

void add_parts(const Engine::Parts& parts, StepShares& sums) {
  sums.upload += parts.upload;
  sums.forward += parts.forward;
  sums.backward += parts.backward;
  sums.communication += parts.communication;
  sums.update += parts.update;
}

}  // namespace

Trainer::Trainer(TrainerParts parts, TrainingPlan plan)
    : parts_(std::move(parts)),
      plan_(std::move(plan)),
      results_(parts_.programs.programs().front().results),
      epoch_means_(results_),
      warnings_(parts_.world.rank() == 0, results_),
      regularization_(parts_.engine.program(0).program, parts_.programs.rank(), parts_.world, parts_.stream),
      data_position_(parts_.training.position()) {
  if (plan_.early_stopping) early_stopping_.emplace(*plan_.early_stopping);
  if (plan_.reduce_on_plateau) plateau_.emplace(*plan_.reduce_on_plateau);
  if (parts_.replicas == nullptr || parts_.replicas->size() == 1) return;
  replicas_.emplace(replicated_weights(parts_), *parts_.replicas, parts_.world.rank(), parts_.stream);
  if (plan_.sync_every > 1) local_.emplace(parts_.engine, *parts_.replicas, parts_.stream);
}

EndEvent Trainer::run() {
  start_seconds_ = epoch_start_ = seconds_now();
  // A device that computes beside the host needs marks between the parts of a step, which are there on several ranks.
  const bool has_marks = parts_.engine.steps_at_once() == 1 || parts_.world.size() > 1;
  parts_.engine.set_timing(parts_.sink != nullptr && has_marks);
  bool completed = finished();
  verify_replicas();
  restart_window();
  if (evaluation_is_due()) {
    completed = evaluate_weights() && completed;
    if (!stop_) {
      epoch_means_.clear();
      saved_step_ = -1;
      save();
    }
  }
  while (!finished() && !stop_ && !ends_early()) {
    const std::int64_t before = position_.step;
    const double begin = seconds_now();
    run_steps();
    note_stop_time(seconds_now() - begin);
    const bool trained = position_.step > before;
    const auto passed = [&](std::int64_t every) { return every > 0 && position_.step / every > before / every; };
    if (trained && passed(plan_.verify_every)) verify_replicas();
    if (trained && passed(plan_.histograms_every)) {
      parts_.histograms->run(position_.step, last_program_, gradient_scale_);
    }
    const bool epoch_ends = trained && position_.step % plan_.steps_per_epoch == 0;
    // A run that its own time limit ended is complete; one that was asked to stop leaves at once.
    const bool asked = stop_ && any_rank(parts_.stop_requested(), parts_.world, parts_.stream);
    completed = finished() || (stop_ && !asked);
    if (epoch_ends) require_weight();
    const bool evaluated = (epoch_ends || completed) && evaluate_weights();
    if (!evaluated) completed = false;  // its evaluation was stopped
    if (epoch_ends && evaluated) epoch_means_.clear();
    completed = completed || ends_early();
    if (completed) restore_best();
    const bool saves = passed(plan_.checkpoint_every) || is_best_ || stop_ || ends_early() || finished();
    if (saves) save();
    if (epoch_ends || saves) restart_window();  // speeds are those of steps alone
  }
  save();  // also where no step was left to do, in a directory that is not the checkpoint's own
  EndEvent end;
  end.status = completed ? "completed" : "stopped";
  if (completed && !finished()) end.reason = early_end_.empty() ? "train.max_time has passed" : early_end_;
  end.step = position_.step;
  end.epoch = epoch();
  if (position_.has_best) {
    end.best_monitor = plan_.monitor;
    end.best_value = position_.best_value;
    end.best_step = position_.best_step;
  }
  end.seconds = seconds_now() - start_seconds_;
  end.train = train_;
  end.validation = validation_;
  if (parts_.saver.reads_tensors()) parts_.engine.download();
  end.weights_sha256 = parts_.saver.weights_sha256(parts_.engine.weights());
  return end;
}

// Steps of less than a few seconds stop in no time.
void Trainer::note_stop_time(double seconds) {
  constexpr double few = 5, grown = 1.2;
  if (seconds < few || seconds < grown * longest_between_looks_) return;
  longest_between_looks_ = seconds;
  tell_stop_time(false);
}

void Trainer::tell_stop_time(bool saves) const {
  if (parts_.tells_stop_time && parts_.world.rank() == 0) parts_.tells_stop_time(longest_between_looks_, saves);
}

// Finishes the steps to the next one after which ranks agree on anything: one, unless replicas take steps alone.
void Trainer::run_steps() {
  do {
    run_step();
  } while (!stop_ && !averages_after(position_.step));
}

// Finishes one step. Devices that compute beside the host get the next one before, but none beyond what is looked at or
// stored in between.
void Trainer::run_step() {
  const std::int64_t last = next_synchronous_step();
  if (parts_.profiler != nullptr) parts_.engine.set_observer(records(position_.step) ? parts_.profiler : nullptr);
  const auto may_start = [&] {
    const std::int64_t next = position_.step + static_cast<std::int64_t>(started_.size());
    const bool profiled = !started_.empty() && records(next) != records(position_.step);
    return static_cast<int>(started_.size()) < parts_.engine.steps_at_once() && next < last && !stop_ && !profiled;
  };
  while (may_start()) start_step();
  finish_step();
  while (stop_ && !started_.empty()) finish_step();
}

// The first step count behind `step` at which replicas that take steps alone are averaged.
std::int64_t Trainer::next_average(std::int64_t step) const {
  const auto next_multiple = [step](std::int64_t every) { return (step / every + 1) * every; };
  const std::int64_t next = std::min(next_multiple(plan_.sync_every), next_multiple(plan_.steps_per_epoch));
  return plan_.total_steps > step ? std::min(next, plan_.total_steps) : next;
}

// The next step count at which no later step may have begun.
std::int64_t Trainer::next_synchronous_step() const {
  if (local_) return next_average(position_.step);
  if (parts_.after_step) return position_.step + 1;
  const auto next_multiple = [this](std::int64_t every) { return (position_.step / every + 1) * every; };
  std::int64_t last = next_multiple(plan_.steps_per_epoch);
  for (const std::int64_t every : {plan_.checkpoint_every, plan_.verify_every, plan_.histograms_every}) {
    if (every > 0) last = std::min(last, next_multiple(every));
  }
  return plan_.total_steps > 0 ? std::min(last, plan_.total_steps) : last;
}

void Trainer::start_step() {
  Started step;
  step.start_seconds = seconds_now();
  const Batch& batch = parts_.training.next();
  const std::int64_t number = position_.step + static_cast<std::int64_t>(started_.size());
  step.program = parts_.programs.training(batch.global_count);
  const double scheduled = plan_.learning_rate(number);
  step.input = {plateau_ ? plateau_->rate(scheduled) : scheduled, number - plan_.phase.step, stop_wanted(),
                loss_scale_.value(), !batch.complete};
  step.behind = parts_.training.position();
  step.samples = batch.global_count;
  step.waited_seconds = batch.waited_seconds;
  parts_.engine.start(step.program, batch, step.input);
  started_.push_back(step);
}

void Trainer::finish_step() {
  parts_.engine.finish(result_);
  const Started step = started_.front();
  started_.pop_front();
  const bool averages = averages_after(position_.step + 1);
  last_program_ = step.program;
  const double loss_scale = plan_.scales_loss ? step.input.loss_scale : 1;
  gradient_scale_ = result_.count > 0 ? 1 / (result_.count * loss_scale) : 0;
  if (local_) local_->add(result_);
  if (local_ && averages) {
    const double before = seconds_now();
    local_->average(result_);
    window_parts_.communication += seconds_now() - before;
  }
  if (averages) {
    stop_ = stop_ || result_.stop;
    if (result_.abandoned) return;
    check_finite(step);
  }
  if (records(position_.step)) {
    parts_.profiler->mark({"step", step.start_seconds, seconds_now()});
    parts_.profiler->mark({"wait for data", step.start_seconds, step.start_seconds + step.waited_seconds});
  }
  ++position_.step;
  data_position_ = step.behind;
  is_best_ = false;

  window_samples_ += step.samples;
  window_waited_ += step.waited_seconds;
  add_parts(parts_.engine.parts(), window_parts_);
  if (!averages) return;
  epoch_means_.add(result_.sums, result_.count);
  if (position_.step <= plan_.sync_every) hint_at_scale();
  report_step(step);
  if (parts_.after_step) parts_.after_step(position_.step);
}

bool Trainer::records(std::int64_t step) const {
  return parts_.profiler != nullptr && step >= plan_.profile_first && step < plan_.profile_end;
}

// A gradient beyond float16's range is no divergence: the device has left the update out, and a smaller scale follows.
// All ranks see the same norm, that of the reduced gradient.
void Trainer::check_finite(const Started& step) {
  if (result_.not_finite) diverged(step, "a loss is not finite");
  const bool finite = std::isfinite(result_.gradient_norm);
  if (!finite && !plan_.scales_loss) diverged(step, "the gradient's norm is not finite");
  if (!plan_.scales_loss) return;
  if (!loss_scale_.learn(step.input.loss_scale, finite)) {
    diverged(step, "the gradient exceeds float16's range however small the loss is scaled");
  }
}

void Trainer::report_step(const Started& step) {
  if (parts_.gpus != nullptr) parts_.gpus->step(position_.step);
  if (parts_.sink == nullptr) return;
  const double seconds = std::max(seconds_now() - window_start_, 1e-9);
  parts_.sink->step({position_.step, epoch(), step_loss(), step.input.learning_rate,
                     static_cast<double>(window_samples_) / seconds, result_.gradient_norm, window_waited_ / seconds,
                     parts_.gpus == nullptr ? std::span<const GpuSample>() : parts_.gpus->samples(),
                     shares_of(seconds)});
  if (position_.step % plan_.log_every == 0) restart_window();
}

// The mean over the global batch of the step that was finished last; over those of all steps since the replicas were
// averaged, where they take steps alone.
double Trainer::step_loss() const { return results_[0].of(result_.sums, result_.count > 0 ? result_.count : 1.0); }

bool Trainer::ended_phase() const {
  const bool last = plan_.phase_end > 0 && position_.step >= plan_.phase_end;
  return (last || ends_early()) && !evaluation_is_due();
}

bool Trainer::finished() const { return plan_.total_steps > 0 && position_.step >= plan_.total_steps; }

// Rank 0's clock decides for all, by way of the agreement in the step.
bool Trainer::stop_wanted() const {
  const bool late =
      plan_.max_seconds > 0 && parts_.world.rank() == 0 && seconds_now() - start_seconds_ >= plan_.max_seconds;
  return late || parts_.stop_requested();
}

// At the end of an epoch, and of a run that ends within one. False where the evaluation was stopped: a resume begins
// with it.
bool Trainer::evaluate_weights() {
  Evaluation validation;
  if (parts_.validation != nullptr) {
    auto found = evaluate(parts_.engine, parts_.programs, *parts_.validation, parts_.world, parts_.stream,
                          parts_.stop_requested, parts_.samples);
    if (!found) {
      stop_ = true;
      return false;
    }
    if (parts_.samples != nullptr) parts_.samples->finish(position_.step, parts_.world, parts_.stream);
    validation = std::move(*found);
  }
  train_ = epoch_means_.values();
  validation_ = std::move(validation.values);
  if (regularization_.any()) {
    parts_.engine.download();
    train_["regularization_loss"] = regularization_.of(parts_.engine.weights());
  }
  warnings_.not_finite("", train_, position_.step);
  warnings_.not_finite("val_", validation_, position_.step);
  if (parts_.validation != nullptr) warnings_.weightless_validation(validation.weight);
  is_best_ = update_best();
  if (position_.step % plan_.steps_per_epoch == 0) watch_values();
  const double now = seconds_now();
  if (parts_.sink != nullptr) {
    parts_.sink->epoch({epoch(), position_.step, train_, validation_, now - epoch_start_, epoch_means_.tables(),
                        std::move(validation.tables)});
  }
  epoch_start_ = now;
  return true;
}

// The last epoch's sums are there as long as it was not evaluated.
bool Trainer::evaluation_is_due() const {
  return position_.step > 0 && position_.step % plan_.steps_per_epoch == 0 && epoch_means_.count() > 0;
}

// At the end of an epoch.
void Trainer::require_weight() const {
  if (epoch_means_.weight() != 0) return;
  throw Error(ErrorKind::data,
              format("no sample of epoch {:.6g} weighs more than 0, so that nothing can be learned from them", epoch()),
              "look at the weights of the data, at train.class_weights, and at samples that were skipped");
}

// Inputs of 0 to 255 give a network whose weights are made for values around 1 logits in the hundreds.
void Trainer::hint_at_scale() const {
  constexpr double suspicious = 4;
  const double chance = parts_.programs.programs().front().chance_loss;
  const double loss = step_loss();
  if (chance == 0 || parts_.world.rank() != 0 || loss < suspicious * chance + 2) return;
  log::warning(
      format("the first loss is {:.4g}, far above the {:.4g} of a network that knows nothing: most likely the "
             "samples are not scaled; add data.transform: [rescale: 1/255] for bytes, or a normalize",
             loss, chance));
}

// What the steps of the window took, in so many seconds.
StepShares Trainer::shares_of(double seconds) const {
  StepShares shares = window_parts_;
  for (const auto& [name, share] : step_shares) shares.*share /= seconds;
  return shares;
}

void Trainer::restart_window() {
  window_start_ = seconds_now();
  window_samples_ = 0;
  window_waited_ = 0;
  window_parts_ = {};
}

// Whether the monitored value is the best so far. Equal on all ranks, since the values are.
bool Trainer::update_best() {
  if (plan_.monitor.empty()) return false;
  const bool on_validation = plan_.monitor.starts_with("val_");
  const auto& values = on_validation ? validation_ : train_;
  const auto found = values.find(on_validation ? plan_.monitor.substr(4) : plan_.monitor);
  if (found == values.end()) return false;
  if (!std::isfinite(found->second)) return false;
  const MonitorMode mode = plan_.monitor_maximum ? MonitorMode::maximum : MonitorMode::minimum;
  const bool better = !position_.has_best || is_better(found->second, position_.best_value, mode);
  if (better) {
    position_.has_best = true;
    position_.best_value = found->second;
    position_.best_step = position_.step;
  }
  return better;
}

// What early stopping and the learning rate make of an epoch's values.
void Trainer::watch_values() {
  std::map<std::string, double> values = train_;
  for (const auto& [name, value] : validation_) values["val_" + name] = value;
  const bool speaks = parts_.world.rank() == 0;
  if (plateau_) warnings_.missing("reduce_on_plateau", plateau_->monitor(), values);
  if (early_stopping_) warnings_.missing("early_stopping", early_stopping_->monitor(), values);
  const double scheduled = plan_.learning_rate(position_.step);
  if (plateau_ && plateau_->lowers(scheduled, values) && speaks) {
    log::info(format("{} no longer improves: the learning rate falls to {:.4g}", plateau_->monitor(),
                     plateau_->rate(scheduled)));
  }
  const double epochs =
      static_cast<double>(position_.step - plan_.phase.step) / static_cast<double>(plan_.steps_per_epoch);
  if (!early_stopping_ || !early_stopping_->stops(epochs, values)) return;
  early_end_ = format("early stopping: {} has not improved for {}", early_stopping_->monitor(),
                      counted(early_stopping_->waited(), "epoch"));
  if (speaks) log::info(early_end_);
}

// At the end of a run, unless its last weights are the best.
void Trainer::restore_best() {
  const bool wanted = early_stopping_ && early_stopping_->restores_best() && position_.has_best;
  if (!wanted || !parts_.restore_best || position_.best_step == position_.step) return;
  parts_.restore_best();
  if (parts_.world.rank() != 0) return;
  log::info(format("the weights are those of step {}, the best: {} {:.4g}", position_.best_step, plan_.monitor,
                   position_.best_value));
}

void Trainer::save() {
  if (saved_step_ == position_.step) return;
  saved_step_ = position_.step;
  const double start = seconds_now();
  tell_stop_time(true);
  if (parts_.saver.reads_tensors()) parts_.engine.download();
  const std::string path = parts_.saver.save(snapshot());
  tell_stop_time(false);
  if (parts_.sink != nullptr) {
    parts_.sink->checkpoint({position_.step, path, seconds_now() - start, parts_.saver.bytes()});
  }
}

Snapshot Trainer::snapshot() {
  Snapshot snapshot;
  snapshot.step = position_.step;
  snapshot.position = data_position_;
  snapshot.weights = parts_.engine.weights();
  snapshot.state = parts_.engine.state();
  snapshot.mesh = plan_.mesh;
  snapshot.facts = plan_.facts;
  if (position_.has_best) {
    snapshot.best = {plan_.monitor, plan_.monitor_maximum, position_.best_value, position_.best_step};
  }
  if (plan_.phases > 1) {
    const std::size_t next = plan_.phase.number + 1;
    const bool follows = ended_phase() && next < plan_.phases;
    snapshot.facts[phase_fact] = to_text(follows ? PhaseStart{next, position_.step} : plan_.phase);
  }
  if (plan_.scales_loss) snapshot.facts["loss_scale"] = loss_scale_.text();
  if (early_stopping_) snapshot.facts["early_stopping"] = early_stopping_->text();
  if (plateau_) snapshot.facts["reduce_on_plateau"] = plateau_->text();
  const double count = epoch_means_.count();
  const double weight = epoch_means_.weight();
  snapshot.facts["epoch/count"] = exact({&count, 1});
  snapshot.facts["epoch/weight"] = exact({&weight, 1});
  for (const MetricResult& result : results_) {
    if (!result.derived) snapshot.facts["epoch/" + result.name] = exact(epoch_means_.sums(result));
  }
  for (const auto& [name, value] : train_) snapshot.metrics[name] = value;
  for (const auto& [name, value] : validation_) snapshot.metrics["val_" + name] = value;
  return snapshot;
}

void Trainer::resume(const Snapshot& snapshot, bool is_stored) {
  position_.step = snapshot.step;
  if (is_stored) saved_step_ = snapshot.step;
  const auto fact = [&snapshot](const std::string& name) -> const std::string* {
    const auto found = snapshot.facts.find(name);
    return found == snapshot.facts.end() ? nullptr : &found->second;
  };
  const std::optional<BestResult>& best = snapshot.best;
  if (best && std::isfinite(best->value) && best->monitor == plan_.monitor && best->maximum == plan_.monitor_maximum) {
    position_.has_best = true;
    position_.best_value = best->value;
    position_.best_step = best->step;
  }
  for (const auto& [name, value] : snapshot.metrics) {
    const bool on_validation = name.starts_with("val_");
    (on_validation ? validation_ : train_)[on_validation ? name.substr(4) : name] = value;
  }
  if (const std::string* scale = fact("loss_scale")) loss_scale_ = LossScale(*scale);
  const bool begins_phase = plan_.phase.number > 0 && snapshot.step == plan_.phase.step;
  if (const std::string* text = fact("early_stopping"); text != nullptr && early_stopping_ && !begins_phase)
    early_stopping_->read(*text);
  if (const std::string* text = fact("reduce_on_plateau"); text != nullptr && plateau_ && !begins_phase)
    plateau_->read(*text);
  std::vector<double> sums;
  for (const MetricResult& result : results_) {
    if (!result.derived) parse_exact(fact("epoch/" + result.name), result.sums, sums);
  }
  std::vector<double> count;
  parse_exact(fact("epoch/count"), 1, count);
  parse_exact(fact("epoch/weight"), 1, sums);
  epoch_means_.clear();
  epoch_means_.add(sums, count[0]);
}

void Trainer::verify_replicas() {
  if (!replicas_) return;
  parts_.engine.download();
  replicas_->compare(parts_.stream);
}

void Trainer::diverged(const Started& step, const std::string& cause) {
  const int later = static_cast<int>(started_.size());
  for (; !started_.empty(); started_.pop_front()) parts_.engine.finish(result_);
  NotFiniteSearch search(parts_.engine, step.program, parts_.programs.rank());
  parts_.engine.set_observer(&search);
  parts_.engine.repeat(later, result_);
  // What one rank's samples have spoiled reaches the others with the gradients: the earliest op is the cause.
  double earliest = search.place();
  parts_.world.all_reduce({&earliest, DType::float64, 1}, Reduction::minimum, parts_.stream);
  parts_.stream.synchronize();
  const std::string tensor = first_text(search.place() == earliest ? search.found() : "", parts_.world, parts_.stream);
  throw CollectiveError(
      ErrorKind::diverged,
      format("training diverged at step {} (epoch {:.2f}): {}", position_.step + 1, epoch(),
             tensor.empty() ? cause : "the first tensor that is not finite is " + tensor),
      format("lower the learning rate, add warmup or clip_norm, or look at the data{}",
             saved_step_ < 0 ? "" : format("; the last checkpoint is of step {}, from before", saved_step_)));
}

}  // namespace trainctl

// Runs the evaluation and adds the results of all ranks.
#include "parallel/trainer/evaluate.h"

#include <algorithm>

#include "core/base/flight_record.h"
#include "core/exec/engine.h"
#include "core/metrics/exact_sum.h"
#include "core/metrics/means.h"
#include "parallel/comm/text.h"
#include "parallel/strategies/programs.h"
#include "parallel/trainer/sample_watch.h"

namespace trainctl {
namespace {

// The totals over all batches of all ranks: the sums of losses and metrics, then the count of samples.
class Totals {
 public:
  explicit Totals(std::size_t sums) : totals_(sums + 1) {}

  void add(const StepResult& result) {
    for (std::size_t i = 0; i < result.sums.size(); ++i) totals_[i].add(static_cast<float>(result.sums[i]));
    totals_.back().add(static_cast<float>(result.count));
  }

  // Adds the totals of all ranks; `counts`: whether this rank's totals are included. All ranks must call this function;
  // it returns whether any rank stopped.
  bool reduce(bool counts, bool stopped, Communicator& world, Stream& stream) {
    std::vector<std::int64_t> words{stopped ? 1 : 0};
    for (const ExactSum& sum : totals_) words.insert(words.end(), sum.words().begin(), sum.words().end());
    if (!counts) std::fill(words.begin() + 1, words.end(), 0);
    world.all_reduce({words.data(), DType::int64, std::ssize(words)}, Reduction::sum, stream);
    stream.synchronize();
    auto next = words.begin() + 1;
    for (ExactSum& sum : totals_) {
      ExactSum::Words own;
      std::copy_n(next, own.size(), own.begin());
      sum.set_words(own);
      next += std::ssize(own);
    }
    return words.front() > 0;
  }

  std::vector<double> sums() const {
    std::vector<double> values;
    for (std::size_t i = 0; i + 1 < totals_.size(); ++i) values.push_back(totals_[i].value());
    return values;
  }
  double count() const { return totals_.back().value(); }

 private:
  std::vector<ExactSum> totals_;
};

// Whether ranks exchange tensors in each batch of an evaluation; equal on all ranks.
bool evaluations_communicate(const RunPrograms& programs) {
  const MeshRank& rank = programs.rank();
  return rank.size(MeshAxis::tensor) > 1 || rank.size(MeshAxis::pipeline) > 1 ||
         programs.programs().front().flat.shares(Quantity::parameters);
}

}  // namespace

std::optional<Evaluation> evaluate(Engine& engine, const RunPrograms& programs, BatchSource& source,
                                   Communicator& world, Stream& stream, const std::function<bool()>& stop_requested,
                                   SampleWatch* watch) {
  MetricMeans means(programs.programs().front().results);
  Totals totals(means.sums().size());
  StepResult result;
  const auto finish = [&] {
    engine.finish(result);
    totals.add(result);
  };
  bool stopped = false;
  // Ranks that exchange tensors in each batch must leave out the same batches.
  const bool communicates = stop_requested && evaluations_communicate(programs);
  if (watch != nullptr) watch->begin();
  for (bool last = false; !last;) {
    stopped = stop_requested && stop_requested();
    if (stopped && !communicates) break;
    if (FlightRecord* const flight = world.attendance().flight()) {
      flight->training().enter({.activity = Activity::evaluating, .step = flight->step(), .text = "validation data"});
    }
    const Batch* const next = stopped ? nullptr : &source.next();
    stopped = stopped || !next->complete;
    if (communicates) stopped = any_rank(stopped, world, stream);
    if (stopped) break;
    const Batch& batch = *next;
    last = batch.last_of_epoch;
    const int program = programs.evaluation(batch.global_count);
    const bool watched = watch != nullptr && watch->select(batch);
    engine.start(program, batch, {});
    if (engine.under_way() == engine.steps_at_once()) finish();
    if (!watched) continue;
    while (engine.under_way() > 0) finish();
    watch->record(engine, program, batch);
  }
  while (engine.under_way() > 0) finish();
  // Ranks along the tensor axis have the same sums, so only the first of these ranks adds its sums.
  const bool counts = programs.rank().along(MeshAxis::tensor) == 0;
  if (totals.reduce(counts, stopped, world, stream)) return std::nullopt;
  means.add(totals.sums(), totals.count());
  return Evaluation{means.values(), means.tables(), means.weight(), means.remarks()};
}

}  // namespace trainctl

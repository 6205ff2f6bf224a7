// Evaluation.
#include "parallel/trainer/evaluate.h"

#include <algorithm>

#include "core/metrics/means.h"

namespace trainctl {

std::optional<std::map<std::string, double>> evaluate(Engine& engine, const RunPrograms& programs, BatchSource& source,
                                                      Communicator& world, Stream& stream,
                                                      const std::function<bool()>& stop_requested) {
  MetricMeans means(programs.programs().front().results);
  StepResult result;
  const auto finish = [&] {
    engine.finish(result);
    means.add(result.sums, result.count);
  };
  bool stopped = false;
  for (bool last = false; !last;) {
    stopped = stop_requested && stop_requested();
    if (stopped) break;
    const Batch& batch = source.next();
    if (!batch.complete) continue;  // a stop is requested
    last = batch.last_of_epoch;
    engine.start(programs.evaluation(batch.count), batch, {});
    if (engine.under_way() == engine.steps_at_once()) finish();
  }
  while (engine.under_way() > 0) finish();
  std::vector<double> total = means.sums();
  total.push_back(means.count());
  // Ranks that share their layers have the same sums.
  if (programs.rank().along(MeshAxis::tensor) > 0) std::fill(total.begin(), total.end(), 0.0);
  total.push_back(stopped ? 1 : 0);
  world.all_reduce({total.data(), DType::float64, static_cast<std::int64_t>(total.size())}, Reduction::sum, stream);
  stream.synchronize();
  if (total.back() > 0) return std::nullopt;
  total.pop_back();
  means.clear();
  means.add(std::span(total.data(), total.size() - 1), total.back());
  return means.values();
}

}  // namespace trainctl

// Makes the plan of an input's transforms, with statistics that are measured or that a run kept.
#include "io/loader/inputs/input_plan.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/graph/ops/normalization/normalize.h"
#include "io/loader/inputs/kept_input.h"
#include "io/loader/options.h"

namespace trainctl {
namespace {

// Returns the statistics that a run measured, one after another.
class KeptStatistics final : public StatisticsSource {
 public:
  explicit KeptStatistics(const std::vector<Statistics>& kept) : kept_(kept) {}

  Statistics measure(const TransformPlan&) override {
    if (next_ == kept_.size())
      throw Error(ErrorKind::data, "the checkpoint does not hold the statistics of `normalize: measured`");
    return kept_[next_++];
  }

 private:
  const std::vector<Statistics>& kept_;
  std::size_t next_ = 0;
};

}  // namespace

InputPlan plan_input(const DataOptions& options, const DatasetInfo& info, const std::vector<DType>& stored,
                     const std::string& name, StatisticsSource& statistics) {
  InputPlan result;
  result.plan.affine.then({info.scale}, {info.offset});
  result.plan.sampling_rate = info.sampling_rate;
  for (const auto* list : {static_cast<const std::vector<Choice>*>(&options.transform.of(name)),
                           static_cast<const std::vector<Choice>*>(&options.augment.of(name))}) {
    for (const Choice& choice : *list) {
      if (info.dtype == DType::int32) {
        throw Error(ErrorKind::config, choice.location,
                    format("{} changes values, but the samples are tokens for the network's embedding", choice.name));
      }
      choice.as<TransformOptions>().add(choice.location, result.plan, statistics);
    }
  }
  result.stored = !options.target_is_input() && keeps_bytes(result.plan.mixes) &&
                  std::all_of(stored.begin(), stored.end(), [&](DType type) {
                    return stays_as_stored(type, result.plan.fixed, result.plan.augment);
                  });
  return result;
}

InputPlan kept_plan(const DataOptions& options, const std::string& name, const KeptInput& kept, DType stored) {
  KeptStatistics statistics(kept.measured);
  return plan_input(options, kept.info, {stored}, name, statistics);
}

std::shared_ptr<const Transform> transform_of(const InputPlan& plan, const Shape& stored, DType dtype) {
  return std::make_shared<const Transform>(stored, dtype, plan.plan.fixed, plan.plan.augment,
                                           plan.stored ? std::nullopt : std::optional(plan.plan.affine));
}

SampleFormat byte_format(const Affine& affine, const Shape& sample) {
  check_channels(affine, as_image(nullptr, DType::uint8, sample).channels);
  return {DType::uint8, {affine.scale.begin(), affine.scale.end()}, {affine.offset.begin(), affine.offset.end()}};
}

}  // namespace trainctl

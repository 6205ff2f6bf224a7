// The config's transforms, with statistics that are not measured again.
#include "io/loader/kept_plan.h"

#include "core/base/error.h"

namespace trainctl {
namespace {

// The statistics that the run measured, one after another.
class KeptStatistics final : public StatisticsSource {
 public:
  explicit KeptStatistics(const std::vector<Statistics>& kept) : kept_(kept) {}

  Statistics measure(const TransformPlan&) override {
    if (next_ == kept_.size()) throw Error(ErrorKind::data, "the checkpoint lacks what `normalize: measured` measured");
    return kept_[next_++];
  }

 private:
  const std::vector<Statistics>& kept_;
  std::size_t next_ = 0;
};

}  // namespace

InputPlan kept_plan(const DataOptions& options, const std::string& name, const KeptInput& kept, DType stored) {
  KeptStatistics statistics(kept.measured);
  return plan_input(options, kept.facts, {stored}, name, statistics);
}

}  // namespace trainctl

// Saves the skipped batches in the metadata of checkpoints.
#include "parallel/trainer/loop/skipped_batches.h"

#include <sstream>
#include <string>

namespace trainctl {
namespace {

constexpr const char* steps_key = "skipped_batches";
constexpr const char* in_a_row_key = "left_out_in_a_row";

}  // namespace

std::int64_t SkippedBatches::last_computed_before(std::int64_t step) const {
  do --step;
  while (step >= 0 && contains(step));
  return step;
}

void SkippedBatches::save(SnapshotMetadata& metadata) const {
  std::string text;
  for (const std::int64_t step : steps_) text += (text.empty() ? "" : " ") + std::to_string(step);
  if (!text.empty()) metadata[steps_key] = text;
  if (in_a_row_ > 0) metadata[in_a_row_key] = std::to_string(in_a_row_);
}

void SkippedBatches::restore(const SnapshotMetadata& metadata) {
  const auto text_of = [&](const char* key) {
    const auto found = metadata.find(key);
    return std::istringstream(found == metadata.end() ? "" : found->second);
  };
  steps_.clear();
  in_a_row_ = 0;
  std::istringstream steps = text_of(steps_key), in_a_row = text_of(in_a_row_key);
  for (std::int64_t step = 0; steps >> step;) add(step);
  in_a_row >> in_a_row_;
}

}  // namespace trainctl

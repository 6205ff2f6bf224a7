// Reads a sample and searches it for values that are not finite.
#include "io/loader/inputs/finite_read.h"

#include <bit>
#include <cmath>
#include <string>

#include "core/base/format.h"

namespace trainctl {
namespace {

bool is_finite(float value) { return (std::bit_cast<std::uint32_t>(value) & 0x7F800000) != 0x7F800000; }

// The loop has no branch, so that the compiler vectorizes it.
bool all_finite(const float* values, std::int64_t count) {
  bool good = true;
  for (std::int64_t i = 0; i < count; ++i) good &= is_finite(values[i]);
  return good;
}

[[noreturn]] void refuse_values(const float* values, std::int64_t count, const std::string& name, const char* what,
                                bool skips) {
  std::int64_t at = 0;
  while (is_finite(values[at])) ++at;
  const char* value = std::isnan(values[at]) ? "NaN" : values[at] > 0 ? "infinity" : "-infinity";
  throw NonFiniteError(
      ErrorKind::data, SourceLocation{name},
      count == 1 ? format("{} {}", what, value) : format("{} {} at index {} of {} values", what, value, at, count),
      skips ? "" : "correct the value, or leave out such samples with `on_error: skip`");
}

// Throws the error of a number beyond the range of float32 with the name of the sample or of its target, if that is a
// part of the file that the error names.
[[noreturn]] void refuse_range(const NonFiniteError& error, const Dataset& dataset, std::int64_t index, bool skips) {
  const std::string file = error.location().file, text = error.what();
  std::string name = file;
  for (const std::string& part : {dataset.target_name_of(index), dataset.name_of(index)}) {
    if (part.starts_with(file)) name = part;
  }
  const std::string begin = file + ": ";
  throw NonFiniteError(
      ErrorKind::data, SourceLocation{name}, text.starts_with(begin) ? text.substr(begin.size()) : text,
      skips ? "" : "scale the values, correct this one, or leave out such samples with `on_error: skip`");
}

}  // namespace

void read_finite(const Dataset& dataset, std::int64_t index, bool skips, Sample& sample) {
  try {
    dataset.read(index, sample);
  } catch (const NonFiniteError& error) {
    refuse_range(error, dataset, index, skips);
  }
  const DatasetInfo& info = dataset.info();
  if (sample.values && sample.dtype == DType::float32) {
    const auto* values = static_cast<const float*>(sample.values);
    const std::int64_t count = sample.shape.count();
    if (!all_finite(values, count)) refuse_values(values, count, dataset.name_of(index), "holds", skips);
  }
  if (sample.target && info.classes == 0) {
    const std::int64_t count = info.target.count();
    if (!all_finite(sample.target, count)) {
      refuse_values(sample.target, count, dataset.target_name_of(index), "has the target", skips);
    }
  }
}

}  // namespace trainctl

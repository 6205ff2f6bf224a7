// What a run does after a step whose loss or gradient is not finite.
#pragma once

#include <cstdint>

#include "core/spec/values.h"

namespace trainctl {

enum class OnNotFinite { stop, skip, rollback };

template <>
struct EnumNames<OnNotFinite> {
  static constexpr EnumName<OnNotFinite> names[] = {
      {OnNotFinite::stop, "stop"}, {OnNotFinite::skip, "skip"}, {OnNotFinite::rollback, "rollback"}};
};

struct NotFinitePolicy {
  OnNotFinite action = OnNotFinite::stop;
  // skip: the largest number of skipped steps in a row; rollback: of skipped batches since a checkpoint.
  std::int64_t max_skipped = 10;
};

}  // namespace trainctl

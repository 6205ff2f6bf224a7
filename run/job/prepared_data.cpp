// Shows how the preparation of the data proceeds.
#include "run/job/prepared_data.h"

#include <optional>

#include "io/loader/data.h"
#include "io/metrics/count_progress.h"

namespace trainctl {

void prepare_data_with_progress(const DataOptions& options) {
  constexpr std::int64_t megabyte = 1'000'000;
  std::optional<CountProgress> progress;
  std::int64_t shown = 0;
  prepare_data(options, [&](std::int64_t done, std::int64_t total) {
    if (!progress || done < shown * megabyte) {  // the first file, or another one
      progress.emplace("tokenizing, MB", static_cast<std::size_t>(total / megabyte + 1));
      shown = 0;
    }
    for (; shown * megabyte < done; ++shown) progress->next();
  });
}

}  // namespace trainctl

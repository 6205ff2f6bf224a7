// The strategy section of the config: how the work is spread over the ranks.
#pragma once

#include <optional>

#include "core/graph/mesh.h"
#include "core/spec/values.h"

namespace trainctl {

struct StrategyOptions {
  Auto<int> data;
  Size bucket_size = Size::megabytes(25);
  Size first_bucket_size = Size::megabytes(1);
  Auto<bool> overlap;
  std::optional<Duration> verify_every = Duration::steps(100);

  static Keys<StrategyOptions> keys();
};

// The mesh of so many ranks. Throws Error{config} where strategy.data asks for another number of replicas.
Mesh mesh_of(const StrategyOptions& options, int ranks);

}  // namespace trainctl

// The strategy section of the config: how the work is spread over the ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph/mesh.h"
#include "core/spec/values.h"

namespace trainctl {

struct StrategyOptions {
  Auto<int> data;
  Placed<int> tensor{1, {}};
  Size bucket_size = Size::megabytes(25);
  Size first_bucket_size = Size::megabytes(1);
  Auto<bool> overlap;
  std::optional<Duration> verify_every = Duration::steps(100);

  static Keys<StrategyOptions> keys();
};

// The mesh of so many ranks. Throws Error{config} where the sizes that are asked for do not multiply to them.
Mesh mesh_of(const StrategyOptions& options, int ranks);

// Throws CollectiveError{config} where ranks that share layers lie on several hosts. `hosts`: of each rank of the mesh.
void require_layers_within_hosts(const StrategyOptions& options, const Mesh& mesh,
                                 const std::vector<std::string>& hosts);

}  // namespace trainctl

// The strategy section of the config: how the work is spread over the ranks.
#pragma once

#include <optional>

#include "core/graph/mesh.h"
#include "core/spec/values.h"

namespace trainctl {

// What the ranks of the data axis share, each of them holding a part: nothing, the optimizer's states, gradients too,
// parameters too.
enum class Shard { none, optimizer, gradients, parameters };

template <>
struct EnumNames<Shard> {
  static constexpr EnumName<Shard> names[] = {{Shard::none, "none"},
                                              {Shard::optimizer, "optimizer"},
                                              {Shard::gradients, "gradients"},
                                              {Shard::parameters, "parameters"}};
};

// Whether whole gradients stay in memory from one micro-batch to the next.
inline bool keeps_gradients(Shard shard) { return shard <= Shard::optimizer; }

struct StrategyOptions {
  Auto<int> data;
  Shard shard = Shard::none;
  Size bucket_size = Size::megabytes(25);
  Size first_bucket_size = Size::megabytes(1);
  Auto<bool> overlap;
  std::optional<Duration> verify_every = Duration::steps(100);

  static Keys<StrategyOptions> keys();
};

// The mesh of so many ranks. Throws Error{config} where strategy.data asks for another number of replicas.
Mesh mesh_of(const StrategyOptions& options, int ranks);

}  // namespace trainctl

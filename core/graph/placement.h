// Placements: how a tensor is distributed among the ranks along one axis of the mesh. Also the query to an op's
// placement rule, and its answer.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/mesh.h"
#include "core/graph/tensor_type.h"

namespace trainctl {

// How a tensor is distributed among the ranks along one axis. If the ranks of the axis have different samples,
// activations are split along dimension 0, gradients are partial sums until they are reduced, and parameters are
// replicated.
struct Placement {
  enum class Kind {
    replicated,  // all ranks hold the same values
    split,       // each rank holds a shard; the tensor is the concatenation of the shards along `dimension`
    partial,     // each rank holds a partial sum; the tensor is the sum over the ranks
    varying,     // each rank holds a different tensor, such as the statistics of its micro-batch
  };
  Kind kind = Kind::replicated;
  int dimension = 0;  // for split only

  bool operator==(const Placement&) const = default;
};

// The placements of each kind.
inline constexpr Placement replicated{};
inline constexpr Placement partial{Placement::Kind::partial, 0};
inline constexpr Placement varying{Placement::Kind::varying, 0};
inline constexpr Placement split_along(int dimension) { return {Placement::Kind::split, dimension}; }

// The placements of a tensor along all axes of the mesh, the value of Tensor::placements: `placement` along each of
// `axes`, replicated along the others.
std::vector<Placement> placed(const Placement& placement, std::initializer_list<MeshAxis> axes);

// Returns text such as "replicated", "split along dimension 1", "partial" or "varying".
std::string to_string(const Placement& placement);

// The question to an op's placement rule for one axis: the placements of the inputs, and the types of one rank's
// shards.
struct PlacementQuery {
  MeshAxis axis = MeshAxis::data;
  std::span<const Placement> inputs;
  std::span<const TensorType> input_types;
  std::span<const TensorType> output_types;
  // The placements of the outputs before the op, for ops that add to their outputs; nullopt if an output has not been
  // written yet. An empty span means that the placements are unknown and not checked.
  std::span<const std::optional<Placement>> held;
  // Names of tensors for the text of a problem; tensors without names are numbered: "input 0".
  std::span<const std::string_view> input_names, output_names;

  std::string input_name(std::size_t input) const;
  std::string output_name(std::size_t output) const;
};

// The placements of the outputs, or the problem with the placements of the inputs: "fc1/bias is replicated where x is
// split along dimension 1".
struct OutputPlacements {
  std::vector<Placement> outputs;
  std::string problem;  // empty if there is no problem
};

}  // namespace trainctl

// Placements: how the ranks along one axis of the mesh hold a tensor, and the query that an op's placement rule
// answers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/mesh.h"
#include "core/graph/tensor_type.h"

namespace trainctl {

// How the ranks along one axis hold a tensor. On an axis whose ranks hold different samples, activations are split
// along dimension 0, gradients are partial sums until they are reduced, and parameters are replicated.
struct Placement {
  enum class Kind {
    replicated,  // all ranks hold the same values
    split,       // each rank holds a part; the parts side by side along `dimension` are the whole
    partial,     // each rank holds a summand; the whole is their sum
    varying,     // each rank holds a value of its own, and there is no whole (statistics of its micro-batch)
  };
  Kind kind = Kind::replicated;
  int dimension = 0;  // of split only

  bool operator==(const Placement&) const = default;
};

inline constexpr Placement replicated{};
inline constexpr Placement partial{Placement::Kind::partial, 0};
inline constexpr Placement varying{Placement::Kind::varying, 0};
inline constexpr Placement split_along(int dimension) { return {Placement::Kind::split, dimension}; }

// "replicated", "split along dimension 1", "partial", "varying".
std::string to_string(const Placement& placement);

// What an op's placement rule is given for one axis: the placements of the inputs, and the types of one rank's parts.
struct PlacementQuery {
  MeshAxis axis = MeshAxis::data;
  std::span<const Placement> inputs;
  std::span<const TensorType> input_types;
  std::span<const TensorType> output_types;
  // The placements of the outputs before the op, nullopt where nothing was written yet; for ops that add to what their
  // outputs hold. An empty span means that the placements are not known and not checked.
  std::span<const std::optional<Placement>> held;
  // Names of tensors, for the texts of problems; tensors without names are numbered: "input 0".
  std::span<const std::string_view> input_names, output_names;

  std::string input_name(std::size_t input) const;
  std::string output_name(std::size_t output) const;
};

// The placements of the outputs, or why those of the inputs do not fit together: "fc1/bias is replicated where x is
// split along dimension 1".
struct OutputPlacements {
  std::vector<Placement> outputs;
  std::string problem;  // empty where there is none
};

}  // namespace trainctl

// Placements: how a tensor lies on one axis of the mesh, and how an op's outputs follow from its inputs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/mesh.h"
#include "core/graph/tensor_type.h"

namespace trainctl {

// How the ranks along one axis hold a tensor. Where they hold different samples, activations are split along dimension
// 0, gradients are partial sums until they are reduced, and parameters are replicated.
struct Placement {
  enum class Kind {
    replicated,  // all ranks hold the same values
    split,       // each rank holds its part along `dimension`; the whole is the parts side by side
    partial,     // each rank holds a summand; the whole is their sum
    varying,     // each rank holds a value of its own that no whole follows from (statistics of its micro-batch)
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

// What the rule of an op sees of one axis: how its inputs lie there. Types are those of one rank's part.
struct PlacementQuery {
  MeshAxis axis = MeshAxis::data;
  std::span<const Placement> inputs;
  std::span<const TensorType> input_types;
  std::span<const TensorType> output_types;
  // How the outputs lay before the op, nullopt where nothing was written yet; for ops that add to what their outputs
  // hold. Without elements: not known, and not checked.
  std::span<const std::optional<Placement>> held;
  // Names of tensors, for problems; where there are none, they are numbered: "input 0".
  std::span<const std::string_view> input_names, output_names;

  std::string input_name(std::size_t input) const;
  std::string output_name(std::size_t output) const;
};

// How the outputs lie then, or why the inputs cannot meet: "fc1/bias is replicated where x is split along dimension 1".
struct OutputPlacements {
  std::vector<Placement> outputs;
  std::string problem;  // empty where there is none
};

}  // namespace trainctl

// Formats what `check` finds in a config, as text and as JSON.
#pragma once

#include <optional>
#include <string>

#include "core/base/json_fwd.h"

namespace trainctl {

struct Checked;
struct RunSpec;

// Returns tables of the layers, of the memory of a rank and of the mesh, and notes that explain them.
std::string to_text(const RunSpec& spec, const Checked& checked);

// Returns the values of Checked as an object.
Json to_json(const Checked& checked);

// Returns the programs of a rank as text or, with `as_graph`, the program of a full training batch as a graph for
// Graphviz. `of_rank`: the rank; empty: the last one. Throws Error{config} if there is no such rank.
std::string dumped_programs(const Checked& checked, std::optional<int> of_rank, bool as_graph);

}  // namespace trainctl

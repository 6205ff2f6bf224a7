// Builds the tables with which `check` shows the mesh.
#include "run/job/mesh_table.h"

#include <cstddef>
#include <set>
#include <string>

#include "core/base/format.h"
#include "core/base/table.h"
#include "run/job/checked.h"

namespace trainctl {
namespace {

using Align = TextTable::Align;

// Lists ranks: "0 2 4". If there are many, lists the first three and the last, and adds the number of ranks.
std::string list(const std::vector<int>& ranks) {
  constexpr std::size_t longest = 8, first = 3;
  const bool all = ranks.size() <= longest;
  std::string text;
  for (std::size_t i = 0; i < (all ? ranks.size() : first); ++i) {
    text += (text.empty() ? "" : " ") + std::to_string(ranks[i]);
  }
  return all ? text : format("{} ... {} ({} ranks)", text, ranks.back(), ranks.size());
}

std::string layers_of(const CheckedPosition& position) {
  const std::vector<std::string>& layers = position.layers;
  if (layers.empty()) return "none";
  return layers.size() == 1 ? layers.front() : format("{} ... {} ({})", layers.front(), layers.back(), layers.size());
}

std::string positions_table(const Checked& checked) {
  const bool stages = checked.mesh.pipeline > 1, shards = checked.mesh.tensor > 1;
  std::vector<TextTable::Column> columns;
  if (stages) columns.push_back({"stage"});
  if (shards) columns.push_back({"shard of layers"});
  for (const char* title : {"ranks", "layers"}) columns.push_back({title});
  for (const char* title : {"parameters", "memory"}) columns.push_back({title, Align::right});
  TextTable table(std::move(columns));
  for (const CheckedPosition& position : checked.positions) {
    std::vector<std::string> cells;
    if (stages) cells.push_back(std::to_string(position.rank.along(MeshAxis::pipeline)));
    if (shards) cells.push_back(format("{} of {}", position.rank.along(MeshAxis::tensor), checked.mesh.tensor));
    for (std::string cell : {list(ranks_of(position)), layers_of(position), grouped(position.parameters),
                             byte_text(position.memory.total())}) {
      cells.push_back(std::move(cell));
    }
    table.add(std::move(cells));
  }
  return table.text();
}

// A table of the split parameters, with their shards on the first and on the last of the ranks that share layers.
std::string split_table(const Checked& checked) {
  if (checked.mesh.tensor == 1) return "";
  const auto title = [](int shard) { return format("on shard {}", shard); };
  TextTable table({{"split parameter"}, {"whole"}, {title(0)}, {title(checked.mesh.tensor - 1)}});
  std::set<std::string> shown;  // stages may share parameters
  for (const CheckedPosition& first : checked.positions) {
    if (first.rank.along(MeshAxis::tensor) != 0) continue;
    const CheckedPosition& last = *(&first + checked.mesh.tensor - 1);
    for (std::size_t i = 0; i < first.split.size(); ++i) {
      const Tensor& tensor = first.split[i];
      if (!shown.insert(tensor.name).second) continue;
      table.add({tensor.name, to_string(tensor.shard->whole), to_string(tensor.shard->extent),
                 to_string(last.split.at(i).shard->extent)});
    }
  }
  return "\n" + table.text() + "each of these ranks holds all other parameters whole\n";
}

}  // namespace

std::vector<int> ranks_of(const CheckedPosition& position) {
  const MeshRank& rank = position.rank;
  std::vector<int> ranks;
  for (int replica = 0; replica < rank.mesh.data; ++replica) {
    ranks.push_back(rank.mesh.rank(rank.position.with(MeshAxis::data, replica)));
  }
  return ranks;
}

std::string mesh_text(const Checked& checked) {
  const Mesh& mesh = checked.mesh;
  if (mesh.ranks() == 1) return "";
  std::string of;
  if (mesh.pipeline > 1) of = format(" of {} stages", mesh.pipeline);
  if (mesh.tensor > 1) of += format(" of {} ranks that share layers", mesh.tensor);
  return format("\n{}{} replica{}{}, {} micro-batch{} a step\n{}", positions_table(checked), mesh.data,
                mesh.data == 1 ? "" : "s", of, checked.micro_batches(), checked.micro_batches() == 1 ? "" : "es",
                split_table(checked));
}

}  // namespace trainctl

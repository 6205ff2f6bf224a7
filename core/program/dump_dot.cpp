// Writes a program as a graph for Graphviz.
#include <algorithm>
#include <map>
#include <set>

#include "core/base/format.h"
#include "core/program/dump.h"

namespace trainctl {
namespace {

// A string of the DOT language (graphviz.org/doc/info/lang.html), in quotes; line breaks are kept.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

// Writes nodes for ops and batch inputs, edges for tensors between them, in the order of the schedule.
class DotWriter {
 public:
  explicit DotWriter(const Program& program) : program_(program) {}

  std::string text() {
    std::string clusters;
    std::set<int> seen;
    for (const ScheduleItem& item : program_.schedule) {
      if (seen.insert(item.segment).second) clusters += cluster(item.segment);
    }
    std::string inputs;
    for (TensorId id : inputs_) {
      inputs += format("  t{} [label={}, shape=plain];\n", id, quoted(program_.tensor(id).name));
    }
    return format("digraph {} {{\n  rankdir=TB;\n  node [shape=box, fontsize=10];\n  edge [fontsize=8];\n{}{}{}}}\n",
                  quoted(program_.name), inputs, clusters, edges_);
  }

 private:
  std::string cluster(int segment) {
    const Segment& of = program_.segment(segment);
    std::string nodes;
    for (std::size_t i = 0; i < of.ops.size(); ++i) {
      const std::string node = format("s{}_{}", segment, i);
      nodes += format("    {} [label={}{}];\n", node, quoted(label(of.ops[i])), style(of.ops[i]));
      connect(of.ops[i], node);
    }
    return format("  subgraph cluster_{} {{\n    label={};\n{}  }}\n", segment, quoted(std::string(name_of(of))),
                  nodes);
  }

  // The kind, the layer and the parameters that the op reads.
  std::string label(const Op& op) const {
    std::string text = format("{}\n{}", op.def->kind(), op.name);
    for (TensorId id : op.inputs) {
      if (id == no_tensor || program_.tensor(id).role != Role::parameter) continue;
      text += format("\n{} {}", program_.tensor(id).name, described(id));
    }
    return text;
  }

  static std::string_view style(const Op& op) {
    switch (op.def->trait()) {
      case OpTrait::collective:
        return ", style=filled, fillcolor=lightblue";
      case OpTrait::alias:
        return ", style=dashed";
      case OpTrait::kernel:
        return "";
    }
    return "";
  }

  // The shape, and the placements unless all are replicated.
  std::string described(TensorId id) const {
    const Tensor& tensor = program_.tensor(id);
    std::string text = to_string(tensor.type.shape);
    const bool replicated = std::all_of(tensor.placements.begin(), tensor.placements.end(),
                                        [](const Placement& p) { return p.kind == Placement::Kind::replicated; });
    if (replicated) return text;
    for (const Placement& placement : tensor.placements) text += " " + to_string(placement);
    return text;
  }

  // The tensor and the tensors in its memory: the members of a bucket, or all gradients for the region of gradients.
  std::vector<TensorId> with_members(TensorId id) const {
    std::vector<TensorId> all = {id};
    const std::vector<TensorId>& members = program_.tensor(id).members;
    all.insert(all.end(), members.begin(), members.end());
    if (id != program_.step.gradients) return all;
    for (const FlatEntry& entry : program_.flat.parameters) {
      if (entry.gradient != no_tensor) all.push_back(entry.gradient);
    }
    return all;
  }

  // Adds an edge from the last writer of each input, and records the op as the writer of its outputs.
  void connect(const Op& op, const std::string& node) {
    for (TensorId id : op.inputs) {
      if (id == no_tensor) continue;
      std::set<std::string> from;
      for (TensorId member : with_members(id)) {
        if (const auto writer = writers_.find(member); writer != writers_.end()) from.insert(writer->second);
      }
      if (from.empty() && program_.tensor(id).role == Role::input) {
        inputs_.insert(id);
        from.insert(format("t{}", id));
      }
      for (const std::string& writer : from) {
        edges_ += format("  {} -> {} [label={}];\n", writer, node,
                         quoted(format("{}\n{}", program_.tensor(id).name, described(id))));
      }
    }
    for (TensorId id : op.outputs) {
      if (id == no_tensor) continue;
      for (TensorId member : with_members(id)) writers_[member] = node;
    }
  }

  const Program& program_;
  std::map<TensorId, std::string> writers_;  // key: the tensor; value: the node that wrote it last
  std::set<TensorId> inputs_;                // tensors of the batch, which no op writes
  std::string edges_;
};

}  // namespace

std::string dump_dot(const Program& program) { return DotWriter(program).text(); }

}  // namespace trainctl

// Adds names, constants, and values with their channels in either position.
#include "io/onnx/translation.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/exec/interfaces/snapshot.h"
#include "io/datasets/arrays/float32.h"

namespace trainctl {
namespace {

std::size_t index_of(Channels channels) { return channels == Channels::last ? 0 : 1; }

// Returns the order of dimensions that moves the channels to this position.
std::vector<std::int64_t> order_to(Channels channels, std::int64_t rank) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  if (channels == Channels::first) {
    std::rotate(order.begin() + 1, order.end() - 1, order.end());
  } else {
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  }
  return order;
}

std::string bfloat16_bytes(std::span<const float> values) {
  std::string bytes(values.size() * sizeof(std::uint16_t), '\0');
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bits = to_bfloat16(values[i]);
    std::memcpy(bytes.data() + i * sizeof bits, &bits, sizeof bits);
  }
  return bytes;
}

}  // namespace

OnnxTranslation::OnnxTranslation(const Graph& graph, std::span<const NamedTensor> weights, DType dtype)
    : graph_(graph), weights_(by_name(weights)), dtype_(dtype) {
  for (const Op& op : graph.ops) {
    for (const TensorId output : op.outputs) producers_[output] = &op;
  }
}

const Op& OnnxTranslation::producer(TensorId id) const {
  const auto found = producers_.find(id);
  require(found != producers_.end(), "no op produces " + graph_.tensor(id).name);
  return *found->second;
}

OnnxWeights OnnxTranslation::weights(TensorId id) const {
  const Tensor& tensor = graph_.tensor(id);
  const auto found = weights_.find(tensor.name);
  require(found != weights_.end() && found->second->shape == tensor.type.shape, "no weights for " + tensor.name);
  const View& view = found->second->view;
  return {tensor.name, tensor.type.shape, {view.as<const float>(), static_cast<std::size_t>(view.count)}};
}

std::string OnnxTranslation::unused(const std::string& name) {
  std::string result = name;
  for (int number = 2; !used_.insert(result).second; ++number) result = format("{}_{}", name, number);
  return result;
}

std::string OnnxTranslation::add_constant(const std::string& name, const TensorType& type, std::string bytes) {
  require(type.bytes() == std::ssize(bytes), "the bytes of constant " + name + " do not fit its type");
  model.constants.push_back({unused(name), type, std::move(bytes)});
  return model.constants.back().name;
}

std::string OnnxTranslation::add_weights(const std::string& name, const Shape& shape, std::span<const float> values) {
  const auto [known, is_new] = weights_values_.try_emplace(name);
  if (!is_new) return known->second;
  if (dtype_ == DType::float32) {
    std::string bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    return known->second = add_constant(name, {shape, dtype_}, std::move(bytes));
  }
  const std::string stored = add_constant(name, {shape, dtype_}, bfloat16_bytes(values));
  known->second = unused(name + "/float32");
  model.nodes.push_back({"Cast", {stored}, {known->second}, {{"to", 1}}});
  return known->second;
}

std::string OnnxTranslation::value(TensorId id, Channels channels) {
  std::array<std::string, 2>& values = values_[id];
  std::string& requested = values[index_of(channels)];
  if (!requested.empty()) return requested;
  const std::string& other = values[1 - index_of(channels)];
  require(!other.empty(), graph_.tensor(id).name + " has no value yet");
  const std::int64_t rank = graph_.tensor(id).type.shape.rank();
  if (rank < 3) return requested = other;
  requested = unused(graph_.tensor(id).name + "/Transpose");
  model.nodes.push_back({"Transpose", {other}, {requested}, {{"perm", order_to(channels, rank)}}});
  return requested;
}

void OnnxTranslation::set_value(TensorId id, Channels channels, const std::string& name) {
  values_[id][index_of(channels)] = name;
}

bool OnnxTranslation::has_value(TensorId id, Channels channels) const {
  const auto found = values_.find(id);
  return found != values_.end() && !found->second[index_of(channels)].empty();
}

std::vector<float> permuted(std::span<const float> values, const Shape& shape, const std::vector<std::int64_t>& order) {
  const std::size_t rank = order.size();
  std::vector<std::int64_t> strides(rank, 1), sizes(rank), step(rank), at(rank, 0);
  for (std::size_t k = rank - 1; k > 0; --k) strides[k - 1] = strides[k] * shape[static_cast<std::int64_t>(k)];
  for (std::size_t k = 0; k < rank; ++k) {
    sizes[k] = shape[order[k]];
    step[k] = strides[static_cast<std::size_t>(order[k])];
  }
  std::vector<float> result(values.size());
  std::int64_t from = 0;
  for (float& value : result) {
    value = values[static_cast<std::size_t>(from)];
    for (std::size_t k = rank; k-- > 0;) {
      from += step[k];
      if (++at[k] < sizes[k]) break;
      from -= step[k] * sizes[k];
      at[k] = 0;
    }
  }
  return result;
}

}  // namespace trainctl

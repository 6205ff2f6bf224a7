// Writes checkpoints with two files of weights and two files of state from one process.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "test/support/snapshots.h"

namespace trainctl::test {

// A part of a tensor with its own copy of the elements.
struct OwnedPart {
  NamedTensor part;
  std::vector<float> values;

  OwnedPart(const NamedTensor& tensor, const TensorExtent& extent) : part{tensor.name, tensor.shape, {}, extent} {
    const auto all = tensor.view.as<float>();
    for (std::int64_t i = 0; i < tensor.shape.count(); ++i) {
      bool held = true;
      std::int64_t rest = i;
      if (extent.kind() == TensorExtent::Kind::range) {
        held = i >= extent.offsets()[0] && i < extent.offsets()[0] + extent.sizes()[0];
      }
      for (std::size_t axis = tensor.shape.sizes().size(); extent.kind() == TensorExtent::Kind::box && axis-- > 0;) {
        const std::int64_t at = rest % tensor.shape.sizes()[axis];
        rest /= tensor.shape.sizes()[axis];
        held = held && at >= extent.offsets()[axis] && at < extent.offsets()[axis] + extent.sizes()[axis];
      }
      if (held) values.push_back(all[i]);
    }
    part.view = {values.data(), DType::float32, static_cast<std::int64_t>(values.size())};
  }
  OwnedPart(OwnedPart&&) = default;
};

// Saves a checkpoint with two files of weights and two files of state. Matrices are cut along their first dimension,
// tensors of higher rank along their last one and vectors by elements; scalars are in the second file only. `second`
// may change the extent of a tensor in the second file.
using Change = std::function<TensorExtent(const NamedTensor&, const TensorExtent&)>;
inline std::string save_in_parts(CheckpointStore&& store, const Snapshot& snapshot, const Change& second = {}) {
  const SnapshotTarget target = store.begin(snapshot.step, 0);
  std::vector<std::string> records;
  for (const SnapshotContent content : {SnapshotContent::weights, SnapshotContent::state}) {
    std::vector<OwnedPart> first_file, second_file;
    for (const NamedTensor& tensor : content == SnapshotContent::weights ? snapshot.weights : snapshot.state) {
      const Shape& shape = tensor.shape;
      TensorExtent rest;
      if (shape.rank() == 1 && shape[0] > 1) {
        first_file.emplace_back(tensor, TensorExtent::range(shape, 0, 2));
        rest = TensorExtent::range(shape, 2, shape[0] - 2);
      } else if (shape.rank() > 1) {
        const std::size_t axis = shape.rank() == 2 ? 0 : static_cast<std::size_t>(shape.rank() - 1);
        std::vector<std::int64_t> offsets(shape.sizes().size()), sizes = shape.sizes();
        sizes[axis] = 3;
        first_file.emplace_back(tensor, TensorExtent::box(shape, offsets, sizes));
        offsets[axis] = 3;
        sizes[axis] = shape.sizes()[axis] - 3;
        rest = TensorExtent::box(shape, offsets, sizes);
      }
      second_file.emplace_back(tensor, second ? second(tensor, rest) : rest);
    }
    int number = 0;
    for (const auto* file : {&first_file, &second_file}) {
      std::vector<NamedTensor> parts;
      for (const OwnedPart& one : *file) parts.push_back(one.part);
      records.push_back(FolderSink().write(target, {content, ++number, 2}, parts));
    }
  }
  return store.commit(snapshot, records);
}

}  // namespace trainctl::test

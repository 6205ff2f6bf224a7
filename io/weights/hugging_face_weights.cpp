// Reads the weights of a Hugging Face folder under the names and in the layouts of the preset that computes its
// network.
#include <fnmatch.h>

#include <algorithm>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/format.h"
#include "io/datasets/arrays/float32.h"
#include "io/hugging_face/folder.h"
#include "io/hugging_face/network.h"
#include "io/weights/weights_file.h"

namespace trainctl {
namespace {

class HuggingFaceWeights final : public WeightsFile {
 public:
  explicit HuggingFaceWeights(const std::string& path)
      : path_(path), network_(read_hugging_face_config(path)), folder_(path) {
    for (TensorRule& rule : network_.tensors) rule.stored = name_of(rule.stored);
    std::set<std::string> known;
    for (const TensorRule& rule : network_.tensors) {
      known.insert(rule.stored);
      add(rule);
    }
    if (network_.copy) {
      copy_ = {name_of(network_.copy->first), name_of(network_.copy->second)};
      known.insert(copy_->first);
    }
    for (const std::string& name : folder_.names()) {
      const StoredTensor& stored = *folder_.find(name);
      if (known.contains(name) || !is_fractional(stored.dtype) || is_buffer(name)) continue;
      tensors_.push_back({name, stored.shape});
      parts_.push_back({nullptr, 0});
    }
  }
  WeightsOrigin origin() const override { return WeightsOrigin::hugging_face; }

  void check_values() const override {
    if (!copy_ || folder_.find(copy_->first) == nullptr) return;
    for (std::size_t tensor = 0; tensor < parts_.size(); ++tensor) {
      const TensorRule* rule = parts_[tensor].rule;
      if (rule == nullptr || rule->stored != copy_->second) continue;
      std::vector<float> values(static_cast<std::size_t>(tensors_[tensor].shape.count()));
      return read(tensor, values.data());  // compares the copy
    }
  }

  void read(std::size_t tensor, float* to) const override {
    const auto [rule, part] = parts_[tensor];
    if (rule == nullptr) return folder_.read(tensors_[tensor].name, to);
    if (rule->layout == StoredLayout::same && rule->parts.size() == 1) {
      folder_.read(rule->stored, to);
    } else {
      std::vector<float> stored(static_cast<std::size_t>(rule->shape.count()));
      folder_.read(rule->stored, stored.data());
      rule->to_network(part, stored.data(), to);
    }
    if (copy_ && copy_->second == rule->stored) check_copy(rule->shape.count(), to);
  }

 private:
  struct Part {
    const TensorRule* rule;  // null if the tensor belongs to no tensor of the network
    std::size_t number;
  };

  // The name in this folder: without the prefix if the network was saved without its head, or as in older files.
  std::string name_of(const std::string& name) const {
    const std::string& prefix = network_.prefix;
    const bool prefixed = std::any_of(folder_.names().begin(), folder_.names().end(),
                                      [&](const std::string& stored) { return stored.starts_with(prefix); });
    const std::string found = !prefixed && name.starts_with(prefix) ? name.substr(prefix.size()) : name;
    for (const auto& [now, before] : network_.older_names) {
      if (!found.ends_with(now) || folder_.find(found) != nullptr) continue;
      const std::string older = found.substr(0, found.size() - now.size()) + before;
      if (folder_.find(older) != nullptr) return older;
    }
    return found;
  }

  void add(const TensorRule& rule) {
    const StoredTensor* stored = folder_.find(rule.stored);
    if (stored == nullptr) {
      for (const std::string& part : rule.parts) missing_names_[part] = rule.stored;
      return;
    }
    if (stored->shape != rule.shape || !is_fractional(stored->dtype)) {
      throw Error(ErrorKind::data, SourceLocation{path_},
                  format("the tensor '{}' is {} {}, but by config.json it is {} of floating-point numbers", rule.stored,
                         to_string(stored->shape), name_of_dtype(stored->dtype), to_string(rule.shape)),
                  "use the config.json that belongs to these weights");
    }
    const Shape shape = rule.part_shape();
    const auto count = static_cast<std::int64_t>(rule.parts.size());
    for (std::int64_t part = 0; part < count; ++part) {
      std::string name = rule.stored;
      if (count > 1) name += format("[columns {} to {}]", part * shape.back(), (part + 1) * shape.back() - 1);
      tensors_.push_back({name, shape, {rule.parts[static_cast<std::size_t>(part)]}});
      parts_.push_back({&rule, static_cast<std::size_t>(part)});
    }
  }

  static std::string name_of_dtype(DType dtype) { return std::string(trainctl::name_of(dtype)); }

  bool is_buffer(const std::string& name) const {
    return std::any_of(network_.buffers.begin(), network_.buffers.end(),
                       [&](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
  }

  // Checks that a stored copy of a tensor equals the tensor.
  void check_copy(std::int64_t count, const float* values) const {
    const StoredTensor* stored = folder_.find(copy_->first);
    if (stored == nullptr) return;
    bool equal = stored->shape.count() == count && is_fractional(stored->dtype);
    if (equal) {
      std::vector<float> copy(static_cast<std::size_t>(count));
      folder_.read(copy_->first, copy.data());
      equal = std::equal(copy.begin(), copy.end(), values);
    }
    if (equal) return;
    throw Error(ErrorKind::data, SourceLocation{path_},
                format("'{}' differs from '{}', but config.json ties them", copy_->first, copy_->second),
                "set \"tie_word_embeddings\" in config.json to false if the network was trained that way");
  }

  std::string path_;
  HuggingFaceNetwork network_;
  HuggingFaceFolder folder_;
  std::vector<Part> parts_;  // of each tensor
  std::optional<std::pair<std::string, std::string>> copy_;
};

}  // namespace

std::unique_ptr<WeightsFile> open_hugging_face_weights(const std::string& path) {
  return std::make_unique<HuggingFaceWeights>(path);
}

}  // namespace trainctl

// Weights as Keras writes them: .weights.h5 and the .keras zip around it, and the older .h5.
//
// Tensors are named by their layers, whatever the file's groups are called:
//   .weights.h5   layers/dense_1/vars/0, where vars has an attribute name: "predictions/0", numbered in Keras' order
//   .h5           model_weights/predictions/sequential/predictions/kernel: "predictions/kernel"
// A layer of a model that is itself a layer of another is "inner/predictions/...".
#include <algorithm>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "io/datasets/arrays/zip.h"
#include "io/weights/hdf5_file.h"
#include "io/weights/weights_file.h"

namespace trainctl {
namespace {

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Of "layers/GROUP/cell/vars/0": the layers' own names and the number. Parts of a layer, such as a cell, have none.
std::string name_by_number(const Hdf5File& file, const std::vector<std::string>& parts) {
  std::string group, name;
  for (std::size_t i = 0; i + 2 < parts.size(); ++i) {
    group += (group.empty() ? "" : "/") + parts[i];
    if (i == 0 || parts[i - 1] != "layers") continue;
    name += file.text_attribute(group + "/vars", "name").value_or(parts[i]) + "/";
  }
  return name + parts.back();
}

// Of "LAYER/.../LAYER/kernel:0" and "MODEL/.../LAYER/kernel:0": the layer, in the second case behind the model, and the
// last part. A recurrent layer's cell is a part of it.
std::string name_by_layer(const std::vector<std::string>& parts) {
  std::string leaf = parts.back(), inner;
  leaf.resize(std::min(leaf.rfind(':'), leaf.size()));
  const auto middle = parts.begin() + static_cast<std::ptrdiff_t>(parts.size() / 2);
  if (parts.size() % 2 == 1 && std::equal(parts.begin(), middle, middle)) {  // a layer's name may hold slashes
    std::string layer;
    for (auto part = parts.begin(); part != middle; ++part) layer += *part + "/";
    return layer + leaf;
  }
  for (std::size_t i = 1; i + 1 < parts.size(); ++i) {
    if (!parts[i].ends_with("_cell")) inner = parts[i];
  }
  const bool nested = !inner.empty() && inner != parts[0];
  return parts[0] + "/" + (nested ? inner + "/" : "") + leaf;
}

class KerasWeights final : public WeightsFile {
 public:
  KerasWeights(Bytes file, std::string shown) : file_(std::move(file), std::move(shown)) {
    for (const Hdf5File::DataSet& data_set : file_.data_sets()) {
      std::vector<std::string> parts = split(data_set.path);
      if (parts[0] == "optimizer" || parts[0] == "optimizer_weights") continue;
      if (parts[0] == "model_weights" && parts.size() > 1) parts.erase(parts.begin());
      const bool numbered = parts.size() > 2 && parts[parts.size() - 2] == "vars";
      const std::string name = numbered            ? name_by_number(file_, parts)
                               : parts.size() == 1 ? parts[0]
                                                   : name_by_layer(parts);
      tensors_.push_back({name, data_set.shape});
      data_sets_.push_back(&data_set);
    }
    keep_names_unique();
  }
  WeightsOrigin origin() const override { return WeightsOrigin::keras; }
  void read(std::size_t tensor, float* to) const override { file_.read(*data_sets_[tensor], to); }

 private:
  // Tensors that would have the same name are called by their paths.
  void keep_names_unique() {
    std::map<std::string, int> uses;
    for (const FileTensor& tensor : tensors_) ++uses[tensor.name];
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (uses[tensors_[i].name] > 1) tensors_[i].name = data_sets_[i]->path;
    }
  }

  Hdf5File file_;
  std::vector<const Hdf5File::DataSet*> data_sets_;
};

}  // namespace

std::unique_ptr<WeightsFile> open_hdf5_weights(const std::string& path) {
  return std::make_unique<KerasWeights>(open_data(path), path);
}

std::unique_ptr<WeightsFile> open_zipped_weights(const std::string& path) {
  const std::string member = "model.weights.h5";
  const Bytes archive = open_data(path);
  for (const ZipMember& found : list_zip(archive, path)) {
    if (found.name != member) continue;
    const std::string shown = path + "/" + member;
    return std::make_unique<KerasWeights>(zip_bytes(archive, found, shown), shown);
  }
  throw Error(ErrorKind::data, Place{path}, "no .keras file: it holds no " + member);
}

}  // namespace trainctl

// Reads the weights in files of Keras: .weights.h5, .keras (a zip that contains it), and the older .h5.
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json_parse.h"
#include "io/datasets/arrays/zip.h"
#include "io/weights/hdf5_file.h"
#include "io/weights/keras_names.h"
#include "io/weights/saved_model.h"
#include "io/weights/weights_file.h"

namespace trainctl {
namespace {

class KerasWeights final : public WeightsFile {
 public:
  // `network` is null if the network is in the file itself or is unknown.
  KerasWeights(Bytes file, const std::string& shown, Json network = {}) : file_(std::move(file), shown) {
    if (network.is_null()) network = saved_model_in_hdf5(file_, shown);
    KerasNames names;
    try {
      names = keras_names(file_, network, shown);
    } catch (const Json::exception& error) {
      throw Error(ErrorKind::data, SourceLocation{shown},
                  format("not a network as Keras saves it: {}", json_problem(error)),
                  "save the network again, with model.save(\"network.keras\")");
    }
    keep_names_unique(names);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty()) continue;
      const Hdf5File::DataSet& data_set = file_.data_sets()[i];
      tensors_.push_back({names[i][0], data_set.shape, {names[i].begin() + 1, names[i].end()}});
      data_sets_.push_back(&data_set);
    }
  }
  WeightsOrigin origin() const override { return WeightsOrigin::keras; }
  void read(std::size_t tensor, float* to) const override { file_.read(*data_sets_[tensor], to); }

 private:
  // Removes names that several tensors would have; a tensor without another name gets its path as name.
  void keep_names_unique(KerasNames& names) const {
    std::map<std::string, int> uses;
    for (const auto& own : names) {
      for (const std::string& name : own) ++uses[name];
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      const bool had = !names[i].empty();
      std::erase_if(names[i], [&](const std::string& name) { return uses[name] > 1; });
      if (had && names[i].empty()) names[i] = {file_.data_sets()[i].path};
    }
  }

  Hdf5File file_;
  std::vector<const Hdf5File::DataSet*> data_sets_;
};

}  // namespace

KerasNames keras_names(const Hdf5File& file, const Json& network, const std::string& shown) {
  for (const Hdf5File::DataSet& data_set : file.data_sets()) {
    const std::size_t last = data_set.path.rfind('/');
    if (last != std::string::npos && data_set.path.substr(0, last).ends_with("/vars")) {
      return names_of_variables(file, network, shown);
    }
  }
  return names_of_layers(file, network, shown);
}

std::unique_ptr<WeightsFile> open_hdf5_weights(const std::string& path) {
  return std::make_unique<KerasWeights>(open_data(path), path);
}

std::unique_ptr<WeightsFile> open_zipped_weights(const std::string& path) {
  const std::string member = "model.weights.h5";
  const Bytes archive = open_data(path);
  for (const ZipMember& found : list_zip(archive, path)) {
    if (found.name != member) continue;
    const std::string shown = path + "/" + member;
    return std::make_unique<KerasWeights>(zip_bytes(archive, found, shown), shown, saved_model_in_zip(archive, path));
  }
  throw Error(ErrorKind::data, SourceLocation{path}, "not a .keras file: it has no " + member);
}

}  // namespace trainctl

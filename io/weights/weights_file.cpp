// Opens a file of weights by its format, and reads the weights of checkpoints.
#include "io/weights/weights_file.h"

#include <cstring>
#include <string_view>

#include "core/base/error.h"
#include "core/base/files.h"
#include "io/checkpoint/load.h"
#include "io/hugging_face/folder.h"

namespace trainctl {
namespace {

class CheckpointWeights final : public WeightsFile {
 public:
  explicit CheckpointWeights(LoadedCheckpoint checkpoint) : checkpoint_(std::move(checkpoint)) {
    for (const NamedTensor& tensor : checkpoint_.snapshot.weights) tensors_.push_back({tensor.name, tensor.shape});
  }
  WeightsOrigin origin() const override { return WeightsOrigin::trainctl; }
  void read(std::size_t tensor, float* to) const override {
    const View& view = checkpoint_.snapshot.weights[tensor].view;
    std::memcpy(to, view.data, static_cast<std::size_t>(view.bytes()));
  }

 private:
  LoadedCheckpoint checkpoint_;
};

}  // namespace

std::unique_ptr<WeightsFile> open_checkpoint_weights(const std::string& path) {
  return std::make_unique<CheckpointWeights>(load_named_checkpoint(path));
}

std::unique_ptr<WeightsFile> open_weights(const std::string& path) {
  if (is_folder(path)) {
    return is_hugging_face_folder(path) ? open_hugging_face_weights(path) : open_checkpoint_weights(path);
  }
  using namespace std::string_view_literals;
  constexpr auto hdf5 = "\x89HDF\r\n\x1a\n"sv, zip = "PK\x03\x04"sv;
  char bytes[8] = {};
  const InputFile file(path);
  const std::string_view beginning(bytes, static_cast<std::size_t>(file.read_some(0, bytes, sizeof bytes)));
  if (beginning.starts_with(hdf5)) return open_hdf5_weights(path);
  if (beginning.starts_with(zip)) return open_zipped_weights(path);
  return open_safetensors_weights(path);
}

}  // namespace trainctl

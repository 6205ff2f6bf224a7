// Reads files of weights of several programs: named tensors, which are read one by one as float32.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace trainctl {

// The program that determines the names and layouts of a file's tensors.
enum class WeightsOrigin {
  trainctl,     // a checkpoint
  safetensors,  // trainctl or PyTorch; the names decide which
  keras,
  hugging_face,  // a folder with config.json, from which follow the names that tensors have in the network
};

struct FileTensor {
  std::string name;
  Shape shape;
  std::vector<std::string> other_names = {};  // further names that the tensor may have
};

// A file open for reading. Before read() only headers are read, and memory is in proportion to their size.
class WeightsFile {
 public:
  virtual ~WeightsFile() = default;

  virtual WeightsOrigin origin() const = 0;
  // The tensors of floating-point numbers; integer tensors, such as counters, are not weights.
  const std::vector<FileTensor>& tensors() const { return tensors_; }
  // For tensors that should be in the file but are not: their names in the file, by their names in the network.
  const std::map<std::string, std::string>& missing_names() const { return missing_names_; }
  // Reads tensors()[tensor] into memory for all its values. Throws Error{data}.
  virtual void read(std::size_t tensor, float* to) const = 0;
  // Checks values that must agree with each other, as read() of their tensors does. Throws Error{data}.
  virtual void check_values() const {}

 protected:
  std::vector<FileTensor> tensors_;
  std::map<std::string, std::string> missing_names_;
};

// Opens a checkpoint's folder, a run directory (its newest checkpoint), a Hugging Face folder, or a file, whose format
// follows from its first bytes: safetensors, HDF5, or Keras' zip. Throws Error{data} if the path is none of these or is
// damaged.
std::unique_ptr<WeightsFile> open_weights(const std::string& path);

// Open a file of one kind, for open_weights(). A .keras file is a zip that holds an HDF5 file.
std::unique_ptr<WeightsFile> open_checkpoint_weights(const std::string& path);
std::unique_ptr<WeightsFile> open_hugging_face_weights(const std::string& path);
std::unique_ptr<WeightsFile> open_safetensors_weights(const std::string& path);
std::unique_ptr<WeightsFile> open_hdf5_weights(const std::string& path);
std::unique_ptr<WeightsFile> open_zipped_weights(const std::string& path);

}  // namespace trainctl

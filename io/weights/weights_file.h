// Files of weights, whatever program wrote them: named tensors, read one by one as float32.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace trainctl {

// Which program's names and layouts the tensors of a file have.
enum class WeightsOrigin {
  trainctl,     // a checkpoint
  safetensors,  // trainctl or PyTorch: the names tell
  keras,
};

struct FileTensor {
  std::string name;
  Shape shape;
  std::vector<std::string> other_names = {};  // by which it may be called, too
};

// A file open for reading. Only headers are read before read(), and memory stays in proportion to what they take.
class WeightsFile {
 public:
  virtual ~WeightsFile() = default;

  virtual WeightsOrigin origin() const = 0;
  // Tensors of fractional numbers alone: counters are no weights.
  const std::vector<FileTensor>& tensors() const { return tensors_; }
  // Reads a tensor, by its number, to memory for as many floats as its shape counts. Throws Error{data}.
  virtual void read(std::size_t tensor, float* to) const = 0;

 protected:
  std::vector<FileTensor> tensors_;
};

// Opens a checkpoint's folder or a run directory for its newest checkpoint, and files by their first bytes:
// safetensors, HDF5, or the zip that Keras writes. Throws Error{data} where the path leads to none or to a damaged one.
std::unique_ptr<WeightsFile> open_weights(const std::string& path);

// Each kind of file, for open_weights(); a .keras file is a zip that holds an HDF5 file.
std::unique_ptr<WeightsFile> open_checkpoint_weights(const std::string& path);
std::unique_ptr<WeightsFile> open_safetensors_weights(const std::string& path);
std::unique_ptr<WeightsFile> open_hdf5_weights(const std::string& path);
std::unique_ptr<WeightsFile> open_zipped_weights(const std::string& path);

}  // namespace trainctl

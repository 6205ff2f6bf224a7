// The GPU of a rank: its index and properties, and the libraries' handles for it.
#pragma once

#include <string>

#include "core/backend/cuda/runtime/handle.h"
#include "core/backend/device_module.h"

namespace trainctl::cuda {

// The index of the GPU on which this rank computes, among the visible GPUs (CUDA_VISIBLE_DEVICES): its local rank
// modulo their number. Throws Error{resource} if there is no GPU, or the module has no kernels for it.
int device_of(int local_rank);

// Implements CudaModule::gpus().
VisibleGpus visible_gpus();

// The options that determine which kernels of the libraries may be used.
struct DeviceOptions {
  bool tf32 = false;           // float32 with 10 bits of mantissa in products and convolutions
  bool deterministic = false;  // use only kernels that return the same bits every time
  bool timing = true;  // choose the fastest kernels by timing; else the first kernels of the libraries' heuristics

  // The options as text for the keys of kernel choices: "", " tf32", " deterministic", ...
  std::string text() const;
};

class Device {
 public:
  // Makes the GPU the calling thread's current device. Throws Error{resource} if the GPU cannot be used.
  Device(int index, const DeviceOptions& options);

  const DeviceOptions& options() const { return options_; }

  int index() const { return index_; }
  const std::string& model() const { return model_; }      // "NVIDIA H100 80GB HBM3"
  int processors() const { return processors_; }           // streaming multiprocessors
  int capability() const { return 10 * major_ + minor_; }  // compute capability: 90 for 9.0
  // Model, compute capability, and the versions of CUDA, cuDNN and cuBLAS.
  std::string fingerprint() const;

  cudnnHandle_t cudnn() const { return cudnn_.get(); }
  cublasLtHandle_t blas() const { return blas_.get(); }

 private:
  int index_;
  DeviceOptions options_;
  std::string model_;
  int major_ = 0, minor_ = 0, processors_ = 0;
  OwnedCudnn cudnn_;
  OwnedBlas blas_;
};

}  // namespace trainctl::cuda

// The GPU of a rank.
#include "core/backend/cuda/device.h"

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl::cuda {
namespace {

// "GPU-" and the 16 bytes in groups of 4, 2, 2, 2 and 6.
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += "-";
    text += format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

}  // namespace

int device_of(int local_rank) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    throw Error(ErrorKind::resource,
                format("no CUDA device can be used: {}",
                       status == cudaSuccess ? "none is visible" : cudaGetErrorString(status)),
                "look at nvidia-smi and CUDA_VISIBLE_DEVICES, or compute on the CPU (--device cpu)");
  }
  return local_rank % count;
}

std::vector<Gpu> visible_gpus() {
  std::vector<Gpu> gpus;
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return gpus;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
    gpus.push_back({.index = index,
                    .name = properties.name,
                    .uuid = uuid_text(properties.uuid),
                    .pci_bus_id = format("{:04x}:{:02x}:{:02x}.0", properties.pciDomainID, properties.pciBusID,
                                         properties.pciDeviceID),
                    .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
                    .major = properties.major,
                    .minor = properties.minor});
  }
  return gpus;
}

std::string DeviceOptions::text() const {
  return std::string(tf32 ? " tf32" : "") + (deterministic ? " deterministic" : "") + (timing ? "" : " untimed");
}

Device::Device(int index, const DeviceOptions& options) : index_(index), options_(options) {
  check(cudaSetDevice(index), "cudaSetDevice");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  model_ = properties.name;
  major_ = properties.major;
  minor_ = properties.minor;
  processors_ = properties.multiProcessorCount;
  cudnn_ = make<OwnedCudnn>(cudnnCreate, "cudnnCreate");
  blas_ = make<OwnedBlas>(cublasLtCreate, "cublasLtCreate");
}

std::string Device::fingerprint() const {
  int runtime = 0;
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  return format("{}, sm_{}{}, CUDA {}.{}, cuDNN {}, cuBLAS {}", model_, major_, minor_, runtime / 1000,
                runtime % 1000 / 10, cudnnGetVersion(), cublasLtGetVersion());
}

}  // namespace trainctl::cuda

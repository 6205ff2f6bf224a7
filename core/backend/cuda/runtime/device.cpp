// Finds the GPU of a rank, and opens the libraries' handles for it.
#include "core/backend/cuda/runtime/device.h"

#include "core/backend/cuda/cudnn/companions.h"
#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl::cuda {
namespace {

constexpr int oldest_major = 8;  // oldest major compute capability for which cmake/cuda.cmake compiles

// The UUID as text: a prefix, then 16 bytes in groups of 4, 2, 2, 2 and 6. Only the device's name distinguishes a MIG
// instance from a whole GPU.
std::string uuid_text(const cudaDeviceProp& properties) {
  std::string text = std::string_view(properties.name).find(" MIG ") == std::string_view::npos ? "GPU" : "MIG";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += "-";
    text += format("{:02x}", static_cast<unsigned char>(properties.uuid.bytes[i]));
  }
  return text;
}

// The result if CUDA shows no GPU: the reason and a remedy.
VisibleGpus no_gpus(cudaError_t status) {
  const std::string why = format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status));
  int driver = 0;
  switch (status) {
    case cudaErrorNoDevice:
      return {{}, why, "look at CUDA_VISIBLE_DEVICES and nvidia-smi -L"};
    case cudaErrorInsufficientDriver:
      if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        return {{},
                "there is no NVIDIA driver for CUDA (libcuda.so.1)",
                "install the driver, or make it visible in the container (nvidia-container-toolkit, "
                "NVIDIA_DRIVER_CAPABILITIES=all)"};
      }
      return {{},
              format("{}: the driver supports CUDA {}.{}, but this trainctl needs {}.{}", why, driver / 1000,
                     driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10),
              "install a newer driver"};
    case cudaErrorSystemNotReady:
      return {{}, why, "start nvidia-fabricmanager, which GPUs that are connected by an NVSwitch need"};
    case cudaErrorSystemDriverMismatch:
      return {{}, why, "restart the machine, since the driver was updated"};
    case cudaErrorCompatNotSupportedOnDevice:
      return {
          {}, why, "remove CUDA's forward compatibility (cuda-compat) from LD_LIBRARY_PATH, or install a newer driver"};
    default:
      return {{}, why, "look at nvidia-smi and dmesg"};
  }
}

}  // namespace

int device_of(int local_rank) {
  const VisibleGpus visible = visible_gpus();
  const Gpu* gpu = gpu_of_rank(visible.gpus, local_rank);
  if (gpu == nullptr) throw Error(ErrorKind::resource, "no CUDA device can be used: " + visible.why, visible.remedy);
  if (gpu->why_not.empty()) return gpu->index;
  throw Error(ErrorKind::resource, gpu->why_not,
              "choose other GPUs with CUDA_VISIBLE_DEVICES, or compute on the CPU (--device cpu)");
}

VisibleGpus visible_gpus() {
  VisibleGpus visible;
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  for (int index = 0; status == cudaSuccess && index < count; ++index) {
    cudaDeviceProp properties{};
    status = cudaGetDeviceProperties(&properties, index);
    if (status != cudaSuccess) break;
    Gpu gpu{.index = index,
            .name = properties.name,
            .uuid = uuid_text(properties),
            .pci_bus_id =
                format("{:04x}:{:02x}:{:02x}.0", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID),
            .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
            .major = properties.major,
            .minor = properties.minor};
    if (gpu.major < oldest_major) {
      gpu.why_not = format("{} has compute capability {}.{}; this trainctl needs {}.0 or later", gpu.name, gpu.major,
                           gpu.minor, oldest_major);
    }
    visible.gpus.push_back(std::move(gpu));
  }
  if (status != cudaSuccess) return no_gpus(status);
  return count > 0 ? visible : no_gpus(cudaErrorNoDevice);
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
  if (const std::string why = open_companions(); !why.empty()) {
    throw Error(ErrorKind::resource, "cuDNN is incomplete: " + why,
                "install cuDNN again, for example with pip install nvidia-cudnn-cu13");
  }
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

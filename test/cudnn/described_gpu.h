// Describes a GPU in cuDNN's format, so that its engines can be listed on machines without one.
#pragma once

#include <dlfcn.h>

#include <string_view>

#include "core/backend/cuda/cudnn/engines.h"
#include "core/base/error.h"

namespace trainctl::test {

// Returns an H100 with 80 GB. Plans for it can be made, but not run.
inline cuda::Descriptor described_h100() {
  // From here on, libraries that look for the driver find the one that describes this GPU.
  static void* const driver = dlopen(TRAINCTL_DESCRIBED_DRIVER, RTLD_NOW | RTLD_GLOBAL);
  require(driver != nullptr, "the described driver is loaded");
  constexpr std::string_view properties = R"({
    "deviceName": "NVIDIA H100 80GB HBM3", "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "pciDeviceId": 0,
    "multiProcessorCount": 132, "warpSize": 32, "maxGridSize": [2147483647, 65535, 65535],
    "maxBlockSize": [1024, 1024, 64], "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "maxCtasPerSM": 32,
    "regsPerBlock": 65536, "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152,
    "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "totalGlobalMem": 85029158912,
    "l2CacheSize": 52428800, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "isTccDriver": 0,
    "supportCoopLaunch": 1})";
  cuda::Descriptor descriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                 std::span<const char>(properties.data(), properties.size()));
  descriptor.finalize();
  return descriptor;
}

}  // namespace trainctl::test

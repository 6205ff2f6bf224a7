// Implements the emulated devices: their number and their properties.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "test/emulated_gpu/runtime.h"

using namespace emulated;

namespace {

constexpr int processors = 4;

// Returns the compute capability: TRAINCTL_EMULATED_CAPABILITY, or "9.0" if it is not set.
const char* capability() {
  const char* chosen = std::getenv("TRAINCTL_EMULATED_CAPABILITY");
  return chosen == nullptr ? "9.0" : chosen;
}
int major() { return capability()[0] - '0'; }
int minor() { return capability()[2] - '0'; }

// Returns the machine's devices that this process may use: TRAINCTL_EMULATED_GPUS devices (1 if it is not set),
// restricted and ordered by the indices in CUDA_VISIBLE_DEVICES as in CUDA.
const std::vector<int>& visible() {
  static const auto& indices = *[] {
    const char* number = std::getenv("TRAINCTL_EMULATED_GPUS");
    const int count = number == nullptr ? 1 : std::atoi(number);
    auto* found = new std::vector<int>;
    const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
    if (list == nullptr) {
      for (int i = 0; i < count; ++i) found->push_back(i);
      return found;
    }
    std::istringstream items(list);
    for (std::string item; std::getline(items, item, ',');) {
      char* end = nullptr;
      const long index = std::strtol(item.c_str(), &end, 10);
      if (item.empty() || *end != '\0' || index < 0 || index >= count) break;  // CUDA ignores the rest
      found->push_back(static_cast<int>(index));
    }
    return found;
  }();
  return indices;
}

std::string bus_id(int device) {
  char text[16];
  std::snprintf(text, sizeof text, "0000:%02X:00.0",
                static_cast<unsigned>(visible()[static_cast<std::size_t>(device)] + 1));
  return text;
}

bool exists(int device) { return device >= 0 && device < device_count(); }

}  // namespace

int emulated::device_count() { return static_cast<int>(visible().size()); }

extern "C" {

// Returns the error whose number is in TRAINCTL_EMULATED_CUDA_ERROR, if it is set.
cudaError_t cudaGetDeviceCount(int* count) {
  if (const char* number = std::getenv("TRAINCTL_EMULATED_CUDA_ERROR")) {
    return note(static_cast<cudaError_t>(std::atoi(number)));
  }
  *count = device_count();
  return *count > 0 ? cudaSuccess : note(cudaErrorNoDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call([&] {
    if (!exists(device)) return cudaErrorInvalidDevice;
    *properties = {};
    const int physical = visible()[static_cast<std::size_t>(device)];
    std::snprintf(properties->name, sizeof properties->name, "Emulated GPU");
    std::snprintf(properties->uuid.bytes, sizeof properties->uuid.bytes, "emulated-%d", physical);
    std::size_t free = 0;
    cudaMemGetInfo(&free, &properties->totalGlobalMem);
    properties->sharedMemPerBlock = 48 << 10;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->major = major();
    properties->minor = minor();
    properties->multiProcessorCount = processors;
    properties->canMapHostMemory = properties->unifiedAddressing = 1;
    properties->pciBusID = physical + 1;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call([&] {
    if (!exists(device)) return cudaErrorInvalidDevice;
    switch (attribute) {
      case cudaDevAttrMultiProcessorCount:
        *value = processors;
        return cudaSuccess;
      case cudaDevAttrComputeCapabilityMajor:
        *value = major();
        return cudaSuccess;
      case cudaDevAttrComputeCapabilityMinor:
        *value = minor();
        return cudaSuccess;
      case cudaDevAttrMaxThreadsPerBlock:
        *value = 1024;
        return cudaSuccess;
      case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = 2048;
        return cudaSuccess;
      case cudaDevAttrClockRate:
        *value = 1'000'000;
        return cudaSuccess;
      case cudaDevAttrPciBusId:
        *value = visible()[static_cast<std::size_t>(device)] + 1;
        return cudaSuccess;
      case cudaDevAttrPciDeviceId:
      case cudaDevAttrPciDomainId:
      case cudaDevAttrComputeMode:
      case cudaDevAttrIntegrated:
        *value = 0;
        return cudaSuccess;
      default:
        std::fprintf(stderr, "emulated GPU: device attribute %d is not emulated\n", static_cast<int>(attribute));
        return cudaErrorInvalidValue;
    }
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return call([&] {
    if (!exists(device) || length < 13) return cudaErrorInvalidValue;
    std::snprintf(text, static_cast<std::size_t>(length), "%s", bus_id(device).c_str());
    return cudaSuccess;
  });
}

// No GPU can access the memory of another one, as on a bus without peer access.
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call([&] {
    if (!exists(device) || !exists(peer)) return cudaErrorInvalidDevice;
    *can = 0;
    return cudaSuccess;
  });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidPitchValue:
      return "cudaErrorInvalidPitchValue";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorIllegalState:
      return "cudaErrorIllegalState";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorSystemNotReady:
      return "cudaErrorSystemNotReady";
    case cudaErrorSystemDriverMismatch:
      return "cudaErrorSystemDriverMismatch";
    case cudaErrorCompatNotSupportedOnDevice:
      return "cudaErrorCompatNotSupportedOnDevice";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorNotPermitted:
      return "cudaErrorNotPermitted";
    case cudaErrorNotSupported:
      return "cudaErrorNotSupported";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureMerge:
      return "cudaErrorStreamCaptureMerge";
    case cudaErrorStreamCaptureUnmatched:
      return "cudaErrorStreamCaptureUnmatched";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
    case cudaErrorStreamCaptureImplicit:
      return "cudaErrorStreamCaptureImplicit";
    case cudaErrorStreamCaptureWrongThread:
      return "cudaErrorStreamCaptureWrongThread";
    default:
      return "an error that the emulation never returns";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorNoDevice ? "no CUDA-capable device is detected" : cudaGetErrorName(error);
}
}

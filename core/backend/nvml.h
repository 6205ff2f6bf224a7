// NVML, the NVIDIA driver's library for the state of GPUs. Loaded at run time; needs no CUDA.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace trainctl {

// The state of a GPU at one time. A value is NaN if the GPU or its driver does not report it. Trivially copyable, so
// that ranks can exchange it.
struct GpuReading {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  static constexpr std::uint64_t power_cap = 0x4;  // a bit of `throttled`

  double utilization = unknown;  // fraction of the last sampling period in which a kernel ran, 0 to 1
  double memory_bytes = unknown;
  double memory_total_bytes = unknown;
  double temperature = unknown;  // degrees Celsius
  double power_watts = unknown;
  double clock_mhz = unknown;  // clock of the multiprocessors
  double max_clock_mhz = unknown;
  double energy_joules = unknown;  // since the driver was loaded
  std::uint64_t throttled = 0;     // the reasons why the clock is lowered, as bits (see throttle_words())
};

// The names of the reasons: "power cap", "hardware slowdown", ...; idleness and clocks that a user has set have no
// name.
std::vector<std::string> throttle_words(std::uint64_t reasons);

struct GpuIdentity {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  std::string uuid;  // "GPU-5fd1..."
  std::string pci_bus_id;
  int active_nvlinks = 0;
};

class Nvml {
 public:
  // A handle of a GPU, valid as long as this object exists; null for no GPU.
  using Device = void*;

  // Loads the library by open_cuda_library(). Throws Error{resource} that describes the problem with the driver.
  explicit Nvml(const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::string driver_version() const;
  // All GPUs that this process may read, independently of CUDA_VISIBLE_DEVICES.
  std::vector<Device> devices() const;
  // The GPU with this UUID, or null. The prefixes "GPU-" and "MIG-" are interchangeable, since CUDA does not
  // distinguish them.
  Device find(const std::string& uuid) const;

  GpuIdentity identify(Device device) const;
  GpuReading read(Device device) const;
  // Whether one GPU reads the other's memory directly (is_peer), and whether it does so by NVLink (is_linked).
  bool is_peer(Device one, Device other) const;
  bool is_linked(Device one, Device other) const;

 private:
  struct Calls;
  std::unique_ptr<Calls> calls_;
};

}  // namespace trainctl

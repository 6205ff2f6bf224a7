// NVML: what the NVIDIA driver tells of its GPUs. Loaded at run time; needs no CUDA.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace trainctl {

// One look at a GPU. What the GPU, or its driver, does not tell is NaN. Plain bytes, so that ranks can exchange it.
struct GpuReading {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  static constexpr std::uint64_t power_cap = 0x4;  // among the bits of `throttled`

  double utilization = unknown;  // share of the last moments in which some kernel ran, 0 to 1
  double memory_bytes = unknown;
  double memory_total_bytes = unknown;
  double temperature = unknown;  // degrees Celsius
  double power_watts = unknown;
  double clock_mhz = unknown;  // of the multiprocessors
  double max_clock_mhz = unknown;
  double energy_joules = unknown;  // since the driver was loaded
  std::uint64_t throttled = 0;     // why the clock is lowered, for throttle_words()
};

// "power cap", "hardware slowdown", ...; empty where nothing lowers the clock but idleness or a user's setting.
std::vector<std::string> throttle_words(std::uint64_t reasons);

struct GpuIdentity {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  std::string uuid;  // "GPU-5fd1..."
  std::string pci_bus_id;
  int active_nvlinks = 0;
};

class Nvml {
 public:
  // A GPU, for as long as this object lives. Null: none.
  using Device = void*;

  // The library lies where open_cuda_library() looks. Throws Error{resource} that says what of the driver is missing.
  explicit Nvml(const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::string driver_version() const;
  // All GPUs that this process may look at, CUDA_VISIBLE_DEVICES or not.
  std::vector<Device> devices() const;
  // By "GPU-..." or "MIG-...", which CUDA does not tell apart: either finds the other too.
  Device find(const std::string& uuid) const;

  GpuIdentity identify(Device device) const;
  GpuReading read(Device device) const;
  // Whether one GPU reads the other's memory directly; by NVLink.
  bool is_peer(Device one, Device other) const;
  bool is_linked(Device one, Device other) const;

 private:
  struct Calls;
  std::unique_ptr<Calls> calls_;
};

}  // namespace trainctl

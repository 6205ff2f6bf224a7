// The NVML functions that trainctl calls, with the types of their binary interface.
#include "core/backend/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/backend/cuda_libraries.h"
#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

// NVML's enumerations are ints; success is 0.
using Status = int;
constexpr int temperature_of_gpu = 0;
constexpr int clock_of_multiprocessors = 1;
constexpr int peer_reads = 0;
constexpr int peer_by_nvlink = 2;
constexpr int max_nvlinks = 18;
constexpr Status driver_not_loaded = 9;
constexpr Status library_mismatch = 18;  // the kernel's driver and the library have different versions

}  // namespace

// The functions of NVML; a pointer is null if the driver is too old for the function.
struct Nvml::Calls {
  struct UtilizationRates {  // percent
    unsigned gpu, memory;
  };
  struct MemoryInfo {  // NVML's first version of the struct; bytes
    unsigned long long total, free, used;
  };
  struct PciInfo {  // NVML's third version of the struct
    char legacy_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
  };

  Status (*init)();
  Status (*shutdown)();
  const char* (*error_string)(Status);
  Status (*driver_version)(char*, unsigned);
  Status (*count)(unsigned*);
  Status (*by_index)(unsigned, Device*);
  Status (*by_uuid)(const char*, Device*);
  Status (*name)(Device, char*, unsigned);
  Status (*uuid)(Device, char*, unsigned);
  Status (*pci)(Device, PciInfo*);
  Status (*utilization)(Device, UtilizationRates*);
  Status (*memory)(Device, MemoryInfo*);
  Status (*temperature)(Device, int, unsigned*);
  Status (*power)(Device, unsigned*);                // milliwatts
  Status (*energy)(Device, unsigned long long*);     // millijoules
  Status (*clock)(Device, int, unsigned*);           // MHz
  Status (*max_clock)(Device, int, unsigned*);       // MHz
  Status (*throttled)(Device, unsigned long long*);  // bits, see throttle_words
  Status (*nvlink)(Device, unsigned, int*);
  Status (*peer)(Device, Device, int, int*);
};

std::vector<std::string> throttle_words(std::uint64_t reasons) {
  // Bits without a name here: 1 idle, 2 clocks that a user has set, 0x100 clocks of a display.
  static constexpr std::pair<std::uint64_t, const char*> words[] = {
      {GpuReading::power_cap, "power cap"}, {0x8, "hardware slowdown"}, {0x10, "sync boost"}, {0x20, "temperature"},
      {0x40, "hardware temperature limit"}, {0x80, "power brake"}};
  std::vector<std::string> found;
  for (const auto& [bit, word] : words) {
    if ((reasons & bit) != 0) found.emplace_back(word);
  }
  return found;
}

Nvml::Nvml(const std::string& library) : calls_(std::make_unique<Calls>()) {
  std::string why;
  void* loaded = open_cuda_library(library, why);
  if (loaded == nullptr) {
    throw Error(ErrorKind::resource, format("no NVIDIA driver: there is no {}", library),
                "install the driver, or let the container see it (nvidia-container-toolkit)");
  }
  const auto find = [loaded](auto& call, const char* name, const char* older = nullptr) {
    void* address = dlsym(loaded, name);
    if (address == nullptr && older != nullptr) address = dlsym(loaded, older);
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(address);
  };
  Calls& c = *calls_;
  find(c.init, "nvmlInit_v2");
  find(c.shutdown, "nvmlShutdown");
  find(c.error_string, "nvmlErrorString");
  find(c.driver_version, "nvmlSystemGetDriverVersion");
  find(c.count, "nvmlDeviceGetCount_v2");
  find(c.by_index, "nvmlDeviceGetHandleByIndex_v2");
  find(c.by_uuid, "nvmlDeviceGetHandleByUUID");
  find(c.name, "nvmlDeviceGetName");
  find(c.uuid, "nvmlDeviceGetUUID");
  find(c.pci, "nvmlDeviceGetPciInfo_v3");
  find(c.utilization, "nvmlDeviceGetUtilizationRates");
  find(c.memory, "nvmlDeviceGetMemoryInfo");
  find(c.temperature, "nvmlDeviceGetTemperature");
  find(c.power, "nvmlDeviceGetPowerUsage");
  find(c.energy, "nvmlDeviceGetTotalEnergyConsumption");
  find(c.clock, "nvmlDeviceGetClockInfo");
  find(c.max_clock, "nvmlDeviceGetMaxClockInfo");
  find(c.throttled, "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons");
  find(c.nvlink, "nvmlDeviceGetNvLinkState");
  find(c.peer, "nvmlDeviceGetP2PStatus");
  if (c.init == nullptr || c.shutdown == nullptr) {
    throw Error(ErrorKind::resource, format("{} is not NVML", library), "install the NVIDIA driver again");
  }
  const Status status = c.init();
  if (status == 0) return;
  why = c.error_string == nullptr ? std::to_string(status) : c.error_string(status);
  throw Error(ErrorKind::resource, format("the NVIDIA driver does not answer: {}", why),
              status == driver_not_loaded  ? "load it (modprobe nvidia), or start the container with GPUs"
              : status == library_mismatch ? "the driver was updated: restart the machine"
                                           : "look at nvidia-smi and dmesg");
}

Nvml::~Nvml() { calls_->shutdown(); }

namespace {

// Calls a function of NVML that has the address of its result as the last argument. Returns false if the function is
// missing or fails.
template <class T, class Result, class... Arguments, class... Given>
bool ask(T& value, Result (*call)(Arguments...), Given... arguments) {
  return call != nullptr && call(arguments..., &value) == 0;
}

// Calls a function of NVML that writes a text. Returns "" if the function is missing or fails.
template <class Call, class... Given>
std::string text(Call call, Given... arguments) {
  std::array<char, 96> buffer{};
  if (call == nullptr || call(arguments..., buffer.data(), static_cast<unsigned>(buffer.size())) != 0) return "";
  return buffer.data();
}

}  // namespace

std::string Nvml::driver_version() const { return text(calls_->driver_version); }

std::vector<Nvml::Device> Nvml::devices() const {
  std::vector<Device> devices;
  unsigned count = 0;
  if (!ask(count, calls_->count)) return devices;
  for (unsigned index = 0; index < count; ++index) {
    Device device = nullptr;
    if (ask(device, calls_->by_index, index)) devices.push_back(device);
  }
  return devices;
}

Nvml::Device Nvml::find(const std::string& uuid) const {
  const std::string bytes = uuid.substr(std::min(uuid.find('-'), uuid.size()));
  for (const std::string& name : {uuid, "GPU" + bytes, "MIG" + bytes}) {
    Device device = nullptr;
    if (ask(device, calls_->by_uuid, name.c_str())) return device;
  }
  return nullptr;
}

GpuIdentity Nvml::identify(Device device) const {
  GpuIdentity identity{text(calls_->name, device), text(calls_->uuid, device)};
  Calls::PciInfo pci{};
  if (ask(pci, calls_->pci, device)) identity.pci_bus_id = pci.bus_id;
  for (unsigned link = 0; link < max_nvlinks; ++link) {
    int active = 0;
    if (!ask(active, calls_->nvlink, device, link)) break;
    identity.active_nvlinks += active != 0 ? 1 : 0;
  }
  return identity;
}

GpuReading Nvml::read(Device device) const {
  GpuReading reading;
  Calls::UtilizationRates rates{};
  Calls::MemoryInfo memory{};
  unsigned value = 0;
  unsigned long long large = 0;
  if (ask(rates, calls_->utilization, device)) reading.utilization = rates.gpu / 100.0;
  if (ask(memory, calls_->memory, device)) {
    reading.memory_bytes = static_cast<double>(memory.used);
    reading.memory_total_bytes = static_cast<double>(memory.total);
  }
  if (ask(value, calls_->temperature, device, temperature_of_gpu)) reading.temperature = value;
  if (ask(value, calls_->power, device)) reading.power_watts = value / 1000.0;
  if (ask(large, calls_->energy, device)) reading.energy_joules = static_cast<double>(large) / 1000;
  if (ask(value, calls_->clock, device, clock_of_multiprocessors)) reading.clock_mhz = value;
  if (ask(value, calls_->max_clock, device, clock_of_multiprocessors)) reading.max_clock_mhz = value;
  if (ask(large, calls_->throttled, device)) reading.throttled = large;
  return reading;
}

bool Nvml::is_peer(Device one, Device other) const {
  int status = -1;
  return ask(status, calls_->peer, one, other, peer_reads) && status == 0;
}

bool Nvml::is_linked(Device one, Device other) const {
  int status = -1;
  return ask(status, calls_->peer, one, other, peer_by_nvlink) && status == 0;
}

}  // namespace trainctl

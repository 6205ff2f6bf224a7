// Tests NVML through its binary interface, on emulated GPUs: values and units, unsupported values, and the monitor's
// totals.
#include "core/backend/nvml.h"

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "core/backend/gpu_monitor.h"
#include "core/base/error.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::test::nvml_test {
namespace {

const std::string library = TRAINCTL_EMULATED_NVML_LIBRARY;

// Sets up `count` emulated GPUs with these lines (see emulated_nvml.c) for its lifetime.
class EmulatedGpus {
 public:
  EmulatedGpus(int count, const std::string& lines) {
    setenv("TRAINCTL_EMULATED_GPUS", std::to_string(count).c_str(), 1);
    setenv("TRAINCTL_EMULATED_NVML", path().c_str(), 1);
    set(lines);
  }
  ~EmulatedGpus() {
    unsetenv("TRAINCTL_EMULATED_GPUS");
    unsetenv("TRAINCTL_EMULATED_NVML");
  }
  // Replaces the file in one step, so that a monitor never reads half a file.
  void set(const std::string& lines) const {
    std::ofstream(path() + ".new") << lines;
    std::filesystem::rename(path() + ".new", path());
  }

 private:
  std::string path() const { return folder_ / "gpus"; }
  TemporaryFolder folder_;
};

std::string failure(const std::string& of_library) {
  try {
    const Nvml nvml(of_library);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("NVML's values are converted to our units") {
  const EmulatedGpus gpus(2, "93 30000 81559 61 512500 1410 1980 0\n5 10 81559 40 71000 345 1980 24\n");
  const Nvml nvml(library);
  CHECK(nvml.driver_version() == "580.65.06");
  const auto devices = nvml.devices();
  REQUIRE(devices.size() == 2);
  const GpuIdentity first = nvml.identify(devices[0]);
  CHECK(first.name == "Emulated GPU");
  CHECK(first.uuid == "GPU-656d756c-6174-6564-2d30-000000000000");
  CHECK(first.pci_bus_id == "00000000:01:00.0");
  CHECK(first.active_nvlinks == 4);
  const GpuReading reading = nvml.read(devices[0]);
  CHECK(reading.utilization == Approx(0.93));
  CHECK(reading.memory_bytes == 30000.0 * (1 << 20));
  CHECK(reading.memory_total_bytes == 81559.0 * (1 << 20));
  CHECK(reading.temperature == 61);
  CHECK(reading.power_watts == 512.5);
  CHECK(reading.clock_mhz == 1410);
  CHECK(reading.max_clock_mhz == 1980);
  CHECK(throttle_words(reading.throttled).empty());
  CHECK(throttle_words(nvml.read(devices[1]).throttled) == std::vector<std::string>{"power cap", "temperature"});
  CHECK(nvml.find(nvml.identify(devices[1]).uuid) == devices[1]);
  CHECK(nvml.find("GPU-of-another-machine") == nullptr);
  CHECK(nvml.is_peer(devices[0], devices[1]));
  CHECK(nvml.is_linked(devices[0], devices[1]));
}

TEST_CASE("a MIG instance is found by CUDA's name for it") {
  const EmulatedGpus gpus(2, "");
  const Nvml nvml(library);
  const auto devices = nvml.devices();
  setenv("TRAINCTL_EMULATED_MIG", "1", 1);
  CHECK(nvml.find("GPU-656d756c-6174-6564-2d31-000000000000") == devices[1]);
  CHECK(nvml.find("MIG-656d756c-6174-6564-2d31-000000000000") == devices[1]);
  unsetenv("TRAINCTL_EMULATED_MIG");
  CHECK(nvml.find("MIG-656d756c-6174-6564-2d31-000000000000") == devices[1]);
  CHECK(nvml.find("") == nullptr);
}

TEST_CASE("a value that a GPU does not support is unknown, not zero") {
  const EmulatedGpus gpus(1, "-1 100 200 -1 -1 -1 -1 0\n");
  const Nvml nvml(library);
  const GpuReading reading = nvml.read(nvml.devices().front());
  CHECK(reading.memory_bytes > 0);
  for (double value : {reading.utilization, reading.temperature, reading.power_watts, reading.clock_mhz,
                       reading.max_clock_mhz, reading.energy_joules}) {
    CHECK(std::isnan(value));
  }
}

TEST_CASE("idleness and clocks set by a user do not count as throttling") {
  CHECK(throttle_words(0x1 | 0x2 | 0x100).empty());
  CHECK(throttle_words(0x8 | 0x40 | 0x80) ==
        std::vector<std::string>{"hardware slowdown", "hardware temperature limit", "power brake"});
}

TEST_CASE("a missing driver, or one that is not loaded, is reported") {
  CHECK(contains(failure("libnvidia-ml-that-is-not-there.so.1"), "no NVIDIA driver"));
  const EmulatedGpus none(0, "");
  CHECK(contains(failure(library), "Driver Not Loaded"));
  CHECK(contains(failure(library), "modprobe nvidia"));
}

TEST_CASE("a monitor keeps the mean, the peak and every reason to throttle") {
  const EmulatedGpus gpus(2, "0 1 1 1 1 1 1 0\n20 1000 80000 50 100000 1980 1980 0\n");
  GpuMonitor monitor("GPU-656d756c-6174-6564-2d31-000000000000", 0.002, library);
  CHECK(monitor.take().utilization == Approx(0.2));
  const auto shows = [&](double utilization) {
    for (int i = 0; i < 5000 && monitor.take().utilization != Approx(utilization); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return monitor.take().utilization == Approx(utilization);
  };
  gpus.set("0 1 1 1 1 1 1 0\n100 3000 80000 80 300000 1200 1980 8\n");
  REQUIRE(shows(1.0));
  gpus.set("0 1 1 1 1 1 1 0\n60 2000 80000 60 200000 1980 1980 0\n");
  REQUIRE(shows(0.6));
  const GpuReading last = monitor.take();
  CHECK(last.throttled == 0);  // earlier calls of take() returned the earlier reasons
  CHECK(last.memory_bytes == 2000.0 * (1 << 20));
  const GpuTotals totals = monitor.totals();
  CHECK(totals.peak_memory_bytes == 3000.0 * (1 << 20));
  CHECK(throttle_words(totals.throttled) == std::vector<std::string>{"hardware slowdown"});
  CHECK(totals.utilization > 0.2);
  CHECK(totals.utilization < 1.0);
  CHECK(totals.power_watts > 100);
  CHECK(totals.power_watts < 300);
  CHECK(totals.energy_joules > 0);
  CHECK_THROWS_AS(GpuMonitor("GPU-other", 1, library), Error);
}

}  // namespace trainctl::test::nvml_test

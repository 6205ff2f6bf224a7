// Tests the warnings about GPUs of several ranks that throttle or lag, each of which is logged once.
#include "core/backend/gpu_peaks.h"
#include "parallel/health/gpus.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::test::comparison_test {
namespace {

// Busy GPUs at these clocks, of ranks 0, 1, ...
std::vector<GpuSample> at_clocks(const std::vector<double>& clocks) {
  std::vector<GpuSample> samples;
  for (double clock : clocks) {
    GpuReading reading;
    reading.utilization = 0.95;
    reading.clock_mhz = clock;
    reading.max_clock_mhz = 1980;
    samples.push_back({static_cast<int>(samples.size()), reading});
  }
  return samples;
}

// All warnings of `looks` updates.
std::vector<std::string> warnings_of(GpuComparison& comparison, const std::vector<GpuSample>& samples, int looks) {
  std::vector<std::string> all;
  for (int look = 0; look < looks; ++look) {
    for (const std::string& warning : comparison.update(samples)) all.push_back(warning);
  }
  return all;
}

}  // namespace

TEST_CASE("a GPU that is slower than the others is named once") {
  GpuComparison comparison;
  const auto samples = at_clocks({1905, 1900, 1680, 1910});
  CHECK(warnings_of(comparison, samples, 9).empty());  // too early to judge
  CHECK(warnings_of(comparison, samples, 30) ==
        std::vector<std::string>{"the GPU of rank 2 has a lower clock than the others: 1680 MHz, theirs 1905 MHz"});
  GpuComparison equal;
  CHECK(warnings_of(equal, at_clocks({1905, 1760, 1900}), 40).empty());  // within a tenth
}

TEST_CASE("a GPU that is idle while the others work lags too, and one alone does not") {
  GpuComparison comparison;
  auto samples = at_clocks({1900, 1900});
  samples[0].reading.utilization = 0.5;
  CHECK(warnings_of(comparison, samples, 20) ==
        std::vector<std::string>{"the GPU of rank 0 has a lower utilisation than the others: 50 %, theirs 95 %"});
  GpuComparison alone;
  CHECK(warnings_of(alone, at_clocks({300}), 20).empty());
  GpuComparison unknown;
  CHECK(warnings_of(unknown, at_clocks({1900, GpuReading::unknown}), 20).empty());
}

TEST_CASE("every reason for throttling is reported once for each GPU") {
  GpuComparison comparison;
  auto samples = at_clocks({1500, 1900});
  samples[0].reading.throttled = 0x20 | 0x1;
  CHECK(warnings_of(comparison, samples, 3) ==
        std::vector<std::string>{"the GPU of rank 0 is throttled: temperature, at 1500 of 1980 MHz"});
  samples[1].reading.throttled = 0x20 | 0x80;
  samples[0].reading.throttled = 0x8;
  CHECK(warnings_of(comparison, samples, 3) ==
        std::vector<std::string>{"the GPU of rank 0 is throttled: hardware slowdown, at 1500 of 1980 MHz",
                                 "the GPU of rank 1 is throttled: temperature, power brake, at 1900 of 1980 MHz"});
}

TEST_CASE("a GPU at its power limit counts as throttled if its clock is low for a long time") {
  GpuComparison healthy;
  auto samples = at_clocks({1800, GpuReading::unknown});
  for (GpuSample& sample : samples) sample.reading.throttled = GpuReading::power_cap;
  CHECK(warnings_of(healthy, samples, 40).empty());

  GpuComparison slow;
  samples[0].reading.clock_mhz = 1700;
  CHECK(warnings_of(slow, samples, 9).empty());
  samples[0].reading.clock_mhz = 1900;  // the clock was low for a moment only
  CHECK(warnings_of(slow, samples, 1).empty());
  samples[0].reading.clock_mhz = 1700;
  CHECK(warnings_of(slow, samples, 9).empty());
  CHECK(warnings_of(slow, samples, 20) ==
        std::vector<std::string>{"the GPU of rank 0 is throttled: power cap, at 1700 of 1980 MHz"});
}

TEST_CASE("peak rates are found by CUDA's names of GPUs, more specific names first") {
  CHECK(datasheet_flops("NVIDIA H100 80GB HBM3, sm_90", DType::bfloat16, false) == Approx(989.4e12));
  CHECK(datasheet_flops("NVIDIA H100 PCIe", DType::float16, false) == Approx(756e12));
  CHECK(datasheet_flops("NVIDIA A100-SXM4-80GB", DType::float32, false) == Approx(19.5e12));
  CHECK(datasheet_flops("NVIDIA A100-SXM4-80GB", DType::float32, true) == Approx(156e12));
  CHECK(datasheet_flops("NVIDIA A10G", DType::bfloat16, false) == Approx(70e12));
  CHECK(datasheet_flops("NVIDIA L40S", DType::bfloat16, false) == Approx(362e12));
  CHECK(datasheet_flops("NVIDIA L4", DType::bfloat16, false) == Approx(121e12));
  CHECK(datasheet_flops("NVIDIA GB200", DType::bfloat16, false) == Approx(2500e12));
  CHECK(datasheet_flops("NVIDIA GH200 480GB, sm_90", DType::bfloat16, false) == Approx(989.4e12));
  CHECK(datasheet_flops("NVIDIA A40, sm_86, made beside an H100", DType::bfloat16, false) == Approx(149.7e12));
  CHECK(datasheet_flops("NVIDIA RTX A4000", DType::bfloat16, false) == 0);  // neither an A40 nor an A4
  CHECK(datasheet_flops("NVIDIA RTX A1000", DType::bfloat16, false) == 0);
  CHECK(datasheet_flops("Emulated GPU", DType::float32, false) == 0);
}

}  // namespace trainctl::test::comparison_test

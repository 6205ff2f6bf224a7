// Measures the peaks of a GPU: the speed of products and the memory bandwidth.
#include "core/backend/cuda/choice/timing.h"
#include "core/backend/cuda/cublaslt/product.h"
#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/runtime/device.h"
#include "core/backend/cuda/runtime/runtime.h"

namespace trainctl::cuda {
namespace {

double product_gflops(const Device& device, DType dtype) {
  // Tensor cores reach their peak with the larger size only.
  const std::int64_t size = dtype == DType::float32 ? 4096 : 8192;
  KernelChoices choices;
  const Product product(device, {size, size, size, false, false, dtype, dtype}, choices, "");
  const std::int64_t bytes = size * size * size_of(dtype);
  const RandomBuffer a(bytes, dtype), b(bytes, dtype), c(bytes, dtype);
  const RandomBuffer workspace(product.workspace_bytes(), DType::float32);
  const double seconds =
      measure([&](cudaStream_t stream) { product.run(stream, a.get(), b.get(), c.get(), nullptr, workspace.get()); });
  return 2e-9 * static_cast<double>(size) * static_cast<double>(size * size) / seconds;
}

__global__ void triad(float4* a, const float4* b, const float4* c, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const float4 left = b[i], right = c[i];
    a[i] = {left.x + 3.0f * right.x, left.y + 3.0f * right.y, left.z + 3.0f * right.z, left.w + 3.0f * right.w};
  }
}

double triad_gb_per_s() {
  constexpr std::int64_t bytes = std::int64_t{512} << 20;
  const RandomBuffer a(bytes, DType::float32), b(bytes, DType::float32), c(bytes, DType::float32);
  constexpr std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(float4));
  const double seconds = measure([&](cudaStream_t stream) {
    launch(triad, blocks_for(count), block_threads, stream, a.get<float4>(), b.get<float4>(), c.get<float4>(), count);
  });
  return 3e-9 * static_cast<double>(bytes) / seconds;
}

}  // namespace

Peaks measure_peaks(const Device& device) {
  const double float32 = product_gflops(device, DType::float32), bfloat16 = product_gflops(device, DType::bfloat16);
  return {.float32_gflops = float32,
          .bfloat16_gflops = bfloat16,
          .float32_product_gflops = float32,
          .bfloat16_product_gflops = bfloat16,
          .triad_gb_per_s = triad_gb_per_s()};
}

}  // namespace trainctl::cuda

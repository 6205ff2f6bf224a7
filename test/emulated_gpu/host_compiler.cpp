// Compiles the sources that a GPU's compiler would compile at run time: the host compiler makes a library of each,
// which is kept in the build folder. Replaces core/backend/cuda/runtime_compiled/nvrtc.cpp.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>

#include "core/backend/cuda/runtime_compiled/nvrtc.h"

namespace emulated {
namespace {

namespace fs = std::filesystem;

// What CUDA C++ has without a header. float16 is a type of the source.
constexpr const char* before = R"(
#define __device__
#define __global__
#define __launch_bounds__(...)
extern "C" {
float fabsf(float), expf(float), expm1f(float), logf(float), log1pf(float), sqrtf(float), sinf(float), cosf(float);
float tanf(float), atanf(float), tanhf(float), erff(float), floorf(float), ceilf(float), rintf(float);
float powf(float, float), fmaxf(float, float), fmodf(float, float);
}
struct Index3 { unsigned x, y, z; };
static Index3 threadIdx, blockIdx, blockDim, gridDim;
inline float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
struct float16;
float float_of(float16 x);
float16 float16_of(float x);
)";

// What the emulated launch calls: the number of bytes of the kernel's argument, and the kernel for one thread.
constexpr const char* after = R"(
float float_of(float16 x) { return static_cast<float>(__builtin_bit_cast(_Float16, x.bits)); }
float16 float16_of(float x) { return {__builtin_bit_cast(unsigned short, static_cast<_Float16>(x))}; }
extern "C" unsigned long argument_bytes() { return sizeof(Arguments); }
extern "C" void run_thread(const void* argument, const unsigned (*indices)[3]) {
  Index3* const all[] = {&threadIdx, &blockIdx, &blockDim, &gridDim};
  for (int i = 0; i < 4; ++i) *all[i] = {indices[i][0], indices[i][1], indices[i][2]};
  compute(*static_cast<const Arguments*>(argument));
}
)";

void compile(const std::string& text, const fs::path& library) {
  const std::string own = library.string() + "-" + std::to_string(getpid());
  const std::string source = own + ".cpp";
  std::ofstream(source) << text;
  // Misaligned accesses are faults on a GPU, too.
  const std::string command =
      std::string(TRAINCTL_HOST_COMPILER) +
      " -std=c++17 -O1 -ffp-contract=off -fno-math-errno -fno-strict-aliasing -w -fPIC -shared -pipe"
      " -nostdlib -fsanitize=alignment -fsanitize-undefined-trap-on-error '" +
      source + "' -o '" + own + "' -lm";
  if (std::system(command.c_str()) != 0) throw std::runtime_error("the emulated GPU cannot compile " + source);
  fs::rename(own, library);
  fs::remove(source);
}

}  // namespace
}  // namespace emulated

namespace trainctl::cuda {

// Returns the path of the library, which the emulated cudaLibraryLoadData() expects.
std::string compile_source(const std::string& source, int) {
  namespace fs = std::filesystem;
  const std::string text = std::string(emulated::before) + source + emulated::after;
  const fs::path folder = TRAINCTL_EMULATED_KERNELS;
  fs::create_directories(folder);
  const fs::path library = folder / ("kernel-" + std::to_string(std::hash<std::string>{}(text)) + ".so");
  if (!fs::exists(library)) emulated::compile(text, library);
  return library.string();
}

}  // namespace trainctl::cuda

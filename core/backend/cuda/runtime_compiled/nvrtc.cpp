// Calls NVRTC by the addresses of its functions, since the module does not link it.
#include "core/backend/cuda/runtime_compiled/nvrtc.h"

#include <dlfcn.h>
#include <nvrtc.h>

#include <algorithm>
#include <vector>

#include "core/backend/cuda/runtime_compiled/nvrtc_library.h"
#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl::cuda {
namespace {

#define TRAINCTL_NVRTC_FUNCTIONS(X) \
  X(nvrtcCreateProgram)             \
  X(nvrtcDestroyProgram)            \
  X(nvrtcCompileProgram)            \
  X(nvrtcGetErrorString)            \
  X(nvrtcGetProgramLogSize)         \
  X(nvrtcGetProgramLog)             \
  X(nvrtcGetCUBINSize)              \
  X(nvrtcGetCUBIN)                  \
  X(nvrtcGetPTXSize)                \
  X(nvrtcGetPTX)                    \
  X(nvrtcGetNumSupportedArchs)      \
  X(nvrtcGetSupportedArchs)

// The functions of NVRTC that are called here, under their own names.
struct Nvrtc {
#define TRAINCTL_NVRTC_MEMBER(name) decltype(&::name) name = nullptr;
  TRAINCTL_NVRTC_FUNCTIONS(TRAINCTL_NVRTC_MEMBER)
#undef TRAINCTL_NVRTC_MEMBER

  Nvrtc() {
    std::string why;
    void* library = open_nvrtc(why);
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
          library == nullptr ? nullptr : dlsym(library, name));
      if (function != nullptr) return;
      throw Error(ErrorKind::resource,
                  format("NVRTC, which compiles the kernels of expressions, cannot be used: {}",
                         library == nullptr ? why : format("it has no function {}", name)),
                  "install it (pip's nvidia-cuda-nvrtc does), or compute on the CPU (--device cpu)");
    };
#define TRAINCTL_FIND(name) find(name, #name);
    TRAINCTL_NVRTC_FUNCTIONS(TRAINCTL_FIND)
#undef TRAINCTL_FIND
  }

  void check(nvrtcResult status, std::string_view call) const {
    if (status == NVRTC_SUCCESS) return;
    throw Error(ErrorKind::internal, format("{}: {}", call, nvrtcGetErrorString(status)));
  }
};

const Nvrtc& nvrtc() {
  static const Nvrtc functions;
  return functions;
}

// The newest architecture that NVRTC supports and the GPU runs.
int newest_supported(int capability) {
  int count = 0;
  nvrtc().check(nvrtc().nvrtcGetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs");
  std::vector<int> supported(static_cast<std::size_t>(count));
  nvrtc().check(nvrtc().nvrtcGetSupportedArchs(supported.data()), "nvrtcGetSupportedArchs");
  int newest = 0;
  for (const int architecture : supported) {
    if (architecture <= capability) newest = std::max(newest, architecture);
  }
  return newest;
}

// A source in NVRTC.
class Compilation {
 public:
  explicit Compilation(const std::string& source) {
    const Nvrtc& functions = nvrtc();
    functions.check(functions.nvrtcCreateProgram(&program_, source.c_str(), "expression.cu", 0, nullptr, nullptr),
                    "nvrtcCreateProgram");
  }
  ~Compilation() { nvrtc().nvrtcDestroyProgram(&program_); }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  void compile(const std::string& architecture) const {
    const std::string option = "--gpu-architecture=" + architecture;
    const char* const options[] = {option.c_str(), "--std=c++17"};
    const nvrtcResult status = nvrtc().nvrtcCompileProgram(program_, 2, options);
    if (status == NVRTC_SUCCESS) return;
    const std::string log = text(nvrtc().nvrtcGetProgramLogSize, nvrtc().nvrtcGetProgramLog);
    throw Error(ErrorKind::internal, format("nvrtcCompileProgram: {}\n{}", nvrtc().nvrtcGetErrorString(status), log));
  }
  std::string cubin() const { return text(nvrtc().nvrtcGetCUBINSize, nvrtc().nvrtcGetCUBIN); }
  std::string ptx() const { return text(nvrtc().nvrtcGetPTXSize, nvrtc().nvrtcGetPTX); }

 private:
  template <class Size, class Get>
  std::string text(Size size_of_text, Get get) const {
    std::size_t size = 0;
    nvrtc().check(size_of_text(program_, &size), "the size of NVRTC's result");
    std::string result(size, '\0');
    nvrtc().check(get(program_, result.data()), "NVRTC's result");
    return result;
  }

  nvrtcProgram program_ = nullptr;
};

}  // namespace

std::string compile_source(const std::string& source, int capability) {
  const Compilation compilation(source);
  const int supported = newest_supported(capability);
  const bool exact = supported == capability;
  compilation.compile(format("{}_{}", exact ? "sm" : "compute", supported));
  return exact ? compilation.cubin() : compilation.ptx();
}

}  // namespace trainctl::cuda

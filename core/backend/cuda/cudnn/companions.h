// The libraries that cuDNN opens by itself. If it does not find them, cuDNN ends the process or offers fewer engines.
#pragma once

#include <string>

namespace trainctl::cuda {

// Opens these libraries by open_cuda_library(), so that cuDNN finds them too. Must run before the first call of cuDNN.
// Returns the reason why cuDNN cannot be called; "" if it can be called.
std::string open_companions();

}  // namespace trainctl::cuda

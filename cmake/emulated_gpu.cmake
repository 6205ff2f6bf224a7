# Adds the tests of the CUDA module on a real GPU, if there is one, and on an emulated GPU.
if(NOT TARGET trainctl_cuda)
  return()
endif()
# The emulation switches stacks with its own code for x86-64, which ThreadSanitizer cannot follow.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
  add_subdirectory(test/emulated_gpu)
  add_subdirectory(test/gpu_runs)
endif()
add_subdirectory(test/cuda)

# Tests of the CUDA module: on a GPU where there is one, and on an emulated one.
if(NOT TARGET trainctl_cuda)
  return()
endif()
# The emulation switches stacks by itself, on x86-64 and not under ThreadSanitizer's eyes.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
  add_subdirectory(test/emulated_gpu)
  add_subdirectory(test/gpu_runs)
endif()
add_subdirectory(test/cuda)

# The CUDA interpreter: a module that the program loads at run time. TRAINCTL_CUDA: AUTO builds it where the toolkit and
# cuDNN are, ON demands them, OFF leaves it out.
set(TRAINCTL_CUDA AUTO CACHE STRING "The CUDA interpreter: AUTO, ON or OFF")
if(TRAINCTL_CUDA STREQUAL "OFF")
  return()
endif()
include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  find_package(CUDAToolkit 12 QUIET)
  find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
endif()
if(NOT CUDAToolkit_FOUND OR NOT CUDNN_LIBRARY)
  if(NOT TRAINCTL_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "TRAINCTL_CUDA is ${TRAINCTL_CUDA}, but there is no CUDA toolkit of version 12 or later with cuDNN")
  endif()
  message(STATUS "No CUDA interpreter: no toolkit with cuDNN was found")
  return()
endif()

set(CMAKE_CUDA_ARCHITECTURES 80-real 90)  # 90: also PTX, for later GPUs
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.26 does not know that nvcc has it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
file(GLOB TRAINCTL_CUDA_SOURCES CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/core/backend/cuda/*.cpp ${PROJECT_SOURCE_DIR}/core/backend/cuda/*.cu)
# NCCL's header is needed here, its library at run time alone.
find_path(NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
set(nccl_sources absent.cpp)
if(NCCL_INCLUDE)
  set(nccl_sources nccl.cpp library.cpp)
endif()
list(TRANSFORM nccl_sources PREPEND ${PROJECT_SOURCE_DIR}/parallel/comm/nccl/)
list(APPEND TRAINCTL_CUDA_SOURCES ${nccl_sources}
  ${PROJECT_SOURCE_DIR}/parallel/comm/nccl/module.cpp ${PROJECT_SOURCE_DIR}/parallel/comm/call.cpp)
add_library(trainctl_cuda MODULE ${TRAINCTL_CUDA_SOURCES})
set_target_properties(trainctl_cuda PROPERTIES PREFIX "")
target_include_directories(trainctl_cuda PRIVATE ${PROJECT_SOURCE_DIR} $<$<BOOL:${NCCL_INCLUDE}>:${NCCL_INCLUDE}>)
target_compile_options(trainctl_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--extended-lambda --expt-relaxed-constexpr>)
# Symbols of core are the program's.
target_link_libraries(trainctl_cuda PRIVATE fmt::fmt CUDA::cudart_static CUDA::cublasLt ${CUDNN_LIBRARY})
add_dependencies(trainctl trainctl_cuda)
install(TARGETS trainctl_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/trainctl)

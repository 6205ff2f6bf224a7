# Builds the CUDA interpreter, a module that the program loads at run time. TRAINCTL_CUDA=AUTO builds the module if the
# CUDA toolkit and cuDNN are found. ON fails without them. OFF leaves the module out.
set(TRAINCTL_CUDA AUTO CACHE STRING "The CUDA interpreter: AUTO, ON or OFF")
if(TRAINCTL_CUDA STREQUAL "OFF")
  return()
endif()
include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  find_package(CUDAToolkit 12.8 QUIET)
  find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
endif()
if(CUDNN_LIBRARY)
  find_file(CUDNN_VERSION_HEADER cudnn_version.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  file(STRINGS ${CUDNN_VERSION_HEADER} cudnn_version REGEX "#define CUDNN_(MAJOR|MINOR) ")
  string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]*([0-9]+).*" "\\1.\\2" cudnn_version "${cudnn_version}")
endif()
if(NOT CUDAToolkit_FOUND OR NOT CUDNN_LIBRARY OR cudnn_version VERSION_LESS 9.8)
  if(NOT TRAINCTL_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "TRAINCTL_CUDA is ${TRAINCTL_CUDA}, but there is no CUDA toolkit of version 12.8 or later with cuDNN 9.8 or later")
  endif()
  message(STATUS "The CUDA interpreter is left out: no CUDA toolkit 12.8 with cuDNN 9.8 was found")
  return()
endif()

set(CMAKE_CUDA_ARCHITECTURES 80-real 90)  # 90 includes PTX for later GPUs; core/backend/cuda/runtime/device.cpp refuses GPUs before 8.0
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.26 does not know nvcc's option for C++20
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
file(GLOB_RECURSE TRAINCTL_CUDA_SOURCES CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/core/backend/cuda/*.cpp ${PROJECT_SOURCE_DIR}/core/backend/cuda/*.cu)
# The build needs only NCCL's header. The module loads NCCL's library at run time.
find_path(NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
set(nccl_sources absent.cpp)
if(NCCL_INCLUDE)
  set(nccl_sources nccl.cpp library.cpp registered.cpp)
endif()
list(TRANSFORM nccl_sources PREPEND ${PROJECT_SOURCE_DIR}/parallel/comm/nccl/)
list(APPEND TRAINCTL_CUDA_SOURCES ${nccl_sources}
  ${PROJECT_SOURCE_DIR}/parallel/comm/nccl/module.cpp ${PROJECT_SOURCE_DIR}/parallel/comm/call.cpp
  ${PROJECT_SOURCE_DIR}/parallel/comm/call_record.cpp)
trainctl_unity_cuda(TRAINCTL_CUDA_SOURCES)
add_library(trainctl_cuda MODULE ${TRAINCTL_CUDA_SOURCES})
trainctl_unity(trainctl_cuda)
set_target_properties(trainctl_cuda PROPERTIES PREFIX "" BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON)
target_include_directories(trainctl_cuda PRIVATE ${PROJECT_SOURCE_DIR} $<$<BOOL:${NCCL_INCLUDE}>:${NCCL_INCLUDE}>)
target_compile_options(trainctl_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--extended-lambda --expt-relaxed-constexpr>)
# The module does not link core: it uses the program's symbols of core.
target_link_libraries(trainctl_cuda PRIVATE fmt::fmt CUDA::cudart_static CUDA::cublasLt ${CUDNN_LIBRARY})
add_dependencies(trainctl trainctl_cuda)
install(TARGETS trainctl_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/trainctl)

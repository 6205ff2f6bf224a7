# Precompiles the headers of the standard library and {fmt}, which are most of the code that a source includes.
if(NOT TRAINCTL_PRECOMPILED)
  return()
endif()

# trainctl_headers(NAME LIBRARIES...): precompiles the headers for targets that link the libraries. The compiler ignores the
# precompiled headers if a target has a compiler option or definition that they were compiled without.
function(trainctl_headers name)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${name}.cpp CONTENT "")
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE ${ARGN})
  target_precompile_headers(${name} PRIVATE <algorithm> <array> <chrono> <cmath> <cstdint> <cstring> <filesystem>
    <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view> <thread> <tuple>
    <utility> <variant> <vector> <fmt/format.h>)
endfunction()
trainctl_headers(trainctl_headers fmt::fmt)
trainctl_headers(trainctl_headers_openmp fmt::fmt OpenMP::OpenMP_CXX)
foreach(library ${trainctl_libraries})
  get_target_property(linked ${library} LINK_LIBRARIES)
  if("OpenMP::OpenMP_CXX" IN_LIST linked)
    target_precompile_headers(${library} REUSE_FROM trainctl_headers_openmp)
  elseif(NOT library STREQUAL "trainctl_core_base")  # has definitions for spdlog
    target_precompile_headers(${library} REUSE_FROM trainctl_headers)
  endif()
endforeach()

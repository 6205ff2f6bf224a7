# TRAINCTL_CPU=native compiles the CPU's kernels for the instruction set of this machine alone, which takes half the time.
# Such a program ends with an error on a processor that lacks the instruction set. By default the kernels are compiled for
# all instruction sets, and the program chooses at run time.
set(TRAINCTL_CPU all CACHE STRING "The processors for which kernels are compiled: all or native")
set(built_for std::nullopt)
if(TRAINCTL_CPU STREQUAL "native")
  # core/backend/cpu/runtime/processor.cpp has the same conditions.
  file(STRINGS /proc/cpuinfo flags REGEX "^flags" LIMIT_COUNT 1)
  set(built_for baseline)
  if(flags MATCHES " avx2 " AND flags MATCHES " fma ")
    set(built_for avx2)
    if(flags MATCHES " avx512f " AND flags MATCHES " avx512bw " AND flags MATCHES " avx512dq " AND flags MATCHES " avx512vl ")
      set(built_for avx512)
    endif()
  endif()
  message(STATUS "Kernels are compiled for this machine's instruction set alone: ${built_for}")
  string(PREPEND built_for "InstructionSet::")
elseif(NOT TRAINCTL_CPU STREQUAL "all")
  message(FATAL_ERROR "TRAINCTL_CPU is ${TRAINCTL_CPU}; it must be all or native")
endif()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/built_for.h CONTENT
  "// The instruction set that the program is built for (cmake/processor.cmake).\n#define TRAINCTL_BUILT_FOR ${built_for}\n")
target_include_directories(trainctl_core_backend PUBLIC ${PROJECT_BINARY_DIR}/generated)

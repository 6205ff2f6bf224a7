# Builds the program fuzz: libFuzzer with the targets of test/fuzz. Only the libraries that read bytes from outside are
# compiled here, by clang with sanitizers. All others are those of the build in TRAINCTL_FUZZ_LIBRARIES.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "TRAINCTL_FUZZER needs clang: scripts/bench/fuzz chooses it")
endif()
set(TRAINCTL_FUZZ_LIBRARIES ${PROJECT_SOURCE_DIR}/build/release CACHE PATH "The build whose other libraries fuzz links")
set(readers core_base core_tensor core_spec core_expression io_yaml io_datasets io_text io_checkpoint io_hugging_face
  io_weights parallel_launch)
list(TRANSFORM readers PREPEND trainctl_)
set(sanitizers address,undefined)
# Without checks that AddressSanitizer makes, too, or that need all libraries to be compiled by clang.
set(instrumented -O1 -gline-tables-only -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,${sanitizers}
  -fno-sanitize=null,object-size,vptr,function -fno-sanitize-recover=undefined -Wno-unknown-warning-option)

set(outside)  # libraries that are not of this project
set(others)
foreach(library ${trainctl_libraries})
  get_target_property(linked ${library} LINK_LIBRARIES)
  list(FILTER linked EXCLUDE REGEX "trainctl_")
  list(APPEND outside ${linked})
  if(library IN_LIST readers)
    target_compile_options(${library} PRIVATE ${instrumented})
    # Without its links, building it builds no other library.
    set_target_properties(${library} PROPERTIES LINK_LIBRARIES "${linked}" INTERFACE_LINK_LIBRARIES "")
    target_include_directories(${library} PRIVATE ${PROJECT_BINARY_DIR}/generated)
  else()
    list(APPEND others ${TRAINCTL_FUZZ_LIBRARIES}/lib${library}.a)
  endif()
endforeach()
list(REMOVE_DUPLICATES outside)
list(REMOVE_ITEM outside OpenMP::OpenMP_CXX)  # of clang; the other libraries are compiled by gcc

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/fuzz/*.cpp)
list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")  # the tests of the other builds
add_executable(fuzz EXCLUDE_FROM_ALL ${sources} ${PROJECT_SOURCE_DIR}/io/metrics/prometheus/server.cpp)
trainctl_unity(fuzz)
target_include_directories(fuzz PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
target_compile_options(fuzz PRIVATE ${instrumented})
target_link_options(fuzz PRIVATE -fsanitize=fuzzer,${sanitizers})
target_link_libraries(fuzz PRIVATE -Wl,--start-group ${readers} ${others} -Wl,--end-group ${outside} gomp)

# One Catch2 program per folder of test/ that holds .cpp files; test/mpi runs under mpirun (see there).
include(Catch)

# Seconds that a test may take: what hangs is ended, what is slow under a sanitizer and beside other work is not.
set(limit 600)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(limit 1200)
endif()
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
  target_sources(trainctl_core PRIVATE ${PROJECT_SOURCE_DIR}/test/tsan_openmp.cpp)
endif()

file(GLOB catch_main ${PROJECT_SOURCE_DIR}/test/main.cpp)
add_library(trainctl_test_main OBJECT ${catch_main})
target_include_directories(trainctl_test_main PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(trainctl_test_main PUBLIC Catch2::Catch2)

# These replace operator new, which a compiler that sees its callers too takes for a mistake.
set_source_files_properties(${PROJECT_SOURCE_DIR}/test/backend/count_allocations.cpp
  ${PROJECT_SOURCE_DIR}/test/comm/allocation_test.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

file(GLOB folders LIST_DIRECTORIES true CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/*)
foreach(folder ${folders})
  get_filename_component(name ${folder} NAME)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  if(NOT IS_DIRECTORY ${folder} OR NOT sources OR name MATCHES "^(mpi|cuda|emulated_gpu|gpu_runs)$"
      OR (name STREQUAL "cudnn" AND NOT TARGET trainctl_cuda))
    continue()
  endif()
  add_executable(test-${name} ${sources})
  trainctl_unity(test-${name})
  target_link_libraries(test-${name} PRIVATE trainctl_test_main trainctl_cmd Catch2::Catch2)
  target_compile_options(test-${name} PRIVATE -O1)  # tests are compiled far more often than they run
  target_compile_definitions(test-${name} PRIVATE
    TRAINCTL_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TRAINCTL_BINARY="$<TARGET_FILE:trainctl>")
  add_dependencies(test-${name} trainctl)
  set(properties TIMEOUT ${limit})
  if(name MATCHES "^(run|launch|faults)$")  # start ranks: beside another test these would share cores
    list(APPEND properties PROCESSORS 2)
  endif()
  if(name STREQUAL "cudnn")  # what cuDNN and cuBLASLt leave lies in libraries that they have unloaded: nothing names it
    list(APPEND properties ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0")
  endif()
  catch_discover_tests(test-${name} TEST_PREFIX "${name}: " DISCOVERY_MODE PRE_TEST PROPERTIES ${properties})
endforeach()
# What stands for the driver where there is none.
add_library(emulated_nvml SHARED ${PROJECT_SOURCE_DIR}/test/gpu_monitor/emulated_nvml.c)
set_target_properties(emulated_nvml PROPERTIES OUTPUT_NAME nvidia-ml SUFFIX .so.1
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/emulated_nvml)
target_compile_definitions(test-gpu_monitor PRIVATE TRAINCTL_EMULATED_NVML_LIBRARY="$<TARGET_FILE:emulated_nvml>")
target_compile_definitions(test-run PRIVATE TRAINCTL_EMULATED_NVML_LIBRARY="$<TARGET_FILE:emulated_nvml>"
  TRAINCTL_CUDA_MODULE=$<TARGET_EXISTS:trainctl_cuda>)
add_dependencies(test-gpu_monitor emulated_nvml)
add_dependencies(test-run emulated_nvml)
# Preloaded into the program, lets its system calls fail.
add_library(fault_injection MODULE ${PROJECT_SOURCE_DIR}/test/faults/fault_injection.c)
target_link_libraries(fault_injection PRIVATE ${CMAKE_DL_LIBS})
target_compile_options(fault_injection PRIVATE -fno-sanitize=all)
target_sources(test-faults PRIVATE ${PROJECT_SOURCE_DIR}/test/run/command.cpp)
target_compile_definitions(test-faults PRIVATE TRAINCTL_FAULT_INJECTION_LIBRARY="$<TARGET_FILE:fault_injection>")
add_dependencies(test-faults fault_injection)
set(cudnn_sources runtime/check.cpp cudnn/convolution.cpp cudnn/descriptor.cpp cudnn/engines.cpp cudnn/graph.cpp
  cudnn/plans.cpp)
if(TARGET test-cudnn)  # what the installed cuDNN offers, asked without a GPU
  list(TRANSFORM cudnn_sources PREPEND ${PROJECT_SOURCE_DIR}/core/backend/cuda/)
  target_sources(test-cudnn PRIVATE ${cudnn_sources})
  target_link_libraries(test-cudnn PRIVATE CUDA::cudart_static CUDA::cublasLt ${CUDNN_LIBRARY})
  add_library(described_driver SHARED ${PROJECT_SOURCE_DIR}/test/cudnn/described_driver.c)
  set_target_properties(described_driver PROPERTIES OUTPUT_NAME cuda SUFFIX .so.1
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/described_driver)
  target_include_directories(described_driver PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_definitions(test-cudnn PRIVATE TRAINCTL_DESCRIBED_DRIVER="$<TARGET_FILE:described_driver>")
  add_dependencies(test-cudnn described_driver)
endif()
target_sources(test-ops PRIVATE
  ${PROJECT_SOURCE_DIR}/test/backend/run_op.cpp ${PROJECT_SOURCE_DIR}/test/backend/backend.cpp)
# Processors without AVX-512 compute bfloat16 by other kernels.
add_test(NAME "ops: without AVX-512" COMMAND test-ops)
set_tests_properties("ops: without AVX-512" PROPERTIES ENVIRONMENT ONEDNN_MAX_CPU_ISA=AVX2 TIMEOUT ${limit})
include(cmake/emulated_gpu.cmake)
if(EXISTS ${PROJECT_SOURCE_DIR}/test/mpi/CMakeLists.txt)
  add_subdirectory(test/mpi)
endif()
add_subdirectory(test/slurm)
add_subdirectory(test/hosts)
add_test(NAME descriptors COMMAND python3 ${PROJECT_SOURCE_DIR}/scripts/bench/descriptors --short $<TARGET_FILE:trainctl>)
set_tests_properties(descriptors PROPERTIES TIMEOUT 600 PROCESSORS 2)
add_test(NAME gpu_check COMMAND python3 ${PROJECT_SOURCE_DIR}/test/gpu_check/gpu_check_test.py)
set_tests_properties(gpu_check PROPERTIES TIMEOUT 600 PROCESSORS 2)
if(TARGET trainctl_cuda AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  add_test(NAME kernels COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-kernels ${PROJECT_BINARY_DIR})
  set_tests_properties(kernels PROPERTIES TIMEOUT 900 PROCESSORS 2)
endif()
add_test(NAME keras_export COMMAND python3 ${PROJECT_SOURCE_DIR}/test/weights/keras_export_test.py $<TARGET_FILE:trainctl>)
set_tests_properties(keras_export PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 PROCESSORS 2)
add_test(NAME onnxruntime COMMAND python3 ${PROJECT_SOURCE_DIR}/test/onnx/onnx_test.py $<TARGET_FILE:trainctl>)
set_tests_properties(onnxruntime PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1200 PROCESSORS 2)
add_test(NAME step_model
  COMMAND python3 ${PROJECT_SOURCE_DIR}/test/step_model/step_model_test.py $<TARGET_FILE_DIR:trainctl>)
set_tests_properties(step_model PROPERTIES TIMEOUT 600)
add_test(NAME tensorboard
  COMMAND python3 ${PROJECT_SOURCE_DIR}/test/tensorboard/tensorboard_test.py $<TARGET_FILE:trainctl>)
set_tests_properties(tensorboard PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 PROCESSORS 2)
add_test(NAME report COMMAND python3 ${PROJECT_SOURCE_DIR}/test/report/report_test.py $<TARGET_FILE:trainctl>)
set_tests_properties(report PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 PROCESSORS 2)
add_test(NAME kubernetes
  COMMAND python3 ${PROJECT_SOURCE_DIR}/test/kubernetes/manifest_test.py $<TARGET_FILE:trainctl>)
set_tests_properties(kubernetes PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)
add_test(NAME docs COMMAND python3 ${PROJECT_SOURCE_DIR}/test/docs/docs_test.py $<TARGET_FILE:trainctl>)
set_tests_properties(docs PROPERTIES TIMEOUT 900 PROCESSORS 2)
add_test(NAME mutated_configs COMMAND python3 ${PROJECT_SOURCE_DIR}/scripts/bench/mutate-configs
  --count 40 --seed 2 --trainctl $<TARGET_FILE:trainctl>)
set_tests_properties(mutated_configs PROPERTIES TIMEOUT 600 PROCESSORS 2)
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize" AND NOT TRAINCTL_MPI)  # a build of its own
  add_test(NAME mpich COMMAND ${PROJECT_SOURCE_DIR}/scripts/test-mpi mpich)
  set_tests_properties(mpich PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 2400 PROCESSORS 2)
endif()
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  add_test(NAME bundle COMMAND ${PROJECT_SOURCE_DIR}/scripts/test-bundle ${PROJECT_BINARY_DIR})
  set_tests_properties(bundle PROPERTIES LABELS bundle SKIP_RETURN_CODE 77 TIMEOUT 600 PROCESSORS 2)
  add_test(NAME packages COMMAND ${PROJECT_SOURCE_DIR}/scripts/test-packages ${PROJECT_BINARY_DIR})
  set_tests_properties(packages PROPERTIES LABELS bundle SKIP_RETURN_CODE 77 TIMEOUT 900 PROCESSORS 2 DEPENDS bundle)
endif()

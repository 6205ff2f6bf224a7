# Builds one Catch2 program for each folder of test/ that mirrors a source folder. The program links the library of the
# source folder and the other libraries that the tests use. Tests in test/cmd, test/runs and test/faults start trainctl;
# test/mpi runs under mpirun.
include(Catch)

# CTest starts tests while their PROCESSORS fit in the number of its jobs, which is 5 in CMakePresets.json: two for each of
# two cores, and one more for a test that waits for most of its time. So one such test runs beside those that use the cores.
set(waits PROCESSORS 1 RESOURCE_LOCK waiting)
set(one_core 2)
set(two_cores 4)
# The time limit of a test in seconds. Only a test that hangs takes as long, even under a sanitizer or on a busy machine.
set(limit 600)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(limit 1200)
endif()
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
  target_sources(trainctl_core_backend PRIVATE ${PROJECT_SOURCE_DIR}/test/tsan_openmp.cpp)
endif()

if(TRAINCTL_LIBRARIES)
  add_library(trainctl_test_main OBJECT IMPORTED GLOBAL)
  set_target_properties(trainctl_test_main PROPERTIES IMPORTED_OBJECTS
    ${TRAINCTL_LIBRARIES}/CMakeFiles/trainctl_test_main.dir/test/main.cpp.o)
else()
  add_library(trainctl_test_main OBJECT ${PROJECT_SOURCE_DIR}/test/main.cpp)
  target_link_libraries(trainctl_test_main PRIVATE Catch2::Catch2)
endif()
target_include_directories(trainctl_test_main INTERFACE ${PROJECT_SOURCE_DIR})
target_link_libraries(trainctl_test_main INTERFACE Catch2::Catch2)

# These sources replace operator new. A compiler that sees operator new together with its callers reports a mistake.
set_source_files_properties(${PROJECT_SOURCE_DIR}/test/support/count_allocations.cpp
  ${PROJECT_SOURCE_DIR}/test/parallel/comm/allocation_test.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# This test includes templates of kernels, whose loops have pragmas of OpenMP.
set_source_files_properties(${PROJECT_SOURCE_DIR}/test/core/backend/winograd_test.cpp PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON COMPILE_OPTIONS -fopenmp-simd)

# trainctl_test(FOLDER LABEL LIBRARIES...): builds the program test-FOLDER (with - instead of /) of the tests in
# test/FOLDER. LABEL is `unit` if the tests start no rank and no command, and `runs` otherwise. CTest reserves two cores
# for each `runs` test, except in the folders where most tests start one process or wait for most of their time, and
# except for tests with the tag [waits].
set(runs_on_one_core cmd parallel/launch)
set(has_waits parallel/launch runs)
function(trainctl_test folder label)
  string(REPLACE "/" "-" name test-${folder})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/${folder}/*.cpp)
  string(REPLACE "test-core-" "trainctl_kernel_tests_" objects ${name})
  if(TARGET ${objects})  # see kernel_tests.cmake
    get_target_property(compiled ${objects} SOURCES)
    list(REMOVE_ITEM sources ${compiled})
    list(APPEND ARGN ${objects})
  endif()
  add_executable(${name} ${sources})
  trainctl_unity(${name})
  target_link_libraries(${name} PRIVATE trainctl_test_main ${ARGN} Catch2::Catch2)
  target_compile_options(${name} PRIVATE -O1)  # tests are compiled far more often than they run
  target_compile_definitions(${name} PRIVATE
    TRAINCTL_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TRAINCTL_BINARY="$<TARGET_FILE:trainctl>")
  set(cores ${one_core})
  if(label STREQUAL "runs")
    add_dependencies(${name} trainctl)
    if(NOT folder IN_LIST runs_on_one_core)
      set(cores ${two_cores})
    endif()
  endif()
  set(properties TIMEOUT ${limit} LABELS ${label} PROCESSORS ${cores})
  set(discover ${name} TEST_PREFIX "${folder}: " DISCOVERY_MODE PRE_TEST)
  if(folder IN_LIST has_waits)
    catch_discover_tests(${discover} TEST_SPEC [waits] PROPERTIES TIMEOUT ${limit} LABELS ${label} ${waits} COST 50)
    list(APPEND discover TEST_SPEC ~[waits]~[.])
  endif()
  catch_discover_tests(${discover} PROPERTIES ${properties} ${test_properties})
endfunction()

include(cmake/kernel_tests.cmake)
trainctl_test(core/base unit trainctl_core_tensor)
trainctl_test(core/tensor unit trainctl_core_tensor)
trainctl_test(core/spec unit trainctl_core_metrics trainctl_io_yaml)
trainctl_test(core/expression unit trainctl_core_expression)
trainctl_test(core/graph unit trainctl_core_graph)
trainctl_test(core/layers unit trainctl_io_yaml)
trainctl_test(core/optim unit trainctl_core_optim)
trainctl_test(core/metrics unit trainctl_core_metrics)
trainctl_test(core/program unit trainctl_core_exec trainctl_parallel_comm trainctl_io_yaml)
trainctl_test(core/backend unit trainctl_core_backend)
trainctl_test(core/compile unit trainctl_core_compile trainctl_io_yaml)
trainctl_test(core/exec unit trainctl_parallel_mesh trainctl_parallel_comm trainctl_io_checkpoint)
trainctl_test(core/ops unit trainctl_core_exec trainctl_parallel_comm trainctl_io_checkpoint trainctl_io_yaml)
target_sources(test-core-ops PRIVATE ${PROJECT_SOURCE_DIR}/test/core/backend/run_op.cpp
  ${PROJECT_SOURCE_DIR}/test/core/backend/backend.cpp)
trainctl_test(io/yaml unit trainctl_io_yaml)
trainctl_test(io/datasets unit trainctl_io_loader trainctl_io_yaml)
trainctl_test(io/loader unit trainctl_io_loader trainctl_io_yaml)
trainctl_test(io/text unit trainctl_io_text)
trainctl_test(io/checkpoint unit trainctl_io_checkpoint trainctl_io_yaml)
trainctl_test(io/weights unit trainctl_io_keras trainctl_parallel_comm)
trainctl_test(io/keras unit trainctl_io_keras trainctl_io_loader trainctl_parallel_comm)
trainctl_test(io/onnx unit trainctl_io_onnx trainctl_io_yaml)
trainctl_test(io/metrics unit trainctl_io_metrics trainctl_io_loader)
foreach(name test-io-datasets test-io-loader test-io-metrics)
  target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/test/support/failing_calls.cpp)
endforeach()
trainctl_test(io/report unit trainctl_io_report)
trainctl_test(parallel/comm unit trainctl_parallel_comm)
trainctl_test(parallel/bench unit trainctl_parallel_bench)
target_sources(test-parallel-bench PRIVATE ${PROJECT_SOURCE_DIR}/test/parallel/comm/conformance.cpp)
trainctl_test(parallel/strategies unit trainctl_parallel_trainer trainctl_parallel_mesh trainctl_io_yaml)
trainctl_test(parallel/checkpoint unit trainctl_parallel_trainer trainctl_parallel_mesh trainctl_io_checkpoint trainctl_io_yaml)
trainctl_test(parallel/health unit trainctl_parallel_health trainctl_parallel_mesh trainctl_io_checkpoint trainctl_io_yaml)
trainctl_test(parallel/launch runs trainctl_parallel_launch)
trainctl_test(parallel/trainer unit trainctl_parallel_trainer trainctl_parallel_mesh trainctl_io_yaml)
trainctl_test(parallel/plan unit trainctl_parallel_plan trainctl_io_yaml)
trainctl_test(run unit trainctl_run)
foreach(name test-core-backend test-run)
  target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/test/support/count_allocations.cpp)
endforeach()
trainctl_test(fuzz unit trainctl_run)
trainctl_test(cmd runs trainctl_io_weights trainctl_io_loader trainctl_io_yaml)
trainctl_test(runs runs trainctl_run)
trainctl_test(faults runs trainctl_io_checkpoint)
foreach(name test-cmd test-runs test-faults)
  target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/test/support/command.cpp)
endforeach()

if(TARGET trainctl_cuda)  # these tests ask the installed cuDNN what it supports, without a GPU
  # cuDNN and cuBLASLt leak memory in libraries that they unload. The leak checker cannot name unloaded libraries.
  set(test_properties ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0")
  trainctl_test(cudnn unit trainctl_core_exec)
  unset(test_properties)
  set(cudnn_sources runtime/check.cpp cudnn/convolution.cpp cudnn/descriptor.cpp cudnn/engines.cpp cudnn/graph.cpp
    cudnn/plans.cpp)
  list(TRANSFORM cudnn_sources PREPEND ${PROJECT_SOURCE_DIR}/core/backend/cuda/)
  target_sources(test-cudnn PRIVATE ${cudnn_sources})
  target_link_libraries(test-cudnn PRIVATE CUDA::cudart_static CUDA::cublasLt ${CUDNN_LIBRARY})
  add_library(described_driver SHARED ${PROJECT_SOURCE_DIR}/test/cudnn/described_driver.c)
  set_target_properties(described_driver PROPERTIES OUTPUT_NAME cuda SUFFIX .so.1
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/described_driver)
  target_include_directories(described_driver PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_definitions(test-cudnn PRIVATE TRAINCTL_DESCRIBED_DRIVER="$<TARGET_FILE:described_driver>")
  add_dependencies(test-cudnn described_driver)
  # These tests compile kernels with the installed NVRTC, without a GPU.
  trainctl_test(nvrtc unit trainctl_core_backend)
  set(nvrtc_sources nvrtc.cpp nvrtc_library.cpp source.cpp)
  list(TRANSFORM nvrtc_sources PREPEND ${PROJECT_SOURCE_DIR}/core/backend/cuda/runtime_compiled/)
  target_sources(test-nvrtc PRIVATE ${nvrtc_sources})
  target_include_directories(test-nvrtc PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
endif()

# Builds the emulated NVML library for machines without an NVIDIA driver.
add_library(emulated_nvml SHARED ${PROJECT_SOURCE_DIR}/test/parallel/health/emulated_nvml.c)
set_target_properties(emulated_nvml PROPERTIES OUTPUT_NAME nvidia-ml SUFFIX .so.1
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/emulated_nvml)
foreach(name test-parallel-health test-cmd test-runs)
  target_compile_definitions(${name} PRIVATE TRAINCTL_EMULATED_NVML_LIBRARY="$<TARGET_FILE:emulated_nvml>"
    TRAINCTL_CUDA_MODULE=$<TARGET_EXISTS:trainctl_cuda>)
  add_dependencies(${name} emulated_nvml)
endforeach()
# Builds a library that makes system calls fail in a program that preloads it.
add_library(fault_injection MODULE ${PROJECT_SOURCE_DIR}/test/faults/fault_injection.c)
target_link_libraries(fault_injection PRIVATE ${CMAKE_DL_LIBS})
target_compile_options(fault_injection PRIVATE -fno-sanitize=all)
target_compile_definitions(test-faults PRIVATE TRAINCTL_FAULT_INJECTION_LIBRARY="$<TARGET_FILE:fault_injection>")
add_dependencies(test-faults fault_injection)
# Builds a library that makes reads of one file block in a program that preloads it.
add_library(blocked_read MODULE ${PROJECT_SOURCE_DIR}/test/runs/blocked_read.c)
target_link_libraries(blocked_read PRIVATE ${CMAKE_DL_LIBS})
target_compile_options(blocked_read PRIVATE -fno-sanitize=all)
target_compile_definitions(test-runs PRIVATE TRAINCTL_BLOCKED_READ_LIBRARY="$<TARGET_FILE:blocked_read>")
add_dependencies(test-runs blocked_read)
# On processors without AVX-512, other kernels compute bfloat16: this test selects them.
add_test(NAME "core/ops: without AVX-512" COMMAND test-core-ops)
set_tests_properties("core/ops: without AVX-512" PROPERTIES ENVIRONMENT ONEDNN_MAX_CPU_ISA=AVX2 TIMEOUT ${limit} LABELS unit
  PROCESSORS ${one_core})
include(cmake/emulated_gpu.cmake)
if(EXISTS ${PROJECT_SOURCE_DIR}/test/mpi/CMakeLists.txt)
  add_subdirectory(test/mpi)
endif()
add_subdirectory(test/slurm)
add_subdirectory(test/hosts)

# trainctl_script_test(NAME LABEL SECONDS COMMAND...): adds a test that runs a script. The script's exit
# code 77 means that the test was skipped. CTest reserves two cores for it, unless its label is `unit`.
function(trainctl_script_test name label seconds)
  add_test(NAME ${name} COMMAND ${ARGN})
  set(cores ${two_cores})
  if(label STREQUAL "unit")
    set(cores ${one_core})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77 TIMEOUT ${seconds} PROCESSORS ${cores})
endfunction()
set(test ${PROJECT_SOURCE_DIR}/test)
set(scripts ${PROJECT_SOURCE_DIR}/scripts)
trainctl_script_test(descriptors runs 600 python3 ${scripts}/bench/descriptors --short $<TARGET_FILE:trainctl>)
foreach(name report earlier rows)
  trainctl_script_test(gpu_check_${name} unit 600 python3 ${test}/gpu_check/${name}_test.py)
endforeach()
trainctl_script_test(keras_export runs 600 python3 ${test}/io/weights/keras_export_test.py $<TARGET_FILE:trainctl>)
trainctl_script_test(transformers runs 600 python3 ${test}/io/hugging_face/transformers_test.py $<TARGET_FILE:trainctl>)
trainctl_script_test(onnxruntime runs 1200 python3 ${test}/io/onnx/onnx_test.py $<TARGET_FILE:trainctl>)
trainctl_script_test(step_model runs 600 python3 ${test}/step_model/step_model_test.py $<TARGET_FILE_DIR:trainctl>)
trainctl_script_test(tensorboard runs 600 python3 ${test}/io/metrics/tensorboard_test.py $<TARGET_FILE:trainctl>)
trainctl_script_test(report runs 600 python3 ${test}/io/report/report_test.py $<TARGET_FILE:trainctl>)
trainctl_script_test(kubernetes runs 300 python3 ${test}/kubernetes/manifest_test.py $<TARGET_FILE:trainctl>)
trainctl_script_test(docs runs 900 python3 ${test}/docs/docs_test.py $<TARGET_FILE:trainctl>)
trainctl_script_test(fault_runs runs 2400 python3 ${scripts}/bench/fault_runs/campaign.py --runs 30 --jobs 2 --seed 1
  --trainctl $<TARGET_FILE:trainctl>)
trainctl_script_test(mutated_configs runs 600 python3 ${scripts}/bench/mutate-configs --count 40 --seed 2
  --trainctl $<TARGET_FILE:trainctl>)
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  if(TARGET trainctl_cuda)
    trainctl_script_test(kernels slow 900 ${scripts}/check-kernels ${PROJECT_BINARY_DIR})
  endif()
  if(NOT TRAINCTL_MPI)  # the script builds what depends on MPI, and waits for ranks for most of its time
    trainctl_script_test(mpich slow 2400 ${scripts}/test-mpi mpich ${PROJECT_BINARY_DIR})
    set_tests_properties(mpich PROPERTIES ${waits} COST 150)
  endif()
  trainctl_script_test(bundle slow 600 ${scripts}/test-bundle ${PROJECT_BINARY_DIR})
  trainctl_script_test(packages slow 900 ${scripts}/test-packages ${PROJECT_BINARY_DIR})
  # The packages use one core or wait for most of their time: they are tested early, while other tests run.
  set_tests_properties(bundle PROPERTIES COST 300)
  set_tests_properties(packages PROPERTIES DEPENDS bundle PROCESSORS ${one_core} COST 100)
endif()

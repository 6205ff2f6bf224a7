# Tests ranks on real GPUs and on emulated GPUs. The tests on real GPUs are skipped on a machine without a GPU.

# gpu_test(KIND PROGRAM NAME RANKS CODE SAYS ARGUMENTS...): RANKS may be "gpus", for one rank on each GPU. The
# test is skipped without a GPU. If it needs a peer, it is also skipped with only one GPU.
function(gpu_test kind program name ranks code says)
  string(JOIN " " arguments ${ARGN})
  add_test(NAME "mpi: ${name}, ${kind}" COMMAND sh -c
    "gpus=$(${program} gpus); ranks=$(echo ${ranks} | sed s/gpus/$gpus/)
     test \"$gpus\" -ge 1 || { echo 'skipped, no CUDA device'; exit 0; }
     test ${ranks} != gpus -o ${code} -eq 0 -o \"$gpus\" -ge 2 || { echo 'skipped, one CUDA device alone'; exit 0; }
     out=$(${MPIEXEC_EXECUTABLE} -n $ranks ${mpirun} ${program} ${arguments} 2>&1)
     code=$?; echo \"$out\"; test $code -eq ${code} || { echo \"exit code $code instead of ${code}\"; exit 1; }
     echo \"$out\" | grep -q '${says}'")
  set_tests_properties("mpi: ${name}, ${kind}" PROPERTIES TIMEOUT 600 LABELS runs PROCESSORS ${two_cores}
    SKIP_REGULAR_EXPRESSION "skipped, (no|one) CUDA device" ENVIRONMENT "${as_root};TRAINCTL_EMULATED_GPUS=2")
endfunction()

function(gpu_tests kind program)
  gpu_test(${kind} ${program} "staged: conformance on 2" 2 0 "all cases passed" conformance staged)
  gpu_test(${kind} ${program} "staged: conformance on 3" 3 0 "all cases passed" conformance staged)
  gpu_test(${kind} ${program} "staged: a late rank is named" 2 5
    "all_reduce of 4 bytes: rank 1 did not arrive within 2 s" late staged)
  gpu_test(${kind} ${program} "staged: a sender that does not send is named" 2 5
    "receive of 4 bytes: rank 1 did not arrive within 2 s" silent staged)
  gpu_test(${kind} ${program} "staged: one rank's abort ends all" 2 4 "rank 1 aborts" abort staged)
  gpu_test(${kind} ${program} "staged: collectives inside networks" 2 0 "all networks agree" networks staged)
  gpu_test(${kind} ${program} "nccl: collectives inside networks" gpus 0 "all networks agree" networks nccl)
  gpu_test(${kind} ${program} "nccl: conformance" gpus 0 "all cases passed" conformance nccl)
  gpu_test(${kind} ${program} "nccl: calls are recorded" gpus 0 "all calls are recorded" records nccl)
  gpu_test(${kind} ${program} "nccl: a late rank is named" gpus 5
    "last call to the peers was all_reduce of 4 bytes: .*rank 1 did not arrive" late nccl)
  gpu_test(${kind} ${program} "nccl: a sender that does not send is named" gpus 5
    "last call to the peers was receive of 4 bytes: .*rank 1 did not arrive" silent nccl)
  gpu_test(${kind} ${program} "nccl: a failed communicator says why" gpus 5 "the communicator has failed: waited" outlive nccl)
  gpu_test(${kind} ${program} "nccl: one rank's abort ends all" gpus 4 "rank 1 aborts" abort nccl)
endfunction()

gpu_tests(cuda $<TARGET_FILE:test-mpi>)

if(TARGET trainctl_cuda_emulated)
  set(emulated ${PROJECT_BINARY_DIR}/emulated)
  add_custom_command(OUTPUT ${emulated}/test-mpi
    COMMAND ${CMAKE_COMMAND} -E rm -f ${emulated}/test-mpi
    COMMAND ${CMAKE_COMMAND} -E create_hardlink $<TARGET_FILE:test-mpi> ${emulated}/test-mpi
    DEPENDS test-mpi)
  add_custom_target(test-mpi-emulated ALL DEPENDS ${emulated}/test-mpi trainctl_cuda_emulated)
  gpu_tests(emulated ${emulated}/test-mpi)

  # emulated_run(NAME GPUS CODE SAYS ARGUMENTS...): runs trainctl itself, under its supervisor.
  function(emulated_run name gpus code says)
    string(JOIN " " arguments ${ARGN})
    add_test(NAME "mpi: ${name}" COMMAND sh -c
      "folder=$(mktemp -d); cd $folder
       out=$(${emulated}/trainctl ${arguments} 2>&1); code=$?
       cd /; rm -rf $folder; echo \"$out\"
       test $code -eq ${code} || { echo \"exit code $code instead of ${code}\"; exit 1; }
       echo \"$out\" | grep -q '${says}'")
    set_tests_properties("mpi: ${name}" PROPERTIES TIMEOUT 600 LABELS runs PROCESSORS ${two_cores}
      ENVIRONMENT "${as_root};TRAINCTL_EMULATED_GPUS=${gpus}")
  endfunction()

  set(quickstart ${PROJECT_SOURCE_DIR}/configs/quickstart.yaml --progress none --set train.max_steps=12 --device cuda)
  emulated_run("quickstart on two emulated GPUs, nccl" 2 0 "completed after 12 steps"
    run ${quickstart} --ranks 2 --set cluster.communication=nccl)
  emulated_run("nccl reduces registered memory" 2 0 "reduces .* in place: the memory is registered"
    run ${quickstart} --ranks 2 --set cluster.communication=nccl -v)
  emulated_run("nccl, where one rank cannot register memory" 2 0 "does not reduce .* in place: ncclCommRegister"
    run ${quickstart} --ranks 2 --set cluster.communication=nccl)
  set_property(TEST "mpi: nccl, where one rank cannot register memory" APPEND PROPERTY
    ENVIRONMENT TRAINCTL_EMULATED_NCCL_REFUSES=1)
  emulated_run("nccl, where one rank cannot record a step" 2 0 "steps are not recorded, because another rank cannot"
    run ${quickstart} --ranks 2 --set cluster.communication=nccl)
  set_property(TEST "mpi: nccl, where one rank cannot record a step" APPEND PROPERTY
    ENVIRONMENT TRAINCTL_EMULATED_CAPTURE_REFUSES=1)
  set(meshes "pipeline=2" "tensor=2" "pipeline=2 --set strategy.tensor=2 --set strategy.micro_batches=4")
  foreach(mesh ${meshes})
    foreach(recorded true false)
      emulated_run("nccl in one hardware queue, ${mesh}, cuda_graphs ${recorded}" 4 0 "completed after 12 steps"
        run ${quickstart} --ranks 4 --set cluster.communication=nccl --set train.cuda_graphs=${recorded}
        --set strategy.${mesh})
      set_property(TEST "mpi: nccl in one hardware queue, ${mesh}, cuda_graphs ${recorded}" APPEND PROPERTY
        ENVIRONMENT TRAINCTL_EMULATED_NCCL_ONE_QUEUE=1)
    endforeach()
    emulated_run("nccl before 2.26 on one stream, ${mesh}" 4 0 "completed after 12 steps"
      run ${quickstart} --ranks 4 --set cluster.communication=nccl --set train.cuda_graphs=false
      --set strategy.bucket_size=4kB --set strategy.first_bucket_size=4kB --set strategy.${mesh})
    set_property(TEST "mpi: nccl before 2.26 on one stream, ${mesh}" APPEND PROPERTY
      ENVIRONMENT TRAINCTL_EMULATED_NCCL_VERSION=22505)
  endforeach()
  emulated_run("quickstart, two ranks on one emulated GPU" 1 0 "memory, which is slow: ranks 0 and 1 on .* share one GPU"
    run ${quickstart} --ranks 2)
  # A rank of the quickstart needs 1.15 MB.
  set(too_little "a rank of this run needs at least .* kB are free")
  set(checked check ${PROJECT_SOURCE_DIR}/configs/quickstart.yaml --device cuda --ranks 2)
  emulated_run("check, two ranks on two emulated GPUs of 1.2 MB" 2 0 "2 replicas" ${checked})
  emulated_run("check, two ranks on one emulated GPU of 1.2 MB" 1 6 "${too_little}" ${checked})
  emulated_run("run, two ranks on one emulated GPU of 1.2 MB" 1 6 "${too_little}" run ${quickstart} --ranks 2)
  set_property(TEST "mpi: check, two ranks on two emulated GPUs of 1.2 MB"
    "mpi: check, two ranks on one emulated GPU of 1.2 MB" "mpi: run, two ranks on one emulated GPU of 1.2 MB"
    APPEND PROPERTY ENVIRONMENT TRAINCTL_EMULATED_GPU_BYTES=1200000)
  emulated_run("quickstart, as many ranks as emulated GPUs" 2 0 "completed after 12 steps" run ${quickstart})
  emulated_run("quickstart, one rank on an emulated GPU" 1 0 "completed after 12 steps" run ${quickstart} --ranks 1)
  emulated_run("two ranks want NCCL on one emulated GPU" 1 2 "2 ranks, but this host has 1 GPU"
    run ${quickstart} --ranks 2 --set cluster.communication=nccl)
  emulated_run("bench comm on two emulated GPUs" 2 0 "all_reduce, 2 ranks, nccl"
    bench comm ${PROJECT_SOURCE_DIR}/configs/quickstart.yaml --device cuda --ranks 2 --seconds 0.001)
endif()

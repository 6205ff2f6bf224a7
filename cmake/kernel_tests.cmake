# The tests of test/core/backend and test/core/ops that test/cuda runs, too, are compiled once. trainctl_kernel_tests(FOLDER
# LIBRARIES NAMES...) makes the object library trainctl_kernel_tests_FOLDER of the files of test/core/FOLDER with these names.
function(trainctl_kernel_tests folder libraries)
  list(TRANSFORM ARGN REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/test/core/${folder}/\\1.cpp" OUTPUT_VARIABLE sources)
  set(name trainctl_kernel_tests_${folder})
  add_library(${name} OBJECT ${sources})
  trainctl_unity(${name})
  target_compile_options(${name} PRIVATE -O1)
  target_compile_definitions(${name} PRIVATE TRAINCTL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${libraries} Catch2::Catch2)
endfunction()

trainctl_kernel_tests(backend trainctl_core_backend
  along_axis_test attention_test batch_norm_pool_test batch_norm_test copies_test cache_test ctc_test dense_test
  elementwise_test embedding_test expression_ops_test random_numbers_test global_max_pool2d_test gradients_test
  norm_test linear_cross_entropy_test losses_test masked_batch_norm_test masks_test metrics_test one_hot_test
  placement_cases placement_image_cases placement_training_cases placement_test pool2d_test prelu_test
  recurrent_states_test recurrent_test rotary_test rounded_sum_test spectral_norm_test synchronized_batch_norm_test
  tree_sum_test update_test run_op)
trainctl_kernel_tests(ops "trainctl_core_exec;trainctl_parallel_comm;trainctl_io_checkpoint;trainctl_io_yaml"
  attention_cases convolution_cases expression_cases golden golden_test joined_ops_test keras_case keras_masks_test
  keras_steps_test keras_volumes_test masked_batch_norm_test metric_cases muon_test op_cases op_cases_test run_case
  spectral_norm_test training_test)

// Stands before the toolkit's header of this name: adds what nvcc knows without a header.
#pragma once

#include_next <cuda_runtime.h>

#include "test/emulated_gpu/device_code.h"

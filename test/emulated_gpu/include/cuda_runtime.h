// Replaces the toolkit's header of this name: includes it and adds what nvcc defines without a header.
#pragma once

#include_next <cuda_runtime.h>

#include "test/emulated_gpu/device_code.h"

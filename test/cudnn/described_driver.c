// Replaces CUDA's driver (libcuda.so.1) on machines without one: it describes an H100 and accepts kernels without
// running them. That is all that cuDNN needs to list and compile the engines that it compiles at run time.
#include <cuda.h>
#include <dlfcn.h>
#include <stddef.h>

// The function for all other calls of the driver.
__attribute__((used)) static CUresult refuse(void) { return CUDA_ERROR_NOT_SUPPORTED; }
#define REFUSE(name) __asm__(".globl " #name "\n.set " #name ", refuse")

CUresult cuInit(unsigned flags) {
  (void)flags;
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int *version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char **name) {
  (void)error;
  *name = "CUDA_ERROR";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char **text) { return cuGetErrorName(error, text); }

CUresult cuDeviceGetCount(int *count) {
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int number) {
  *device = number;
  return number == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  (void)device;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      *value = 32;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = 232448;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  *context = NULL;
  return CUDA_SUCCESS;
}

// The handle of every compiled kernel: any address will do.
static int something;

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit, void **jit_values, unsigned jits,
                           CUlibraryOption *options, void **values, unsigned count) {
  (void)code, (void)jit, (void)jit_values, (void)jits, (void)options, (void)values, (void)count;
  *library = (CUlibrary)&something;
  return CUDA_SUCCESS;
}
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  (void)library, (void)name;
  *kernel = (CUkernel)&something;
  return CUDA_SUCCESS;
}
CUresult cuLibraryUnload(CUlibrary library) {
  (void)library;
  return CUDA_SUCCESS;
}
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
  (void)attribute, (void)value, (void)kernel, (void)device;
  return CUDA_SUCCESS;
}
CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device) {
  (void)attribute, (void)kernel, (void)device;
  *value = 0;
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction kernel, const CUlaunchConfig *configuration) {
  (void)kernel, (void)configuration;
  *size = 8;
  return CUDA_SUCCESS;
}

// Returns empty tables of calls between CUDA's own libraries; the first word of a table is its size.
CUresult cuGetExportTable(const void **table, const CUuuid *which) {
  static const size_t empty[] = {sizeof(size_t)};
  (void)which;
  *table = empty;
  return CUDA_SUCCESS;
}

// cuDNN looks for these calls by name, and does not use the library if one is missing.
REFUSE(cuCtxGetLimit);
REFUSE(cuCtxPopCurrent);
REFUSE(cuCtxPushCurrent);
REFUSE(cuStreamGetCtx);
REFUSE(cuLinkCreate);
REFUSE(cuLinkAddData);
REFUSE(cuLinkComplete);
REFUSE(cuLinkDestroy);
REFUSE(cuLaunchKernel);
REFUSE(cuLaunchKernelEx);
REFUSE(cuLaunchCooperativeKernel);
REFUSE(cuLibraryLoadFromFile);

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *result) {
  (void)version, (void)flags;
  void *self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  *function = self != NULL ? dlsym(self, name) : NULL;
  if (*function == NULL) *function = (void *)refuse;
  if (result != NULL) *result = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}
#undef cuGetProcAddress
CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

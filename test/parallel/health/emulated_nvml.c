// An emulated libnvidia-ml.so.1. TRAINCTL_EMULATED_GPUS is the number of GPUs (1 by default), whose UUIDs are those of
// test/emulated_gpu. The file that TRAINCTL_EMULATED_NVML names, which every call reads again, has a line for each GPU:
// utilization in percent, used and total memory in MiB, temperature, milliwatts, clock and highest clock in MHz,
// reasons for throttling (hexadecimal). A value of -1 means that the GPU does not support it. With
// TRAINCTL_EMULATED_MIG the GPUs have the UUIDs of MIG instances.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { success = 0, invalid_argument = 2, not_supported = 3, not_found = 6, driver_not_loaded = 9 };

struct gpu {
  long utilization, used, total, temperature, milliwatts, clock, max_clock, reasons;
};

static char handles[64];  // their addresses are the device handles

static unsigned gpu_count(void) {
  const char* number = getenv("TRAINCTL_EMULATED_GPUS");
  return number ? (unsigned)atoi(number) : 1;
}

static int index_of(void* device) { return (int)((char*)device - handles); }

static struct gpu gpu_of(void* device) {
  struct gpu g = {87, 2048, 81559, 55, 412000, 1755, 1980, 0};
  const char* path = getenv("TRAINCTL_EMULATED_NVML");
  FILE* file = path ? fopen(path, "r") : NULL;
  if (!file) return g;
  for (int line = 0; line <= index_of(device); ++line) {
    if (fscanf(file, "%ld %ld %ld %ld %ld %ld %ld %lx", &g.utilization, &g.used, &g.total, &g.temperature,
               &g.milliwatts, &g.clock, &g.max_clock, (unsigned long*)&g.reasons) != 8)
      break;
  }
  fclose(file);
  return g;
}

static int store_value(unsigned* to, long value) {
  *to = (unsigned)value;
  return value < 0 ? not_supported : success;
}

int nvmlInit_v2(void) { return gpu_count() > 0 ? success : driver_not_loaded; }
int nvmlShutdown(void) { return success; }
const char* nvmlErrorString(int status) { return status == driver_not_loaded ? "Driver Not Loaded" : "Unknown Error"; }

int nvmlSystemGetDriverVersion(char* text, unsigned size) { return snprintf(text, size, "580.65.06") < 0; }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = gpu_count();
  return success;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= gpu_count()) return invalid_argument;
  *device = handles + index;
  return success;
}
int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  (void)device;
  return snprintf(text, size, "Emulated GPU") < 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  return snprintf(text, size, "%s-656d756c-6174-6564-2d%02x-000000000000", getenv("TRAINCTL_EMULATED_MIG") ? "MIG" : "GPU", '0' + index_of(device)) < 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  char own[96];
  for (unsigned index = 0; index < gpu_count(); ++index) {
    nvmlDeviceGetUUID(handles + index, own, sizeof own);
    if (strcmp(own, uuid) == 0) return nvmlDeviceGetHandleByIndex_v2(index, device);
  }
  return not_found;
}

struct pci {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
int nvmlDeviceGetPciInfo_v3(void* device, struct pci* pci) {
  memset(pci, 0, sizeof *pci);
  snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", (unsigned)index_of(device) + 1);
  return success;
}

struct rates {
  unsigned gpu, memory;
};
int nvmlDeviceGetUtilizationRates(void* device, struct rates* rates) {
  rates->memory = 1;
  return store_value(&rates->gpu, gpu_of(device).utilization);
}
struct memory {
  unsigned long long total, free, used;
};
int nvmlDeviceGetMemoryInfo(void* device, struct memory* memory) {
  const struct gpu g = gpu_of(device);
  if (g.total < 0) return not_supported;
  memory->total = (unsigned long long)g.total << 20;
  memory->used = (unsigned long long)g.used << 20;
  memory->free = memory->total - memory->used;
  return success;
}
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* degrees) {
  return sensor == 0 ? store_value(degrees, gpu_of(device).temperature) : invalid_argument;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  return store_value(milliwatts, gpu_of(device).milliwatts);
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const long milliwatts = gpu_of(device).milliwatts;
  *millijoules = (unsigned long long)((double)milliwatts * ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec));
  return milliwatts < 0 ? not_supported : success;
}
int nvmlDeviceGetClockInfo(void* device, int kind, unsigned* mhz) {
  return kind == 1 ? store_value(mhz, gpu_of(device).clock) : invalid_argument;
}
int nvmlDeviceGetMaxClockInfo(void* device, int kind, unsigned* mhz) {
  return kind == 1 ? store_value(mhz, gpu_of(device).max_clock) : invalid_argument;
}
// This function exists only under its older name, as in drivers before 535.
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = (unsigned long long)gpu_of(device).reasons;
  return success;
}
// Neighbours are linked: 0 with 1, 2 with 3.
int nvmlDeviceGetP2PStatus(void* one, void* other, int capability, int* status) {
  *status = capability == 0 || (capability == 2 && index_of(one) / 2 == index_of(other) / 2) ? 0 : 5;
  return success;
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* active) {
  (void)device;
  *active = link < 4 && gpu_count() > 1;
  return success;
}

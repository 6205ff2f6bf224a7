// System calls of this test program that fail on demand: they stand before the C library's.
#pragma once

namespace trainctl::test {

// From now on the k-th call, counted from 1, of pread or of readdir fails with EIO, once; 0: none. Returns how many
// calls there were since the last time.
int fail_pread(int k);
int fail_readdir(int k);

}  // namespace trainctl::test

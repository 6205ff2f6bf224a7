// System calls of this test program that fail on demand; they replace those of the C library.
#pragma once

namespace trainctl::test {

// Lets the k-th call of pread or of readdir from now on, counted from 1, fail with EIO; 0 for none. Returns the number
// of calls since the last time.
int fail_pread(int k);
int fail_readdir(int k);

// Whether flock fails from now on, as on a file system without locks.
void fail_flock(bool fails);

}  // namespace trainctl::test

#!/usr/bin/env python3
"""Makes the volumes of test/golden/nifti with nibabel, and their values as nibabel reads them. Needs nibabel and safetensors.

    python3 test/golden/nifti.py

values.safetensors has for each file its values [depth, height, width, channels].
"""
import pathlib

import nibabel
import numpy as np
from safetensors.numpy import save_file

folder = pathlib.Path(__file__).parent / "nifti"
rng = np.random.default_rng(49)
values = {}


def save(name, array, slope=None, intercept=None, order="<"):
    image = nibabel.Nifti1Image(array, np.eye(4), nibabel.Nifti1Header(endianness=order))
    image.header.set_data_dtype(array.dtype.newbyteorder(order))
    if slope is not None:
        image.header.set_slope_inter(slope, intercept)
    nibabel.save(image, folder / name)
    read = nibabel.load(folder / name).get_fdata()
    read = read.reshape(*read.shape[:3], -1)
    values[name] = np.ascontiguousarray(read.transpose(2, 1, 0, 3)).astype(np.float32)


save("scaled.nii.gz", rng.integers(-1000, 1000, (3, 4, 5)).astype(np.int16), 0.25, -7.5)
save("bytes.nii", rng.integers(0, 256, (2, 3, 4)).astype(np.uint8))
save("channels.nii", rng.standard_normal((2, 3, 4, 3)).astype(np.float32))
save("swapped.nii.gz", rng.standard_normal((3, 2, 2, 1, 2)).astype(np.float64), order=">")
save_file(values, folder / "values.safetensors")
for name, value in values.items():
    print(name, value.shape, value.ravel()[:3])

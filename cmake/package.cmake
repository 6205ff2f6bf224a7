# Makes a Debian package of the installed files: `cpack -G DEB` in a build folder. scripts/bundle also makes the package.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME trainctl)
set(CPACK_PACKAGE_VENDOR trainctl)
set(CPACK_PACKAGE_CONTACT "the trainctl developers <trainctl@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trains neural networks on many GPUs from one YAML file")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
# Adds the packages of the program's libraries as dependencies. CUDA's packages are not among them, because the program
# loads its CUDA module only if CUDA's libraries are installed.
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package_depends.cmake)
include(CPack)

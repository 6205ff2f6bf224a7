# A Debian package of what is installed: `cpack -G DEB` in a build folder; scripts/bundle makes it, too.
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
# The packages that the program's libraries are in. CUDA's are not among them: the module that needs them is loaded only
# where they are.
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package_depends.cmake)
include(CPack)

# Finds the dependencies of the Debian package when it is packed: the packages of the program's libraries, and mpirun's.
list(GET CPACK_INSTALL_CMAKE_PROJECTS 0 build)
set(work ${CPACK_TOPLEVEL_DIRECTORY}/depends)
file(WRITE ${work}/debian/control "Source: trainctl\n\nPackage: trainctl\nArchitecture: any\n")
execute_process(COMMAND dpkg-shlibdeps -O ${build}/trainctl ${build}/trainctl_listen.so
  WORKING_DIRECTORY ${work} OUTPUT_VARIABLE found ERROR_VARIABLE why RESULT_VARIABLE code)
if(code OR NOT found MATCHES "shlibs:Depends=([^\n]+)")
  message(FATAL_ERROR "dpkg-shlibdeps (package dpkg-dev) cannot find the dependencies of ${build}/trainctl: ${why}")
endif()
set(CPACK_DEBIAN_PACKAGE_DEPENDS "${CMAKE_MATCH_1}, openmpi-bin")

# Compiles up to twelve sources of a folder together (kernels: six), because most of a source's compile time goes into
# headers that its neighbours also include. A name in an anonymous namespace must therefore be unique in its folder. Each
# test file has its own namespace.
option(TRAINCTL_UNITY "Compile the sources of a folder together" ON)

# Calls act(NAME SOURCES...) for each group of the sources that end with the suffix. NAME is made of the
# folder and the number of the group.
macro(trainctl_groups suffix act)
  set(most 12)
  if("${suffix}" STREQUAL "cu")
    set(most 6)
  endif()
  set(folders)
  foreach(source ${ARGN})
    if(source MATCHES "\\.${suffix}$")
      get_filename_component(folder ${source} ABSOLUTE)
      get_filename_component(folder ${folder} DIRECTORY)
      file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${folder})
      string(MAKE_C_IDENTIFIER "${folder}_${suffix}" folder)
      if(NOT folder IN_LIST folders)
        list(APPEND folders ${folder})
        set(of_${folder})
      endif()
      list(APPEND of_${folder} ${source})
    endif()
  endforeach()
  foreach(folder ${folders})
    list(LENGTH of_${folder} count)
    math(EXPR groups "(${count} + ${most} - 1) / ${most}")
    foreach(group RANGE 1 ${groups})
      math(EXPR begin "(${group} - 1) * ${count} / ${groups}")
      math(EXPR size "${group} * ${count} / ${groups} - ${begin}")
      list(SUBLIST of_${folder} ${begin} ${size} sources)
      cmake_language(CALL ${act} ${folder}_${group} ${sources})
    endforeach()
  endforeach()
endmacro()

function(trainctl_unity_group name)
  set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${name})
endfunction()

# Groups the sources of a target that has all its sources. main.cpp may configure the headers that it includes, so it is
# compiled alone.
function(trainctl_unity target)
  if(NOT TRAINCTL_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  trainctl_groups(cpp trainctl_unity_group ${sources})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# Writes a CUDA source that includes the sources of a group.
function(trainctl_unity_cuda_group name)
  list(TRANSFORM ARGN REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE text)
  list(JOIN text "" text)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/unity/${name}.cu CONTENT "${text}" @ONLY)
  set(files ${files} ${PROJECT_BINARY_DIR}/unity/${name}.cu PARENT_SCOPE)
endfunction()

# Replaces the kernels in the list VARIABLE by sources that include them. CMake itself can do this from version 3.31 on.
function(trainctl_unity_cuda variable)
  if(TRAINCTL_UNITY)
    set(files ${${variable}})
    list(FILTER files EXCLUDE REGEX "\\.cu$")
    trainctl_groups(cu trainctl_unity_cuda_group ${${variable}})
    set(${variable} ${files} PARENT_SCOPE)
  endif()
endfunction()

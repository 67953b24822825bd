# Evaluates a vcpkg port. vcpkg's own program comes from no registry of packages, so this file stands in for it: it defines the
# functions that the port adead calls, with what they do on Linux, and fails for other calls and arguments.
#
#   cmake -DPORT_DIR=… -DWORK=… -DVCPKG_LIBRARY_LINKAGE=static|dynamic [-DFEATURES=a;b] [-DVCPKG_CMAKE_CONFIGURE_OPTIONS=…] \
#     -P ci/vcpkg.cmake
#
# It installs into WORK/package, as vcpkg does, and builds in WORK/build. VCPKG_CMAKE_CONFIGURE_OPTIONS are a triplet's.
cmake_minimum_required(VERSION 3.19)

get_filename_component(PORT "${PORT_DIR}" NAME)
set(CURRENT_PACKAGES_DIR "${WORK}/package")
file(REMOVE_RECURSE "${WORK}")

# What vcpkg does before it runs the port.
file(READ "${PORT_DIR}/vcpkg.json" manifest)
string(JSON name GET "${manifest}" name)
if(NOT name STREQUAL PORT)
  message(FATAL_ERROR "the folder of the port is ${PORT}, and its name is ${name}")
endif()
foreach(feature IN LISTS FEATURES)
  string(JSON description GET "${manifest}" features "${feature}" description)
  message(STATUS "${feature}: ${description}")
endforeach()

set(VCPKG_TARGET_ARCHITECTURE x64)
cmake_host_system_information(RESULT machine QUERY OS_PLATFORM)
if(machine STREQUAL "aarch64")
  set(VCPKG_TARGET_ARCHITECTURE arm64)
endif()

# arguments(OPTIONS ONE MANY ARGUMENT…): parses the arguments of the calling function, and refuses unknown ones.
macro(arguments options one many)
  cmake_parse_arguments(arg "${options}" "${one}" "${many}" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${CMAKE_CURRENT_FUNCTION}: unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
endmacro()

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_check_features)
  arguments("" OUT_FEATURE_OPTIONS FEATURES ${ARGN})
  set(options)
  while(arg_FEATURES)
    list(POP_FRONT arg_FEATURES feature variable)
    # Fails if vcpkg.json has no such feature.
    string(JSON known GET "${manifest}" features "${feature}" description)
    set(value OFF)
    if(feature IN_LIST FEATURES)
      set(value ON)
    endif()
    set(${variable} ${value} PARENT_SCOPE)
    list(APPEND options "-D${variable}=${value}")
  endwhile()
  set(${arg_OUT_FEATURE_OPTIONS} ${options} PARENT_SCOPE)
endfunction()

function(vcpkg_check_linkage)
  arguments(ONLY_DYNAMIC_LIBRARY "" "" ${ARGN})
  set(VCPKG_LIBRARY_LINKAGE dynamic PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  arguments("" SOURCE_PATH OPTIONS ${ARGN})
  if(NOT VCPKG_BUILD_TYPE STREQUAL "release")
    message(FATAL_ERROR "this stand-in builds nothing for debugging")
  endif()
  set(shared OFF)
  if(VCPKG_LIBRARY_LINKAGE STREQUAL "dynamic")
    set(shared ON)
  endif()
  run("${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${WORK}/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=${shared}
    "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" -DCMAKE_INSTALL_LIBDIR:STRING=lib -DCMAKE_INSTALL_BINDIR:STRING=bin
    -DCMAKE_DISABLE_SOURCE_CHANGES=ON -DCMAKE_ERROR_ON_ABSOLUTE_INSTALL_DESTINATION=ON ${arg_OPTIONS} ${VCPKG_CMAKE_CONFIGURE_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
  arguments("" "" "" ${ARGN})
  run("${CMAKE_COMMAND}" --build "${WORK}/build" --target install)
endfunction()

# The CMake package moves to share/PORT, one folder less deep.
function(vcpkg_cmake_config_fixup)
  arguments("" CONFIG_PATH "" ${ARGN})
  set(share "${CURRENT_PACKAGES_DIR}/share/${PORT}")
  file(GLOB files "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/*.cmake")
  file(COPY ${files} DESTINATION "${share}")
  get_filename_component(parent "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}" DIRECTORY)
  file(REMOVE_RECURSE "${parent}")
  file(GLOB files "${share}/*.cmake")
  foreach(file IN LISTS files)
    file(READ "${file}" text)
    string(REGEX REPLACE "(PACKAGE_PREFIX_DIR \"\\\${CMAKE_CURRENT_LIST_DIR})/\\.\\./(\\.\\./)*\"" "\\1/../../\"" text "${text}")
    file(WRITE "${file}" "${text}")
  endforeach()
endfunction()

# What a static library needs becomes what every program links.
function(vcpkg_fixup_pkgconfig)
  arguments("" "" "" ${ARGN})
  file(GLOB files "${CURRENT_PACKAGES_DIR}/lib/pkgconfig/*.pc")
  foreach(file IN LISTS files)
    file(READ "${file}" text)
    if(VCPKG_LIBRARY_LINKAGE STREQUAL "static")
      string(REGEX REPLACE "\nLibs: ([^\n]*)\nLibs\\.private: ([^\n]*)" "\nLibs: \\1 \\2" text "${text}")
    endif()
    file(WRITE "${file}" "${text}")
  endforeach()
endfunction()

function(vcpkg_install_copyright)
  arguments("" "" FILE_LIST ${ARGN})
  file(INSTALL ${arg_FILE_LIST} DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}" RENAME copyright)
endfunction()

include("${PORT_DIR}/portfile.cmake")

# What vcpkg checks after the port, as far as it concerns this one.
foreach(file copyright usage "${PORT}Config.cmake")
  if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/share/${PORT}/${file}")
    message(FATAL_ERROR "the port installs no share/${PORT}/${file}")
  endif()
endforeach()
file(GLOB_RECURSE files "${CURRENT_PACKAGES_DIR}/*.cmake" "${CURRENT_PACKAGES_DIR}/*.pc" "${CURRENT_PACKAGES_DIR}/*.h*")
foreach(file IN LISTS files)
  file(READ "${file}" text)
  string(FIND "${text}" "${WORK}" at)
  if(NOT at EQUAL -1)
    message(FATAL_ERROR "${file} names ${WORK}")
  endif()
endforeach()

# The sources are the checkout that this port is part of, because adead has no published release. For a release, vcpkg_from_github
# with its REF and SHA512 replaces this line. vcpkg does not notice changes of the checkout: docs/c-api.md says how to build again.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)
if(NOT EXISTS "${SOURCE_PATH}/CMakeLists.txt")
  message(FATAL_ERROR "${SOURCE_PATH} has no CMakeLists.txt: use this port as an overlay port, in its place in a checkout of adead")
endif()

find_program(ADEAD_CARGO cargo HINTS "$ENV{CARGO_HOME}/bin" "$ENV{HOME}/.cargo/bin")
if(NOT ADEAD_CARGO)
  message(FATAL_ERROR "cargo builds adead, and PATH has no cargo: install Rust 1.89, https://rustup.rs")
endif()

# "native" of vcpkg.json would also refuse x64-linux-dynamic where x64-linux is the host.
cmake_host_system_information(RESULT machine QUERY OS_PLATFORM)
if(NOT "${VCPKG_TARGET_ARCHITECTURE} ${machine}" MATCHES "^(x64 x86_64|arm64 aarch64)$")
  message(FATAL_ERROR "this port builds for this machine, ${machine}: for ${VCPKG_TARGET_ARCHITECTURE} use CMake's ADEAD_RUST_TARGET")
endif()

vcpkg_check_features(OUT_FEATURE_OPTIONS feature_options
  FEATURES
    minimal ADEAD_MINIMAL
    models ADEAD_MODELS
)
# libadead_models is only a shared library.
if(ADEAD_MODELS)
  vcpkg_check_linkage(ONLY_DYNAMIC_LIBRARY)
endif()

# Cargo builds one library, which programs with and without debugging use.
set(VCPKG_BUILD_TYPE release)
set(VCPKG_POLICY_MISMATCHED_NUMBER_OF_BINARIES enabled)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    "-DADEAD_CARGO=${ADEAD_CARGO}"
    ${feature_options}
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/adead)
vcpkg_fixup_pkgconfig()

# CMake installs both kinds of the library. A triplet has one.
if(VCPKG_LIBRARY_LINKAGE STREQUAL "static")
  file(GLOB other_kind "${CURRENT_PACKAGES_DIR}/lib/libadead.so*")
else()
  set(other_kind "${CURRENT_PACKAGES_DIR}/lib/libadead.a")
endif()
file(REMOVE ${other_kind})

file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")

# Builds libadead with cargo and lays it out in ${PROJECT_BINARY_DIR}/lib as it is installed.

find_program(ADEAD_CARGO cargo HINTS "$ENV{CARGO_HOME}/bin" "$ENV{HOME}/.cargo/bin")
if(NOT ADEAD_CARGO)
  message(FATAL_ERROR "adead is built by cargo, and there is none: see https://rustup.rs, or set ADEAD_CARGO")
endif()

set(profile release)
set(features)
if(ADEAD_MINIMAL)
  set(profile minimal)
  set(features --no-default-features)
endif()
if(ADEAD_GRADIENTS)
  list(APPEND features --features autograd)
endif()
set(cargo_build ${CMAKE_COMMAND} -E env --unset=CARGO_BUILD_TARGET "${ADEAD_CARGO}" build --profile ${profile} --locked
    --target-dir "${ADEAD_CARGO_TARGET_DIR}" --manifest-path "${PROJECT_SOURCE_DIR}/Cargo.toml")
set(built "${ADEAD_CARGO_TARGET_DIR}/${profile}")
if(ADEAD_RUST_TARGET)
  list(APPEND cargo_build --target "${ADEAD_RUST_TARGET}")
  set(built "${ADEAD_CARGO_TARGET_DIR}/${ADEAD_RUST_TARGET}/${profile}")
endif()

set(libraries "${PROJECT_BINARY_DIR}/lib")
set(adead_soname "libadead.so.${PROJECT_VERSION_MAJOR}")
set(adead_shared "libadead.so.${PROJECT_VERSION}")

# What the static library has of an unwinder (bindings/c/support/src/runtime.rs) is for itself alone.
if(CMAKE_OBJCOPY AND NOT APPLE AND NOT WIN32)
  set(keep_own "${CMAKE_OBJCOPY}")
  foreach(function Backtrace GetIPInfo GetTextRelBase GetDataRelBase)
    list(APPEND keep_own --localize-symbol=_Unwind_${function})
  endforeach()
  list(APPEND keep_own "${built}/libadead.a" "${libraries}/libadead.a.new")
else()
  set(keep_own "${CMAKE_COMMAND}" -E copy "${built}/libadead.a" "${libraries}/libadead.a.new")
endif()

# Cargo knows best whether there is something to do, so it is always asked. It runs in the checkout, where it finds .cargo/config.toml
# also if the build tree is elsewhere.
add_custom_target(adead_cargo ALL
  COMMAND ${cargo_build} -p adead-artifact ${features}
  COMMAND ${CMAKE_COMMAND} -E make_directory "${libraries}"
  COMMAND ${CMAKE_COMMAND} -E copy_if_different "${built}/libadead.so" "${libraries}/${adead_shared}"
  COMMAND ${CMAKE_COMMAND} -E create_symlink "${adead_shared}" "${libraries}/${adead_soname}"
  COMMAND ${CMAKE_COMMAND} -E create_symlink "${adead_soname}" "${libraries}/libadead.so"
  COMMAND ${keep_own}
  COMMAND ${CMAKE_COMMAND} -E copy_if_different "${libraries}/libadead.a.new" "${libraries}/libadead.a"
  COMMAND ${CMAKE_COMMAND} -E remove "${libraries}/libadead.a.new"
  BYPRODUCTS "${libraries}/${adead_shared}" "${libraries}/${adead_soname}" "${libraries}/libadead.so"
             "${libraries}/libadead.a"
  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
  COMMENT "Building libadead with cargo"
  VERBATIM)

# Models, in a library of their own; a build of its own too, or cargo would give libadead its features.
if(ADEAD_MODELS)
  set(adead_models_soname "libadead_models.so.${PROJECT_VERSION_MAJOR}")
  set(adead_models_shared "libadead_models.so.${PROJECT_VERSION}")
  add_custom_target(adead_models_cargo ALL
    COMMAND ${cargo_build} -p adead-models-c
    COMMAND ${CMAKE_COMMAND} -E make_directory "${libraries}"
    COMMAND ${CMAKE_COMMAND} -E copy_if_different "${built}/libadead_models.so" "${libraries}/${adead_models_shared}"
    COMMAND ${CMAKE_COMMAND} -E create_symlink "${adead_models_shared}" "${libraries}/${adead_models_soname}"
    COMMAND ${CMAKE_COMMAND} -E create_symlink "${adead_models_soname}" "${libraries}/libadead_models.so"
    BYPRODUCTS "${libraries}/${adead_models_shared}" "${libraries}/${adead_models_soname}"
               "${libraries}/libadead_models.so"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    COMMENT "Building libadead_models with cargo"
    VERBATIM)
  # Cargo runs once at a time.
  add_dependencies(adead_models_cargo adead_cargo)
endif()

# The targets, as adeadConfig.cmake gives them to others.
set(adead_include_dir "${PROJECT_SOURCE_DIR}/include")
set(adead_library_dir "${libraries}")
include("${CMAKE_CURRENT_LIST_DIR}/adeadTargets.cmake")
set_target_properties(adead::shared adead::static adead::adead PROPERTIES IMPORTED_GLOBAL ON)
add_dependencies(adead::shared adead_cargo)
add_dependencies(adead::static adead_cargo)
if(ADEAD_MODELS)
  set_target_properties(adead::models PROPERTIES IMPORTED_GLOBAL ON)
  add_dependencies(adead::models adead_models_cargo)
endif()

# find_package(adead) with this build tree in CMAKE_PREFIX_PATH or as adead_DIR.
include(CMakePackageConfigHelpers)
configure_package_config_file(cmake/adeadConfig.cmake.in "${PROJECT_BINARY_DIR}/adeadConfig.cmake"
  INSTALL_DESTINATION "${PROJECT_BINARY_DIR}" INSTALL_PREFIX "${PROJECT_BINARY_DIR}"
  PATH_VARS adead_include_dir adead_library_dir NO_CHECK_REQUIRED_COMPONENTS_MACRO)
configure_file(cmake/adeadTargets.cmake "${PROJECT_BINARY_DIR}/adeadTargets.cmake" COPYONLY)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/adeadConfigVersion.cmake" COMPATIBILITY SameMajorVersion)
